public import BroadsideAPNs
public import BroadsideRows
import BroadsideSupport

/// The counts of a list's rows by validity, as `send` would classify them.
public struct ListSurvey: ~Copyable {
    /// A row without a valid token.
    public struct BadRow: Sendable, Equatable {
        /// Line on which the row starts, from 1.
        public var line: UInt64
        /// Reason: `MalformedToken`, `MissingColumn` or `MalformedRow`.
        public var reason: Reason
        /// Text in the token's column, unchanged, or its first `ForeignToken.excerptByteCount`
        /// bytes.
        public var text: ArraySlice<UInt8>
    }

    /// The counts of rows.
    public struct Counts: Sendable {
        /// Rows, without header and blank lines.
        public internal(set) var rows: UInt64 = 0
        /// Rows with a device token.
        public internal(set) var valid: UInt64 = 0
        /// Rows that lack the token's column or have a null in it.
        public internal(set) var withoutColumn: UInt64 = 0
        /// Rows whose text in the token's column is not a device token.
        public internal(set) var malformed: UInt64 = 0
        /// Rows that break the rules of their format.
        public internal(set) var malformedRows: UInt64 = 0
        /// Line of the first row that breaks the rules of its format.
        public internal(set) var firstMalformedRowLine: UInt64?
        /// Tokens with capital letters, which are sent in lower case.
        public internal(set) var withCapitals: UInt64 = 0
        /// Tokens with surrounding blanks or angle brackets.
        public internal(set) var decorated: UInt64 = 0
        /// Tokens by number of digits.
        public internal(set) var lengths = TokenLengths()
        /// Rows that are overwritten with zero bytes, which break the rules of their format.
        public internal(set) var overwritten = OverwrittenRows()
        /// Headers among the rows without a valid token.
        public internal(set) var headers = RepeatedHeaders()
        /// First rows without a valid token.
        public internal(set) var firstBadRows: [BadRow] = []

        /// Rows without a valid token.
        public var invalid: UInt64 { withoutColumn + malformed + malformedRows }

        /// Number of tokens with each number of digits; the index is the number of digits.
        public var byDigitCount: [UInt64] { lengths.rows }

        /// Tokens of fewer digits than Apple is known to have issued.
        public var suspicious: UInt64 { byDigitCount[..<TokenLengths.shortestIssued].reduce(0, +) }
    }

    /// Maximum number of bad rows that are kept.
    static let keptBadRowCount = 10

    /// The counts so far.
    public private(set) var counts = Counts()

    private var digits = TokenDigits()

    /// Creates an empty survey.
    public init() {}

    /// Counts the row that `reader` read last.
    ///
    /// - Returns: Number of digits of its token; 0 if it has none.
    public mutating func take(_ row: RowReader.Row, of reader: borrowing RowReader) -> Int {
        counts.rows += 1
        let field = reader.field(0)
        let refusal = digits.write { reader.readToken(field, into: &$0) }
        let count = digits.count
        if let refusal {
            takeInvalid(row, field, refusal, reader)
            return 0
        }
        let text = reader.text(field)
        counts.valid += 1
        counts.lengths.note(count, line: row.line)
        if !digits.isEqual(to: text) { classify(text, count) }
        assert(counts.valid + counts.invalid == counts.rows, "each row is valid or not")
        assert(count > 0 && count % 2 == 0, "a valid token has whole bytes")
        return count
    }

    /// Token of the row counted last, in lower case.
    @_lifetime(borrow self)
    public func token(_ count: Int) -> RawSpan {
        digits.bytes.extracting(first: count)
    }

    private mutating func classify(_ text: RawSpan, _ count: Int) {
        if text.byteCount != count { counts.decorated += 1 }
        for offset in 0..<text.byteCount {
            let byte = text.byte(at: offset)
            if byte >= UInt8(ascii: "A"), byte <= UInt8(ascii: "F") {
                counts.withCapitals += 1
                return
            }
        }
    }

    @inline(never)
    private mutating func takeInvalid(
        _ row: RowReader.Row, _ field: RowReader.Field, _ reason: Reason,
        _ reader: borrowing RowReader
    ) {
        switch reason {
        case .missingColumn: counts.withoutColumn += 1
        case .malformedRow:
            counts.malformedRows += 1
            counts.firstMalformedRowLine = counts.firstMalformedRowLine ?? row.line
            counts.overwritten.take(row, of: reader)
        default: counts.malformed += 1
        }
        counts.headers.take(reader)
        guard counts.firstBadRows.count < Self.keptBadRowCount else { return }
        let value = reason == .missingColumn ? [] : reader.value(field)
        counts.firstBadRows.append(
            BadRow(
                line: row.line, reason: reason, text: value.prefix(ForeignToken.excerptByteCount)))
    }
}
