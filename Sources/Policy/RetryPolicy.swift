import BroadsideSupport

/// Whether a row is sent again, and when.
public struct RetryPolicy: Sendable, Equatable {
    /// `--max-attempts`: how often a row is sent at least before it fails.
    var maximumAttempts: Int
    /// `--retry-for`: for how long a row is tried at least, from its first attempt, nanoseconds.
    var retryForNanoseconds: UInt64
    /// The delay before the second attempt, before jitter, nanoseconds.
    var firstDelayNanoseconds: UInt64
    /// The longest delay, before jitter, nanoseconds.
    var longestDelayNanoseconds: UInt64

    /// The longest delay of a run that gives up after so long without a response: one that a row takes of
    /// its own accord must not be the reason.
    public static func longestDelay(giveUpAfter nanoseconds: UInt64) -> UInt64 {
        min(60_000_000_000, nanoseconds / 4 * 3)
    }

    /// The contract's defaults are 5 attempts and 15 minutes.
    public init(
        maximumAttempts: Int = 5, retryForNanoseconds: UInt64 = 900_000_000_000,
        firstDelayNanoseconds: UInt64 = 500_000_000,
        longestDelayNanoseconds: UInt64 = 60_000_000_000
    ) {
        precondition(maximumAttempts >= 1, "a row is sent at least once")
        self.maximumAttempts = maximumAttempts
        self.retryForNanoseconds = retryForNanoseconds
        self.firstDelayNanoseconds = firstDelayNanoseconds
        self.longestDelayNanoseconds = longestDelayNanoseconds
    }

    /// What becomes of a row that was not settled by its answer.
    public enum Verdict: Sendable, Equatable {
        /// Send it again, at this instant.
        case again(dueNanoseconds: UInt64)
        /// It is `failed`: attempts and time are both used up.
        case failed
    }

    /// Judges a row after an attempt that counted.
    ///
    /// - Parameters:
    ///   - attempts: how often it was sent, this time included.
    ///   - firstAttempt: when it was first sent, nanoseconds, monotonic.
    ///   - now: nanoseconds, monotonic.
    ///   - retryAfterNanoseconds: the answer's Retry-After, which wins over a shorter delay.
    ///   - random: decides the jitter.
    public func verdict(
        attempts: Int, firstAttempt: UInt64, now: UInt64, retryAfterNanoseconds: UInt64? = nil,
        random: inout some RandomNumberGenerator
    ) -> Verdict {
        let elapsed = now > firstAttempt ? now - firstAttempt : 0
        if attempts >= maximumAttempts, elapsed >= retryForNanoseconds { return .failed }
        let delay = max(
            delayNanoseconds(afterAttempts: attempts, random: &random), retryAfterNanoseconds ?? 0)
        let (due, overflow) = now.addingReportingOverflow(delay)
        return .again(dueNanoseconds: overflow ? .max : due)
    }

    /// The delay after so many attempts: doubled each time, capped, then between a half and the
    /// whole of that, so that rows refused together do not come back together.
    func delayNanoseconds(
        afterAttempts attempts: Int, random: inout some RandomNumberGenerator
    ) -> UInt64 {
        let doublings = UInt64(max(0, min(attempts - 1, 62)))
        let (product, overflow) = firstDelayNanoseconds.multipliedReportingOverflow(
            by: 1 << doublings)
        let whole = overflow ? longestDelayNanoseconds : min(product, longestDelayNanoseconds)
        return whole - UInt64.random(in: 0...whole / 2, using: &random)
    }
}

/// The generator of splitmix64: a seed decides all, which is what the simulation needs.
public struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Any seed is as good as another.
    public init(seed: UInt64) { state = seed }

    /// The next 64 bits.
    public mutating func next() -> UInt64 {
        defer { state &+= 0x9e37_79b9_7f4a_7c15 }
        return splitmix64(state)
    }
}
