internal import BroadsidePrimitives

extension ChunkPool {
    /// Reads the bytes of a chunk that a ledger knows, without a cut into rows: `RowReader` finds the
    /// rows, and the caller holds their number against the ledger's.
    ///
    /// - Parameters:
    ///   - known: a chunk behind the list's start, where no mark and no header are, of at most
    ///     `RowChunk.capacity` bytes.
    ///   - read: sets bytes from an offset in the list on and says how many; 0 at the list's end.
    /// - Returns: nil if the list has something else in its place.
    public func read<Failure>(
        _ known: ChunkReservation,
        by read: (UInt64, UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) -> RowChunk? {
        precondition(known.byteOffset > 0 && known.byteCount <= UInt64(RowChunk.capacity))
        guard let chunk = take() else {
            preconditionFailure("the pool has a chunk for all that may be out")
        }
        do throws(Failure) {
            // SAFETY: `fill` gives the reader memory for its call only, and checks what it says.
            try unsafe chunk.fill(known, by: read)
        } catch {
            giveBack(chunk)
            throw error
        }
        guard chunk.byteCount == known.byteCount, chunk.hash == known.hash else {
            giveBack(chunk)
            return nil
        }
        return chunk
    }
}

extension RowChunk {
    /// Takes the place of a known chunk, with as many of its bytes as there are.
    fileprivate func fill<Failure>(
        _ known: ChunkReservation,
        by read: (UInt64, UnsafeMutableRawBufferPointer) throws(Failure) -> Int
    ) throws(Failure) {
        let byteCount = Int(known.byteCount)
        var count = 0
        while count < byteCount {
            // SAFETY: `byteCount` is at most what every chunk has room for, and `read` gets what is
            // left of it for the call only; how many bytes it has set is checked.
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
    /// - Parameter chunk: the caller's, before and after.
    /// - Returns: how many there are.
    public mutating func countRows(_ chunk: RowChunk) -> Int {
        open(chunk)
        var count = 0
        while next() != nil { count += 1 }
        _ = close()
        return count
    }
}
