package import BroadsideRows
package import BroadsideSupport

/// Position in a list from which chunks of rows are read. Used by one thread at a time.
@safe package final class ListCursor {
    private let list: TokenList
    private let pool: ChunkPool
    /// Wanted rows of the list. The cursor reads no row beyond their end.
    private let rows: CampaignRows
    private var splitter: RowSplitter
    /// Whether the splitter has processed the end of the list.
    private var isSplitterDone = false
    /// Offset of the end of the rows to read, which the splitter treats as the list's end.
    private var end = UInt64.max
    /// Hash of the list from its start up to the first byte that was not read in order; nil if not
    /// requested.
    private(set) var hash: ListHash?

    // SAFETY: `init` allocates `readSize` bytes, `deinit` frees them; the first `bufferCount` are
    // set, and change only after `cut` has consumed them.
    private let buffer: UnsafeMutableRawBufferPointer
    private var bufferOffset: UInt64 = 0
    private var bufferCount = 0
    private var consumed = 0

    /// Number of bytes that are read from the list at a time.
    static let readSize = 256 * 1024

    /// Creates a cursor at the start of the list.
    ///
    /// - Parameters:
    ///   - list: The list to read.
    ///   - pool: Pool of chunks; by default one for a single reader.
    ///   - rows: Rows that are wanted; by default all.
    ///   - isHashed: Whether bytes that are read in order from the start of the list are hashed.
    package init(
        _ list: TokenList, pool: ChunkPool = ChunkPool(limit: ChunkPool.oneReader),
        rows: CampaignRows = CampaignRows(), isHashed: Bool = false
    ) {
        self.list = list
        self.pool = pool
        self.rows = rows
        hash = isHashed ? ListHash() : nil
        splitter = RowSplitter(layout: list.layout, pool: pool)
        // SAFETY: no byte is read before `cut` has set it: `bufferCount` is 0.
        unsafe buffer = .allocate(byteCount: Self.readSize, alignment: 4096)
    }

    deinit {
        // SAFETY: spans of the buffer end with the calls that made them.
        unsafe buffer.deallocate()
    }

    /// Position at which the next row is expected.
    var position: ListPosition { splitter.position }
    /// Text of the header; known after the first chunk, or at the end of the list.
    var header: [UInt8]? { splitter.header }

    // MARK: Positioning

    /// Moves to the start of a gap, a range of rows that no run reserved.
    ///
    /// - Parameter gap: The gap. The next calls read its rows, up to its end.
    /// - Returns: The start of the gap.
    @discardableResult package func begin(_ gap: ListExtent) -> ListPosition {
        seek(gap.start)
        end = gap.endByteOffset ?? .max
        return position
    }

    private func seek(_ position: ListPosition) {
        splitter = RowSplitter(layout: list.layout, pool: pool, start: position)
        isSplitterDone = false
        end = .max
        bufferOffset = position.byteOffset
        bufferCount = 0
        consumed = 0
    }

    // MARK: Chunks

    /// Reads the next rows of the gap as a chunk.
    ///
    /// - Parameter rowLimit: Limit on the number of wanted rows in the chunk.
    /// - Returns: nil at the end of the gap.
    /// - Throws: Exit code 5 if the list can't be read, 2 after a fault.
    package func cutRows(atMost rowLimit: Int) throws(BroadsideError) -> RowChunk? {
        assert(rowLimit > 0, "a chunk has rows")
        let left = rows.end - min(rows.end, position.row)
        guard left > 0 else { return nil }
        // Only one of every `divisor` rows is wanted.
        let (wanted, overflow) = rowLimit.multipliedReportingOverflow(
            by: Int(rows.selection.divisor))
        splitter.rowLimit = max(1, Int(min(overflow ? UInt64(Int.max) : UInt64(wanted), left)))
        return try cut()
    }

    /// Reads a chunk that the ledger records, and divides it into rows.
    ///
    /// - Parameter known: Location, number of rows and hash of the chunk.
    /// - Returns: nil if the list has other bytes at the chunk's location.
    /// - Throws: Exit code 5 if the list can't be read.
    package func read(_ known: ChunkReservation) throws(BroadsideError) -> RowChunk? {
        // A row has at least one byte.
        guard known.byteCount > 0 else { return nil }
        seek(known.start)
        // The splitter must not read beyond the chunk.
        end = known.end.byteOffset
        splitter.endChunk(at: end, isExact: true)
        guard let chunk = try cut() else { return nil }
        guard chunk.takeHash(of: known), chunk.rowCount == known.rowCount else {
            pool.giveBack(chunk)
            // Earlier versions continued after a fault, so the ledger may record such a chunk.
            if let fault = splitter.fault { throw list.refusal(fault) }
            return nil
        }
        return chunk
    }

    /// Reads a chunk that was reserved in the ledger, usually without searching for row ends. The
    /// caller then finds and counts the rows.
    ///
    /// - Parameter known: Location, number of rows and hash of the chunk.
    /// - Returns: nil if the list has other bytes at the chunk's location.
    /// - Throws: Exit code 5 if the list can't be read.
    package func readUncut(_ known: ChunkReservation) throws(BroadsideError) -> RowChunk? {
        // The start of the list may be a header, and a row may be long. Only the splitter handles
        // these cases.
        guard known.byteOffset > 0, known.byteCount <= UInt64(RowChunk.capacity) else {
            return try read(known)
        }
        // SAFETY: `list.read` gets the room for the call, and returns how many bytes it has set.
        return try unsafe pool.read(known) { (offset, room) throws(BroadsideError) in
            unsafe try list.read(at: offset, into: room)
        }
    }

    /// Returns a chunk to the pool. Nothing may read the chunk after this call.
    ///
    /// - Parameter chunk: A chunk of this cursor.
    package func giveBack(_ chunk: RowChunk) { pool.giveBack(chunk) }

    private func cut() throws(BroadsideError) -> RowChunk? {
        while !isSplitterDone {
            if consumed == bufferCount, try !fillBuffer() {
                isSplitterDone = true
                if let last = splitter.finish() { return last }
                break
            }
            // SAFETY: `bufferCount` bytes are set, and nothing changes them during the lifetime of
            // the span.
            assert(consumed <= bufferCount, "only what was read is consumed")
            let bytes = unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<bufferCount]))
            switch splitter.next(bytes, at: &consumed) {
            case .chunk(let chunk): return chunk
            case .needsInput: continue
            case .poolEmpty: preconditionFailure("the pool has a chunk for all that may be out")
            case .faulty(let fault): throw list.refusal(fault)
            }
        }
        if let fault = splitter.fault { throw list.refusal(fault) }
        return nil
    }

    /// Reads more bytes; false at the end of the wanted rows.
    private func fillBuffer() throws(BroadsideError) -> Bool {
        assert(consumed == bufferCount, "what was read is consumed first")
        bufferOffset += UInt64(bufferCount)
        consumed = 0
        // If reading fails, the previous bytes must not be taken for the next ones.
        bufferCount = 0
        let room = Int(min(UInt64(Self.readSize), end - min(end, bufferOffset)))
        // SAFETY: `room` is at most the buffer's size, and `read` returns how many bytes it has
        // set, from the buffer's start on. Spans have only these bytes, until they are consumed.
        bufferCount = unsafe try list.read(
            at: bufferOffset, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
        assert(bufferCount >= 0 && bufferCount <= room, "so many bytes were not asked for")
        takeInHash()
        return bufferCount > 0
    }

    /// Adds to the hash those of the latest bytes that directly follow the bytes hashed so far.
    private func takeInHash() {
        guard let known = hash?.byteCount, bufferOffset <= known,
            known < bufferOffset + UInt64(bufferCount)
        else { return }
        let first = Int(known - bufferOffset)
        // SAFETY: `bufferCount` bytes of the buffer are set, and nothing changes them meanwhile.
        hash?.append(
            unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[first..<bufferCount])))
    }
}
