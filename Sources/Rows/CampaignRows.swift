/// The rows of a list that belong to a campaign, as defined by its latest run. Sending, counting,
/// export, verification and repair all use this definition.
///
/// A row beyond the latest run's limit belongs to the campaign only if an earlier run may have sent
/// it: the row has an outcome or is in doubt. Rows beyond the limit that are provably unsent wait
/// for a run with a higher limit.
public struct CampaignRows: Hashable, Sendable {
    /// Extent of the list that the campaign covers (`--shard` of a file that is divided by bytes).
    public var part: ListExtent
    /// Rows that the campaign covers within the extent (`--shard` of a list that is not divided by
    /// bytes).
    public var selection: RowSelection
    /// Number of the first row that is not read (`--limit`); nil: no limit.
    public var limit: UInt64?

    /// Creates a definition; by default it includes all rows.
    public init(
        part: ListExtent = .wholeList, selection: RowSelection = .all, limit: UInt64? = nil
    ) {
        self.part = part
        self.selection = selection
        self.limit = limit
    }

    /// End of the rows within the limit; `.max` if there is no limit.
    @inlinable public var end: UInt64 { limit ?? .max }

    /// Whether a row of the extent belongs to the campaign.
    ///
    /// - Parameter state: State of the row; `remaining` if no run has reserved it.
    @inlinable
    public func contains(_ row: UInt64, _ state: RowState) -> Bool {
        selection.contains(row) && (row < end || state != .remaining)
    }

    /// Number of rows before `end` that are within the extent, the selection and the limit.
    public func count(upTo end: UInt64) -> UInt64 {
        let last = min(end, self.end)
        return selection.count(in: part.firstRow..<max(part.firstRow, last))
    }

    /// The campaign's unreserved rows after one chunk and before the next, or up to the end of the
    /// list; nil if there are none.
    public func open(
        after previous: ChunkReservation?, before next: ChunkReservation?
    ) -> ListExtent? {
        guard var gap = ListExtent(after: previous, before: next, within: part) else { return nil }
        guard let limit else { return gap }
        if gap.firstRow >= limit { return nil }
        assert(gap.firstRow < limit, "a gap begins before the limit")
        gap.endRow = min(gap.endRow ?? limit, limit)
        return gap
    }

    /// Number of the campaign's unreserved rows from `row` up to the next chunk or the end of the
    /// list.
    ///
    /// - Parameter end: First row of the next chunk, or the number of rows of the list.
    public func openCount(from row: UInt64, to end: UInt64) -> UInt64 {
        selection.count(in: row..<max(row, min(end, self.end)))
    }
}

/// Selection of a list's rows: all rows, or every `divisor`-th row (`--shard K/N` of a list that
/// cannot be divided by bytes).
public struct RowSelection: Hashable, Sendable {
    /// Number of shards; 1 for all rows.
    public var divisor: UInt64
    /// Remainder when the number of a selected row is divided by `divisor`.
    public var remainder: UInt64

    /// Selection of every row.
    public static let all = RowSelection(divisor: 1, remainder: 0)

    /// Selects rows r with r mod `divisor` = `remainder`.
    public init(divisor: UInt64, remainder: UInt64) {
        precondition(divisor > 0 && remainder < divisor)
        self.divisor = divisor
        self.remainder = remainder
    }

    /// Whether a row is selected.
    @inlinable
    public func contains(_ row: UInt64) -> Bool { divisor == 1 || row % divisor == remainder }

    /// Number of selected rows in a range.
    public func count(in rows: Range<UInt64>) -> UInt64 {
        func below(_ row: UInt64) -> UInt64 {
            row / divisor + (row % divisor > remainder ? 1 : 0)
        }
        assert(remainder < divisor, "a shard is one of those that there are")
        return below(rows.upperBound) - below(rows.lowerBound)
    }
}
