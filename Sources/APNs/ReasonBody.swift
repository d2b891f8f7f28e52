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
                } else if isKey(body, token, "timestamp"), value.kind == .number {
                    result.timestampMilliseconds = wholeNumber(body.extracting(value.range))
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

    /// Returns digits as a number; nil for fractions, exponents, signs and values beyond 64 bits.
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
