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

    private var mask = sigset_t()

    /// The signal by which threads say that they have ended; blocked like the others.
    private static var bell: Int32 { SIGUSR1 }

    /// Called before any thread is started, as threads inherit the mask.
    package init() {
        unsafe sigemptyset(&mask)
        for signal in [SIGINT, SIGTERM, SIGHUP, Self.bell] {
            unsafe sigaddset(&mask, signal)
        }
        unsafe pthread_sigmask(SIG_BLOCK, &mask, nil)
    }

    /// Waits for a signal or the bell, at most so many milliseconds.
    package func wait(milliseconds: Int) -> Event {
        var mask = mask
        var limit = timespec(
            tv_sec: milliseconds / 1000, tv_nsec: milliseconds % 1000 * 1_000_000)
        switch unsafe sigtimedwait(&mask, nil, &limit) {
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
        var pending = sigset_t()
        guard unsafe sigpending(&pending) == 0 else { return false }
        return unsafe sigismember(&pending, SIGINT) == 1 || sigismember(&pending, SIGTERM) == 1
    }

    /// Ends what is only a preparation where somebody wants the run to stop.
    package static func stopIfAsked() throws(BroadsideError) {
        if isStopPending { throw stopped }
    }

    /// Why a run ended before it sent anything.
    package static var stopped: BroadsideError {
        BroadsideError(
            "stopped by a signal before the first row was sent: --resume goes on", exitCode: 3)
    }

    /// Takes the signals to stop that wait: the next one is another.
    package static func takeStop() {
        var mask = sigset_t()
        unsafe sigemptyset(&mask)
        unsafe sigaddset(&mask, SIGINT)
        unsafe sigaddset(&mask, SIGTERM)
        var limit = timespec()
        while unsafe sigtimedwait(&mask, nil, &limit) > 0 {}
    }

    /// Wakes the thread that waits. The signal is for that thread alone: in a program of others, one
    /// that does not block it would be killed by it.
    package static func ring(_ waiter: pthread_t) {
        pthread_kill(waiter, bell)
    }
}
