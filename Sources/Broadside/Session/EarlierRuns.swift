internal import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideLists
internal import BroadsideRows
import BroadsideSupport

/// The work of a campaign's earlier runs, read from its ledger without a lock, for a dry run.
struct EarlierRuns {
    private let manifest: Manifest
    private let index: LedgerIndex
    private let plan: Plan
    /// The counts of the rows that the next run does not send again.
    let kept: RowCounts

    var startedAtMilliseconds: UInt64 { manifest.firstStartedAtMilliseconds }

    /// - Parameter rows: Rows that the next run covers.
    init(
        _ directory: LedgerDirectory, _ known: Manifest, _ plan: Plan, rows: CampaignRows
    ) throws(BroadsideError) {
        self.plan = plan
        let (manifest, segments) = try directory.segments(knownTo: known)
        do throws(LedgerError) {
            var index = try LedgerIndex(segments: segments, manifest: manifest)
            index.rows.limit = rows.limit
            kept = try LedgerSummary(index).kept(reopening: plan.options.retry)
            (self.index, self.manifest) = (index, manifest)
        } catch {
            throw LedgerReader.unreadable(error, directory)
        }
    }

    /// Checks that the list is the campaign's list, as the next run does.
    func check(_ list: TokenList, in directory: LedgerDirectory) throws(BroadsideError) {
        try LedgerSession.check(list, manifest, index, directory, plan.options)
    }

    /// Warns if earlier runs sent rows to another server that is not Apple's.
    func warnOfRowsElsewhere(_ directory: LedgerDirectory) throws(BroadsideError) {
        try RowsElsewhere.warn(index, manifest, directory, plan.options)
    }

    /// Rows whose devices were erased before a run settled them.
    var erased: ErasedRows { index.erasedRows }

    /// Work that remains for the next run.
    func rowsLeft() -> ResumePlan {
        ResumePlan(index: index, lostRows: plan.options.onLost, reopens: plan.options.retry)
    }
}
