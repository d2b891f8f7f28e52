import BroadsideEngine
import BroadsideLists
internal import BroadsidePolicy
import BroadsideSupport
internal import Synchronization

/// Row count and hash of the list, for the end of a run. Another thread reads the list, because its
/// disk may hang. The thread that takes signals waits as long as the read makes progress.
final class ListEnd {
    private let source: ListSource
    private let coordinator: RunCoordinator
    private let signals: SignalWatch
    /// Whether the list thread has ended.
    private var isFree: Bool

    /// Time limit in milliseconds for a read that makes no progress. At the end of a run, also the
    /// time limit for another thread's disk access.
    static var diskPatience: Int { 5000 }

    /// Waits until the list thread releases the list. The wait is limited, because the list's disk
    /// may hang.
    init(
        _ source: ListSource, of services: ReactorServices, _ coordinator: RunCoordinator,
        _ requests: OperatorRequests, _ signals: SignalWatch
    ) {
        self.source = source
        self.coordinator = coordinator
        self.signals = signals
        // Polls, because nothing notifies this thread. If the list thread is not reading, it ends
        // within a millisecond.
        var microseconds = 100
        for _ in 0..<Self.diskPatience / 10
        where !services.hasListEnded && !coordinator.isStoppingAtOnce {
            defer { microseconds = min(2 * microseconds, 10_000) }
            if signals.isStopTaken(microseconds: microseconds) { requests.handleSignal() }
        }
        isFree = services.hasListEnded
    }

    /// Number of the list's last row plus 1; nil if unknown.
    ///
    /// If rows may remain, the rest of the list is read to count them. If the list can't be read
    /// further, an earlier message has already reported it.
    ///
    /// - Parameter stop: Cause of the run's stop; nil if the run was not stopped. If it was
    ///   stopped, the next signal ends the read.
    func endRow(stop: StopCause?) -> UInt64? {
        let source = source
        return read(endsOnSignals: stop != nil) { isEnded in
            try source.countRows(isCancelled: isEnded)
        }
    }

    /// Hash of the whole list; nil if it was not read completely. Call after `endRow`.
    func contentHash() -> String? {
        let source = source
        return read(endsOnSignals: true) { isEnded in
            try source.contentHash(isCancelled: isEnded)
        }
    }

    /// The state shared by the thread that reads and the thread that waits for it.
    private final class Order: Sendable {
        let isEnded = Atomic<Bool>(false)
        /// Number of times that the reader has checked `isEnded`. It shows that the read makes
        /// progress.
        let checkCount = Atomic<Int>(0)
    }

    /// Runs the read on another thread. Returns nil if the read failed, was ended or hangs; the
    /// list must then not be accessed again.
    private func read<Value>(
        endsOnSignals: Bool,
        _ work: @escaping (_ isEnded: () -> Bool) throws -> Value?
    ) -> Value? {
        guard isFree else { return nil }
        let order = Order()
        let coordinator = coordinator
        let side = SideWork<Value?> {
            let value = try? work {
                order.checkCount.add(1, ordering: .relaxed)
                return order.isEnded.load(ordering: .relaxed) || coordinator.isStoppingAtOnce
            }
            return value ?? nil
        }
        var checkCount = 0
        var idle = 0
        while idle < Self.diskPatience {
            if let result = side.result { return result }
            if !endsOnSignals {
                SignalWatch.awaitNotification(milliseconds: 10)
            } else if signals.isStopTaken(milliseconds: 10) {
                break
            }
            let now = order.checkCount.load(ordering: .relaxed)
            idle = now == checkCount ? idle + 10 : 0
            checkCount = now
        }
        order.isEnded.store(true, ordering: .relaxed)
        isFree = false
        return nil
    }
}
