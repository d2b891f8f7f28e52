import BroadsideSupport

/// Decides whether a row is sent again, and when.
public struct RetryPolicy: Sendable, Equatable {
    /// `--max-attempts`: a row fails after this many attempts, but not before
    /// `retryForNanoseconds`.
    var maximumAttempts: Int
    /// `--retry-for`: minimum time for which a row is tried, from its first attempt, nanoseconds.
    var retryForNanoseconds: UInt64
    /// Delay between the first and the second attempt, without jitter, nanoseconds.
    var firstDelayNanoseconds: UInt64
    /// Maximum delay between two attempts, without jitter, nanoseconds.
    var longestDelayNanoseconds: UInt64

    /// Maximum retry delay in a run that gives up after this time without a response. It is shorter
    /// than that time, so that waiting for a row's retry does not make the run give up.
    public static func longestDelay(giveUpAfter nanoseconds: UInt64) -> UInt64 {
        min(60_000_000_000, nanoseconds / 4 * 3)
    }

    /// Creates a policy; the defaults are 5 attempts and 30 minutes.
    ///
    /// According to Apple, a retry after 15 minutes is fine for a 5xx. Thirty minutes leave time
    /// for two such retries, so that an outage of 15 minutes leaves no row failed.
    public init(
        maximumAttempts: Int = 5, retryForNanoseconds: UInt64 = 1_800_000_000_000,
        firstDelayNanoseconds: UInt64 = 500_000_000,
        longestDelayNanoseconds: UInt64 = 60_000_000_000
    ) {
        precondition(maximumAttempts >= 1, "a row is sent at least once")
        self.maximumAttempts = maximumAttempts
        self.retryForNanoseconds = retryForNanoseconds
        self.firstDelayNanoseconds = firstDelayNanoseconds
        self.longestDelayNanoseconds = longestDelayNanoseconds
    }

    /// Outcome of an attempt that did not settle its row.
    public enum Verdict: Sendable, Equatable {
        /// The row is sent again, at this instant.
        case again(dueNanoseconds: UInt64)
        /// The row is `failed`: attempts and time are both used up.
        case failed
    }

    /// Decides whether and when a row is sent again after an attempt that did not settle it.
    ///
    /// - Parameters:
    ///   - attempts: Number of attempts, including this one.
    ///   - firstAttempt: Time of the first attempt, monotonic nanoseconds.
    ///   - now: Monotonic nanoseconds.
    ///   - retryAfterNanoseconds: Retry-After of the response, which overrides a shorter delay.
    ///   - random: Source of the jitter.
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

    /// Delay after a number of attempts. It doubles with each attempt, up to a maximum. Jitter
    /// reduces it by up to half. So rows that were refused at the same time are sent again at
    /// different times.
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

/// The splitmix64 generator: a seed determines all values, as the deterministic simulation
/// requires.
public struct SplitMix64: RandomNumberGenerator, Sendable {
    private var state: UInt64

    /// Creates a generator; all seeds are equally good.
    public init(seed: UInt64) { state = seed }

    /// Returns the next 64 bits.
    public mutating func next() -> UInt64 {
        defer { state &+= 0x9e37_79b9_7f4a_7c15 }
        return splitmix64(state)
    }
}
