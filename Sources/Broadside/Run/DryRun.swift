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
    /// Row counts of a list, by result.
    private struct Tally {
        var rows: UInt64 = 0
        /// Whether the campaign has a suppression list.
        var hasSuppressionList = false
        /// Rows that earlier runs left in doubt, and that this run would settle as unknown.
        var doubtful: UInt64 = 0
        private var skipped: [SkipReason: UInt64] = [:]
        private var invalid: UInt64 = 0
        private var reasons: [Reason: Int] = [:]
        private var firstInvalidLine: UInt64?
        /// Rows to send, by the number of their arm.
        private var arms = [UInt64](repeating: 0, count: ArmSplit.armLimit + 1)

        /// Counts a row that the run would settle because of earlier runs. A row of an erased device
        /// that no run sent would be skipped.
        mutating func countUnsent(_ disposition: RowDisposition) {
            if disposition == .erased(mayHaveBeenSent: false) {
                countSkipped(.suppressed)
            } else {
                doubtful += 1
            }
        }

        mutating func countSkipped(_ reason: SkipReason) { skipped[reason, default: 0] += 1 }

        mutating func countSent(arm: UInt8) { arms[Int(arm)] += 1 }

        mutating func countInvalid(_ reason: Reason, line: UInt64) {
            invalid += 1
            reasons[reason, default: 0] += 1
            firstInvalidLine = firstInvalidLine ?? line
        }

        var sendable: UInt64 {
            assert(
                invalid + skippedCount + doubtful <= rows, "each row is counted once")
            return rows - invalid - skippedCount - doubtful
        }

        private var skippedCount: UInt64 { skipped.values.reduce(0, +) }

        /// Warning that there is nothing to send; nil if at least one row would be sent.
        var emptyHandedWarning: String? {
            if rows == 0 { return Summary.noRowsWarning }
            guard skippedCount > 0, sendable == 0, doubtful == 0 else { return nil }
            let counts = SkipReason.allCases.compactMap { reason in
                skipped[reason].map { (reason: reason, count: $0) }
            }
            return Summary.allSkippedWarning(
                counts, invalid: invalid, hasSuppressionList: hasSuppressionList)
        }

        /// - Parameters:
        ///   - settled: Number of rows that earlier runs settled; nil if there was no run.
        ///   - possibleSkips: Reasons for which the options may skip rows.
        ///   - split: Rule that puts devices into arms; nil if there are none.
        ///   - explanation: Returns the line and the problem of the first invalid row with a reason;
        ///     nil if there is no explanation.
        func print(
            settled: UInt64?, possibleSkips: [SkipReason], split: ArmSplit?,
            explanation: (Reason) -> String?
        ) {
            assert(arms.reduce(0, +) == sendable, "each row to send is counted with its arm")
            Swift.print("to send      \(grouped(sendable))")
            if let split {
                let counts = split.names.enumerated().filter { $0.element != ArmSplit.holdoutName }
                    .map { "\($0.element) \(grouped(arms[$0.offset + 1]))" }
                Swift.print("             by arm: \(counts.joined(separator: ", "))")
            }
            if let settled {
                Swift.print("settled      \(grouped(settled)) by earlier runs, and not sent again")
            }
            if doubtful > 0 {
                Swift.print(
                    "unknown      \(grouped(doubtful)): an earlier run sent them and got no response "
                        + "(--on-lost)")
            }
            // Rows of erased devices are skipped as suppressed, also without a suppression list.
            let skips = SkipReason.allCases.filter {
                possibleSkips.contains($0) || skipped[$0] != nil
            }
            if !skips.isEmpty {
                let counts = skips.map { "\($0.reason.text) \(grouped(skipped[$0] ?? 0))" }
                Swift.print(
                    "skipped      \(grouped(skippedCount)): \(counts.joined(separator: ", "))")
            }
            let location = firstInvalidLine.map { ", the first on line \($0)" } ?? ""
            Swift.print("invalid      \(grouped(invalid))\(location)")
            for (reason, count) in reasons.sorted(by: { $0.key.text < $1.key.text }) {
                let why = explanation(reason).map { ": \($0)" } ?? ""
                Swift.print("             \(grouped(count)) \(reason.text)\(why)")
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
        var waves: WavePlan?
        if let earlier {
            waves = try WavePlan(
                plan.options.delivery, list, selection, left: earlier.rowsLeft(),
                startedAt: earlier.startedAtMilliseconds)
            waves?.resume(at: Clock.now().wallMilliseconds)
            if let warning = waves?.resumeWarning(plan.options) { standardErrorLine(warning) }
        } else {
            waves = try run.rows.waves()
            try waves?.check(plan.options)
        }
        let settled = earlier?.kept.settled
        var dueSelection = selection
        dueSelection.due = waves?.anyTime
        var rows = try RowCursor(list, dueSelection, left: earlier?.rowsLeft())
        var tally = Tally()
        tally.hasSuppressionList = plan.options.suppress != nil
        var inspector = RowInspector(plan.payloads.set, layout: list.layout)
        var invalid = InvalidRows(
            maximumPercent: plan.options.maxInvalid,
            earlier: (settled ?? 0, earlier?.kept[.invalid] ?? 0))
        var lengths = TokenLengths()
        var values = RowValues(list.layout, plan.payloads.set)
        while let row = try rows.next() {
            if rows.disposition.isPassedOver { continue }
            tally.rows += 1
            if rows.disposition.settlesUnsent {
                tally.countUnsent(rows.disposition)
                invalid.noteValid()
                continue
            }
            if case .skipped(let reason) = rows.disposition {
                tally.countSkipped(reason)
                invalid.noteValid()
                continue
            }
            var finding = inspector.finding(in: rows.reader)
            if finding == nil, rows.disposition == .invalid(.badZone) { finding = .badZone }
            _ = invalid.note(finding, row, of: rows.reader)
            values.take(
                row, of: rows.reader, token: finding == nil ? inspector.tokenFingerprint : nil,
                hasBlankAlert: inspector.hasBlankAlert)
            guard let finding else {
                lengths.note(inspector.tokenDigitCount, line: row.line)
                tally.countSent(arm: inspector.arm)
                continue
            }
            tally.countInvalid(finding.reason, line: row.line)
        }
        assert(invalid.rowCount == tally.rows + (settled ?? 0), "both count each row")
        if let refusal = list.refusal(of: invalid.headers, isBegun: run.isBegun) { throw refusal }
        list.warn(of: lengths)
        list.warnOfShortTokens(lengths)
        if !run.isBegun { try list.warnOfDamage() }
        plan.warnOfRowTopics()
        // A scan for skipped rows has already warned about all headers.
        if run.skips == nil { list.warn(of: invalid.headers, isBegun: run.isBegun) }
        values.warn(list, plan, knowsSkips: true)
        values.warnOfBlankAlerts(list, plan)
        let alert = AlertText(plan, firstRow: try FirstRow.find(plan, list, selection))
        print(
            plan.description(
                of: list, size: .exact(tally.rows + (settled ?? 0)),
                ahead: RowsAhead(
                    sendable: tally.sendable, of: tally.rows + (settled ?? 0),
                    elapsedSeconds: earlier.map {
                        RowsAhead.seconds(since: $0.startedAtMilliseconds, Clock.now())
                    } ?? 0),
                alert: alert,
                waves: waves, for: STDOUT_FILENO))
        tally.print(
            settled: settled,
            possibleSkips: (run.skips?.possibleReasons ?? [])
                + (plan.options.delivery.late == .skip ? [.late] : []),
            split: plan.options.split,
            explanation: { invalid.explanation(of: $0, in: list) })
        if let words = inspector.fallbackCounts.words { print("other values \(words)") }
        if let shortened = inspector.shortenedRows {
            let rows =
                shortened == 0
                ? "no row's" : shortened == 1 ? "1 row's" : "\(grouped(shortened)) rows'"
            print("shortened    \(rows) \(plan.payloads.fittedColumns.joined(separator: ", "))")
        }
        if let verdict = invalid.finish(), try !verdict.isEmptyPart(of: list, plan.options.shard) {
            throw invalid.refusal(verdict, of: list, plan.options.maxInvalid)
        }
        if settled ?? 0 == 0, let warning = tally.emptyHandedWarning { standardErrorLine(warning) }
        print("dry run: nothing was sent, nothing was written")
        return 0
    }
}
