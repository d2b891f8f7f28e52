import BroadsideAPNs
import BroadsideLists
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// The invalid rows of a list, for `--max-invalid`: how many there are, the first of them, and what most of
/// them have in place of a device token.
struct InvalidRows {
    private var rows: InvalidRowsGuard
    /// The first invalid row.
    private var sample: FirstRowsCheck.Sample?
    /// Rows with a token of a kind that is known, until there is a verdict.
    private var kinds: [ForeignToken: (rows: UInt64, firstLine: UInt64)] = [:]
    /// Invalid rows of which the kind was looked for.
    private var examined: UInt64 = 0
    private var hasVerdict = false

    /// Invalid rows of which the kind is looked for, at most.
    private static let examinedLimit: UInt64 = 20_000

    /// - Parameter maximumPercent: `--max-invalid`.
    init(maximumPercent: Double) { rows = InvalidRowsGuard(maximumPercent: maximumPercent) }

    /// Rows so far.
    var rowCount: UInt64 { rows.rows }
    /// Invalid rows so far.
    var invalidCount: UInt64 { rows.invalid }

    /// Takes note of a row that is not invalid.
    mutating func noteValid() { _ = note(isInvalid: false) }

    /// Takes note of the row that was read last.
    ///
    /// - Parameter finding: Why it is invalid; nil if it is not.
    /// - Returns: What is wrong with the list, once, when it is found.
    mutating func note(
        _ finding: RowInspector.Finding?, _ row: RowReader.Row, of reader: borrowing RowReader
    ) -> InvalidRowsGuard.Verdict? {
        if let finding {
            if sample == nil { sample = FirstRowsCheck.Sample(row, finding, of: reader) }
            if !hasVerdict, examined < Self.examinedLimit { examine(finding, row, reader) }
        }
        return note(isInvalid: finding != nil)
    }

    private mutating func note(isInvalid: Bool) -> InvalidRowsGuard.Verdict? {
        let verdict = rows.note(isInvalid: isInvalid)
        if verdict != nil { hasVerdict = true }
        return verdict
    }

    private mutating func examine(
        _ finding: RowInspector.Finding, _ row: RowReader.Row, _ reader: borrowing RowReader
    ) {
        examined += 1
        guard finding.reason == .malformedToken,
            let kind = ForeignToken.detect(reader.value(reader.field(0))[...])
        else { return }
        kinds[kind, default: (0, row.line)].rows += 1
    }

    /// The list is at its end.
    ///
    /// - Returns: What is wrong with it, also if that was found before.
    mutating func finish() -> InvalidRowsGuard.Verdict? { rows.finish() }

    /// Why a list is refused before anything is sent.
    ///
    /// - Parameter percent: `--max-invalid`.
    func refusal(
        _ verdict: InvalidRowsGuard.Verdict, of list: TokenList, _ percent: Double
    ) -> BroadsideError {
        guard let (kind, found) = kinds.max(by: { $0.value.rows < $1.value.rows }),
            found.rows * 2 > examined
        else { return verdict.refusal(of: list, sample, percent) }
        switch verdict {
        case .noValidRow: return list.refusal(of: kind, firstLine: found.firstLine)
        case .tooMany(let invalid, let count) where invalid == examined:
            return refusal(kind, found, invalid: invalid, of: count, list, percent)
        case .tooMany, .noRow: return verdict.refusal(of: list, sample, percent)
        }
    }

    private func refusal(
        _ kind: ForeignToken, _ found: (rows: UInt64, firstLine: UInt64), invalid: UInt64,
        of count: UInt64, _ list: TokenList, _ percent: Double
    ) -> BroadsideError {
        var text =
            ": \(FirstRowsCheck.share(found.rows, of: count)) rows read are \(kind.name), the first "
        text += "on line \(found.firstLine)"
        let others = invalid - found.rows
        if others > 0 {
            text += "; \(grouped(others)) other \(others == 1 ? "row is" : "rows are") invalid"
        }
        if count > invalid {
            let good = count - invalid
            text += "; \(grouped(good)) \(good == 1 ? "has a device token" : "have device tokens")"
        } else if let line = (try? list.firstTokenLine())?.line {
            // A pipe that passed by is not read again.
            text += "; the first device token is on line \(grouped(line))"
        }
        let shown = decimal(percent, places: percent == percent.rounded() ? 0 : 1)
        let leave = "leave these rows out with --max-invalid 100 (it is \(shown))"
        let isColumn = list.format != .lines
        let remedy = kind.remedy(list.command, isColumn: isColumn)
        text +=
            kind.hasCommand(isColumn: isColumn)
            ? ": \(leave), or fix them: \(remedy)" : ": \(remedy), or \(leave)"
        return .request(list.name, text)
    }
}
