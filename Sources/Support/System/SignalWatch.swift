package import Glibc
internal import Synchronization

/// The signals that end or change a run, as something to wait for. Blocked in every thread, so that none is
/// interrupted: the main thread takes them from here.
package struct SignalWatch {
    /// What the main thread was woken by.
    package enum Event {
        case stop
        /// The credentials are to be read again.
        case reload
        /// A reactor's thread has ended.
        case finished
        case timeout
    }

    /// The signal by which threads say that they have ended; blocked like the others.
    static var notification: Int32 { SIGUSR1 }

    private let signals = SignalSet([SIGINT, SIGTERM, SIGHUP, notification])

    /// Called before any thread is started, as threads inherit what is blocked.
    package init() { signals.block() }

    /// Waits for a signal or the bell, at most so many milliseconds.
    package func wait(milliseconds: Int) -> Event {
        switch signals.take(nanoseconds: milliseconds * 1_000_000) {
        case SIGINT, SIGTERM: return .stop
        case SIGHUP: return .reload
        case Self.notification: return .finished
        default: return .timeout
        }
    }

    /// Whether a signal to stop came within so many milliseconds.
    package func isStopTaken(milliseconds: Int) -> Bool {
        if case .stop = wait(milliseconds: milliseconds) { return true }
        return false
    }

    /// Waits for the bell alone; signals wait on.
    package static func awaitNotification(milliseconds: Int) {
        _ = SignalSet([notification]).take(nanoseconds: milliseconds * 1_000_000)
    }

    /// Whether work before the first send is to end: a signal to stop waits to be taken and stays so,
    /// or `prepare` wants it.
    ///
    /// Such work looks here, as a list of hundreds of millions of rows is read for minutes.
    package static var isStopPending: Bool {
        let pending = SignalSet.pending
        return pending.contains(SIGINT) || pending.contains(SIGTERM)
            || isStopRequested.load(ordering: .relaxed)
    }

    /// What `prepare` tells its work.
    static let isStopRequested = Atomic<Bool>(false)

    /// From now on nothing is waited for: a second signal to stop was taken.
    package static func hurry() { hasSecondStop.store(true, ordering: .relaxed) }

    /// Whether the process is to end without waiting for those who read its output: a second signal to
    /// stop was taken, or one came that nothing takes any more.
    static var isStopUrgent: Bool {
        if hasSecondStop.load(ordering: .relaxed) { return true }
        let pending = SignalSet.pending
        return pending.contains(SIGINT) || pending.contains(SIGTERM)
    }

    private static let hasSecondStop = Atomic<Bool>(false)

    /// Ends what is only a preparation where somebody wants the run to stop.
    package static func stopIfRequested() throws(BroadsideError) {
        if isStopPending { throw stopped }
    }

    /// Why a run ended before it sent anything.
    package static var stopped: BroadsideError {
        BroadsideError(
            "interrupted before the first row was sent: run the same command with --resume to "
                + "continue", exitCode: 3)
    }

    /// Takes the signals to stop that wait: the next one is another.
    package static func takeStop() {
        isStopRequested.store(false, ordering: .relaxed)
        let stops = SignalSet([SIGINT, SIGTERM])
        while stops.take(nanoseconds: 0) != nil {}
    }

    /// Wakes the thread that waits. The signal is for that thread alone: in a program of others, one
    /// that does not block it would be killed by it.
    package static func notify(_ waiter: pthread_t) {
        pthread_kill(waiter, notification)
    }
}
