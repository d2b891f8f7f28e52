package import Glibc

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
    private static var bell: Int32 { SIGUSR1 }

    private let signals = SignalSet([SIGINT, SIGTERM, SIGHUP, bell])

    /// Called before any thread is started, as threads inherit what is blocked.
    package init() { signals.block() }

    /// Waits for a signal or the bell, at most so many milliseconds.
    package func wait(milliseconds: Int) -> Event {
        switch signals.take(nanoseconds: milliseconds * 1_000_000) {
        case SIGINT, SIGTERM: return .stop
        case SIGHUP: return .reload
        case Self.bell: return .finished
        default: return .timeout
        }
    }

    /// Whether a signal to stop waits to be taken; it stays so.
    ///
    /// Work before the first send looks here: nobody waits for signals meanwhile, and a list of
    /// hundreds of millions of rows is read for minutes.
    package static var isStopPending: Bool {
        let pending = SignalSet.pending
        return pending.contains(SIGINT) || pending.contains(SIGTERM)
    }

    /// Ends what is only a preparation where somebody wants the run to stop.
    package static func stopIfAsked() throws(BroadsideError) {
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
        let stops = SignalSet([SIGINT, SIGTERM])
        while stops.take(nanoseconds: 0) != nil {}
    }

    /// Wakes the thread that waits. The signal is for that thread alone: in a program of others, one
    /// that does not block it would be killed by it.
    package static func ring(_ waiter: pthread_t) {
        pthread_kill(waiter, bell)
    }
}
