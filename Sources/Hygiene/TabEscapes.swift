import BroadsidePrimitives
public import BroadsideRows
import BroadsideSupport

/// Escapes such as `\n` in a TSV list. `mysql --batch` and PostgreSQL's `COPY` write them for line
/// breaks, tabs and backslashes, but a list treats them as text. MySQL's `SELECT ... INTO OUTFILE`
/// writes a backslash before a line break or a tab, which ends the text in a list nevertheless.
public struct TabEscapes: Sendable {
    /// First escape in a column.
    public struct Occurrence: Sendable, Equatable {
        /// Line on which the row starts.
        public var line: UInt64
        /// The escape, as it is in the list.
        public var escape: String
        /// Number of rows with an escape in this column.
        public var rows: UInt64
    }

    private static let letters = Array("ntr\\".utf8)

    /// First escape in each field; nil if a field has none.
    public private(set) var occurrences: [Occurrence?]

    /// Texts that end with such a backslash; nil if there are none. `escape` is the backslash.
    public private(set) var cutTexts: Occurrence?

    private let isTSV: Bool

    /// Creates counts for lists of a layout. Lists that are not TSV have no such escapes.
    public init(_ layout: RowLayout) {
        occurrences = layout.names.map { _ in nil }
        isTSV = layout.format == .tsv
    }

    /// Counts escapes in the row that was read last.
    public mutating func take(_ row: RowReader.Row, of reader: borrowing RowReader) {
        guard isTSV else { return }
        var isCut = false
        for index in occurrences.indices {
            let field = reader.field(index)
            guard field.isText else { continue }
            let text = reader.text(field)
            if Self.endsWithEscape(text) { isCut = true }
            guard let letter = Self.firstLetter(text) else { continue }
            let escape = "\\\(Character(Unicode.Scalar(letter)))"
            let first = occurrences[index] ?? Occurrence(line: row.line, escape: escape, rows: 0)
            occurrences[index] = Occurrence(
                line: first.line, escape: first.escape, rows: first.rows + 1)
        }
        guard isCut else { return }
        let first = cutTexts ?? Occurrence(line: row.line, escape: "\\", rows: 0)
        cutTexts = Occurrence(line: first.line, escape: first.escape, rows: first.rows + 1)
    }

    /// Whether the last backslash of a text escapes what follows the text. Of two backslashes, the
    /// first escapes the second.
    private static func endsWithEscape(_ text: RawSpan) -> Bool {
        var start = text.byteCount
        while start > 0, text.byte(at: start - 1) == UInt8(ascii: "\\") { start -= 1 }
        return (text.byteCount - start) % 2 == 1
    }

    /// Letter of the first escape in a text; nil if there is none.
    private static func firstLetter(_ text: RawSpan) -> UInt8? {
        guard text.byteCount >= 2 else { return nil }
        let last = text.byteCount - 1
        var start = 0
        while let found = find(UInt8(ascii: "\\"), in: text, start, last) {
            let letter = text.byte(at: found + 1)
            if letters.contains(letter) { return letter }
            start = found + 1
        }
        return nil
    }
}
