import BroadsideAPNs
import BroadsideLists
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Invalid rows of a list, for `--max-invalid`: their number, the first one, and the most common
/// kind of value that is not a device token.
struct InvalidRows {
    private var rows: InvalidRowsGuard
    /// The first invalid row.
    private var sample: FirstRowsCheck.Sample?
    /// Rows that have a known kind of value instead of a device token, counted by kind until there
    /// is a verdict.
    private var kinds: [ForeignToken: Found] = [:]
    /// Number of invalid rows whose kind was examined.
    private var examined: UInt64 = 0
    private var hasVerdict = false
    /// The invalid rows that are not headers, by reason.
    private var groups: [Reason: Group] = [:]
    /// `groups` at the row that gave the verdict; nil if no row has.
    private var verdictGroups: [Reason: Group]?
    /// Headers among the invalid rows.
    private(set) var headers = RepeatedHeaders()

    /// Rows that have one kind of value, and the first of these rows.
    private struct Found {
        var rows: UInt64
        var firstLine: UInt64
        /// Excerpt of the value in the first row.
        var text: String
    }

    /// Invalid rows with the same reason.
    private struct Group {
        var rows: UInt64
        let first: FirstRowsCheck.Sample
    }

    /// Limit on the invalid rows whose kind is examined.
    private static let examinedLimit: UInt64 = 20_000

    /// - Parameters:
    ///   - maximumPercent: Value of `--max-invalid`.
    ///   - earlier: Number of rows that earlier runs read, and number of invalid rows among them.
    init(maximumPercent: Double, earlier: (rows: UInt64, invalid: UInt64) = (0, 0)) {
        rows = InvalidRowsGuard(
            maximumPercent: maximumPercent, rows: earlier.rows, invalid: earlier.invalid)
    }

    /// Number of rows so far.
    var rowCount: UInt64 { rows.rows }
    /// Number of invalid rows so far.
    var invalidCount: UInt64 { rows.invalid }

    /// Counts a valid row.
    mutating func noteValid() { _ = note(isInvalid: false) }

    /// Counts the row that was read last.
    ///
    /// - Parameter finding: Reason why the row is invalid; nil if it is valid.
    /// - Returns: Verdict on the list, returned only by the call that reaches it; nil for all other
    ///   rows.
    mutating func note(
        _ finding: RowInspector.Finding?, _ row: RowReader.Row, of reader: borrowing RowReader
    ) -> InvalidRowsGuard.Verdict? {
        if let finding {
            let headerCount = headers.count
            headers.take(reader)
            if headers.count == headerCount { group(finding, row, reader) }
            if sample == nil { sample = FirstRowsCheck.Sample(row, finding, of: reader) }
            if !hasVerdict, examined < Self.examinedLimit { examine(finding, row, reader) }
        }
        return note(isInvalid: finding != nil)
    }

    private mutating func note(isInvalid: Bool) -> InvalidRowsGuard.Verdict? {
        let verdict = rows.note(isInvalid: isInvalid)
        if verdict != nil {
            hasVerdict = true
            verdictGroups = groups
        }
        return verdict
    }

    private mutating func group(
        _ finding: RowInspector.Finding, _ row: RowReader.Row, _ reader: borrowing RowReader
    ) {
        if groups[finding.reason] == nil {
            let first = FirstRowsCheck.Sample(row, finding, of: reader)
            groups[finding.reason] = Group(rows: 0, first: first)
        }
        groups[finding.reason]?.rows += 1
    }

    /// Returns the line and the problem of the first row with a reason; nil if no such row was
    /// noted.
    func explanation(of reason: Reason, in list: TokenList) -> String? {
        groups[reason]?.first.explanation(list)
    }

    /// Warns about the invalid rows of a list that is accepted, with the first row of each reason.
    ///
    /// - Parameter mayHaveMore: Whether the run has rows that were not noted.
    func warn(of list: TokenList, mayHaveMore: Bool) {
        guard !groups.isEmpty else { return }
        let count = groups.values.reduce(0) { $0 + $1.rows }
        let reasons = groups.sorted { $0.key.text < $1.key.text }.map { reason, group in
            "\(grouped(group.rows)) \(reason.text) (\(group.first.explanation(list)))"
        }
        standardErrorLine(
            "broadside: warning: \(list.name): \(grouped(count)) of the \(grouped(rowCount)) rows read "
                + "\(count == 1 ? "is" : "are") invalid and will not be sent: "
                + "\(reasons.joined(separator: ", ")): correct such rows"
                + (mayHaveMore ? "; --dry-run counts them in the whole list" : ""))
    }

