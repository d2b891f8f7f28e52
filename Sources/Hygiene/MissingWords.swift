public import BroadsideRows

/// Words for missing values, written by databases and programs, that a list would treat as text.
public struct MissingWords: Sendable {
    /// First occurrence of a word for a missing value in a column.
    public struct Occurrence: Sendable, Equatable {
        /// Line on which the row starts.
        public var line: UInt64
        /// First word found in the column.
        public var word: String
        /// Number of rows with a word for a missing value in this column.
        public var rows: UInt64
    }

    private static let words: [[UInt8]] = [
        "NULL", "null", "Null", "NaN", "nan", "NAN", "None", "NaT", "<NA>", "#N/A", "(null)",
        "undefined",
    ].map { Array($0.utf8) }

    /// Range of the words' lengths in bytes.
    private static let lengths = 3...9

    /// First occurrence of a word for a missing value in each field; nil if a field has none.
    public private(set) var occurrences: [Occurrence?]

    /// Creates counts for lists of a layout.
    public init(_ layout: RowLayout) { occurrences = layout.names.map { _ in nil } }

    /// Counts words in the row that was read last.
    public mutating func take(_ row: RowReader.Row, of reader: borrowing RowReader) {
        for index in occurrences.indices {
            let field = reader.field(index)
            guard field.isText, Self.lengths.contains(field.count) else { continue }
            let value = reader.value(field)
            guard Self.words.contains(value) else { continue }
            let first =
                occurrences[index]
                ?? Occurrence(line: row.line, word: String(decoding: value, as: UTF8.self), rows: 0)
            occurrences[index] = Occurrence(
                line: first.line, word: first.word, rows: first.rows + 1)
        }
    }
}
