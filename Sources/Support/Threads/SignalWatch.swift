package import Glibc
internal import Synchronization

/// The signals that end or change a run, as events to wait for. They are blocked in every thread,
/// so that no thread is interrupted, and the main thread receives them here. A hosted run receives
/// no signals: its host's requests have the same effects.
package struct SignalWatch {
    /// The event that woke the main thread.
    package enum Event {
        case stop
        /// The run must reload the credentials.
        case reload
        /// A reactor thread has ended.
        case finished
        case timeout
    }

    /// The signal with which a thread reports its end. It is blocked in every thread.
    static var notification: Int32 { SIGUSR1 }

    private let signals = SignalSet([SIGINT, SIGTERM, SIGHUP, notification])

    /// Blocks the signals. Must be called before any thread is started, because threads inherit the
    /// mask.
    package init() {
        if HostedRun.current == nil { signals.block() }
    }

    /// Waits for a signal, or the notification of a thread, for at most the given number of
    /// milliseconds.
    package func wait(milliseconds: Int) -> Event { wait(microseconds: 1000 * milliseconds) }

    private func wait(microseconds: Int) -> Event {
        if let host = HostedRun.current {
            return host.wait(milliseconds: max(microseconds / 1000, 1))
        }
        switch signals.take(nanoseconds: 1000 * microseconds) {
        case SIGINT, SIGTERM:
            Self.takeRepeatedStops()
            return .stop
        case SIGHUP: return .reload
        case Self.notification: return .finished
        default: return .timeout
        }
    }

    /// Discards stop signals that follow another one at once. timeout(1) signals the process, and
    /// then the process's group. For the run, these two signals are one request to stop.
    private static func takeRepeatedStops() {
        let stops = SignalSet([SIGINT, SIGTERM])
        let end = Clock.now().nanoseconds + repeatedStopPeriod
        while true {
            let now = Clock.now().nanoseconds
            guard now < end, stops.take(nanoseconds: Int(end - now)) != nil else { return }
        }
    }

    /// Time after a stop signal in which further ones are the same request, in nanoseconds. It is
    /// shorter than the pause between two keystrokes.
    private static var repeatedStopPeriod: UInt64 { 100 * millisecond }

    /// Returns whether a stop signal arrived within the given number of milliseconds.
    package func isStopTaken(milliseconds: Int) -> Bool {
        isStopTaken(microseconds: 1000 * milliseconds)
    }

    /// Returns whether a stop signal arrived within the given number of microseconds.
    package func isStopTaken(microseconds: Int) -> Bool {
        if case .stop = wait(microseconds: microseconds) { return true }
        return false
    }

    /// Waits only for the notification of a thread; other signals stay pending.
    package static func awaitNotification(milliseconds: Int) {
        if let host = HostedRun.current {
            return host.awaitNotification(milliseconds: milliseconds)
        }
        _ = SignalSet([notification]).take(nanoseconds: milliseconds * 1_000_000)
    }

    /// Whether the work that precedes the first send has to end, because a stop signal is pending
    /// or `prepare` requests the end. Reading this property does not consume the signal.
    ///
    /// The work polls this property, because reading a list of hundreds of millions of rows takes
    /// minutes.
    package static var isStopPending: Bool {
        if let host = HostedRun.current { return host.isStopPending }
        let pending = SignalSet.pending
        return pending.contains(SIGINT) || pending.contains(SIGTERM)
            || isStopRequested.load(ordering: .relaxed)
    }

    /// Whether `prepare` has requested the end of its work.
    static let isStopRequested = Atomic<Bool>(false)

    /// Disables all further waiting after a second stop signal.
    package static func hurry() {
        // Only waits of the process's own output are disabled, and a hosted run does not use that
        // output.
        if HostedRun.current == nil { hasSecondStop.store(true, ordering: .relaxed) }
    }

    /// Whether the process must end without waiting for the readers of its output. True after a
    /// second stop signal, and also while a stop signal is pending, because nothing will handle it.
    static var isStopUrgent: Bool {
        if hasSecondStop.load(ordering: .relaxed) { return true }
        let pending = SignalSet.pending
        return pending.contains(SIGINT) || pending.contains(SIGTERM)
    }

    private static let hasSecondStop = Atomic<Bool>(false)

    /// Throws if preparatory work must end because a stop was requested.
    package static func stopIfRequested() throws(BroadsideError) {
        if isStopPending { throw stopped }
    }

    /// The error of a run that ended before it sent anything.
    package static var stopped: BroadsideError {
        BroadsideError(
            "interrupted before the first row was sent: run the same command with --resume to "
                + "continue", exitCode: 3)
    }

    /// Discards the pending stop signals and the request to stop, so that only a signal that
    /// arrives later interrupts the work that follows.
    package static func takeStop() {
        if let host = HostedRun.current { return host.takeStop() }
        isStopRequested.store(false, ordering: .relaxed)
        let stops = SignalSet([SIGINT, SIGTERM])
        while stops.take(nanoseconds: 0) != nil {}
    }

    /// Wakes the waiting thread. The signal goes only to that thread, because a thread of an
    /// embedding program might leave the signal unblocked, and the process would then end.
    package static func notify(_ waiter: pthread_t) {
        if let host = HostedRun.current { return host.notify() }
        pthread_kill(waiter, notification)
    }
}