    private mutating func examine(
        _ finding: RowInspector.Finding, _ row: RowReader.Row, _ reader: borrowing RowReader
    ) {
        examined += 1
        assert(examined <= Self.examinedLimit)
        guard finding.reason == .malformedToken else { return }
        let value = reader.value(reader.field(0))
        guard let kind = ForeignToken.detect(value[...]) else { return }
        kinds[kind, default: Found(rows: 0, firstLine: row.line, text: tokenExcerpt(value))]
            .rows += 1
    }

    /// Checks the counts at the end of the list.
    ///
    /// - Returns: Verdict on the list, even if it was returned before.
    mutating func finish() -> InvalidRowsGuard.Verdict? { rows.finish() }

    /// Error that refuses a list before anything is sent.
    ///
    /// - Parameter percent: Value of `--max-invalid`.
    func refusal(
        _ verdict: InvalidRowsGuard.Verdict, of list: TokenList, _ percent: Double
    ) -> BroadsideError {
        func other() -> BroadsideError {
            verdict.refusal(of: list, mainSample, percent, reasons: reasonCounts(verdict))
        }
        guard let (kind, found) = kinds.max(by: { $0.value.rows < $1.value.rows }),
            found.rows * 2 > examined
        else { return other() }
        switch verdict {
        case .noValidRow:
            return list.refusal(of: kind, firstLine: found.firstLine, text: found.text)
        case .tooMany(let invalid, let count) where invalid == examined:
            return refusal(kind, found, invalid: invalid, of: count, list, percent)
        case .tooMany, .noRow: return other()
        }
    }

    /// The invalid rows of the verdict by reason, the most frequent reason first. Of two equally
    /// frequent reasons, the one that was found earlier is first.
    private var sortedGroups: [(reason: Reason, group: Group)] {
        (verdictGroups ?? groups).map { (reason: $0.key, group: $0.value) }.sorted {
            ($1.group.rows, $0.group.first.line) < ($0.group.rows, $1.group.first.line)
        }
    }

    /// The first row with the most frequent reason; nil if no row is invalid.
    private var mainSample: FirstRowsCheck.Sample? { sortedGroups.first?.group.first ?? sample }

    /// Text such as ` (50 BadZone, 1 MalformedToken)`; empty if there are no two reasons. Rows of
    /// earlier runs, and repeated headers, are invalid without a group.
    private func reasonCounts(_ verdict: InvalidRowsGuard.Verdict) -> String {
        var counts = sortedGroups.map { "\(grouped($0.group.rows)) \($0.reason.text)" }
        guard counts.count > 1 else { return "" }
        let all: UInt64 =
            switch verdict {
            case .tooMany(let invalid, _): invalid
            case .noValidRow(let rows): rows
            case .noRow: 0
            }
        let named = sortedGroups.reduce(0) { $0 + $1.group.rows }
        if all > named { counts.append("\(grouped(all - named)) other") }
        return " (\(counts.joined(separator: ", ")))"
    }

    private func refusal(
        _ kind: ForeignToken, _ found: Found, invalid: UInt64, of count: UInt64,
        _ list: TokenList, _ percent: Double
    ) -> BroadsideError {
        var text = ": \(FirstRowsCheck.share(found.rows, of: count)) rows read are "
        text += "\(kind.name(withExample: found.text)), the first on line \(found.firstLine)"
        assert(found.rows <= invalid && invalid <= count, "more rows of a kind than rows")
        let others = invalid - found.rows
        if others > 0 {
            text += "; \(grouped(others)) other \(others == 1 ? "row is" : "rows are") invalid"
        }
        if count > invalid {
            let good = count - invalid
            text += "; \(grouped(good)) \(good == 1 ? "has a device token" : "have device tokens")"
        } else if let line = (try? list.firstTokenLine())?.line {
            // A pipe can't be read again, so no line is known for it.
            text += "; the first device token is on line \(grouped(line))"
        }
        let leave =
            "add --max-invalid 100 (now \(percentNumber(percent))) to send without these rows"
        let isColumn = list.format != .lines
        let remedy = kind.remedy(list.command, isColumn: isColumn)
        text +=
            kind.hasCommand(isColumn: isColumn)
            ? ": \(leave), or fix the rows: \(remedy)" : ": \(remedy), or \(leave)"
        return .request(list.name, text)
    }
}
