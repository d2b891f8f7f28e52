internal import BroadsidePrimitives

extension ChunkPool {
    /// Reads the bytes of a chunk that a ledger records. It does not search for row ends:
    /// `RowReader` finds the rows, and the caller compares their number with the ledger's.
    ///
    /// - Parameters:
    ///   - known: A chunk that begins after the list's start. It therefore has no byte-order mark
    ///     and no header. It has at most `RowChunk.capacity` bytes.
    ///   - read: Reads bytes at an offset in the list, and returns their number; 0 at the end of
    ///     the list.
    /// - Returns: The chunk; nil if the list has other bytes at its offset.
    public func read<Failure>(
        _ known: ChunkReservation,
        by read: (UInt64, UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> RowChunk? {
        precondition(known.byteOffset > 0 && known.byteCount <= UInt64(RowChunk.capacity))
        guard let chunk = take() else {
            preconditionFailure("the pool has a chunk for all that may be out")
        }
        do throws(Failure) {
            // SAFETY: `fill` lends the reader memory for its call only, and checks the number it
            // returns.
            try unsafe chunk.fill(known, by: read)
        } catch {
            giveBack(chunk)
            throw error
        }
        guard chunk.byteCount == known.byteCount, chunk.takeHash(of: known) else {
            giveBack(chunk)
            return nil
        }
        return chunk
    }
}

extension RowChunk {
    /// Sets the position of a known chunk, and reads its bytes up to the end of the list.
    fileprivate func fill<Failure>(
        _ known: ChunkReservation,
        by read: (UInt64, UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) {
        let byteCount = Int(known.byteCount)
        var count = 0
        while count < byteCount {
            // SAFETY: `byteCount` is at most the capacity of every chunk, and `read` gets the rest
            // of it for the call only; the number of bytes it has set is checked.
            let room = unsafe UnsafeMutableRawBufferPointer(
                start: storage + count, count: byteCount - count)
            let found = unsafe try read(known.byteOffset + UInt64(count), room)
            precondition(found >= 0 && found <= room.count, "so many bytes were not asked for")
            if found == 0 { break }
            count += found
        }
        start = known.start
        rowCount = known.rowCount
        lineCount = known.lineCount
        storedCount = count
        self.byteCount = UInt64(count)
        hash = MixingHash.hash(bytes)
    }
}

extension RowReader {
    /// Counts the rows of a chunk.
    ///
    /// - Parameter chunk: The chunk, which remains the caller's.
    public mutating func countRows(_ chunk: RowChunk) -> Int {
        open(chunk)
        var count = 0
        while next() != nil { count += 1 }
        _ = close()
        return count
    }
}
