internal import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideLists
internal import BroadsidePolicy
internal import BroadsideRows
import BroadsideSupport

/// The state that earlier runs left in a ledger, read and checked before a run continues the
/// ledger. If the run is refused, the ledger and its claim are unchanged.
struct LedgerState {
    let manifest: Manifest
    let index: LedgerIndex
    /// Limit on row numbers of the run that continues; nil: none.
    let rowsLimit: UInt64?
    /// The counts of the ledger.
    let summary: LedgerSummary
    /// The counts of rows that this process has already settled in the states of `--retry`. This
    /// run does not reopen these rows.
    let keptOfProcess: RowCounts
    /// Whether the run has nothing to send, whatever the ledger's counts are.
    let sendsNothing: Bool
    let isFinished: Bool
    private let segments: [LedgerSegment]

    /// - Parameters:
    ///   - identity: Identity of the campaign that the run continues.
    ///   - directory: Directory of the ledger, locked.
    ///   - zones: Database that must have the time zones of the campaign; nil: they are not needed.
    init(
        _ plan: Plan, list: TokenList, identity: CampaignIdentity, directory: LedgerDirectory,
        zones: ZoneDatabase?
    ) throws(BroadsideError) {
        let known = try directory.readManifest()
        if let difference = LedgerSession.difference(
            known.identity, identity, in: directory, plan.options)
        {
            throw LedgerSession.otherCampaign(directory, difference, plan.options)
        }
        do throws(BroadsideError) {
            try self.init(plan, list: list, known, directory)
        } catch {
            // An old copy may look damaged. The newest copy is then the better remedy.
            if error.exitCode == ExitCode.disk { try directory.refuseOldCopy(known) }
            throw error
        }
        if !isFinished, let zones { try zones.check(zonesOfCampaign: manifest.zones ?? []) }
    }

    private init(
        _ plan: Plan, list: TokenList, _ known: Manifest, _ directory: LedgerDirectory
    ) throws(BroadsideError) {
        let (manifest, segments) = try directory.segments(knownTo: known)
        let rows = plan.rows(of: list, part: manifest.part ?? .wholeList)
        let isOver = manifest.isFinished && !manifest.extendsBeyond(limit: rows.limit)
        directory.patience.endsOnSignals = true
        defer { directory.patience.endsOnSignals = false }
        do throws(LedgerError) {
            var index = try LedgerIndex(segments: segments, manifest: manifest)
            // Rows beyond a limit are counted separately: by this run's limit if it sends any.
            let earlierLimit = index.rows.limit
            if !isOver || !plan.options.retry.isEmpty { index.rows.limit = rows.limit }
            var summary = try LedgerSummary(index)
            isFinished = isOver && !Self.reopensAny(plan, summary)
            if isFinished, index.rows.limit != earlierLimit {
                index.rows.limit = earlierLimit
                summary = try LedgerSummary(index)
            }
            keptOfProcess =
                if let run = plan.reopenedSince, !plan.options.retry.isEmpty {
                    try LedgerSummary(index, settledSince: run).settled(in: plan.options.retry)
                } else {
                    RowCounts()
                }
            (self.index, self.summary) = (index, summary)
        } catch {
            throw LedgerReader.unreadable(error, directory)
        }
        (self.manifest, self.segments, rowsLimit) = (manifest, segments, rows.limit)
        sendsNothing = isOver && plan.options.retry.isEmpty
        assert(!sendsNothing || isFinished, "without --retry, a finished campaign stays finished")
        try LedgerSession.check(list, manifest, index, directory, plan.options)
        // Rows of later waves are not in the ledger yet, so the ledger does not show the share of
        // invalid rows.
        if !isFinished, !plan.options.delivery.isUsed {
            try FirstRowsCheck(list, plan: plan, rows: rows, isBegun: true)
                .check(earlier: LedgerSession.rowsRead(summary, plan))
        }
    }

    /// Whether manifest and segments are still those that were read. Segments only grow.
    func isCurrent(in directory: LedgerDirectory) throws(BroadsideError) -> Bool {
        guard try directory.readManifest() == manifest else { return false }
        return try directory.segments().elementsEqual(segments) {
            $0.name == $1.name && $0.bytes.byteCount == $1.bytes.byteCount
        }
    }

    private static func reopensAny(_ plan: Plan, _ summary: LedgerSummary) -> Bool {
        RowState.settledStates.contains {
            plan.options.retry.contains($0) && summary.count($0) > summary.unsendable[$0]
        }
    }
}
