internal import BroadsideAPNs
internal import BroadsideHygiene
import BroadsideLists
import BroadsideObservability
internal import BroadsidePolicy
internal import BroadsideRows
import BroadsideSupport
internal import Glibc

/// Reads and checks everything that a run would read and check, and builds each request, without
/// connections or output files.
enum DryRun {
    /// Number of rows of a list for each result.
    private struct Tally {
        var rows: UInt64 = 0
        private var skipped: [SkipReason: UInt64] = [:]
        private var invalid: UInt64 = 0
        private var reasons: [Reason: Int] = [:]
        private var firstInvalidLine: UInt64?
        /// Rows to send, by the number of their arm.
        private var arms = [UInt64](repeating: 0, count: ArmSplit.armLimit + 1)

        mutating func countSkipped(_ reason: SkipReason) { skipped[reason, default: 0] += 1 }

        mutating func countSent(arm: UInt8) { arms[Int(arm)] += 1 }

        mutating func countInvalid(_ reason: Reason, line: UInt64) {
            invalid += 1
            reasons[reason, default: 0] += 1
            firstInvalidLine = firstInvalidLine ?? line
        }

        var sendable: UInt64 {
            let skippedCount = skipped.values.reduce(0, +)
            assert(invalid + skippedCount <= rows, "each row is counted once")
            return rows - invalid - skippedCount
        }

        /// - Parameters:
        ///   - possibleSkips: Reasons for which the options may skip rows.
        ///   - split: Rule that puts devices into arms; nil if there are none.
        func print(possibleSkips: [SkipReason], split: ArmSplit?) {
            let skippedCount = skipped.values.reduce(0, +)
            assert(arms.reduce(0, +) == sendable, "each row to send is counted with its arm")
            Swift.print("to send      \(sendable)")
            if let split {
                let counts = split.names.enumerated().filter { $0.element != ArmSplit.holdoutName }
                    .map { "\($0.element) \(arms[$0.offset + 1])" }
                Swift.print("             by arm: \(counts.joined(separator: ", "))")
            }
            if !possibleSkips.isEmpty {
                let counts = possibleSkips.map { "\($0.reason.text) \(skipped[$0] ?? 0)" }
                Swift.print("skipped      \(skippedCount): \(counts.joined(separator: ", "))")
            }
            let location = firstInvalidLine.map { ", the first on line \($0)" } ?? ""
            Swift.print("invalid      \(invalid)\(location)")
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
        let waves = try run.rows.waves()
        if !run.isBegun { try waves?.check(plan.options) }
        var dueSelection = selection
        dueSelection.due = waves?.anyTime
        var rows = try RowCursor(list, dueSelection)
        var tally = Tally()
        var inspector = RowInspector(plan.payloads.set, layout: list.layout)
        var invalid = InvalidRows(maximumPercent: plan.options.maxInvalid)
        var lengths = TokenLengths()
        var missing = MissingWords(list.layout)
        while let row = try rows.next() {
            tally.rows += 1
            if case .skipped(let reason) = rows.disposition {
                tally.countSkipped(reason)
                invalid.noteValid()
                continue
            }
            assert(rows.disposition != .settled, "no earlier run has settled a row")
            var finding = inspector.finding(in: rows.reader)
            if finding == nil, rows.disposition == .invalid(.badZone) { finding = .badZone }
            _ = invalid.note(finding, row, of: rows.reader)
            missing.take(row, of: rows.reader)
            guard let finding else {
                lengths.note(inspector.tokenDigitCount, line: row.line)
                tally.countSent(arm: inspector.arm)
                continue
            }
            tally.countInvalid(finding.reason, line: row.line)
        }
        assert(invalid.rowCount == tally.rows, "both count each row")
        list.warn(of: lengths)
        MissingValues.warn(of: missing, in: list.layout, of: list)
        let alert = AlertText(plan, firstRow: try FirstRow.find(plan, list, selection))
        print(
            plan.description(
                of: list, size: .exact(tally.rows),
                ahead: RowsAhead(sendable: tally.sendable, of: tally.rows), alert: alert,
                waves: waves, for: STDOUT_FILENO))
        tally.print(
            possibleSkips: (run.skips?.possibleReasons ?? [])
                + (plan.options.delivery.late == .skip ? [.late] : []),
            split: plan.options.split)
        if let words = inspector.fallbackCounts.words { print("other values \(words)") }
        if inspector.shortenedRows > 0 {
            let rows = inspector.shortenedRows == 1 ? "1 row's" : "\(inspector.shortenedRows) rows'"
            print("shortened    \(rows) \(plan.payloads.fittedColumns.joined(separator: ", "))")
        }
        if let verdict = invalid.finish(), try !verdict.isEmptyPart(of: list, plan.options.shard) {
            throw invalid.refusal(verdict, of: list, plan.options.maxInvalid)
        }
        print("dry run: nothing was sent, nothing was written")
        return 0
    }
}
