/// What pruning did with a list's rows.
public struct PruneCounts: Sendable {
    /// Rows of the list; header and blank lines are none.
    public internal(set) var rows: UInt64 = 0
    /// Rows left out.
    public internal(set) var removed: UInt64 = 0
    /// Rows left out by the reason's stable code.
    public internal(set) var removedByReason = [UInt64](repeating: 0, count: 256)
    /// Rows that have the column of registration times.
    public internal(set) var withRegistration: UInt64 = 0
    /// Whether the time of registration can be read in any row.
    public internal(set) var hasReadableRegistration = false
    /// Rows of dead tokens that stay because they were registered later.
    public internal(set) var registeredLater: UInt64 = 0
    /// Rows of dead tokens that stay because nobody can read when they were registered.
    public internal(set) var unreadableRegistrations: UInt64 = 0
    /// The line on which the first of those starts, from 1.
    public internal(set) var firstUnreadableLine: UInt64?
    /// Rows without a device token; they stay.
    public internal(set) var withoutToken: UInt64 = 0

    /// Nothing yet.
    init() {}

    /// Whether more than so many percent of the rows were left out.
    public func exceeds(percent: Double) -> Bool {
        Double(removed) * 100 > percent * Double(rows)
    }
}
