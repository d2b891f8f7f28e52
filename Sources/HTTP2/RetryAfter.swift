internal import BroadsideHPACK

/// What a response says of when to come again: "The Retry-After field value can be either an
/// HTTP-date or a number of seconds to delay after receiving the response" (RFC 9110 section 10.2.3).
///
/// Four bytes, because every open stream has one: a number below 1,000,000,000 is a delay, one from
/// there on an instant, which it has been since 2001.
public struct RetryAfter: Sendable, Equatable {
    private var number: UInt32

    private init(number: UInt32) { self.number = number }

    /// The response says nothing of it, or nothing that makes sense.
    static var none: RetryAfter { RetryAfter(number: .max) }

    private static let firstInstant: UInt32 = 1_000_000_000

    /// The bytes of `Sun, 06 Nov 1994 08:49:37 GMT`, the longest that means something.
    static let longestCount = 29

    /// Reads the field's value, decoded.
    init(_ text: RawSpan) {
        if let delay = Self.delay(text) {
            number = delay
        } else if text.byteCount == Self.longestCount, let instant = HTTPDate.parse(text) {
            // A past one asks for no delay.
            number = UInt32(min(max(instant, UInt64(Self.firstInstant)), UInt64(UInt32.max - 1)))
        } else {
            self = .none
        }
    }

    /// A number of seconds, of any number of digits; from 31 years on, as many as there are room for.
    private static func delay(_ text: RawSpan) -> UInt32? {
        guard text.byteCount > 0, text.byteCount <= longestCount else { return nil }
        var delay: UInt32 = 0
        for offset in 0..<text.byteCount {
            let digit = text.byte(at: offset) &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            delay = UInt32(min(UInt64(delay) * 10 + UInt64(digit), UInt64(firstInstant - 1)))
        }
        return delay
    }

    /// The delay in seconds from an instant on, in seconds since 1970; nil where none is asked for.
    public func seconds(from unixSeconds: UInt64) -> UInt64? {
        if number == .max { return nil }
        if number < Self.firstInstant { return UInt64(number) }
        return UInt64(number) - min(UInt64(number), unixSeconds)
    }
}
