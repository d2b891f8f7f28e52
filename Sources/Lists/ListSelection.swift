package import BroadsideLedgerFormat
package import BroadsideRows
import BroadsideSupport

/// Rows of a list that a run covers, and the rows among them that it skips. All decisions about
/// whether a row is in the run use this selection.
package struct ListSelection: Sendable {
    /// Rows within the run's part of the list, the shard and the limit.
    package var rows: CampaignRows
    /// Rows that are settled as `skipped`; nil if there are none.
    package var skips: ExclusionIndex?
    /// Rows whose time has come; nil if all rows are due.
    package var due: DueRows?
    /// Rows whose devices were erased before a run settled them; nil if there are none.
    package var erased: ErasedRows?

    /// Creates a selection, by default of all rows.
    package init(
        rows: CampaignRows = CampaignRows(), skips: ExclusionIndex? = nil, due: DueRows? = nil,
        erased: ErasedRows? = nil
    ) {
        self.rows = rows
        self.skips = skips
        self.due = due
        self.erased = erased
    }

    /// Marks the rows of a chunk that the run does not send.
    func mark(_ chunk: RowChunk) throws(BroadsideError) {
        if rows.selection.divisor > 1, chunk.dispositions == nil { markShard(chunk) }
        try skips?.mark(chunk)
        try due?.mark(chunk)
        erased?.mark(chunk)
    }

    /// Whether the run sends or settles a row of a marked chunk.
    func hasWork(_ chunk: RowChunk) -> Bool {
        due == nil || chunk.dispositions?.allSatisfy(\.isPassedOver) != true
    }

    /// Number of rows of a range that the run may send.
    func count(in range: Range<UInt64>) throws(BroadsideError) -> UInt64 {
        guard let due else { return rows.selection.count(in: range) }
        return try due.count(in: range, of: rows.selection)
    }

    /// Converts a limit on the rows that the run may send into a limit on all rows of a chunk.
    ///
    /// - Parameter row: First row of the chunk.
    func rowLimit(_ limit: Int, from row: UInt64) throws(BroadsideError) -> Int {
        guard let due else { return limit }
        // A cursor multiplies its limit by the shard's divisor.
        let divisor = Int(rows.selection.divisor)
        return (try due.rowLimit(limit, from: row, of: rows.selection) - 1) / divisor + 1
    }

    /// Marks a chunk that has no dispositions, so that only the rows of this shard are sent.
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
    /// Creates the selection of a new run.
    ///
    /// - Parameters:
    ///   - part: The shard's range of the list, if the list is divided by bytes.
    ///   - limit: Limit on rows of the shard; nil if unlimited.
    package init(of list: TokenList, part: ListExtent, shard: ListShard?, limit: UInt64?) {
        self.init(
            part: part, selection: shard?.identity(of: list).selection ?? .all,
            limit: limit.map { shard?.rowsLimit($0, part: part, of: list) ?? $0 })
    }
}
