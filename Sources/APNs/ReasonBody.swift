import BroadsidePrimitives

/// The body of an answer that is not 200, or the debug data of a GOAWAY.
///
/// Apple, "Handling notification responses from APNs": a JSON object with `reason`, and with 410
/// `timestamp` in milliseconds. What has been seen besides (blanks round the text, unknown keys, no
/// JSON at all) must not fool us, so this never fails: what cannot be read is nil.
public struct ReasonBody: Sendable, Equatable {
    /// The reason; nil where there is none or it is new.
    public var reason: Reason?
    /// Where the reason's text lies in the body, without blanks round it, escapes as they are;
    /// nil where the body has none.
    public var textRange: Range<Int>?
    /// When APNs established that the token is dead, Unix milliseconds.
    public var timestampMilliseconds: UInt64?
    /// Whether the body was a JSON object to its end.
    var isWellFormed: Bool

    /// Reads a body, at most 512 bytes in practice. No allocation.
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
                } else if isKey(body, token, "timestamp"), value.kind == .number {
                    result.timestampMilliseconds = wholeNumber(body.extracting(value.range))
                }
            }
            result.isWellFormed = true
        } catch {
            // Plain text, or cut short: what was read before stays true.
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

    /// Digits as a number; nil for fractions, exponents, signs and what exceeds 64 bits.
    private static func wholeNumber(_ text: RawSpan) -> UInt64? {
        var number: UInt64 = 0
        for offset in 0..<text.byteCount {
            let digit = TokenText.byte(text, offset) &- UInt8(ascii: "0")
            let (tens, overflow) = number.multipliedReportingOverflow(by: 10)
            if digit > 9 || overflow { return nil }
            let (sum, sumOverflow) = tens.addingReportingOverflow(UInt64(digit))
            if sumOverflow { return nil }
            number = sum
        }
        return number
    }
}
