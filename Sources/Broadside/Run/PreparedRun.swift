import Campaign
import Ledgers
import Lists
import Observability
import Support

/// All that a run reads of its list and its ledger before it sends.
struct PreparedRun {
    let session: LedgerSession
    /// For people; nil where nobody watches.
    let size: ListSize?
    let alert: AlertText?

    /// - Parameter directory: The ledger's, locked.
    init(_ run: CheckedRun, directory: LedgerDirectory) throws(BroadsideError) {
        let (plan, list) = (run.plan, run.list)
        let part = run.isBegun ? nil : try list.part(of: plan.options.shard)
        if let part, run.isPartSearched { try ListLook(list, plan: plan, part: part).check() }
        session = try LedgerSession(
            plan, list: list, part: part, skips: run.skips, directory: directory, now: Clock.now())
        let isOver = session.isFinishedAlready
        size =
            isOver || plan.options.progress == .none ? nil : try ListSize.estimate(plan, list)
        alert = isOver ? nil : AlertText(plan, list)
    }
}
