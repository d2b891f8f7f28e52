/// Limits the rate of requests: the generic cell rate algorithm in exact integers.
///
/// The state is one instant: the rate up to this instant is used up by the requests released so
/// far. The instant may be ahead of the clock by one burst. It can't be behind the clock, so unused
/// rate is lost (ITU-T I.371 annex A, "virtual scheduling").
///
/// The rate applies to the arrival of requests. A request arrives a little later than it is
/// released, because a thread may be stopped in between, or a send may wait. The contract's burst
/// allows for this delay. If the burst is five requests or more, only half of the burst is used,
/// and the other half absorbs the delay.
///
/// If the burst is a single request, a timer that fires late would cost part of each interval, and
/// the rate would not be reached. So the state may then be behind the clock by up to half a
/// request, as long as no window of 100 ms gets more than rate x 0.1 s + 1 requests.
public struct RateLimiter: Sendable {
    /// Requests per 1,000 seconds; nil for no limit, 0 for a pause.
    public private(set) var milliRate: UInt64?
    /// Maximum number of requests released at one instant.
    private(set) var burst: UInt64
    /// Minimum number of requests for which a reactor wakes up: the requests of one millisecond. If
    /// requests were sent one by one, each would cost a TLS record, a send and an iteration.
    /// `Int.max` without a limit.
    public private(set) var quantum: Int
    /// Instant until which the requests released so far use up the rate; in nanoseconds, rounded
    /// down.
    private var usedUntil: UInt64
    /// Fraction of a nanosecond that rounding removed from `usedUntil`, multiplied by
    /// `countedRate`; less than `countedRate`.
    private var remainder: UInt64 = 0
    /// The rate to which `usedUntil` and `remainder` refer: `milliRate`, or during a pause the rate
    /// before it.
    private var countedRate: UInt64?

    /// The cost of one request, in nanoseconds times milli-requests per second.
    private static var unit: UInt64 { 1_000_000_000_000 }

    /// Maximum rate: 100 million requests per second, so that no product overflows.
    public static var maximumMilliRate: UInt64 { 100_000_000_000 }

    /// - Parameters:
    ///   - milliRate: Requests per 1,000 seconds, at most `maximumMilliRate`; nil for no limit.
    ///   - now: Monotonic nanoseconds.
    public init(milliRate: UInt64?, now: UInt64) {
        self.milliRate = milliRate
        burst = RateLimiter.usedBurst(milliRate)
        quantum = RateLimiter.quantum(milliRate)
        usedUntil = now
        countedRate = milliRate
    }

    /// The contract's burst: max(1, rate x 10 ms).
    static func burst(_ milliRate: UInt64?) -> UInt64 {
        guard let milliRate else { return .max }
        precondition(milliRate <= maximumMilliRate, "the rate is above the supported maximum")
        return max(1, milliRate / 100_000)
    }

    /// Part of the contract's burst that is used.
    private static func usedBurst(_ milliRate: UInt64?) -> UInt64 {
        let whole = burst(milliRate)
        return milliRate == nil || whole < 5 ? whole : (whole + 1) / 2
    }

    private static func quantum(_ milliRate: UInt64?) -> Int {
        milliRate.map { max(1, Int($0 / 1_000_000)) } ?? .max
    }

    /// Number of requests that may be sent now; `Int.max` without a limit.
    public func allowance(now: UInt64) -> Int {
        guard let milliRate else { return .max }
        if milliRate == 0 { return 0 }
        let room = burst * RateLimiter.unit
        if usedUntil < now { return Int(burst) }
        let (ahead, overflow) = (usedUntil - now).multipliedReportingOverflow(by: milliRate)
        let (used, overflow2) = ahead.addingReportingOverflow(remainder)
        if overflow || overflow2 || used >= room { return 0 }
        return Int((room - used) / RateLimiter.unit)
    }

    /// Counts requests that are sent now, at most `allowance(now:)`.
    public mutating func take(_ count: Int, now: UInt64) {
        guard let milliRate, count > 0 else { return }
        precondition(count <= allowance(now: now), "more requests than the rate allows")
        let earliest = now - min(now, latenessForgiven)
        if usedUntil < earliest {
            usedUntil = earliest
            remainder = 0
        }
        let (nanoseconds, rest) = (UInt64(count) * RateLimiter.unit + remainder)
            .quotientAndRemainder(dividingBy: milliRate)
        usedUntil += nanoseconds
        remainder = rest
    }

    /// How far the state may be behind the clock, nanoseconds. 0 if the burst is more than one
    /// request, because several requests at once then make up for a late timer.
    private var latenessForgiven: UInt64 {
        guard let milliRate, milliRate > 0, burst == 1 else { return 0 }
        // A window of 100 ms permits rate x 0.1 + 1 requests, rounded down. Lateness may add less
        // than the rest up to the next whole number, because rounding down then removes it again.
        // `room` is in ten-thousandths of a request.
        let room = min(5_000, 9_999 - milliRate % 10_000)
        return room * 100_000_000 / milliRate
    }

    /// Instant from which the rate no longer delays a request. Rate that is not used after this
    /// instant is lost. 0 without a limit, `.max` while paused.
    public var holdsUntil: UInt64 {
        guard let milliRate else { return 0 }
        return milliRate == 0 ? .max : usedUntil + latenessForgiven
    }

    /// Returns the first instant from `now` on at which `count` requests, at most a burst, may be
    /// sent; nil while paused.
    public func nextAllowed(_ count: Int = 1, now: UInt64) -> UInt64? {
        guard let milliRate else { return now }
        if milliRate == 0 { return nil }
        precondition(count > 0 && count <= burst, "the count is from 1 to the burst")
        if allowance(now: now) >= count { return now }
        // The first t with (usedUntil - t) * milliRate + remainder <= (burst - count) * unit.
        let room = (burst - UInt64(count)) * RateLimiter.unit
        if remainder > room { return usedUntil + 1 }
        return max(now, usedUntil - (room - remainder) / milliRate)
    }

    /// Changes the rate from now on.
    ///
    /// Requests that were released ahead of time still count, but at most one burst of the new
    /// rate. Otherwise, a slow new rate would have to make up for all requests that a fast old rate
    /// allowed. During a pause, the number of these requests falls at the rate before the pause.
    public mutating func setRate(milliRate new: UInt64?, now: UInt64) {
        let level = levelInUnits(now: now)
        milliRate = new
        burst = RateLimiter.usedBurst(new)
        quantum = RateLimiter.quantum(new)
        if new == 0 { return }
        countedRate = new
        usedUntil = now
        remainder = 0
        guard let new else { return }
        let (nanoseconds, rest) = min(level, burst * RateLimiter.unit)
            .quotientAndRemainder(dividingBy: new)
        usedUntil = now + nanoseconds
        remainder = rest
    }

    /// Requests that were released ahead of time, multiplied by `unit`.
    private func levelInUnits(now: UInt64) -> UInt64 {
        guard let countedRate, usedUntil >= now else { return 0 }
        let (ahead, overflow) = (usedUntil - now).multipliedReportingOverflow(by: countedRate)
        let (level, overflow2) = ahead.addingReportingOverflow(remainder)
        return overflow || overflow2 ? .max : level
    }
}
