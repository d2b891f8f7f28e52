public import BroadsideAPNs
internal import BroadsideSupport

/// As much as a ledger and an export keep of a text that stands in a token's place: one that was cut
/// ends with an ellipsis, so that nobody takes it for a token.
public enum TextExcerpt {
    /// The most bytes that are kept.
    @inlinable public static var byteCountMax: Int { TokenText.maximumDigitCount }
    /// What stands in the place of the rest.
    public static let ellipsis: StaticString = "…"

    /// How many bytes of a text are kept as they are; behind fewer than all the ellipsis follows.
    public static func keptCount(of byteCount: Int) -> Int {
        byteCount <= byteCountMax ? byteCount : byteCountMax - ellipsis.utf8CodeUnitCount
    }

    /// The bytes of the ellipsis, one after the other.
    public static func ellipsisByte(_ index: Int) -> UInt8 {
        precondition(index >= 0 && index < ellipsis.utf8CodeUnitCount)
        // SAFETY: a static string has as many bytes as it says.
        return unsafe ellipsis.utf8Start[index]
    }

    /// As much of a text as is kept.
    public static func of(_ text: [UInt8]) -> [UInt8] {
        let count = keptCount(of: text.count)
        guard count < text.count else { return text }
        return text[..<count] + (0..<ellipsis.utf8CodeUnitCount).map { ellipsisByte($0) }
    }

    /// Whether earlier versions cut a text to this one, which looks like a token.
    @inlinable
    public static func wasCut(_ text: RawSpan) -> Bool {
        text.byteCount == byteCountMax && isToken(text)
    }

    @usableFromInline static func isToken(_ text: RawSpan) -> Bool {
        TokenText.isToken([UInt8](text))
    }

    /// Marks a text that an earlier version cut.
    public static func mark(_ text: inout [UInt8]) {
        guard wasCut(text.rawSpan) else { return }
        text = of(text + [0])
    }
}
