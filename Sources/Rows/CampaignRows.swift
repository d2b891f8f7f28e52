/// Which rows of a list belong to a campaign, as its latest run was asked: the one idea of that, for
/// who sends, counts, exports, verifies and repairs.
///
/// Behind the limit of the latest run those rows belong to it that an earlier one may have sent:
/// they have an outcome, or are in doubt. What is provably unsent there waits for a run that looks
/// further.
public struct CampaignRows: Hashable, Sendable {
    /// The part of the list (`--shard` of a file that is cut by bytes).
    public var part: ListExtent
    /// Which rows of the part (`--shard` of any other list).
    public var selection: RowSelection
    /// The row behind the last one that is looked at (`--limit`); nil: all.
    public var limit: UInt64?

    /// All rows, as far as nothing else is said.
    public init(
        part: ListExtent = .wholeList, selection: RowSelection = .all, limit: UInt64? = nil
    ) {
        self.part = part
        self.selection = selection
        self.limit = limit
    }

    /// The row that none follows, by the limit; larger than any where there is none.
    @inlinable public var end: UInt64 { limit ?? .max }

    /// Whether a row of the part belongs to the campaign.
    ///
    /// - Parameter state: what became of it; `remaining` where no run has reserved it.
    @inlinable
    public func contains(_ row: UInt64, _ state: RowState) -> Bool {
        selection.contains(row) && (row < end || state != .remaining)
    }

    /// How many rows before `end` belong to it, by part, selection and limit.
    public func count(upTo end: UInt64) -> UInt64 {
        let last = min(end, self.end)
        return selection.count(in: part.firstRow..<max(part.firstRow, last))
    }

    /// The rows between a chunk and a later one, or the end, that no run has reserved and that
    /// belong to it; nil if there are none.
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

    /// How many rows lie between `row` and the next chunk, or the end of the list, that no run has
    /// reserved and that belong to it.
    ///
    /// - Parameter end: the next chunk's first row, or the row behind the list's last one.
    public func openCount(from row: UInt64, to end: UInt64) -> UInt64 {
        selection.count(in: row..<max(row, min(end, self.end)))
    }
}

/// Which rows of the list a run is about: all, or one in so many (`--shard K/N` of a list that
/// cannot be cut by bytes).
public struct RowSelection: Hashable, Sendable {
    /// One row of this many; 1 for all.
    public var divisor: UInt64
    /// Rows are in it whose number leaves this remainder.
    public var remainder: UInt64

    /// Every row.
    public static let all = RowSelection(divisor: 1, remainder: 0)

    /// Takes rows r with r mod `divisor` = `remainder`.
    public init(divisor: UInt64, remainder: UInt64) {
        precondition(divisor > 0 && remainder < divisor)
        self.divisor = divisor
        self.remainder = remainder
    }

    /// Whether the run is about that row.
    @inlinable
    public func contains(_ row: UInt64) -> Bool { divisor == 1 || row % divisor == remainder }

    /// How many rows of a range it is about.
    public func count(in rows: Range<UInt64>) -> UInt64 {
        func below(_ row: UInt64) -> UInt64 {
            row / divisor + (row % divisor > remainder ? 1 : 0)
        }
        assert(remainder < divisor, "a shard is one of those that there are")
        return below(rows.upperBound) - below(rows.lowerBound)
    }
}
