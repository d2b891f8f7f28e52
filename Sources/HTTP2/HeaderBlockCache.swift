/// The cache of decoded header blocks. A block that differs from a cached one only in its apns-id
/// needs no decoding, and most blocks of a server differ only there.
///
///     block   88  00 07 "apns-id" 24  EABEAE54-14A8-...
///     fixed   ff  ff ff  ff...    ff  00000000 00000        bytes that must be the same
///     free    00  00 00  00...    00  ffffffff fffff        bytes that a field value may have
///
/// A Huffman-coded identifier may have any bytes, because `readOrdinary` does not decode it.
///
/// The cache has only blocks that need no dynamic table. The meaning of such a block depends only
/// on the block's bytes. The cache has eight entries: the lowest three bits of a block's length
/// select the entry. Several entries are useful because Huffman-coded identifiers have several
/// lengths.
@safe struct HeaderBlockCache: ~Copyable {
    /// Lengths of cached blocks in bytes. Shorter blocks are decoded just as fast, and longer
    /// blocks are not ordinary responses.
    static let byteCounts = 16...128
    private static let entryCount = 8
    private static let vector = 16

    private struct Entry {
        /// Length of the block in bytes; -1 if the entry is empty.
        var byteCount = -1
        var start = ResponseStart(ResponseHeaders())
    }

    // SAFETY: `init` allocates and sets `entryCount` entries, and for each of them three rows of
    // the largest length in `byteCounts`; `deinit` frees them. Entries are plain values.
    private let entries: UnsafeMutablePointer<Entry>
    private let rows: UnsafeMutableRawPointer

    private static var rowByteCount: Int { byteCounts.upperBound }

    init() {
        let byteCount = Self.entryCount * 3 * Self.rowByteCount
        // SAFETY: all entries and bytes are set at once.
        unsafe entries = .allocate(capacity: Self.entryCount)
        unsafe entries.initialize(repeating: Entry(), count: Self.entryCount)
        unsafe rows = .allocate(byteCount: byteCount, alignment: Self.vector)
        unsafe rows.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
    }

    // SAFETY: accessed only through this value.
    deinit {
        unsafe entries.deallocate()
        unsafe rows.deallocate()
    }

    /// Start of the response with this block; nil if the block matches none in the cache.
    @inline(__always)
    func start(of block: RawSpan) -> ResponseStart? {
        let byteCount = block.byteCount
        let index = byteCount & (Self.entryCount - 1)
        // SAFETY: `index` is below `entryCount`.
        guard unsafe entries[index].byteCount == byteCount else { return nil }
        let expected = unsafe rows + index * 3 * Self.rowByteCount
        var wrong = SIMD16<UInt8>(repeating: 0)
        var offset = 0
        while true {
            // SAFETY: a cached block has at least the bytes of a vector and at most those of a row,
            // and `offset` leaves a whole vector before its end.
            let bytes = unsafe block.unsafeLoadUnaligned(
                fromUncheckedByteOffset: offset, as: SIMD16<UInt8>.self)
            let (pattern, fixed, free) = unsafe (
                Self.load(expected, offset), Self.load(expected + Self.rowByteCount, offset),
                Self.load(expected + 2 * Self.rowByteCount, offset)
            )
            wrong |= (bytes ^ pattern) & fixed | Self.forbidden(bytes) & free
            if offset == byteCount - Self.vector { break }
            // The last vector overlaps the previous one.
            offset = min(offset + Self.vector, byteCount - Self.vector)
        }
        // SAFETY: both have sixteen bytes, and any bits are valid for the second type.
        let halves = unsafe unsafeBitCast(wrong, to: SIMD2<UInt64>.self)
        guard halves.x | halves.y == 0 else { return nil }
        // SAFETY: as above.
        return unsafe entries[index].start
    }

    /// Stores the headers of a block. They replace the previous content of the block's entry.
    ///
    /// - Parameter headers: Decoded from `block` alone, and well formed.
    @inline(never)
    mutating func remember(_ block: RawSpan, _ headers: ResponseHeaders) {
        let byteCount = block.byteCount
        // Each response has a different apns-unique-id.
        guard Self.byteCounts.contains(byteCount), headers.error == nil, headers.uniqueID == nil
        else { return }
        let index = byteCount & (Self.entryCount - 1)
        assert(
            headers.identifier.map { $0.upperBound <= byteCount } ?? true,
            "the identifier is in its block")
        for offset in 0..<byteCount {
            let isFree = headers.identifier?.contains(offset) ?? false
            let isChecked = isFree && !headers.isIdentifierHuffman
            // SAFETY: `index` is below `entryCount`, and `offset` below the length of a row.
            let first = unsafe rows + (index * 3 * Self.rowByteCount + offset)
            unsafe first.storeBytes(of: block.byte(at: offset), as: UInt8.self)
            unsafe first.storeBytes(
                of: isFree ? 0 : 0xff, toByteOffset: Self.rowByteCount, as: UInt8.self)
            unsafe first.storeBytes(
                of: isChecked ? 0xff : 0, toByteOffset: 2 * Self.rowByteCount, as: UInt8.self)
        }
        // SAFETY: as above.
        unsafe entries[index] = Entry(byteCount: byteCount, start: ResponseStart(headers))
    }

    @inline(__always)
    private static func load(_ row: UnsafeMutableRawPointer, _ offset: Int) -> SIMD16<UInt8> {
        // SAFETY: the caller guarantees sixteen bytes from `offset` on.
        unsafe row.loadUnaligned(fromByteOffset: offset, as: SIMD16<UInt8>.self)
    }

    /// Returns 0xff for each byte that must not occur in a field value (RFC 9113 section 8.2.1).
    @inline(__always)
    private static func forbidden(_ bytes: SIMD16<UInt8>) -> SIMD16<UInt8> {
        let found =
            bytes .== SIMD16<UInt8>(repeating: 0x00) .| bytes .== SIMD16<UInt8>(repeating: 0x0a)
            .| bytes .== SIMD16<UInt8>(repeating: 0x0d)
        // SAFETY: the lanes of a mask are bytes with all bits set or none.
        return unsafe unsafeBitCast(found, to: SIMD16<UInt8>.self)
    }
}
