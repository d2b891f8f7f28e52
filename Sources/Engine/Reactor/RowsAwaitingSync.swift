/// Rows that were read ahead and whose reservation may not be synced yet, in list order, grouped by
/// chunk. They are in the slab; nothing here grows beyond the limit of rows.
struct RowsAwaitingSync: ~Copyable {
    private struct Group {
        /// Ledger position to sync before its rows are sent.
        var reservedAt: UInt64
        var count: Int
    }

    private var line = RowQueue()
    private var groups: [Group] = []
    /// Index of the group that contains the next row.
    private var first = 0

    /// Limit on rows that are read ahead of their sync.
    static let limit = 4_096

    var count: Int { line.count }

    /// Ledger position to sync before the next row is sent; nil if there is none.
    var reservedAt: UInt64? { first < groups.count ? groups[first].reservedAt : nil }

    mutating func append(_ tag: RowTag, reservedAt: UInt64, in slab: borrowing RowSlab) {
        line.append(tag, in: slab)
        if let last = groups.indices.last, last >= first, groups[last].reservedAt == reservedAt {
            groups[last].count += 1
            return
        }
        groups.append(Group(reservedAt: reservedAt, count: 1))
    }

    mutating func popFirst(in slab: borrowing RowSlab) -> RowTag? {
        guard let tag = line.popFirst(in: slab) else { return nil }
        groups[first].count -= 1
        assert(groups[first].count >= 0, "a group has the rows that were put into it")
        if groups[first].count == 0 { first += 1 }
        if first == groups.count {
            groups.removeAll(keepingCapacity: true)
            first = 0
        } else if first >= Self.limit {
            groups.removeFirst(first)
            first = 0
        }
        return tag
    }
}
