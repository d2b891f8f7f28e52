public import BroadsideAPNs
internal import BroadsideSupport

/// Excerpt of a list's text in place of a token. Ledgers and exports keep only this excerpt. A
/// shortened text ends with an ellipsis, so that it can't be mistaken for a token.
public enum TextExcerpt {
    /// Maximum number of bytes that are kept.
    @inlinable public static var byteCountMax: Int { TokenText.maximumDigitCount }
    /// The text that replaces the omitted rest of a text.
    public static let ellipsis: StaticString = "…"

    /// Number of bytes of a text that are kept. If the text has more, an ellipsis follows them.
    public static func keptCount(of byteCount: Int) -> Int {
        byteCount <= byteCountMax ? byteCount : byteCountMax - ellipsis.utf8CodeUnitCount
    }

    /// Returns one byte of the ellipsis.
    public static func ellipsisByte(_ index: Int) -> UInt8 {
        precondition(index >= 0 && index < ellipsis.utf8CodeUnitCount)
        // SAFETY: the index is below the number of bytes of the static string.
        return unsafe ellipsis.utf8Start[index]
    }

    /// Returns the excerpt of a text.
    public static func of(_ text: [UInt8]) -> [UInt8] {
        let count = keptCount(of: text.count)
        guard count < text.count else { return text }
        return text[..<count] + (0..<ellipsis.utf8CodeUnitCount).map { ellipsisByte($0) }
    }

    /// Whether the text may be the beginning of a longer text that an earlier version cut off. Such
    /// a text looks like a token.
    @inlinable
    public static func wasCut(_ text: RawSpan) -> Bool {
        text.byteCount == byteCountMax && isToken(text)
    }

    @usableFromInline static func isToken(_ text: RawSpan) -> Bool {
        TokenText.isToken([UInt8](text))
    }

    /// Adds the ellipsis to a text that an earlier version cut off.
    public static func mark(_ text: inout [UInt8]) {
        guard wasCut(text.rawSpan) else { return }
        text = of(text + [0])
    }
}
