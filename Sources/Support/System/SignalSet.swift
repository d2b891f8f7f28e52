internal import Glibc

/// A set of signals to block and to wait for.
package struct SignalSet {
    private var mask = sigset_t()

    package init(_ signals: [Int32]) {
        // SAFETY: the mask belongs to this value and is written during the calls, which keep no
        // address.
        unsafe sigemptyset(&mask)
        for signal in signals { unsafe sigaddset(&mask, signal) }
    }

    /// The signals pending for this thread.
    static var pending: SignalSet {
        var set = SignalSet([])
        // SAFETY: the set is a local variable, written during the call.
        unsafe sigpending(&set.mask)
        return set
    }

    /// The signals that this thread blocks.
    static var blocked: SignalSet {
        var set = SignalSet([])
        // SAFETY: the set is a local, which is set during the call; nil: nothing is changed.
        unsafe pthread_sigmask(SIG_BLOCK, nil, &set.mask)
        return set
    }

    /// Makes this thread block the signals of the set and no others.
    func become() {
        var mask = mask
        // SAFETY: the mask is a local copy, which is read during the call; nil: the old one is not
        // wanted.
        unsafe pthread_sigmask(SIG_SETMASK, &mask, nil)
    }

    func contains(_ signal: Int32) -> Bool {
        var mask = mask
        // SAFETY: the mask is a local copy, read during the call.
        return unsafe sigismember(&mask, signal) == 1
    }

    /// Blocks the signals in this thread and in the threads that it subsequently starts.
    package func block() {
        var mask = mask
        // SAFETY: the mask is a local copy, read during the call; nil means that the old mask is
        // not requested.
        unsafe pthread_sigmask(SIG_BLOCK, &mask, nil)
    }

    /// Waits for a signal of the set, consumes it and returns it; nil if none arrives in time. The
    /// signals must be blocked.
    package func take(nanoseconds: Int) -> Int32? {
        assert(nanoseconds >= 0, "a wait in the past returns at once, forever")
        var mask = mask
        var limit = timespec(
            tv_sec: nanoseconds / 1_000_000_000, tv_nsec: nanoseconds % 1_000_000_000)
        // SAFETY: both are local variables, read during the call; nil means that only the signal
        // number is requested.
        let signal = unsafe sigtimedwait(&mask, nil, &limit)
        return signal > 0 ? signal : nil
    }
}
