import BroadsideEngine
import BroadsideLedgers
import BroadsideSupport

/// Looks each second whether the ledger is still where it was: after `rm -r` the run would go on, with a
/// ledger that nobody can read, and another start would find none and begin the campaign anew. On a
/// thread of its own, as the file system may hang.
final class LedgerWatch {
    private static var interval: UInt64 { second }

    private let location: LedgerLocation
    private let worker = BackgroundWorker<LedgerLocation, Bool> { $0.isVacant }
    private var nextCheck: UInt64

    init(_ directory: LedgerDirectory, now: Now) {
        location = directory.location
        nextCheck = now.nanoseconds + Self.interval
    }

    /// Whether the last look found it gone; begins the next one once it is due.
    func isGone(_ now: Now) -> Bool {
        if now.nanoseconds >= nextCheck, worker.isIdle {
            nextCheck = now.nanoseconds + Self.interval
            // Without a thread for it there is no look: the run is not worse off than it was.
            try? worker.put(location)
        }
        return worker.take() ?? false
    }
}
