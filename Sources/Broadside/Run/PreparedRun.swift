import BroadsideLedgers
import BroadsideLists
import BroadsideObservability
import BroadsideSupport

/// The inputs that a run takes from its list and its ledger before it sends.
struct PreparedRun {
    let session: LedgerSession
    /// Size of the list, for display; nil if the campaign is finished.
    let size: ListSize?
    let alert: AlertText?
    /// The waves of the campaign; nil: all rows are sent at once.
    let waves: WavePlan?

    /// - Parameter directory: Directory of the ledger, locked.
    init(_ run: CheckedRun, directory: LedgerDirectory) throws(BroadsideError) {
        let (plan, list) = (run.plan, run.list)
        if run.isPartSearched, !run.isBegun {
            try run.rows.checkFirstPayload()
            try FirstRowsCheck(list, plan: plan, rows: run.rows.rows()).check()
        }
        session = try LedgerSession(
            plan, list: list, part: run.isBegun ? nil : run.rows.part(), skips: run.skips,
            directory: directory, zones: ZoneDatabase(), now: Clock.now())
        try session.warnOfRowsElsewhere()
        guard !session.isFinishedAlready else {
            (size, alert, waves) = (nil, nil, nil)
            return
        }
        let selection = session.selection
        do throws(BroadsideError) {
            // Nothing was sent, so the list can still be refused.
            if !session.isResumed || session.earlier.reservedRowCount == 0 {
                try FirstRowsCheck(
                    list, plan: plan, rows: selection.rows, isBegun: session.isResumed
                ).checkPayloads(skips: selection.skips)
            }
            waves = try Self.waves(run, session, selection)
            size = try ListSize.estimate(plan, list)
        } catch {
            // This run began the ledger and has sent nothing. It is discarded, so that the
            // corrected list or option can begin the campaign.
            if !session.isResumed, ![ExitCode.rowsRemain, ExitCode.inUse].contains(error.exitCode) {
                directory.discardCampaign()
            }
            throw error
        }
        alert = AlertText(plan, firstRow: try? FirstRow.find(plan, list, selection))
    }

    /// Plans the waves and records their zones; nil if all rows are sent at once.
    private static func waves(
        _ run: CheckedRun, _ session: LedgerSession, _ selection: ListSelection
    ) throws(BroadsideError) -> WavePlan? {
        let (plan, list) = (run.plan, run.list)
        guard
            var waves = try WavePlan(
                plan.options.delivery, list, selection,
                startedAt: session.manifest.firstStartedAtMilliseconds)
        else { return nil }
        if session.isResumed {
            list.warn(of: waves.zones.headers, isBegun: true)
            waves.resume(
                at: Clock.now().wallMilliseconds, left: try session.rowsLeft(of: waves.zones))
            if let warning = waves.resumeWarning(plan.options) { standardErrorLine(warning) }
        } else {
            if let refusal = list.refusal(of: waves.zones.headers) { throw refusal }
            // The list was read to its end, and nothing was sent.
            try list.warnOfDamage(waves.zones.overwritten)
            // The zones of a part are not checked: it has random rows of a table, and the table
            // was checked as a whole.
            if plan.options.part == nil { try waves.check(plan.options) }
        }
        if let warning = waves.deadlineWarning(plan.options.deadline) { standardErrorLine(warning) }
        try session.record(zones: waves.zones.usedNames)
        return waves
    }

    /// Continues the ledger with the next pass of the process. The time zones were read before the
    /// first pass.
    ///
    /// - Parameter plan: Plan of the next pass.
    init(
        _ plan: Plan, _ run: CheckedRun, after previous: PreparedRun, directory: LedgerDirectory
    ) throws(BroadsideError) {
        session = try LedgerSession(
            plan, list: run.list, part: nil, skips: run.skips, directory: directory,
            now: Clock.now())
        size = previous.size
        alert = previous.alert
        waves = previous.waves
    }
}
