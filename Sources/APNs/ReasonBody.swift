import BroadsidePrimitives

/// The body of a response other than 200, or the debug data of a GOAWAY.
///
/// Apple, "Handling notification responses from APNs": a JSON object with `reason` and, if the
/// status is 410, with `timestamp` in milliseconds. Deviations observed in practice (spaces around
/// the text, unknown keys, no JSON at all) must not cause an error, so parsing never fails: an
/// unreadable value is nil.
public struct ReasonBody: Sendable, Equatable {
    /// The reason; nil if it is absent or unknown.
    public var reason: Reason?
    /// The range of the reason's text in the body, without surrounding spaces and with escapes
    /// unchanged; nil if it is absent.
    public var textRange: Range<Int>?
    /// The time at which APNs determined that the token is invalid, Unix milliseconds.
    public var timestampMilliseconds: UInt64?
    /// Whether the body was a complete JSON object.
    var isWellFormed: Bool
    /// Whether the body has the text of a reason, known or unknown.
    package var hasReason: Bool { textRange.map { !$0.isEmpty } ?? false }

    /// Parses a body, in practice at most 512 bytes, without allocation.
    public static func parse(_ body: RawSpan) -> ReasonBody {
        var result = ReasonBody(
            reason: nil, textRange: nil, timestampMilliseconds: nil, isWellFormed: false)
        var tokenizer = JSONTokenizer()
        do {
            guard try tokenizer.next(in: body)?.kind == .objectStart else { return result }
            while let token = try tokenizer.next(in: body) {
                guard token.kind == .key, tokenizer.depth == 1 else { continue }
                guard let value = try tokenizer.next(in: body) else { break }
                if isKey(body, token, "reason"), value.kind == .string {
                    result.takeReason(body, value)
                } else if isKey(body, token, "timestamp"), value.kind == .number,
                    value.range.upperBound < body.byteCount
                {
                    // A number that ends with the bytes may be cut off.
                    result.timestampMilliseconds = milliseconds(body.extracting(value.range))
                }
            }
            result.isWellFormed = true
        } catch {
            // Plain text or truncated JSON: the values parsed so far remain valid.
        }
        return result
    }

    private mutating func takeReason(_ body: RawSpan, _ value: JSONTokenizer.Token) {
        var range = value.range
        while !range.isEmpty, TokenText.isBlank(TokenText.byte(body, range.lowerBound)) {
            range = range.lowerBound + 1..<range.upperBound
        }
        while !range.isEmpty, TokenText.isBlank(TokenText.byte(body, range.upperBound - 1)) {
            range = range.lowerBound..<range.upperBound - 1
        }
        assert(range.upperBound <= body.byteCount, "a reason is a part of the body")
        textRange = range
        reason = Reason(text: body.extracting(range))
    }

    private static func isKey(
        _ body: RawSpan, _ token: JSONTokenizer.Token, _ name: StaticString
    ) -> Bool {
        guard token.count == name.utf8CodeUnitCount else { return false }
        for position in 0..<token.count {
            // SAFETY: the position is inside the static string.
            let expected = unsafe name.utf8Start[position]
            if TokenText.byte(body, token.start + position) != expected { return false }
        }
        return true
    }

    /// Returns a JSON number in whole milliseconds: a fraction of one is dropped. nil for a minus
    /// sign and values beyond 64 bits.
    ///
    /// APNs writes digits only. Relays that read and rewrite a body may add a fraction or an
    /// exponent, such as `1.7E12`.
    private static func milliseconds(_ number: RawSpan) -> UInt64? {
        var wholeDigitCount = 0
        var end = 0
        var hasPoint = false
        scan: while end < number.byteCount {
            switch TokenText.byte(number, end) {
            case UInt8(ascii: "-"): return nil
            case UInt8(ascii: "."): hasPoint = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"): break scan
            default: wholeDigitCount += hasPoint ? 0 : 1
            }
            end += 1
        }
        wholeDigitCount += exponent(number, from: end)
        var value: UInt64 = 0
        for offset in 0..<end where wholeDigitCount > 0 {
            let byte = TokenText.byte(number, offset)
            if byte == UInt8(ascii: ".") { continue }
            guard let next = appending(byte - UInt8(ascii: "0"), to: value) else { return nil }
            value = next
            wholeDigitCount -= 1
        }
        // The exponent moves the point beyond the last digit. 20 zeros exceed 64 bits.
        for _ in 0..<min(max(wholeDigitCount, 0), 20) where value > 0 {
            guard let next = appending(0, to: value) else { return nil }
            value = next
        }
        return value
    }

    /// Returns the value of the exponent that begins at an offset; 0 if none begins there. A value
    /// that no number of a body can need is cut to a smaller one.
    private static func exponent(_ number: RawSpan, from start: Int) -> Int {
        var value = 0
        var isNegative = false
        for offset in start..<number.byteCount {
            switch TokenText.byte(number, offset) {
            case UInt8(ascii: "-"): isNegative = true
            case let byte where byte &- UInt8(ascii: "0") < 10:
                value = min(value * 10 + Int(byte - UInt8(ascii: "0")), 1 << 32)
            default: break
            }
        }
        return isNegative ? -value : value
    }

    /// Returns a number with one more digit; nil if it exceeds 64 bits.
    private static func appending(_ digit: UInt8, to number: UInt64) -> UInt64? {
        let (tens, isTooLarge) = number.multipliedReportingOverflow(by: 10)
        let (sum, overflows) = tens.addingReportingOverflow(UInt64(digit))
        return isTooLarge || overflows ? nil : sum
    }
}
