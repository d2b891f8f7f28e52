internal import BroadsideHygiene
import BroadsideLists
internal import BroadsideRows
public import BroadsideSupport
internal import Glibc

/// Options of `tokens check` and `tokens dedupe`.
public struct TokensOptions: Sendable {
    /// Path of the list.
    public var tokens: String
    /// Format of the list; nil: detected from its name and first bytes.
    public var format: TokenListFormat?
    /// Column of the tokens; nil: `token`.
    public var tokenColumn: String?
    /// Value of `--max-invalid`.
    public var maxInvalid = SendOptions.defaultMaxInvalid

    /// Creates options for a list.
    public init(tokens: String) { self.tokens = tokens }
}

/// Result of `tokens check`: the content of a list, and how `send` would treat it.
public struct TokensCheck {
    /// Findings about the list.
    public let report: TokensReport
    /// Error with which `send` would refuse the list; nil if `send` would accept the list.
    public let refusal: BroadsideError?

    /// Reads the list once.
    ///
    /// - Parameters:
    ///   - options: Options with the list.
    ///   - countsDuplicates: Whether to also count duplicates of tokens.
    /// - Throws: If the list can't be read, with the exit code.
    public init(_ options: TokensOptions, countsDuplicates: Bool) throws(BroadsideError) {
        let list = try TokenList(
            .file(options.tokens), format: options.format, tokenColumn: options.tokenColumn)
        var survey = ListSurvey()
        var invalid = InvalidRows(maximumPercent: options.maxInvalid)
        var missing = MissingWords(list.layout)
        var encoding = OtherEncoding()
        var sorter = RecordSorter(directory: temporaryDirectory())
        var rows = try RowCursor(list, showsProgress: true)
        while let row = try rows.next() {
            let count = survey.take(row, of: rows.reader)
            encoding.take(row, of: rows.reader)
            if count > 0 {
                invalid.noteValid()
            } else {
                let finding = RowInspector.tokenFinding(in: rows.reader)
                _ = invalid.note(finding, row, of: rows.reader)
                missing.take(row, of: rows.reader)
            }
            if countsDuplicates, count > 0 {
                let digest = TokenDigest(survey.token(count))
                try sorter.append(
                    .init(first: digest.high, second: digest.low, third: row.line, fourth: 0))
            }
        }
        assert(
            invalid.rowCount == survey.counts.rows && invalid.invalidCount == survey.counts.invalid,
            "both count each row")
        list.warn(of: survey.counts.lengths)
        list.warn(of: survey.counts.headers)
        try list.warnOfDamage(survey.counts.overwritten)
        MissingValues.warn(of: missing, in: list.layout, of: list)
        encoding.warn(list)
        MissingValues.warnOfOtherColumns(of: list, header: rows.source.header)
        refusal =
            list.refusal(of: survey.counts.headers)
            ?? invalid.finish().map { invalid.refusal($0, of: list, options.maxInvalid) }
        report = TokensReport(
            file: options.tokens, format: list.format, compression: list.bytes.compression,
            byteCount: list.byteCount ?? 0,
            columns: rows.source.columns, tokenColumn: list.layout.names[0], counts: survey.counts,
            duplicates: countsDuplicates ? try Self.duplicates(&sorter) : nil,
            isRefused: refusal != nil)
    }

    private static func duplicates(
        _ sorter: inout RecordSorter
    ) throws(BroadsideError) -> TokensReport.Duplicates {
        var found = TokensReport.Duplicates()
        var first = RecordSorter.Record(first: 0, second: 0, third: 0, fourth: 0)
        try sorter.merge { (record) throws(BroadsideError) in
            // Rows start on line 1 or later, so line 0 marks the state before the first record.
            if first.third > 0, record.first == first.first, record.second == first.second {
                assert(record.third >= first.third, "a token's first row comes first")
                found.count(line: record.third, firstLine: first.third)
            } else {
                first = record
            }
        }
        return found
    }
}

extension ListSource {
    /// Column names in the list's header; empty if it has none.
    var columns: [String] {
        guard let separator = list.format.separator, let header else { return [] }
        return RowLayout.columns(header, separator: separator)
    }
}
