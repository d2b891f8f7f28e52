import BroadsideLists
import BroadsidePayloads
import BroadsideRows
import BroadsideSupport

/// Rows of the list that the options select for a run. They are determined on first use.
final class RunRows {
    private let plan: Plan
    private let list: TokenList
    private let search: ExclusionScan?
    private var knownPart: ListExtent?
    private var knownSkips: ExclusionIndex?
    private var knownWaves: WavePlan?
    /// The first row to send. The outer optional is nil until the row has been searched for.
    private var knownFirst: FirstRow??

    /// - Parameter search: Finds the rows to skip; nil if no row is skipped.
    init(_ plan: Plan, _ list: TokenList, skips search: ExclusionScan?) {
        self.plan = plan
        self.list = list
        self.search = search
    }

    /// Returns the extent of the shard. For a plain file, the list is read up to the shard's end.
    func part() throws(BroadsideError) -> ListExtent {
        if let knownPart { return knownPart }
        let part = try list.part(of: plan.options.shard)
        knownPart = part
        return part
    }

    /// Returns the rows within the part, the shard and the limit, including skipped rows.
    func rows() throws(BroadsideError) -> CampaignRows { plan.rows(of: list, part: try part()) }

    /// Returns the rows of the run and the rows to skip. This requires reading the whole list.
    func selection() throws(BroadsideError) -> ListSelection {
        let rows = try rows()
        if knownSkips == nil { knownSkips = try search?.listAside(of: list) }
        return ListSelection(rows: rows, skips: knownSkips)
    }

    /// Returns the waves of a campaign that begins now; nil if all rows are sent at once. This
    /// requires reading the whole list.
    func waves() throws(BroadsideError) -> WavePlan? {
        if knownWaves == nil, plan.options.delivery.isUsed {
            knownWaves = try WavePlan(
                plan.options.delivery, list, selection(),
                startedAt: Clock.now().wallMilliseconds)
        }
        return knownWaves
    }

    /// Returns the first row to send; nil if the payload is the same for all rows, or if none of
    /// the first rows can be sent.
    func first() throws(BroadsideError) -> FirstRow? {
        if let knownFirst { return knownFirst }
        guard plan.payloads.set.isPersonal else { return nil }
        var first = try FirstRow.find(plan, list, firstSelection())
        // If all of the first rows are skipped, the search needs the skips of the whole list.
        if first == nil, search != nil { first = try FirstRow.find(plan, list, selection()) }
        knownFirst = .some(first)
        return first
    }

    /// Returns the rows at the beginning of the list, among which `first` searches for a row to
    /// send. Later rows do not affect which of these rows are skipped.
    private func firstSelection() throws(BroadsideError) -> ListSelection {
        var rows = try rows()
        guard let search else { return ListSelection(rows: rows) }
        let end = rows.part.firstRow + (FirstRow.searchLimit + 1) * rows.selection.divisor
        rows.limit = min(rows.end, end)
        assert(end > rows.part.firstRow, "the first rows are at least one")
        return ListSelection(rows: rows, skips: try search.listAside(of: list, upTo: rows.end))
    }

    /// Refuses a template whose first payload violates Apple's rules, and prints its warnings.
    func checkFirstPayload() throws(BroadsideError) {
        guard plan.options.payloadCheck == .error, let first = try first() else { return }
        for warning in try first.warnings(plan) {
            standardErrorLine("broadside: warning: \(warning)")
        }
    }
}

extension Plan {
    /// Returns the run's rows within an extent of the list.
    func rows(of list: TokenList, part: ListExtent) -> CampaignRows {
        CampaignRows(of: list, part: part, shard: options.shard, limit: options.limit)
    }
}
