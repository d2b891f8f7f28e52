import BroadsideEngine
import BroadsideLists
internal import BroadsidePolicy
import BroadsideSupport
internal import Synchronization

/// What a run's end has to know of the list: how many rows it has, and its hash. Another thread reads
/// it, as its disk may hang; who takes the signals waits while it makes progress.
final class ListEnd {
    private let source: ListSource
    private let coordinator: RunCoordinator
    private let signals: SignalWatch
    /// Nobody else reads the list any more.
    private var isFree: Bool

    /// The longest wait for a read, and for another thread's disk at a run's end, milliseconds.
    static var diskPatience: Int { 5000 }

    /// Waits until the list's own thread lets go of it; not for long, as its disk may hang.
    init(
        _ source: ListSource, of services: ReactorServices, _ coordinator: RunCoordinator,
        _ signals: SignalWatch
    ) {
        self.source = source
        self.coordinator = coordinator
        self.signals = signals
        for _ in 0..<Self.diskPatience / 10
        where !services.hasListEnded && !coordinator.isStoppingAtOnce {
            if signals.isStopTaken(milliseconds: 10) {
                coordinator.stopAtOnce()
                SignalWatch.hurry()
            }
        }
        isFree = services.hasListEnded
    }

    /// The row behind the list's last; nil if it is not known.
    ///
    /// The rest of the list is read once more if rows may be left, to say how many. A list that can't
    /// be read on was reported before.
    ///
    /// - Parameter stop: What stopped the run; the next signal ends the reading then.
    func endRow(stop: StopCause?) -> UInt64? {
        let source = source
        return read(endsOnSignals: stop != nil) { isEnded in
            try source.countRows(isCancelled: isEnded)
        }
    }

    /// The hash of the whole list; nil where it was not read. Asked after `endRow`.
    func contentHash() -> String? {
        let source = source
        return read(endsOnSignals: true) { isEnded in
            try source.contentHash(isCancelled: isEnded)
        }
    }

    /// Between the thread that reads and the one that waits for it.
    private final class Order: Sendable {
        let isEnded = Atomic<Bool>(false)
        /// How often the reader has asked whether it is to end: it makes progress.
        let looks = Atomic<Int>(0)
    }

    /// nil where the reading failed or was ended, and where it hangs: the list is not touched any more
    /// then.
    private func read<Value>(
        endsOnSignals: Bool,
        _ work: @escaping (_ isEnded: () -> Bool) throws -> Value?
    ) -> Value? {
        guard isFree else { return nil }
        let order = Order()
        let coordinator = coordinator
        let side = SideWork<Value?> {
            let value = try? work {
                order.looks.add(1, ordering: .relaxed)
                return order.isEnded.load(ordering: .relaxed) || coordinator.isStoppingAtOnce
            }
            return value ?? nil
        }
        var looks = 0
        var idle = 0
        while idle < Self.diskPatience {
            if let result = side.result { return result }
            if !endsOnSignals {
                SignalWatch.awaitNotification(milliseconds: 10)
            } else if signals.isStopTaken(milliseconds: 10) {
                break
            }
            let now = order.looks.load(ordering: .relaxed)
            idle = now == looks ? idle + 10 : 0
            looks = now
        }
        order.isEnded.store(true, ordering: .relaxed)
        isFree = false
        return nil
    }
}
