/// Our encoder's view of the dynamic table that the peer's decoder keeps for a connection.
///
///     index   62          63          64
///           newest  ...           oldest         entry = 32 + name + value octets (RFC 7541 4.1)
///
/// Only the three names that are indexed once ever get into it, each at most once, so there are at
/// most three entries. The encoder evicts none of them: an insertion that does not fit is not made.
/// Entries are lost only when the peer lowers its limit.
public struct DynamicTableMirror: Sendable {
    /// Which entry has which index, as one small value.
    ///
    /// Two connections with the same layout take the same header blocks, so a request that was laid
    /// out for one of them can be sent on the other.
    public struct Layout: Hashable, Sendable {
        fileprivate var rawValue: UInt8
    }

    private struct Entry {
        var name: RequestFieldName
        var size: Int
    }

    /// Oldest first.
    private var entries: InlineArray<3, Entry>
    private var count = 0

    /// The octets that the entries count for (RFC 7541 section 4.1).
    public private(set) var size = 0
    /// The most that `size` may be.
    public private(set) var capacity: Int
    /// Changes whenever an index changes or a size update starts or stops being due, so that a block
    /// laid out under one generation may be repeated only while that generation lasts.
    public private(set) var generation: UInt32 = 0
    /// The new capacity that the next block has to start with, if the peer's decoder does not know
    /// it yet (RFC 7541 section 4.2).
    public private(set) var pendingSizeUpdate: Int?

    /// An empty table of `capacity` octets; 4,096 is where every HTTP/2 connection starts
    /// (RFC 9113 section 6.5.2).
    public init(capacity: Int = 4096) {
        self.capacity = capacity
        entries = .init(repeating: Entry(name: .identifier, size: 0))
    }

    /// The index that stands for `name` in a block that starts now; nil while it is not in the
    /// table.
    public func index(of name: RequestFieldName) -> Int? {
        for position in 0..<count where entries[position].name == name {
            // 62 + n - k for the k-th of n insertions, counted from 1.
            return StaticTable.count + count - position
        }
        return nil
    }

    /// Inserts `name` with a value of `valueCount` octets, if it fits without an eviction, and says
    /// whether it did. `name` must be one of the three and not be in the table yet.
    @discardableResult
    public mutating func insert(_ name: RequestFieldName, valueCount: Int) -> Bool {
        precondition(name.isIndexedOnce, "this field is never inserted")
        precondition(index(of: name) == nil, "a name is inserted once")
        let entrySize = 32 + name.text.utf8CodeUnitCount + valueCount
        guard size + entrySize <= capacity else { return false }
        entries[count] = Entry(name: name, size: entrySize)
        count += 1
        size += entrySize
        generation &+= 1
        return true
    }

    /// Takes note of the peer's SETTINGS_HEADER_TABLE_SIZE.
    ///
    /// A lower limit drops what no longer fits, oldest first as the peer's decoder will, and makes a
    /// size update due. A higher one is an offer that is not taken: what is inserted is tiny.
    public mutating func limit(capacity newCapacity: Int) {
        guard newCapacity < capacity else { return }
        capacity = newCapacity
        pendingSizeUpdate = newCapacity
        generation &+= 1
        while size > capacity {
            size -= entries[0].size
            count -= 1
            for position in 0..<count { entries[position] = entries[position + 1] }
        }
    }

    /// The size update that the next block starts with, if one is due; it counts as sent from here.
    mutating func takeSizeUpdate() -> Int? {
        guard let update = pendingSizeUpdate else { return nil }
        pendingSizeUpdate = nil
        generation &+= 1
        return update
    }

    /// Which of the three names have which index; nil while a size update is due, as the block that
    /// carries it can't be repeated.
    public var layout: Layout? {
        guard pendingSizeUpdate == nil else { return nil }
        var rawValue: UInt8 = 0
        for position in 0..<count {
            let code: UInt8 =
                switch entries[position].name {
                case .identifier: 1
                case .expiration: 2
                default: 3
                }
            rawValue |= code << UInt8(2 * position)
        }
        return Layout(rawValue: rawValue)
    }
}
