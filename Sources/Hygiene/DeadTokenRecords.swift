/// The records of dead tokens, each followed by the token's bytes, in pages that never move.
///
/// Indices count in steps of 8 bytes, from 1, so that no index is 0.
@safe struct DeadTokenRecords: ~Copyable {
    static let pageByteCount = 1 << 20
    private static let recordByteCount = 32

    // SAFETY: each page has `pageByteCount` bytes, is allocated by `append`, never moved, and freed
    // in `deinit`.
    private var pages: [UnsafeMutableRawPointer] = unsafe []
    private var filled = DeadTokenRecords.pageByteCount

    // SAFETY: allocated here, of trivial types, and accessed only through this value.
    deinit { unsafe pages.forEach { page in unsafe page.deallocate() } }

    /// Number of bytes in use.
    // SAFETY: the pages are only counted.
    var byteCount: Int { unsafe pages.count * DeadTokenRecords.pageByteCount }

    /// Whether the next record needs a new page.
    func needsPage(_ tokenByteCount: Int) -> Bool {
        filled + DeadTokenRecords.size(tokenByteCount) > DeadTokenRecords.pageByteCount
    }

    /// Adds a record and the token's bytes; returns its index.
    mutating func append(_ record: DeadTokens.Record, _ bytes: RawSpan) -> UInt32 {
        precondition(MemoryLayout<DeadTokens.Record>.size <= DeadTokenRecords.recordByteCount)
        precondition(bytes.byteCount == Int(record.byteCount))
        // SAFETY: behind `filled` the last page has enough memory for the record and the token's
        // bytes, or a fresh page is appended, which is larger than any record: its token has 255
        // bytes at most. The array checks its index.
        if needsPage(bytes.byteCount) {
            unsafe pages.append(
                .allocate(byteCount: DeadTokenRecords.pageByteCount, alignment: 64))
            filled = 0
        }
        let page = unsafe pages[pages.count - 1]
        unsafe (page + filled).initializeMemory(as: DeadTokens.Record.self, to: record)
        let room = unsafe UnsafeMutableRawBufferPointer(
            start: page + filled + DeadTokenRecords.recordByteCount, count: bytes.byteCount)
        unsafe bytes.withUnsafeBytes { source in unsafe room.copyMemory(from: source) }
        let recordIndex = UInt32((byteCount - DeadTokenRecords.pageByteCount + filled) / 8 + 1)
        filled += DeadTokenRecords.size(bytes.byteCount)
        return recordIndex
    }

    /// Record at an index returned by `append`.
    subscript(recordIndex: UInt32) -> DeadTokens.Record {
        // SAFETY: `append` created a record at each index that it returned; the record never moves.
        unsafeAddress { unsafe UnsafePointer(address(recordIndex)) }
        unsafeMutableAddress { unsafe address(recordIndex) }
    }

    /// Bytes of the token at an index returned by `append`.
    @_lifetime(borrow self)
    func bytes(of recordIndex: UInt32) -> RawSpan {
        // SAFETY: the bytes follow the record, and do not move as long as self exists.
        let start = unsafe UnsafeRawPointer(address(recordIndex)) + DeadTokenRecords.recordByteCount
        let span = unsafe RawSpan(_unsafeStart: start, byteCount: Int(self[recordIndex].byteCount))
        return unsafe _overrideLifetime(span, borrowing: self)
    }

    private func address(_ recordIndex: UInt32) -> UnsafeMutablePointer<DeadTokens.Record> {
        // SAFETY: `append` returned the index, so that a record is at its address, inside one page;
        // the array checks which page.
        let offset = Int(recordIndex - 1) * 8
        let page = unsafe pages[offset / DeadTokenRecords.pageByteCount]
        return unsafe (page + offset % DeadTokenRecords.pageByteCount)
            .assumingMemoryBound(to: DeadTokens.Record.self)
    }

    private static func size(_ tokenByteCount: Int) -> Int {
        recordByteCount + (tokenByteCount + 7) / 8 * 8
    }
}
