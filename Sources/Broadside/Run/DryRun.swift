import APNs
import Campaign
internal import Glibc
import Lists
import Observability
import Support

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

    static func run(
        _ plan: Plan, list: TokenList, skips: ExclusionScan?
    ) throws(BroadsideError) -> Int32 {
        if let ledger = plan.options.ledger {
            try LedgerSession.checkBeforehand(ledger, plan, list: list, skips: skips)
        }
        let pool = ChunkPool(limit: 3)
        let shard = plan.options.shard
        let part = try list.part(of: shard)
        let source = try ListSource(
            plan, list: list, part: part, pool: pool, skips: try skips?.listAside(of: list))
        var tally = Tally()
        var reader = RowReader(layout: list.layout)
        var inspector = RowInspector(plan.payloads.set, layout: list.layout)
        var rows = InvalidRows(maximumPercent: plan.options.maxInvalid)
        var lengths = TokenLengths()
        var missing = MissingWords(list.layout)
        while let chunk = try source.next(rowLimit: .max) {
            reader.open(chunk)
            let dispositions = chunk.dispositions
            while let row = reader.next() {
                let disposition = dispositions?[row.index]
                if disposition == .settled { continue }
                tally.rows += 1
                if disposition == .suppressed || disposition == .duplicate, let disposition {
                    tally.skipped[disposition, default: 0] += 1
                    rows.noteValid()
                    continue
                }
                let finding = inspector.finding(in: reader)
                _ = rows.note(finding, row, of: reader)
                missing.take(row, of: reader)
                guard let finding else {
                    lengths.note(inspector.tokenDigitCount, line: row.line)
                    continue
                }
                tally.noteInvalid(finding.reason, line: row.line)
            }
            if let chunk = reader.close() { pool.giveBack(chunk) }
        }
        list.warn(of: lengths)
        MissingValues.warn(of: missing, in: list.layout, of: list)
        print(
            plan.description(
                of: list, size: .exact(tally.rows), alert: AlertText(plan, list),
                for: STDOUT_FILENO))
        tally.print(withSkips: skips != nil)
        if let words = inspector.fallbackCounts.words { print("other values \(words)") }
        if let verdict = rows.finish(), try !verdict.isEmptyPart(of: list, shard) {
            throw rows.refusal(verdict, of: list, plan.options.maxInvalid)
        }
        print("dry run: nothing was sent, nothing was written")
        return 0
    }
}
