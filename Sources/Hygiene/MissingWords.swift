public import BroadsideRows

/// Words that databases and programs write for a value that is missing, and that a list takes for texts.
public struct MissingWords: Sendable {
    /// Where a column first has such a word.
    public struct Occurrence: Sendable, Equatable {
        /// The line on which the row starts.
        public var line: UInt64
        /// The word.
        public var word: String
        /// Rows that have one in this column.
        public var rows: UInt64
    }

    private static let words: [[UInt8]] = [
        "NULL", "null", "Null", "NaN", "nan", "NAN", "None", "NaT", "<NA>", "#N/A", "(null)",
        "undefined",
    ].map { Array($0.utf8) }

    /// Bytes of the shortest and of the longest.
    private static let lengths = 3...9

    /// By field; nil for one without such a word.
    public private(set) var occurrences: [Occurrence?]

    /// For lists of this layout.
    public init(_ layout: RowLayout) { occurrences = layout.names.map { _ in nil } }

    /// Takes note of the row that was read last.
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
