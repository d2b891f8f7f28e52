import APNs
import Campaign
internal import Glibc
import Lists
public import Support

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
        let pool = ChunkPool(limit: 3)
        let source = try ListSource(list: list, pool: pool, plan: nil, rowsLimit: nil)
        var survey = ListSurvey()
        var rows = InvalidRows(maximumPercent: options.maxInvalid)
        var missing = MissingWords(list.layout)
        var reader = RowReader(layout: list.layout)
        var sorter = RecordSorter(directory: temporaryDirectory())
        var progress = ReadingProgress(list)
        while let chunk = try source.next(rowLimit: .max) {
            progress.update(chunk.end.byteOffset)
            reader.open(chunk)
            while let row = reader.next() {
                let count = survey.take(row, of: reader)
                if count > 0 {
                    rows.noteValid()
                } else {
                    _ = rows.note(RowInspector.tokenFinding(in: reader), row, of: reader)
                    missing.take(row, of: reader)
                }
                if countsDuplicates, count > 0 {
                    let digest = TokenDigest(survey.token(count))
                    try sorter.append(
                        .init(first: digest.high, second: digest.low, third: row.line, fourth: 0))
                }
            }
            if let chunk = reader.close() { pool.giveBack(chunk) }
        }
        progress.end()
        list.warn(of: survey.counts.lengths)
        MissingValues.warn(of: missing, in: list.layout, of: list)
        MissingValues.warnOfOtherColumns(of: list, header: source.header)
        refusal = rows.finish().map { rows.refusal($0, of: list, options.maxInvalid) }
        report = TokensReport(
            file: options.tokens, format: list.format, compression: list.bytes.compression,
            byteCount: list.byteCount ?? 0,
            columns: source.columns, tokenColumn: list.layout.names[0], counts: survey.counts,
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
