/// A rate that rises evenly for a time and then stays constant: `--rate A..B/D`.
public struct RateRamp: Equatable, Sendable {
    /// Initial rate, in requests per 1,000 seconds.
    public let first: UInt64
    /// Final rate, in requests per 1,000 seconds.
    public let last: UInt64
    /// Sending time during which the rate rises, nanoseconds.
    public let riseNanoseconds: UInt64

    /// - Parameters:
    ///   - first: Requests per 1,000 seconds, at least 1.
    ///   - last: Requests per 1,000 seconds, from `first` to `RateLimiter.maximumMilliRate`.
    ///   - riseNanoseconds: Sending time during which the rate rises; more than 0.
    public init(first: UInt64, last: UInt64, riseNanoseconds: UInt64) {
        precondition(
            first > 0 && first <= last && last <= RateLimiter.maximumMilliRate,
            "the rates of a ramp must be within the supported range, and must not fall")
        precondition(riseNanoseconds > 0, "a ramp takes some time")
        self.first = first
        self.last = last
        self.riseNanoseconds = riseNanoseconds
    }

    /// Length of a step of the rate: 100 ms, or a hundredth of the rise if that is shorter.
    var stepNanoseconds: UInt64 { min(100_000_000, max(1, riseNanoseconds / 100)) }

    /// Returns the rate after `nanoseconds` of sending, in requests per 1,000 seconds. This is the
    /// rate at the beginning of the current step, so it is never above an even rise.
    public func milliRate(after nanoseconds: UInt64) -> UInt64 {
        guard nanoseconds < riseNanoseconds else { return last }
        let time = nanoseconds - nanoseconds % stepNanoseconds
        let product = (last - first).multipliedFullWidth(by: time)
        // Less than `last - first`, because the time is shorter than the rise.
        let rise = riseNanoseconds.dividingFullWidth(product).quotient
        assert(first + rise <= last, "the rate stays below its end")
        return first + rise
    }

    /// Seconds that a number of requests takes, after requests were already sent for `sent`
    /// seconds.
    public func seconds(for requests: Double, after sent: Double = 0) -> Double {
        let (first, last) = (Double(first) / 1000, Double(last) / 1000)
        let rise = Double(riseNanoseconds) / 1e9
        let sent = min(max(0, sent), rise)
        let slope = (last - first) / rise
        let now = first + slope * sent
        // Number of requests until the rate stops rising.
        let rising = (now + last) / 2 * (rise - sent)
        if requests >= rising { return rise - sent + (requests - rising) / last }
        guard slope > 0 else { return requests / now }
        // now * t + slope * t^2 / 2 = requests
        return ((now * now + 2 * slope * requests).squareRoot() - now) / slope
    }
}

/// The progress of a ramp, measured by a clock that runs only while requests are made.
///
/// After a request, the clock runs for one second, or for the interval between two requests at the
/// current rate if that is longer. Then it stops until the next request. So it does not count the
/// time before the first request, pauses, outages, waits for the list, or the time between two
/// processes.
public struct RampClock: Equatable, Sendable {
    /// The ramp of the rate.
    public let ramp: RateRamp
    /// Sending time so far, nanoseconds.
    public private(set) var sentNanoseconds: UInt64
    /// Time of the last request, monotonic nanoseconds; nil before the first request.
    private var lastSent: UInt64?
    /// Instant up to which `sentNanoseconds` is complete, monotonic nanoseconds.
    private var countedUntil: UInt64 = 0

    /// How long the clock runs after a request, nanoseconds. If the rate is below one request per
    /// second, the clock runs for the interval between two requests instead.
    static var graceNanoseconds: UInt64 { 1_000_000_000 }

    /// - Parameter sentNanoseconds: Sending time of earlier processes.
    public init(_ ramp: RateRamp, sentNanoseconds: UInt64 = 0) {
        self.ramp = ramp
        self.sentNanoseconds = min(sentNanoseconds, ramp.riseNanoseconds)
    }

    /// Current requests per 1,000 seconds.
    public var milliRate: UInt64 { ramp.milliRate(after: sentNanoseconds) }

    /// Whether the rate no longer rises.
    public var isOver: Bool { sentNanoseconds >= ramp.riseNanoseconds }

    /// Sending time until the rate stops rising, seconds.
    public var secondsLeft: Double {
        Double(ramp.riseNanoseconds - sentNanoseconds) / 1e9
    }

    /// Counts the time up to `now`.
    public mutating func advance(to now: UInt64) {
        guard let lastSent, !isOver else { return }
        // Threads report at different times, so their reports arrive in no particular order.
        let end = min(now, lastSent + max(Self.graceNanoseconds, 1_000_000_000_000 / milliRate))
        guard end > countedUntil else { return }
        sentNanoseconds = min(sentNanoseconds + (end - countedUntil), ramp.riseNanoseconds)
        countedUntil = end
    }

    /// Records that requests were sent at `time`, monotonic nanoseconds.
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

    /// Stops the clock until the next request.
    public mutating func hold(at now: UInt64) {
        advance(to: now)
        lastSent = nil
    }

    /// Time at which the rate rises next, monotonic nanoseconds; `.max` while the clock is stopped.
    public func nextRise(after now: UInt64) -> UInt64 {
        guard lastSent != nil, !isOver, countedUntil >= now else { return .max }
        return countedUntil + (ramp.stepNanoseconds - sentNanoseconds % ramp.stepNanoseconds)
    }
}
