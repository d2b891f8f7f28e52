/// Our encoder's view of the dynamic table that the peer's decoder keeps for a connection.
///
///     index   62          63          64
///           newest  ...           oldest         entry = 32 + name + value bytes (RFC 7541 4.1)
///
/// Under the strict discipline only the three names that are indexed once ever get into it, each at
/// most once; under the compact one the constant fields do too, and each new provider token. The
/// encoder evicts nothing: an insertion that does not fit is not made. Entries are lost only when
/// the peer lowers its limit.
public struct DynamicTableMirror: Sendable {
    /// Which entry has which index, as one small value.
    ///
    /// Two connections with the same layout take the same header blocks, so a request that was laid
    /// out for one of them can be sent on the other: entries are found by name, and of entries with
    /// the same name only the newest counts.
    public struct Layout: Hashable, Sendable {
        /// Four bits an entry, the oldest lowest: the name's number and one.
        fileprivate var names: UInt128
        /// Which of the provider tokens over time is in the table, if one is: the newest.
        fileprivate var revision: UInt32
    }

    private struct Entry {
        var name: RequestFieldName
        /// Which of the field's values over time it is; nil where it can't be referred to.
        var revision: UInt32?
        var size: Int
    }

    /// The most entries that the encoder makes: the fields, and provider tokens for half a day.
    static let entriesLimit = 32

    /// Oldest first.
    private var entries: InlineArray<32, Entry>
    private var count = 0

    /// The bytes that the entries count for (RFC 7541 section 4.1).
    private(set) var size = 0
    /// The most that `size` may be.
    public private(set) var capacity: Int
    /// Changes whenever an index changes or a size update starts or stops being due, so that a block
    /// laid out under one generation may be repeated only while that generation lasts.
    public private(set) var generation: UInt32 = 0
    /// The new capacity that the next block has to start with, if the peer's decoder does not know
    /// it yet (RFC 7541 section 4.2).
    private(set) var pendingSizeUpdate: Int?

    private var names: UInt128 = 0
    private var tokenRevision: UInt32 = 0

    /// An empty table of `capacity` bytes; 4,096 is where every HTTP/2 connection starts
    /// (RFC 9113 section 6.5.2).
    public init(capacity: Int = 4096) {
        self.capacity = capacity
        entries = .init(repeating: Entry(name: .identifier, revision: nil, size: 0))
    }

    /// The index that stands for `name` in a block that starts now: the newest entry's; nil while
    /// there is none.
    public func index(of name: RequestFieldName) -> Int? {
        position(of: name).map(index)
    }

    /// The index that stands for the whole field, name and value; nil while its newest entry has
    /// another value, or there is none.
    func index(of name: RequestFieldName, revision: UInt32) -> Int? {
        guard let position = position(of: name), entries[position].revision == revision else {
            return nil
        }
        return index(position)
    }

    private func position(of name: RequestFieldName) -> Int? {
        var position = count
        while position > 0 {
            position -= 1
            if entries[position].name == name { return position }
        }
        return nil
    }

    /// 62 + n - k for the k-th of n insertions, counted from 1 (RFC 7541 section 2.3.3).
    private func index(_ position: Int) -> Int { StaticTable.count + count - position }

    /// Inserts `name` with a value of `valueCount` bytes, if it fits without an eviction, and says
    /// whether it did.
    ///
    /// - Parameter revision: Which of the field's values over time it is; nil for a value that no
    ///   other request has.
    @discardableResult
    mutating func insert(
        _ name: RequestFieldName, valueCount: Int, revision: UInt32? = nil
    ) -> Bool {
        precondition(
            position(of: name).map { entries[$0].revision != revision } ?? true,
            "a value is inserted once")
        let entrySize = 32 + name.text.utf8CodeUnitCount + valueCount
        guard size + entrySize <= capacity, count < Self.entriesLimit else { return false }
        entries[count] = Entry(name: name, revision: revision, size: entrySize)
        count += 1
        size += entrySize
        assert(size <= capacity, "the table stays within its capacity")
        changed()
        return true
    }

    private mutating func changed() {
        assert(
            size == (0..<count).reduce(0) { $0 + entries[$1].size },
            "the size is that of the entries")
        generation &+= 1
        names = 0
        tokenRevision = 0
        for position in 0..<count {
            names |= UInt128(entries[position].name.rawValue + 1) << UInt128(4 * position)
            if entries[position].name == .authorization {
                tokenRevision = entries[position].revision ?? 0
            }
        }
    }

    /// Takes note of the peer's SETTINGS_HEADER_TABLE_SIZE.
    ///
    /// A lower limit drops what no longer fits, oldest first as the peer's decoder will, and makes a
    /// size update due. A higher one is an offer that is not taken: what is inserted is tiny.
    public mutating func limit(capacity newCapacity: Int) {
        assert(newCapacity >= 0, "a table has a capacity")
        guard newCapacity < capacity else { return }
        capacity = newCapacity
        pendingSizeUpdate = newCapacity
        while size > capacity {
            size -= entries[0].size
            count -= 1
            for position in 0..<count { entries[position] = entries[position + 1] }
        }
        changed()
    }

    /// The size update that the next block starts with, if one is due; it counts as sent from here.
    mutating func takeSizeUpdate() -> Int? {
        guard let update = pendingSizeUpdate else { return nil }
        pendingSizeUpdate = nil
        generation &+= 1
        return update
    }

    /// Which fields have which index; nil while a size update is due, as the block that carries it
    /// can't be repeated.
    public var layout: Layout? {
        guard pendingSizeUpdate == nil else { return nil }
        return Layout(names: names, revision: tokenRevision)
    }
}
