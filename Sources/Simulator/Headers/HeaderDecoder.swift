internal import BroadsideHPACK

/// Decodes a client's header blocks directly into a `RequestHead` without allocation.
///
/// The dynamic table stores no names. For each entry, the table only records which known name the
/// entry has, if any. Values are stored contiguously in a buffer of twice the table's size. When
/// the end of the buffer is reached, the values of live entries are moved to the start of the
/// buffer.
@safe struct HeaderDecoder: ~Copyable {
    private struct Entry {
        var name: Int8 = 0
        var nameCount: UInt16 = 0
        var offset: UInt16 = 0
        var count: UInt16 = 0
    }

    private static let capacityLimit = 4096
    /// Maximum number of entries: each counts for at least 32 bytes (RFC 7541 section 4.1).
    private static let entryLimit = 128
    private static let noName: Int8 = -1

    private var entries = InlineArray<128, Entry>(repeating: Entry())
    // SAFETY: both are allocated in `init` and freed in `deinit`. In `values` only the ranges of
    // live entries are initialized, in `scratch` only the last decoded text.
    private let values: UnsafeMutableRawBufferPointer
    private let scratch: UnsafeMutableRawBufferPointer
    private var first = 0
    private var entryCount = 0
    private var valuesEnd = 0
    private var size = 0
    private var capacity = Self.capacityLimit

    init() {
        // SAFETY: no entry is live, so nothing is read before it is written.
        unsafe values = .allocate(byteCount: 2 * Self.capacityLimit, alignment: 16)
        unsafe scratch = .allocate(
            byteCount: SimulatorLimits.headerBlockCount * 2, alignment: 16)
    }

    // SAFETY: the memory is accessible only through this value.
    deinit {
        unsafe values.deallocate()
        unsafe scratch.deallocate()
    }

    /// Decodes a complete block. Throws if the connection must be closed (COMPRESSION_ERROR).
    mutating func decode(
        _ block: RawSpan, into head: inout RequestHead,
        huffman: borrowing HuffmanReader
    ) throws(HPACKError) {
        precondition(block.byteCount <= SimulatorLimits.headerBlockCount)
        var walker = BlockWalker()
        while let field = try walker.next(block) {
            switch field.representation {
            case .sizeUpdate:
                guard field.index <= Self.capacityLimit else {
                    throw HPACKError(code: .integerTooLarge, offset: walker.offset)
                }
                capacity = field.index
                evict(room: 0)
            case .indexed:
                try indexed(field.index, into: &head, offset: walker.offset)
            case .incremental, .withoutIndexing, .neverIndexed:
                try literal(field, block, into: &head, huffman: huffman, offset: walker.offset)
            }
        }
    }

    private func entry(at index: Int, offset: Int) throws(HPACKError) -> Entry {
        let age = index - StaticTable.count - 1
        guard age < entryCount else { throw HPACKError(code: .indexZero, offset: offset) }
        return entries[(first + entryCount - 1 - age) & (Self.entryLimit - 1)]
    }

    private func indexed(
        _ index: Int, into head: inout RequestHead, offset: Int
    ) throws(HPACKError) {
        if index <= StaticTable.count {
            head.add(
                Self.staticName(index), nameCount: 8, value: StaticTable.value(at: index).rawBytes)
            return
        }
        let entry = try entry(at: index, offset: offset)
        let range = Int(entry.offset)..<Int(entry.offset) + Int(entry.count)
        // SAFETY: the entry is live, so its value is still in `values`.
        let live = unsafe RawSpan(_unsafeBytes: values)
        head.add(
            RequestHead.Name(rawValue: Int(entry.name)), nameCount: Int(entry.nameCount),
            value: live.extracting(range))
    }

