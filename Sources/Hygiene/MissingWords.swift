public import BroadsideRows
import BroadsideSupport

/// The words for missing values, written by databases and programs, that a list would treat as
/// text.
public struct MissingWords: Sendable {
    /// Where a column first has a word that stands for a missing value, such as `NULL`.
    public struct Occurrence: Sendable, Equatable {
        /// Line on which the row starts.
        public var line: UInt64
        /// First word found in the column.
        public var word: String
        /// Number of rows with a word for a missing value in this column.
        public var rows: UInt64
    }

    private static let words: [[UInt8]] = [
        "NULL", "null", "Null", "(null)", "(NULL)", "<null>", "<NULL>", "[null]", "[NULL]", "\\N",
        "nil", "None", "undefined", "NaN", "nan", "NAN", "NaT", "<NA>", "N/A", "n/a", "#N/A",
        "#REF!", "#VALUE!", "#NAME?", "#DIV/0!", "#NUM!", "#NULL!",
    ].map { Array($0.utf8) }

    /// Whether a text is a word for a missing value.
    public static func isWord(_ text: RawSpan) -> Bool {
        for word in words where word.count == text.byteCount {
            if word.indices.allSatisfy({ word[$0] == text.byte(at: $0) }) { return true }
        }
        return false
    }

    /// Whether a text in a column of IDs is a word for a missing value. This includes `NA`, which R
    /// writes, and which is a value in other columns, such as the code of Namibia.
    public static func isWordAmongIDs(_ text: RawSpan) -> Bool {
        isWord(text)
            || text.byteCount == 2 && text.byte(at: 0) == UInt8(ascii: "N")
                && text.byte(at: 1) == UInt8(ascii: "A")
    }

    /// First occurrence of a word for a missing value in each field; nil if a field has none.
    public private(set) var occurrences: [Occurrence?]

    /// Creates counts for lists of a layout.
    public init(_ layout: RowLayout) { occurrences = layout.names.map { _ in nil } }

    /// Counts the words for missing values in the row that was read last.
    public mutating func take(_ row: RowReader.Row, of reader: borrowing RowReader) {
        for index in occurrences.indices {
            let field = reader.field(index)
            guard field.isText, Self.isWord(reader.text(field)) else { continue }
            let word = String(decoding: reader.value(field), as: UTF8.self)
            let first = occurrences[index] ?? Occurrence(line: row.line, word: word, rows: 0)
            occurrences[index] = Occurrence(
                line: first.line, word: first.word, rows: first.rows + 1)
        }
    }
}
