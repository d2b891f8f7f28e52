internal import BroadsideHPACK

/// Time of the next attempt, as a response requests it: "The Retry-After field value can be either
/// an HTTP-date or a number of seconds to delay after receiving the response" (RFC 9110 section
/// 10.2.3).
///
/// Takes only four bytes, because each open stream has such a value. A number below 1,000,000,000
/// is a delay in seconds. Any other number is an instant in seconds since 1970; 1,000,000,000 is an
/// instant in 2001.
public struct RetryAfter: Sendable, Equatable {
    private var number: UInt32

    private init(number: UInt32) { self.number = number }

    /// Represents a response without a valid value.
    static var none: RetryAfter { RetryAfter(number: .max) }

    private static let firstInstant: UInt32 = 1_000_000_000

    /// Byte counts of `Sun Nov  6 08:49:37 1994` and `Wednesday, 09-Nov-94 08:49:37 GMT`, the
    /// shortest and the longest date.
    private static let dateCounts = 24...33

    /// Parses the decoded value of the field.
    init(_ text: RawSpan) {
        if let delay = Self.delay(text) {
            number = delay
        } else if Self.dateCounts.contains(text.byteCount), let instant = HTTPDate.parse(text) {
            // A past instant means no delay.
            number = UInt32(min(max(instant, UInt64(Self.firstInstant)), UInt64(UInt32.max - 1)))
        } else {
            self = .none
        }
    }

    /// Parses a delay in seconds; a delay above 31 years becomes 31 years.
    private static func delay(_ text: RawSpan) -> UInt32? {
        guard text.byteCount > 0, text.byteCount <= dateCounts.upperBound else { return nil }
        var delay: UInt32 = 0
        for offset in 0..<text.byteCount {
            let digit = text.byte(at: offset) &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            delay = UInt32(min(UInt64(delay) * 10 + UInt64(digit), UInt64(firstInstant - 1)))
        }
        return delay
    }

    /// Delay in seconds, counted from `unixSeconds` (seconds since 1970); nil if the response
    /// requests none.
    public func seconds(from unixSeconds: UInt64) -> UInt64? {
        if number == .max { return nil }
        if number < Self.firstInstant { return UInt64(number) }
        return UInt64(number) - min(UInt64(number), unixSeconds)
    }
}
