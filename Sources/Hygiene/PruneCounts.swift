public import BroadsideRows

/// The counts of rows processed by pruning.
public struct PruneCounts: Sendable {
    /// Rows of the list, without header and blank lines.
    public internal(set) var rows: UInt64 = 0
    /// Removed rows.
    public internal(set) var removed: UInt64 = 0
    /// Removed rows by the stable code of the reason.
    public internal(set) var removedByReason = [UInt64](repeating: 0, count: 256)
    /// Rows with the column of registration times.
    public internal(set) var withRegistration: UInt64 = 0
    /// Whether any row has a readable registration time.
    public internal(set) var hasReadableRegistration = false
    /// Rows of dead tokens that are kept because they were registered later.
    public internal(set) var registeredLater: UInt64 = 0
    /// Rows of dead tokens that are kept because their registration time is unreadable.
    public internal(set) var unreadableRegistrations: UInt64 = 0
    /// Line of the first row with an unreadable time, from 1.
    public internal(set) var firstUnreadableLine: UInt64?
    /// Line of the first row of a dead token whose registration time has no offset from UTC and was
    /// read as UTC, from 1; nil if there is none.
    public internal(set) var firstLineWithoutOffset: UInt64?
    /// Rows that name no topic and are kept, although their tokens are dead under some topic.
    public internal(set) var withoutTopic: UInt64 = 0
    /// Rows without a device token, which are kept.
    public internal(set) var withoutToken: UInt64 = 0
    /// Rows that are overwritten with zero bytes, which are kept.
    public internal(set) var overwritten = OverwrittenRows()

    /// Creates counts of zero.
    init() {}

    /// Whether more than a percentage of the rows was removed.
    public func exceeds(percent: Double) -> Bool {
        assert(removed <= rows, "a removed row is a row")
        assert(removedByReason.reduce(0, +) == removed, "each removed row has its reason")
        return Double(removed) * 100 > percent * Double(rows)
    }
}
