/// The encoder's copy of the dynamic table that the peer's decoder keeps for a connection.
///
///     index   62          63          64
///           newest  ...           oldest         entry = 32 + name + value bytes (RFC 7541 4.1)
///
/// Under the strict policy, the table contains only apns-id, apns-expiration and apns-collapse-id,
/// each at most once. Under the other policies, it also contains the constant fields and, with
/// `compact`, each new provider token. The encoder never evicts: an insertion that does not fit is
/// not made. Entries are lost only if the peer lowers its limit.
public struct DynamicTableMirror: Sendable {
    /// Assignment of entries to indices, as one small value.
    ///
    /// Two connections with the same layout accept the same header blocks, so a request that was
    /// encoded for one can be sent on the other. The encoder finds entries by name. If several
    /// entries have the same name, it uses only the newest.
    public struct Layout: Hashable, Sendable {
        /// Four bits per entry, with the oldest entry in the lowest bits: the number of the name
        /// plus one.
        fileprivate var names: UInt128
        /// Revision of the newest provider token in the table, if any.
        fileprivate var revision: UInt32
    }

    private struct Entry {
        var name: RequestFieldName
        /// Revision of the field's value; nil if later blocks can refer only to the name.
        var revision: UInt32?
        var size: Int
    }

    /// Maximum number of entries that the encoder creates. It is enough for the fields and for the
    /// provider tokens of half a day.
    static let entriesLimit = 32

    /// Entries, oldest first.
    private var entries: InlineArray<32, Entry>
    private var count = 0

    /// Size of the entries in bytes (RFC 7541 section 4.1).
    private(set) var size = 0
    /// Maximum of `size`, in bytes.
    public private(set) var capacity: Int
    /// Changes whenever an index changes, and whenever a size update becomes due or is sent. A
    /// block may be repeated only while the generation is the same as when the block was encoded.
    public private(set) var generation: UInt32 = 0
    /// New capacity to announce at the start of the next block (RFC 7541 section 4.2); nil if the
    /// peer's decoder knows the capacity.
    private(set) var pendingSizeUpdate: Int?

    private var names: UInt128 = 0
    private var tokenRevision: UInt32 = 0

    /// Creates an empty table of `capacity` bytes; each HTTP/2 connection starts with 4,096 (RFC
    /// 9113 section 6.5.2).
    public init(capacity: Int = 4096) {
        self.capacity = capacity
        entries = .init(repeating: Entry(name: .identifier, revision: nil, size: 0))
    }

    /// Index of the newest entry with this name, for a block that starts now; nil if there is none.
    public func index(of name: RequestFieldName) -> Int? {
        position(of: name).map(index)
    }

    /// Index of the whole field, name and value. nil if the name has no entry, or its newest entry
    /// has another value.
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

    /// Index of the k-th of n insertions, counted from 1: 62 + n - k (RFC 7541 section 2.3.3).
    private func index(_ position: Int) -> Int { StaticTable.count + count - position }

    /// Inserts `name` with a value of `valueCount` bytes, if it fits without an eviction; returns
    /// whether it was inserted.
    ///
    /// - Parameter revision: Revision of the field's value; nil for a value that no other request
    ///   has.
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
            "the size is the sum of the entries' sizes")
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

    /// Applies the peer's SETTINGS_HEADER_TABLE_SIZE.
    ///
    /// A lower limit drops entries that no longer fit, oldest first like the peer's decoder, and
    /// makes a size update due. A higher limit is ignored, because the inserted entries are tiny.
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

    /// Returns the size update for the start of the next block, if one is due, and counts it as
    /// sent.
    mutating func takeSizeUpdate() -> Int? {
        guard let update = pendingSizeUpdate else { return nil }
        pendingSizeUpdate = nil
        generation &+= 1
        return update
    }

    /// Current layout; nil while a size update is due. The next block then contains the size
    /// update, so the next block can't be repeated.
    public var layout: Layout? {
        guard pendingSizeUpdate == nil else { return nil }
        return Layout(names: names, revision: tokenRevision)
    }
}
