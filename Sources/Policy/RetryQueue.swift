import BroadsidePrimitives

/// Rows that wait for their next attempt, the one due first at the front.
///
/// A binary heap of fixed capacity in its own memory: entry `i` is due no later than its children
/// `2i + 1` and `2i + 2`. Rows due at the same instant leave in the order of their tags.
public struct RetryQueue: ~Copyable {
    /// A waiting row.
    public struct Entry: Sendable, Equatable {
        /// Due time, monotonic nanoseconds.
        var dueNanoseconds: UInt64
        /// Caller's identifier of the row.
        public var tag: UInt32

        init(dueNanoseconds: UInt64, tag: UInt32) {
            self.dueNanoseconds = dueNanoseconds
            self.tag = tag
        }

        func isBefore(_ other: Entry) -> Bool {
            dueNanoseconds == other.dueNanoseconds
                ? tag < other.tag : dueNanoseconds < other.dueNanoseconds
        }
    }

    /// Maximum number of waiting rows.
    let capacity: Int
    /// Number of waiting rows.
    public private(set) var count = 0
    private var entries: FixedBuffer<Entry>

    /// - Parameter capacity: Maximum number of rows; allocated at once.
    public init(capacity: Int) {
        precondition(capacity > 0, "a queue has room for at least one row")
        self.capacity = capacity
        // SAFETY: an entry is two integers. Memory that no row ever needed is never touched.
        entries = unsafe FixedBuffer(zeroed: capacity)
    }

    /// Whether the queue is full.
    var isFull: Bool { count == capacity }

    /// Due time of the first row; nil if no row waits.
    public var nextDue: UInt64? {
        count == 0 ? nil : entries[0].dueNanoseconds
    }

    /// Caller's identifier of the first row; nil if no row waits.
    public var nextTag: UInt32? { count == 0 ? nil : entries[0].tag }

    /// Adds a row; the queue must not be full.
    public mutating func insert(dueNanoseconds: UInt64, tag: UInt32) {
        precondition(count < capacity, "the retry queue is full")
        let entry = Entry(dueNanoseconds: dueNanoseconds, tag: tag)
        var hole = count
        count += 1
        while hole > 0 {
            let parent = (hole - 1) / 2
            if !entry.isBefore(entries[parent]) { break }
            entries[hole] = entries[parent]
            hole = parent
        }
        entries[hole] = entry
    }

    /// Removes and returns the first row that is due; nil if there is none yet.
    public mutating func popDue(now: UInt64) -> UInt32? {
        guard let nextDue, nextDue <= now else { return nil }
        return popFirst()?.tag
    }

    /// Removes and returns the first row, whether or not it is due. Used to release rows when a run
    /// ends.
    public mutating func popFirst() -> Entry? {
        if count == 0 { return nil }
        let first = entries[0]
        count -= 1
        if count > 0 { sink(entries[count]) }
        assert(count == 0 || !entries[0].isBefore(first), "entries come in their order")
        return first
    }

    /// Replaces the first entry with `entry`, and moves `entry` down to its position.
    private mutating func sink(_ entry: Entry) {
        var hole = 0
        while true {
            var child = 2 * hole + 1
            if child >= count { break }
            if child + 1 < count, entries[child + 1].isBefore(entries[child]) { child += 1 }
            if !entries[child].isBefore(entry) { break }
            entries[hole] = entries[child]
            hole = child
        }
        entries[hole] = entry
    }
}
