import BroadsideEngine
import BroadsideLedgers
import BroadsideSupport

/// Checks each second whether the ledger is still at its path, with the segments of the run. After
/// `rm -r`, the run would continue with a ledger that has no path, and the next start would begin
/// the campaign again. The check runs on a separate thread, because the file system may hang.
final class LedgerWatch {
    private static var interval: UInt64 { second }

    private var location: LedgerLocation
    private let worker = BackgroundWorker<LedgerLocation, Bool> { $0.isLost }
    private var nextCheck: UInt64

    init(_ directory: LedgerDirectory, now: Now) {
        location = directory.location
        nextCheck = now.nanoseconds + Self.interval
    }

    /// Also checks these segments of the run from now on.
    func watch(segments names: [String]) { location.segments = names }

    /// Whether the ledger is gone at this moment. May wait for the file system.
    var isGone: Bool { location.isLost }

    /// Whether the last check found that the ledger is gone. Starts the next check once it is due.
    func isGone(_ now: Now) -> Bool {
        if now.nanoseconds >= nextCheck, worker.isIdle {
            nextCheck = now.nanoseconds + Self.interval
            // Without a thread, the check is skipped.
            try? worker.put(location)
        }
        return worker.take() ?? false
    }
}
