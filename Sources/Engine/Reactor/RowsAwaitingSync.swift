/// A queue of rows that the reactor reads before their reservation is synced, in list order and
/// grouped by chunk. The rows are stored in the slab, so the queue can't have more rows than the
/// slab.
struct RowsAwaitingSync: ~Copyable {
    private struct Group {
        /// Ledger position that must be synced before the group's rows are sent.
        var reservedAt: UInt64 = 0
        var count = 0
    }

    private var line = RowQueue()
    // The first and the last group are not in the array, because an access to the array for each
    // row would count references.
    private var first = Group()
    /// The last group; empty if there are fewer than two groups.
    private var last = Group()
    /// The groups between the first and the last.
    private var between: [Group] = []
    /// Index in `between` of the second group.
    private var next = 0

    /// Limit on rows that are read before their reservation is synced.
    static let limit = 4_096

    var count: Int { line.count }

    /// Ledger position that must be synced before the next row is sent; nil if there is no row.
    @inline(__always)
    var reservedAt: UInt64? { first.count > 0 ? first.reservedAt : nil }

    mutating func append(_ tag: RowTag, reservedAt: UInt64, in slab: borrowing RowSlab) {
        line.append(tag, in: slab)
        if last.count > 0 {
            if last.reservedAt != reservedAt { closeLast(reservedAt) }
            last.count += 1
        } else if first.count == 0 {
            first = Group(reservedAt: reservedAt, count: 1)
        } else if first.reservedAt == reservedAt {
            first.count += 1
        } else {
            last = Group(reservedAt: reservedAt, count: 1)
        }
    }

    mutating func popFirst(in slab: borrowing RowSlab) -> RowTag? {
        guard let tag = line.popFirst(in: slab) else { return nil }
        first.count -= 1
        assert(first.count >= 0, "a group has the rows that were put into it")
        if first.count == 0 { advance() }
        return tag
    }

    /// Starts a new last group.
    @inline(never)
    private mutating func closeLast(_ reservedAt: UInt64) {
        assert(last.reservedAt < reservedAt, "the positions of reservations only grow")
        between.append(last)
        last = Group(reservedAt: reservedAt, count: 0)
    }

    /// Removes the first group and makes the next one the first.
    @inline(never)
    private mutating func advance() {
        if next < between.count {
            first = between[next]
            next += 1
        } else {
            first = last
            last = Group()
            between.removeAll(keepingCapacity: true)
            next = 0
        }
        if next >= Self.limit {
            between.removeFirst(next)
            next = 0
        }
        assert(first.count > 0 || line.isEmpty, "each row is in a group")
    }
}
