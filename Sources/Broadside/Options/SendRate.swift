internal import BroadsidePolicy
import BroadsideSupport

/// `--rate`: requests per second, one number, or from one to another within a time.
public struct SendRate: Equatable, Sendable, ExpressibleByIntegerLiteral,
    ExpressibleByFloatLiteral
{
    /// Requests per second at first, above 0.
    public let first: Double
    /// Requests per second in the end, no less.
    public let last: Double
    /// The time of sending within which the rate rises, nanoseconds; 0 if it does not.
    public let riseNanoseconds: UInt64

    /// The same all the time.
    public init(_ perSecond: Double) {
        self.init(perSecond, perSecond, 0)
    }

    /// Rises evenly, counted over the time in which the run sends, and then stays.
    ///
    /// - Returns: nil if it does not rise, or not within a time.
    public init?(from first: Double, to last: Double, withinNanoseconds: UInt64) {
        guard first > 0, first <= last, withinNanoseconds > 0 else { return nil }
        self.init(first, last, withinNanoseconds)
    }

    /// The same all the time.
    public init(integerLiteral value: Int) { self.init(Double(value)) }

    /// The same all the time.
    public init(floatLiteral value: Double) { self.init(value) }

    /// The form of a rate that rises, for messages.
    static let rampForm = "100..5000/10m"

    /// Reads `N` or `A..B/D`.
    ///
    /// - Parameter range: The numbers that are rates.
    /// - Throws: What is wrong with it, to stand behind its name.
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
                "'\(text)' is not a rate that rises: write it like \(Self.rampForm), from 100 to "
                    + "5,000 requests per second within 10 minutes")
        }
        guard let within = parseDuration(String(parts[1])), within > 0 else {
            throw Problem(
                isRamp: true,
                "'\(text)' names no time within which the rate rises: write it like "
                    + "\(Self.rampForm)")
        }
        guard first <= last else {
            throw Problem(
                isRamp: true,
                "'\(text)' falls: write \(parts[0])..\(text[..<dots.lowerBound])/\(parts[1]), or "
                    + "one rate and slow the run down with broadside control")
        }
        self.init(first, last, within)
    }

    private init(_ first: Double, _ last: Double, _ riseNanoseconds: UInt64) {
        assert(first > 0 && first <= last, "a rate does not fall")
        self.first = first
        self.last = last
        self.riseNanoseconds = riseNanoseconds
    }

    /// What is wrong with a text.
    package struct Problem: Error {
        /// Whether it was to be a rate that rises.
        package let isRamp: Bool
        package let message: String

        init(isRamp: Bool, _ message: String) {
            self.isRamp = isRamp
            self.message = message
        }
    }

    /// How it rises; nil if it does not.
    var ramp: RateRamp? {
        guard first < last, riseNanoseconds > 0 else { return nil }
        return RateRamp(
            first: milliRate(first), last: max(milliRate(first), milliRate(last)),
            riseNanoseconds: riseNanoseconds)
    }

    /// For people.
    var words: String {
        guard ramp != nil else { return "\(rateText(last)) requests per second" }
        return "from \(rateText(first)) to \(rateText(last)) requests per second within "
            + "\(durationText(Double(riseNanoseconds) / 1e9)) of sending"
    }

    /// What so many rows take, in seconds, if nothing else holds them up.
    func seconds(for rows: UInt64) -> Double {
        ramp?.seconds(for: Double(rows)) ?? Double(rows) / last
    }
}

/// A rate per second in the rate limiter's unit.
func milliRate(_ perSecond: Double) -> UInt64 {
    UInt64(min(max(1, (perSecond * 1000).rounded()), Double(RateLimiter.maximumMilliRate)))
}
