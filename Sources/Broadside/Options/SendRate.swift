internal import BroadsidePolicy
import BroadsideSupport

/// Value of `--rate`: requests per second, constant or rising within a time.
public struct SendRate: Equatable, Sendable, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral
{
    /// Initial rate, in requests per second, above 0.
    public let first: Double
    /// Final rate, in requests per second, at least `first`.
    public let last: Double
    /// Duration of the rise, in nanoseconds; 0 if the rate is constant. Time in which no requests
    /// are sent is not included.
    public let riseNanoseconds: UInt64

    /// Creates a constant rate. A run refuses a rate that is not above 0.
    public init(_ perSecond: Double) {
        self.init(perSecond, perSecond, 0)
    }

    /// Creates a rate that rises linearly within the given time, and then stays constant. Time in
    /// which no requests are sent is not included.
    ///
    /// - Returns: nil if the rate falls, `first` is not positive or the time is 0.
    public init?(from first: Double, to last: Double, withinNanoseconds: UInt64) {
        guard first > 0, first <= last, withinNanoseconds > 0 else { return nil }
        self.init(first, last, withinNanoseconds)
    }

    /// Creates a constant rate.
    public init(integerLiteral value: Int) { self.init(Double(value)) }

    /// Creates a constant rate.
    public init(floatLiteral value: Double) { self.init(value) }

    /// Example of a rising rate, for messages.
    static let rampForm = "100..5000/10m"

    /// Parses `N` or `A..B/D`.
    ///
    /// - Parameter range: Permitted rates.
    /// - Throws: A description of the error, to append to the option's name.
    package init(_ text: String, in range: ClosedRange<Double>) throws(Problem) {
        guard let dots = text.firstRange(of: "..") else {
            guard let rate = decimalNumber(text), range.contains(rate) else {
                throw Problem(isRamp: false, "'\(text)' is not a number of requests per second")
            }
            self.init(rate)
            return
        }
        let parts = text[dots.upperBound...].split(
            separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.count == 2, !text.contains("..."),
            let first = decimalNumber(String(text[..<dots.lowerBound])),
            let last = decimalNumber(String(parts[0])), range.contains(first), range.contains(last)
        else {
            throw Problem(
                isRamp: true,
                "'\(text)' is not a rising rate: write it like \(Self.rampForm), which rises from "
                    + "100 to 5,000 requests per second within 10 minutes")
        }
        guard let within = parseDuration(String(parts[1])), within > 0 else {
            throw Problem(
                isRamp: true,
                "'\(text)' does not say how long the rise takes: write it like \(Self.rampForm)")
        }
        guard first <= last else {
            throw Problem(
                isRamp: true,
                "'\(text)' falls, but a rate can only rise: write \(parts[0])..\(text[..<dots.lowerBound])/\(parts[1]), or "
                    + "write one rate, and lower it with broadside control")
        }
        self.init(first, last, within)
    }

    private init(_ first: Double, _ last: Double, _ riseNanoseconds: UInt64) {
        self.first = first
        self.last = last
        self.riseNanoseconds = riseNanoseconds
    }

    /// Error in a rate's text.
    package struct Problem: Error {
        /// Whether the text looks like a rising rate.
        package let isRamp: Bool
        package let message: String

        init(isRamp: Bool, _ message: String) {
            self.isRamp = isRamp
            self.message = message
        }
    }

    /// The ramp of a rising rate; nil if the rate is constant.
    var ramp: RateRamp? {
        guard first < last, riseNanoseconds > 0 else { return nil }
        return RateRamp(
            first: milliRate(first), last: max(milliRate(first), milliRate(last)),
            riseNanoseconds: riseNanoseconds)
    }

    /// Human-readable description.
    var words: String {
        guard ramp != nil else { return "\(rateLimitText(last)) requests per second" }
        return "from \(rateLimitText(first)) to \(rateLimitText(last)) requests per second within "
            + "\(durationText(Double(riseNanoseconds) / 1e9)) of sending"
    }
}

extension SendRate? {
    /// Text about the operator's change to this rate; nil: no limit.
    var changeText: String {
        guard let rate = self else { return "set the rate to unlimited" }
        return "set the rate to \(rate.ramp == nil ? "" : "rise ")\(rate.words)"
    }
}

extension SendOptions {
    /// Human-readable rate limits, of the run and of each connection.
    var rateDescription: String {
        let own = ratePerConnection.map { "\(SendRate($0).words) per connection" }
        guard let rate else { return own ?? "no rate limit" }
        return own.map { "\(rate.words), at most \($0)" } ?? rate.words
    }
}

/// Converts a rate per second to the unit of the rate limiter.
func milliRate(_ perSecond: Double) -> UInt64 {
    UInt64(min(max(1, (perSecond * 1000).rounded()), Double(RateLimiter.maximumMilliRate)))
}