    private mutating func literal(
        _ field: BlockWalker.Field, _ block: RawSpan,
        into head: inout RequestHead, huffman: borrowing HuffmanReader, offset: Int
    ) throws(HPACKError) {
        var name: RequestHead.Name?
        var nameCount = 8
        if field.index == 0 {
            let text = try text(field.name, block, huffman)
            name = RequestHead.Name(text)
            nameCount = text.byteCount
        } else if field.index <= StaticTable.count {
            name = Self.staticName(field.index)
            nameCount = StaticTable.name(at: field.index).utf8CodeUnitCount
        } else {
            let entry = try entry(at: field.index, offset: offset)
            name = RequestHead.Name(rawValue: Int(entry.name))
            nameCount = Int(entry.nameCount)
        }
        let value = try text(field.value, block, huffman)
        head.add(name, nameCount: nameCount, value: value)
        if field.representation == .incremental {
            insert(name, nameCount: nameCount, value: value)
        }
    }

    /// Returns the bytes of a string: a range of the block, or its decoded form in the scratch
    /// area.
    @_lifetime(copy block)
    private func text(
        _ text: BlockWalker.Text, _ block: RawSpan, _ huffman: borrowing HuffmanReader
    ) throws(HPACKError) -> RawSpan {
        let raw = block.extracting(text.offset..<text.offset + text.count)
        guard text.isHuffman else { return raw }
        // SAFETY: a code has at least 5 bits, and `scratch` is twice as large as any block. Nothing
        // writes to it before the next text is decoded, and by then the last one has been copied.
        let count = unsafe try huffman.decode(raw, to: scratch)
        let decoded = unsafe RawSpan(_unsafeBytes: scratch).extracting(first: count)
        return unsafe _overrideLifetime(decoded, copying: block)
    }

    private mutating func insert(
        _ name: RequestHead.Name?, nameCount: Int, value: RawSpan
    ) {
        let entrySize = 32 + nameCount + value.byteCount
        evict(room: entrySize)
        // An entry larger than the table empties the table: "It is not an error" (section 4.4).
        guard entrySize <= capacity else { return }
        // SAFETY: the live values and this one fit the table, which is half of `values`, so they
        // fit contiguously once the live ones are moved to the start; this one is outside `values`.
        if unsafe valuesEnd + value.byteCount > values.count { compact() }
        assert(entryCount < Self.entryLimit, "an entry counts for 32 bytes at least")
        assert(unsafe valuesEnd + value.byteCount <= values.count, "the values have room")
        unsafe value.withUnsafeBytes {
            unsafe UnsafeMutableRawBufferPointer(rebasing: values[valuesEnd...])
                .copyMemory(from: $0)
        }
        let entry = Entry(
            name: name.map { Int8($0.rawValue) } ?? Self.noName, nameCount: UInt16(nameCount),
            offset: UInt16(valuesEnd), count: UInt16(value.byteCount))
        // `entryLimit` entries of 32 bytes fill the table, so this slot is free.
        entries[(first + entryCount) & (Self.entryLimit - 1)] = entry
        entryCount += 1
        valuesEnd += value.byteCount
        size += entrySize
    }

    private mutating func evict(room: Int) {
        while entryCount > 0, size + room > capacity {
            let entry = entries[first]
            size -= 32 + Int(entry.nameCount) + Int(entry.count)
            first = (first + 1) & (Self.entryLimit - 1)
            entryCount -= 1
        }
        assert(entryCount > 0 || size == 0, "an empty table has no size")
    }

    /// Moves the live values to the start of the buffer; their order is unchanged.
    private mutating func compact() {
        var end = 0
        for position in 0..<entryCount {
            let slot = (first + position) & (Self.entryLimit - 1)
            let count = Int(entries[slot].count)
            // SAFETY: values only move towards the start, and `copyMemory` permits overlapping
            // ranges.
            unsafe (values.baseAddress! + end).copyMemory(
                from: values.baseAddress! + Int(entries[slot].offset), byteCount: count)
            entries[slot].offset = UInt16(end)
            end += count
        }
        assert(end <= valuesEnd, "values move towards the start")
        valuesEnd = end
    }

    /// Returns the header name for an index of the static table, if APNs reads that header.
    private static func staticName(_ index: Int) -> RequestHead.Name? {
        switch index {
        case 1: .authority
        case 2, 3: .method
        case 4, 5: .path
        case 6, 7: .scheme
        case 23: .authorization
        case 38: .host
        default: nil
        }
    }
}
