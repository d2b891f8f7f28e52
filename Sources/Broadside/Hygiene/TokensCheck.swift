internal import BroadsideHygiene
import BroadsideLists
internal import BroadsideRows
public import BroadsideSupport
internal import Glibc

/// What `tokens check` and `tokens dedupe` are asked to look at.
public struct TokensOptions: Sendable {
    /// The list.
    public var tokens: String
    /// nil: as the list's name and first bytes say.
    public var format: TokenListFormat?
    /// nil: `token`.
    public var tokenColumn: String?
    /// `--max-invalid`.
    public var maxInvalid = SendOptions.defaultMaxInvalid

    /// Names the list.
    public init(tokens: String) { self.tokens = tokens }
}

/// One `tokens check`: what a list holds and what `send` would make of it.
public struct TokensCheck {
    /// The result.
    public let report: TokensReport
    /// Why `send` would refuse the list; nil where it would not.
    public let refusal: BroadsideError?

    /// Goes through the list once.
    ///
    /// - Parameters:
    ///   - options: The list.
    ///   - countsDuplicates: Whether later copies of a token are counted too.
    /// - Throws: Where the list can't be read as one, with the exit code.
    public init(_ options: TokensOptions, countsDuplicates: Bool) throws(BroadsideError) {
        let list = try TokenList(
            .file(options.tokens), format: options.format, tokenColumn: options.tokenColumn)
        var survey = ListSurvey()
        var invalid = InvalidRows(maximumPercent: options.maxInvalid)
        var missing = MissingWords(list.layout)
        var sorter = RecordSorter(directory: temporaryDirectory())
        var rows = try RowCursor(list, showsProgress: true)
        while let row = try rows.next() {
            let count = survey.take(row, of: rows.reader)
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
        list.warn(of: survey.counts.lengths)
        MissingValues.warn(of: missing, in: list.layout, of: list)
        MissingValues.warnOfOtherColumns(of: list, header: rows.source.header)
        refusal = invalid.finish().map { invalid.refusal($0, of: list, options.maxInvalid) }
        report = TokensReport(
            file: options.tokens, format: list.format, compression: list.bytes.compression,
            byteCount: list.byteCount ?? 0,
            columns: rows.source.columns, tokenColumn: list.layout.names[0], counts: survey.counts,
            duplicates: countsDuplicates ? try Self.duplicates(&sorter) : nil)
    }

    private static func duplicates(
        _ sorter: inout RecordSorter
    ) throws(BroadsideError) -> TokensReport.Duplicates {
        var found = TokensReport.Duplicates()
        var first = RecordSorter.Record(first: 0, second: 0, third: 0, fourth: 0)
        try sorter.merge { (record) throws(BroadsideError) in
            // No row starts on line 0, which stands for no record yet.
            if first.third > 0, record.first == first.first, record.second == first.second {
                found.count(line: record.third, firstLine: first.third)
            } else {
                first = record
            }
        }
        return found
    }
}

extension ListSource {
    /// The names in the list's header; empty where it has none.
    var columns: [String] {
        guard let separator = list.format.separator, let header else { return [] }
        return RowLayout.columns(header, separator: separator)
    }
}
