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
    /// What is known of the rows that were read.
    private struct Findings: ~Copyable {
        private(set) var tally = DryRunTally()
        private(set) var inspector: RowInspector
        private(set) var invalid: InvalidRows
        private(set) var lengths = TokenLengths()
        private(set) var values: RowValues
        private let delivery: DeliveryOptions
        private let layout: RowLayout

        init(_ run: CheckedRun, _ earlier: EarlierRuns?) {
            let (options, payloads) = (run.plan.options, run.plan.payloads.set)
            (delivery, layout) = (options.delivery, run.list.layout)
            tally.hasSuppressionList = options.suppress != nil
            inspector = RowInspector(payloads, layout: run.list.layout)
            invalid = InvalidRows(
                maximumPercent: options.maxInvalid,
                earlier: (earlier?.kept.settled ?? 0, earlier?.kept[.invalid] ?? 0))
            values = RowValues(run.list.layout, payloads)
        }

        /// Notes the row that was read last.
        mutating func note(_ row: RowReader.Row, of rows: borrowing RowCursor) {
            if rows.disposition.isPassedOver { return }
            tally.rows += 1
            if rows.disposition.settlesUnsent {
                tally.countUnsent(rows.disposition)
                invalid.noteValid()
                return
            }
            if case .skipped(let reason) = rows.disposition {
                tally.countSkipped(reason)
                invalid.noteValid()
                return
            }
            var finding = inspector.finding(in: rows.reader)
            if finding == nil, rows.disposition == .invalid(.badZone) {
                finding = .badZone(delivery, layout)
            }
            _ = invalid.note(finding, row, of: rows.reader)
            values.take(
                row, of: rows.reader, token: finding == nil ? inspector.tokenFingerprint : nil,
                hasBlankAlert: inspector.hasBlankAlert)
            guard let finding else {
                lengths.note(inspector.tokenDigitCount, line: row.line)
                tally.countSent(arm: inspector.arm)
                return
            }
            tally.countInvalid(finding.reason, line: row.line)
        }

        /// Warns as a run does.
        ///
        /// - Throws: If a run would refuse the list because of its headers or damage.
        func warn(_ run: CheckedRun) throws(BroadsideError) {
            let (plan, list) = (run.plan, run.list)
            if let refusal = list.refusal(of: invalid.headers, isBegun: run.isBegun) {
                throw refusal
            }
            list.warn(of: lengths)
            list.warnOfShortTokens(lengths)
            if !run.isBegun { try list.warnOfDamage() }
            plan.warnOfRowTopics()
            // A scan for skipped rows has already warned about all headers.
            if run.skips == nil { list.warn(of: invalid.headers, isBegun: run.isBegun) }
            values.warn(list, plan, knowsSkips: true)
            values.warnOfBlankAlerts(list, plan)
        }

        /// Refuses the list if it has too many invalid rows, as a run does.
        mutating func checkInvalidRows(_ run: CheckedRun) throws(BroadsideError) {
            let options = run.plan.options
            if let verdict = invalid.finish(),
                try !verdict.isEmptyPart(of: run.list, options.shard)
            {
                throw invalid.refusal(verdict, of: run.list, options.maxInvalid)
            }
        }
    }

    static func run(_ run: CheckedRun) throws(BroadsideError) -> Int32 {
        let (plan, list) = (run.plan, run.list)
        let earlier = try plan.options.ledger.flatMap { (ledger) throws(BroadsideError) in
            try LedgerSession.checkBeforehand(
                ledger, plan, list: list, skips: run.skips, rows: run.rows)
        }
        var selection = try run.rows.selection()
        selection.erased = earlier?.erased
        let waves = try waves(run, earlier, selection)
        if let warning = waves?.deadlineWarning(run.plan.options.deadline) {
            standardErrorLine(warning)
        }
        var dueSelection = selection
        dueSelection.due = waves?.anyTime
        var rows = try RowCursor(list, dueSelection, left: earlier?.rowsLeft())
        var findings = Findings(run, earlier)
        while let row = try rows.next() { findings.note(row, of: rows) }
        try findings.warn(run)
        let first = try FirstRow.find(plan, list, selection)
        printResult(run, findings, earlier, waves, AlertText(plan, firstRow: first))
        try findings.checkInvalidRows(run)
        if !run.isBegun { findings.inspector.unmatchedValues?.warn(plan, isOfFirstRows: false) }
        if earlier?.kept.settled ?? 0 == 0, let warning = findings.tally.emptyHandedWarning {
            standardErrorLine(warning)
        }
        print("dry run: nothing was sent, nothing was written")
        return 0
    }

    /// Returns the waves of the run; nil if all rows are sent at once.
    private static func waves(
        _ run: CheckedRun, _ earlier: EarlierRuns?, _ selection: ListSelection
    ) throws(BroadsideError) -> WavePlan? {
        let options = run.plan.options
        guard let earlier else {
            let waves = try run.rows.waves()
            try waves?.check(options)
            return waves
        }
        var waves = try WavePlan(
            options.delivery, run.list, selection, left: earlier.rowsLeft(),
            startedAt: earlier.startedAtMilliseconds)
        waves?.resume(at: Clock.now().wallMilliseconds)
        if let warning = waves?.resumeWarning(options) { standardErrorLine(warning) }
        return waves
    }

    private static func printResult(
        _ run: CheckedRun, _ findings: borrowing Findings, _ earlier: EarlierRuns?,
        _ waves: WavePlan?, _ alert: AlertText?
    ) {
        let (plan, list) = (run.plan, run.list)
        let settled = earlier?.kept.settled
        let rows = findings.tally.rows + (settled ?? 0)
        assert(findings.invalid.rowCount == rows, "both count each row")
        print(
            plan.description(
                of: list, size: .exact(rows),
                ahead: RowsAhead(
                    sendable: findings.tally.sendable, of: rows,
                    elapsedSeconds: earlier.map {
                        RowsAhead.seconds(since: $0.startedAtMilliseconds, Clock.now())
                    } ?? 0),
                alert: alert,
                waves: waves, for: STDOUT_FILENO))
        let invalid = findings.invalid
        findings.tally.print(
            settled: settled,
            possibleSkips: (run.skips?.possibleReasons ?? [])
                + (plan.options.delivery.late == .skip ? [.late] : []),
            split: plan.options.split,
            explanation: { invalid.explanation(of: $0, in: list) })
        if let words = findings.inspector.fallbackCounts.words { print("other values \(words)") }
        if let shortened = findings.inspector.shortenedRows {
            let rows =
                shortened == 0
                ? "no row's" : shortened == 1 ? "1 row's" : "\(grouped(shortened)) rows'"
            print("shortened    \(rows) \(plan.payloads.fittedColumns.joined(separator: ", "))")
        }
    }
}
