import BroadsideSupport
internal import Glibc

/// Delays between the attempts of a single request.
enum RepeatDelay {
    /// Longest delay that a command waits, seconds. If a response asks for a longer delay, the
    /// command does not wait.
    static let limitSeconds: UInt64 = 60

    /// Returns the delay before the next attempt, in seconds: 1 s, doubled after each attempt,
    /// unless the response asks for another delay. A shorter delay than 1 s is 1 s; a longer one
    /// than `limitSeconds` is nil.
    ///
    /// - Parameter attempts: Number of attempts so far, from 1.
    static func seconds(after attempts: Int, retryAfter: UInt64?) -> UInt64? {
        assert(attempts > 0, "a delay follows an attempt")
        if let retryAfter { return retryAfter <= limitSeconds ? max(1, retryAfter) : nil }
        return min(limitSeconds, 1 << UInt64(min(attempts - 1, 6)))
    }

    /// Waits for the given time, even if signals arrive.
    static func wait(seconds: UInt64) {
        var rest = UInt32(seconds)
        // sleep(3) returns the remaining seconds if a signal interrupts it.
        while rest > 0 { rest = sleep(rest) }
    }
}
