import BroadsideLists
import BroadsidePayloads
import BroadsideRows
import BroadsideSupport

/// Which rows of its list a run is about, as the options say: looked up once, when first asked for.
final class RunRows {
    private let plan: Plan
    private let list: TokenList
    private let search: ExclusionScan?
    private var knownPart: ListExtent?
    private var knownSkips: ExclusionIndex?
    /// The outer nil: not looked for yet.
    private var knownFirst: FirstRow??

    /// - Parameter search: Finds the rows that are skipped; nil: none is.
    init(_ plan: Plan, _ list: TokenList, skips search: ExclusionScan?) {
        self.plan = plan
        self.list = list
        self.search = search
    }

    /// The part of the list that the shard has: of a plain file it is found by reading up to its end.
    func part() throws(BroadsideError) -> ListExtent {
        if let knownPart { return knownPart }
        let part = try list.part(of: plan.options.shard)
        knownPart = part
        return part
    }

    /// Those of part, shard and limit, the skipped ones among them.
    func rows() throws(BroadsideError) -> CampaignRows { plan.rows(of: list, part: try part()) }

    /// All of them, and which ones are skipped: the whole list is read for that.
    func selection() throws(BroadsideError) -> ListSelection {
        let rows = try rows()
        if knownSkips == nil { knownSkips = try search?.listAside(of: list) }
        return ListSelection(rows: rows, skips: knownSkips)
    }

    /// The first row that is sent; nil if the payload is the same for all rows, or none of the first rows
    /// can be sent.
    func first() throws(BroadsideError) -> FirstRow? {
        if let knownFirst { return knownFirst }
        guard plan.payloads.set.isPersonal else { return nil }
        var first = try FirstRow.find(plan, list, firstSelection())
        // Where all of those are skipped, all skips have to be known.
        if first == nil, search != nil { first = try FirstRow.find(plan, list, selection()) }
        knownFirst = .some(first)
        return first
    }

    /// As many rows as are looked at for the first one that is sent. No row behind them decides which of
    /// them are skipped.
    private func firstSelection() throws(BroadsideError) -> ListSelection {
        var rows = try rows()
        guard let search else { return ListSelection(rows: rows) }
        let end = rows.part.firstRow + (FirstRow.searchLimit + 1) * rows.selection.divisor
        rows.limit = min(rows.end, end)
        return ListSelection(rows: rows, skips: try search.listAside(of: list, upTo: rows.end))
    }

    /// Refuses a payload that Apple would refuse once the first row has filled it in, and warns of what is
    /// strange about it.
    func checkFirstPayload() throws(BroadsideError) {
        guard plan.options.payloadCheck == .error, let first = try first() else { return }
        for warning in try first.warnings(plan) {
            standardErrorLine("broadside: warning: \(warning)")
        }
    }
}

extension Plan {
    /// The rows of a part of a list that a run is about.
    func rows(of list: TokenList, part: ListExtent) -> CampaignRows {
        CampaignRows(of: list, part: part, shard: options.shard, limit: options.limit)
    }
}
