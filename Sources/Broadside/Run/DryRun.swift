internal import BroadsideAPNs
internal import BroadsideHygiene
import BroadsideLists
import BroadsideObservability
internal import BroadsideRows
import BroadsideSupport
internal import Glibc

/// Reads and checks everything that a run would, builds each request, connects nowhere, writes
/// nothing.
enum DryRun {
    /// What the rows of a list are.
    private struct Tally {
        var rows: UInt64 = 0
        var skipped: [RowDisposition: UInt64] = [:]
        private var invalid: UInt64 = 0
        private var reasons: [Reason: Int] = [:]
        private var firstInvalidLine: UInt64?

        mutating func noteInvalid(_ reason: Reason, line: UInt64) {
            invalid += 1
            reasons[reason, default: 0] += 1
            firstInvalidLine = firstInvalidLine ?? line
        }

        func print(withSkips: Bool) {
            let suppressed = skipped[.suppressed] ?? 0
            let duplicates = skipped[.duplicate] ?? 0
            Swift.print("to send      \(rows - invalid - suppressed - duplicates)")
            if withSkips {
                Swift.print(
                    "skipped      \(suppressed + duplicates): \(Reason.suppressed.text) \(suppressed), "
                        + "\(Reason.duplicate.text) \(duplicates)")
            }
            let place = firstInvalidLine.map { ", the first on line \($0)" } ?? ""
            Swift.print("invalid      \(invalid)\(place)")
            for (reason, count) in reasons.sorted(by: { $0.key.text < $1.key.text }) {
                Swift.print("             \(count) \(reason.text)")
            }
        }
    }

    static func run(_ run: CheckedRun) throws(BroadsideError) -> Int32 {
        let (plan, list) = (run.plan, run.list)
        if let ledger = plan.options.ledger {
            try LedgerSession.checkBeforehand(ledger, plan, list: list, skips: run.skips)
        }
        let selection = try run.rows.selection()
        var rows = try RowCursor(list, selection)
        var tally = Tally()
        var inspector = RowInspector(plan.payloads.set, layout: list.layout)
        var invalid = InvalidRows(maximumPercent: plan.options.maxInvalid)
        var lengths = TokenLengths()
        var missing = MissingWords(list.layout)
        while let row = try rows.next() {
            tally.rows += 1
            if rows.disposition != .send {
                tally.skipped[rows.disposition, default: 0] += 1
                invalid.noteValid()
                continue
            }
            let finding = inspector.finding(in: rows.reader)
            _ = invalid.note(finding, row, of: rows.reader)
            missing.take(row, of: rows.reader)
            guard let finding else {
                lengths.note(inspector.tokenDigitCount, line: row.line)
                continue
            }
            tally.noteInvalid(finding.reason, line: row.line)
        }
        list.warn(of: lengths)
        MissingValues.warn(of: missing, in: list.layout, of: list)
        let alert = AlertText(plan, firstRow: try FirstRow.find(plan, list, selection))
        print(
            plan.description(
                of: list, size: .exact(tally.rows), alert: alert, for: STDOUT_FILENO))
        tally.print(withSkips: run.skips != nil)
        if let words = inspector.fallbackCounts.words { print("other values \(words)") }
        if let verdict = invalid.finish(), try !verdict.isEmptyPart(of: list, plan.options.shard) {
            throw invalid.refusal(verdict, of: list, plan.options.maxInvalid)
        }
        print("dry run: nothing was sent, nothing was written")
        return 0
    }
}
