package import BroadsideRows
package import BroadsideSupport

/// A place in a list, and the rows that are cut from there on. Used by one thread at a time.
@safe package final class ListCursor {
    private let list: TokenList
    private let pool: ChunkPool
    /// Which rows of the list are wanted: none behind their end is cut.
    private let rows: CampaignRows
    private var splitter: RowSplitter
    /// True once the splitter was told that the list is over.
    private var isSplitterDone = false
    /// Where the rows that are being cut end; the splitter is told that the list ends there.
    private var end = UInt64.max
    /// Of the list's beginning, as far as it was read in order; nil if it is not wanted.
    private(set) var hash: ListHash?

    // SAFETY: `init` allocates `readSize` bytes, `deinit` frees them; the first `bufferCount` are
    // set, and change only when `cut` has consumed them.
    private let buffer: UnsafeMutableRawBufferPointer
    private var bufferOffset: UInt64 = 0
    private var bufferCount = 0
    private var consumed = 0

    /// Bytes that are read at once.
    static let readSize = 256 * 1024

    /// A cursor at the list's beginning.
    ///
    /// - Parameters:
    ///   - list: What is read.
    ///   - pool: Where chunks come from, and go back to; one reader's if none is named.
    ///   - rows: Which rows are wanted; all if none are named.
    ///   - isHashed: What is read in order from the list's beginning on is hashed.
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

    /// Where the next row is looked for.
    var position: ListPosition { splitter.position }
    /// The header's text; known once the first chunk was cut, or the list is at its end.
    var header: [UInt8]? { splitter.header }

    // MARK: Going to a place

    /// Goes to a gap's start.
    ///
    /// - Parameter gap: Whose rows are cut from now on, and none behind its end.
    /// - Returns: The start.
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

    /// Cuts rows of the gap that was begun.
    ///
    /// - Parameter rowLimit: The most wanted rows of the chunk.
    /// - Returns: nil at the gap's end.
    /// - Throws: Exit code 5 if the list can't be read, 2 behind a fault.
    package func cutRows(atMost rowLimit: Int) throws(BroadsideError) -> RowChunk? {
        assert(rowLimit > 0, "a chunk has rows")
        let left = rows.end - min(rows.end, position.row)
        guard left > 0 else { return nil }
        // Of so many rows, only one is wanted.
        let (wanted, overflow) = rowLimit.multipliedReportingOverflow(
            by: Int(rows.selection.divisor))
        splitter.rowLimit = max(1, Int(min(overflow ? UInt64(Int.max) : UInt64(wanted), left)))
        return try cut()
    }

    /// Reads a chunk that the ledger knows.
    ///
    /// - Parameter known: Where it is, how many rows it has, and their hash.
    /// - Returns: nil if the list has something else in its place.
    /// - Throws: Exit code 5 if the list can't be read.
    package func read(_ known: ChunkReservation) throws(BroadsideError) -> RowChunk? {
        // Rows have bytes.
        guard known.byteCount > 0 else { return nil }
        seek(known.start)
        // Nothing behind it is read in vain.
        end = known.end.byteOffset
        splitter.endChunk(at: end, isExact: true)
        guard let chunk = try cut() else { return nil }
        guard chunk.hash == known.hash, chunk.rowCount == known.rowCount else {
            pool.giveBack(chunk)
            // Earlier versions read on.
            if let fault = splitter.fault { throw list.refusal(fault) }
            return nil
        }
        return chunk
    }

    /// Reads a chunk that the ledger knows, for a caller who goes through the rows and counts them: if
    /// possible the chunk is read as it was, and not cut again.
    ///
    /// - Parameter known: Where it is, how many rows it has, and their hash.
    /// - Returns: nil if the list has something else in its place.
    /// - Throws: Exit code 5 if the list can't be read.
    package func readUncut(_ known: ChunkReservation) throws(BroadsideError) -> RowChunk? {
        // What comes at the list's start is not a row, and the splitter alone knows long ones.
        guard known.byteOffset > 0, known.byteCount <= UInt64(RowChunk.capacity) else {
            return try read(known)
        }
        // SAFETY: `list.read` gets the room for the call, and says how many bytes it has set.
        return try unsafe pool.read(known) { (offset, room) throws(BroadsideError) in
            unsafe try list.read(at: offset, into: room)
        }
    }

    /// Takes back a chunk that is not needed any more.
    ///
    /// - Parameter chunk: One of this cursor's.
    package func giveBack(_ chunk: RowChunk) { pool.giveBack(chunk) }

    private func cut() throws(BroadsideError) -> RowChunk? {
        while !isSplitterDone {
            if consumed == bufferCount, try !fillBuffer() {
                isSplitterDone = true
                if let last = splitter.finish() { return last }
                break
            }
            // SAFETY: so many bytes are set, and nothing changes them while the span lives.
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

    /// Reads on; false at the end of what is wanted.
    private func fillBuffer() throws(BroadsideError) -> Bool {
        assert(consumed == bufferCount, "what was read is consumed first")
        bufferOffset += UInt64(bufferCount)
        consumed = 0
        // If reading fails, nothing of what came before may be taken for what follows.
        bufferCount = 0
        let room = Int(min(UInt64(Self.readSize), end - min(end, bufferOffset)))
        // SAFETY: `room` is at most the buffer's size, and `read` says how many bytes it has set from
        // its beginning on: those that the span has, until they are consumed.
        bufferCount = unsafe try list.read(
            at: bufferOffset, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
        assert(bufferCount >= 0 && bufferCount <= room, "so many bytes were not asked for")
        takeInHash()
        return bufferCount > 0
    }

    /// Takes what was read last into the hash, as far as it follows what is in it.
    private func takeInHash() {
        guard let known = hash?.byteCount, bufferOffset <= known,
            known < bufferOffset + UInt64(bufferCount)
        else { return }
        let first = Int(known - bufferOffset)
        // SAFETY: so many bytes of the buffer are set, and nothing changes them meanwhile.
        hash?.append(
            unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[first..<bufferCount])))
    }
}
