import BroadsideEngine
import BroadsideLedgers
import BroadsideSupport

/// Checks each second whether the ledger is still at its path. After `rm -r`, the run would
/// continue with a ledger that has no path, and the next start would begin the campaign again. The
/// check runs on a separate thread, because the file system may hang.
final class LedgerWatch {
    private static var interval: UInt64 { second }

    private let location: LedgerLocation
    private let worker = BackgroundWorker<LedgerLocation, Bool> { $0.isVacant }
    private var nextCheck: UInt64

    init(_ directory: LedgerDirectory, now: Now) {
        location = directory.location
        nextCheck = now.nanoseconds + Self.interval
    }

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
