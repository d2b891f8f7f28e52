/// A rate that rises evenly within a time, and then stays: `--rate A..B/D`.
public struct RateRamp: Equatable, Sendable {
    /// Requests in 1,000 seconds at first.
    public let first: UInt64
    /// Requests in 1,000 seconds in the end.
    public let last: UInt64
    /// The time of sending within which the rate rises, nanoseconds.
    public let riseNanoseconds: UInt64

    /// - Parameters:
    ///   - first: requests in 1,000 seconds, at least 1.
    ///   - last: no less, and at most `RateLimiter.maximumMilliRate`.
    ///   - riseNanoseconds: above 0.
    public init(first: UInt64, last: UInt64, riseNanoseconds: UInt64) {
        precondition(
            first > 0 && first <= last && last <= RateLimiter.maximumMilliRate,
            "a ramp rises, within the rates that can be reckoned with")
        precondition(riseNanoseconds > 0, "a ramp takes some time")
        self.first = first
        self.last = last
        self.riseNanoseconds = riseNanoseconds
    }

    /// The rate rises in steps of this length: 100 ms, and less where that is more than a hundredth.
    var stepNanoseconds: UInt64 { min(100_000_000, max(1, riseNanoseconds / 100)) }

    /// Requests in 1,000 seconds after so many nanoseconds of sending: those at the beginning of the
    /// step, so that the rate is never ahead of the line.
    public func milliRate(after nanoseconds: UInt64) -> UInt64 {
        guard nanoseconds < riseNanoseconds else { return last }
        let time = nanoseconds - nanoseconds % stepNanoseconds
        let product = (last - first).multipliedFullWidth(by: time)
        // Less than `last - first`, as the time is less than the whole.
        let rise = riseNanoseconds.dividingFullWidth(product).quotient
        assert(first + rise <= last, "the rate stays below its end")
        return first + rise
    }

    /// Seconds that so many requests take at this rate after so many seconds of sending.
    public func seconds(for requests: Double, after sent: Double = 0) -> Double {
        let (first, last) = (Double(first) / 1000, Double(last) / 1000)
        let rise = Double(riseNanoseconds) / 1e9
        let sent = min(max(0, sent), rise)
        let slope = (last - first) / rise
        let now = first + slope * sent
        // What goes out until the rate is at its end.
        let rising = (now + last) / 2 * (rise - sent)
        if requests >= rising { return rise - sent + (requests - rising) / last }
        guard slope > 0 else { return requests / now }
        // now * t + slope * t^2 / 2 = requests
        return ((now * now + 2 * slope * requests).squareRoot() - now) / slope
    }
}

/// How far a ramp is: its clock runs while requests are made.
///
/// After a request it runs for a second more, or for as long as the rate has two requests apart if
/// that is longer; then it stands still until the next one. So the time before the first request,
/// pauses, outages and waits for the list do not count, nor does the time between two processes.
public struct RampClock: Equatable, Sendable {
    /// The rate that rises.
    public let ramp: RateRamp
    /// The time of sending so far, nanoseconds.
    public private(set) var sentNanoseconds: UInt64
    /// When the last request was made, and up to when time was counted: monotonic nanoseconds; nil
    /// before the first request.
    private var lastSent: UInt64?
    private var countedUntil: UInt64 = 0

    /// The longest time behind a request that counts, unless the rate is below one per second.
    static var graceNanoseconds: UInt64 { 1_000_000_000 }

    /// - Parameter sentNanoseconds: The time of sending of earlier processes.
    public init(_ ramp: RateRamp, sentNanoseconds: UInt64 = 0) {
        self.ramp = ramp
        self.sentNanoseconds = min(sentNanoseconds, ramp.riseNanoseconds)
    }

    /// Requests in 1,000 seconds.
    public var milliRate: UInt64 { ramp.milliRate(after: sentNanoseconds) }

    /// True once the rate rises no more.
    public var isOver: Bool { sentNanoseconds >= ramp.riseNanoseconds }

    /// The time of sending for which the rate still rises.
    public var secondsLeft: Double {
        Double(ramp.riseNanoseconds - sentNanoseconds) / 1e9
    }

    /// Counts the time up to now.
    public mutating func advance(to now: UInt64) {
        guard let lastSent, !isOver else { return }
        // What several threads say comes in no order.
        let end = min(now, lastSent + max(Self.graceNanoseconds, 1_000_000_000_000 / milliRate))
        guard end > countedUntil else { return }
        sentNanoseconds = min(sentNanoseconds + (end - countedUntil), ramp.riseNanoseconds)
        countedUntil = end
    }

    /// Requests were made at that time.
    public mutating func recordSent(at time: UInt64) {
        guard !isOver else { return }
        guard let lastSent else {
            self.lastSent = time
            countedUntil = time
            return
        }
        guard time > lastSent else { return }
        advance(to: time)
        self.lastSent = time
        countedUntil = max(countedUntil, time)
    }

    /// The time does not count from now on, up to the next request.
    public mutating func hold(at now: UInt64) {
        advance(to: now)
        lastSent = nil
    }

    /// When the rate rises next, monotonic nanoseconds; `.max` while the clock stands still.
    public func nextRise(after now: UInt64) -> UInt64 {
        guard lastSent != nil, !isOver, countedUntil >= now else { return .max }
        return countedUntil + (ramp.stepNanoseconds - sentNanoseconds % ramp.stepNanoseconds)
    }
}
