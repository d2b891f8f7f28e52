import BroadsideLedgerFormat
package import BroadsideRows
import BroadsideSupport

/// Which rows of a list a run is about, and which of these it does not send: the one answer to whether a
/// row is in the run.
package struct ListSelection: Sendable {
    /// The rows of its part of the list, its shard and its limit.
    package var rows: CampaignRows
    /// Those that are suppressed, and later copies of a token; nil: none.
    package var skips: ExclusionIndex?

    /// Selects rows; all of a list unless the arguments say otherwise.
    package init(rows: CampaignRows = CampaignRows(), skips: ExclusionIndex? = nil) {
        self.rows = rows
        self.skips = skips
    }

    /// Marks the rows of a chunk that the run does not send.
    func mark(_ chunk: RowChunk) throws(BroadsideError) {
        if rows.selection.divisor > 1, chunk.dispositions == nil { markShard(chunk) }
        try skips?.mark(chunk)
    }

    /// Of a chunk that is cut again, only the shard's rows are sent.
    private func markShard(_ chunk: RowChunk) {
        var dispositions = [RowDisposition](repeating: .settled, count: chunk.rowCount)
        let divisor = rows.selection.divisor
        let first = chunk.start.row % divisor
        assert(rows.selection.remainder < divisor, "a shard is one of those that there are")
        var rowIndex = Int((rows.selection.remainder + divisor - first) % divisor)
        while rowIndex < chunk.rowCount {
            dispositions[rowIndex] = .send
            rowIndex += Int(divisor)
        }
        chunk.dispositions = dispositions
    }
}

extension CampaignRows {
    /// The rows of a run that begins.
    ///
    /// - Parameters:
    ///   - part: The part of the list that the shard has, if the list is cut by bytes.
    ///   - limit: So many rows of the shard; nil: all.
    package init(of list: TokenList, part: ListExtent, shard: ListShard?, limit: UInt64?) {
        self.init(
            part: part, selection: shard?.identity(of: list).selection ?? .all,
            limit: limit.map { shard?.rowsLimit($0, part: part, of: list) ?? $0 })
    }
}
