internal import Glibc

/// Signals as a set to block, and to wait for.
package struct SignalSet {
    private var mask = sigset_t()

    package init(_ signals: [Int32]) {
        // SAFETY: the mask is this value's, and is set during the calls, which keep no address.
        unsafe sigemptyset(&mask)
        for signal in signals { unsafe sigaddset(&mask, signal) }
    }

    /// Those that wait to be taken by this thread.
    static var pending: SignalSet {
        var set = SignalSet([])
        // SAFETY: the set is a local, which is set during the call.
        unsafe sigpending(&set.mask)
        return set
    }

    func contains(_ signal: Int32) -> Bool {
        var mask = mask
        // SAFETY: the mask is a local copy, which is read during the call.
        return unsafe sigismember(&mask, signal) == 1
    }

    /// Blocks them in this thread, and in those that it starts from now on.
    package func block() {
        var mask = mask
        // SAFETY: the mask is a local copy, which is read during the call; nil: the old one is not
        // wanted.
        unsafe pthread_sigmask(SIG_BLOCK, &mask, nil)
    }

    /// Takes one of them, which has to be blocked; nil where none came in time.
    package func take(nanoseconds: Int) -> Int32? {
        assert(nanoseconds >= 0, "a wait in the past returns at once, forever")
        var mask = mask
        var limit = timespec(
            tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
        // SAFETY: both are locals, which are read during the call; nil: no more than the signal is
        // wanted.
        let signal = unsafe sigtimedwait(&mask, nil, &limit)
        return signal > 0 ? signal : nil
    }
}
