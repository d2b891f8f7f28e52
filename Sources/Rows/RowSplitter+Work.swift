import BroadsidePrimitives
import BroadsideSupport

extension RowSplitter {
    /// Reason why a scan stopped.
    enum ScanEnd {
        case rowLimit
        case boundary
        case full
        case more
        case fault
    }

    /// Maximum number of rows of the current chunk.
    private var rowLimitNow: Int {
        if isHeaderDue || chunk?.isLarge ?? false { return 1 }
        if let boundary, boundary.isExact { return .max }
        return rowLimit
    }

    /// Skips a byte-order mark at the list's start; false if more input is needed to decide.
    mutating func skipMark(
        _ bytes: RawSpan, _ offset: inout Int, _ chunk: RowChunk
    ) -> Bool {
        let mark = ListFormat.byteOrderMark
        while let count = markCount {
            if count == mark.count {
                start.byteOffset = UInt64(count)
                markCount = nil
            } else if offset == bytes.byteCount {
                return false
            } else if bytes.byte(at: offset) == mark[count] {
                offset += 1
                markCount = count + 1
            } else {
                // An incomplete mark is part of the list's text.
                appendMark(count, to: chunk)
                markCount = nil
            }
        }
        return true
    }

    mutating func appendMark(_ count: Int, to chunk: RowChunk) {
        for (offset, byte) in ListFormat.byteOrderMark.prefix(count).enumerated() {
            // SAFETY: the chunk is empty and holds far more than three bytes.
            unsafe chunk.storage.storeBytes(of: byte, toByteOffset: offset, as: UInt8.self)
        }
        filled = count
    }

    /// Copies the next piece of input into the chunk.
    mutating func append(_ bytes: RawSpan, _ offset: inout Int, to chunk: RowChunk) {
        var count = min(
            bytes.byteCount - offset, chunk.room - filled, RowSplitter.pieceSize)
        if let boundary {
            let left = boundary.byteOffset - start.byteOffset - UInt64(filled)
            count = Int(min(UInt64(count), left))
        }
        assert(count >= 0, "a chunk does not go beyond its end")
        if count == 0 { return }
        // SAFETY: `next` checks the offset, so that `count` bytes are left in the input, and the
        // chunk has memory for them behind `filled`.
        unsafe bytes.withUnsafeBytes { source in
            unsafe (chunk.storage + filled).copyMemory(
                from: source.baseAddress.unsafelyUnwrapped + offset, byteCount: count)
        }
        offset += count
        filled += count
    }

    /// Counts the rows in the appended bytes.
    mutating func scanRows(_ chunk: RowChunk) -> ScanEnd {
        let limit = rowLimitNow
        // SAFETY: the chunk's first `filled` bytes are set.
        let text = unsafe RawSpan(_unsafeStart: chunk.storage, byteCount: filled)
        guard scanner.begin(text, from: scan) else {
            takeFault()
            return .fault
        }
        while let end = scanner.nextEnd(in: text, from: &scan) {
            let isRow = !isBlank(text, rowsEnd, end.offset, format)
            rowsEnd = end.offset
            lineCount += end.lineCount
            if isRow {
                rowCount += 1
                if rowCount == limit { return .rowLimit }
            } else if chunk.isLarge {
                // The chunk is large because of blanks. Other rows go into a chunk of the usual
                // size.
                return .rowLimit
            }
        }
        assert(rowsEnd <= filled && scan <= filled, "rows are in what was read")
        if takeFault() { return .fault }
        if let boundary, start.byteOffset + UInt64(filled) == boundary.byteOffset {
            return .boundary
        }
        return filled == chunk.room ? .full : .more
    }

    /// Records the scanner's fault with its line in the list; returns whether there is one.
    @discardableResult
    mutating func takeFault() -> Bool {
        guard let found = scanner.fault else { return false }
        fault = ListFault(found.kind, line: start.line + lineCount + found.line)
        return true
    }

    /// Ends the current chunk before the row with the fault, and drops that row. Returns nil if the
    /// chunk has no rows before that row.
    mutating func cutOffBeforeFault() -> RowChunk? {
        boundary = nil
        if overlong != nil || isHeaderDue { rowsEnd = 0 }
        overlong = nil
        filled = rowsEnd
        scan = rowsEnd
        let finished = rowCount > 0 && !isHeaderDue ? cutOff() : nil
        if finished == nil, let chunk {
            pool.giveBack(chunk)
            self.chunk = nil
        }
        return finished
    }

    /// Ends the last row if the text ends without a line end.
    mutating func endLastRow(_ chunk: RowChunk) {
        let lines = scanner.endOfText(at: filled).lineCount
        if takeFault() { return }
        guard rowsEnd < filled else { return }
        // SAFETY: the chunk's first `filled` bytes are set.
        let text = unsafe RawSpan(_unsafeStart: chunk.storage, byteCount: filled)
        if !isBlank(text, rowsEnd, filled, format) { rowCount += 1 }
        lineCount += lines
        rowsEnd = filled
        scan = filled
    }

    /// Ends the current chunk at `rowsEnd`; nil if it has no rows or was the header.
    ///
    /// - Parameter next: Chunk that receives the bytes after `rowsEnd`, the beginning of a row.
    mutating func cutOff(carryingTo next: RowChunk? = nil) -> RowChunk? {
        guard let chunk else { preconditionFailure("there is a chunk in work") }
        let carried = filled - rowsEnd
        assert(carried >= 0, "rows are in what was read")
        precondition(carried == 0 || next != nil, "bytes of a row would be lost")
        let isExact = boundary?.isExact ?? false
        if isAtBoundary { boundary = nil }
        chunk.start = start
        chunk.rowCount = rowCount
        chunk.byteCount = UInt64(rowsEnd)
        chunk.lineCount = lineCount
        chunk.storedCount = rowsEnd
        let isKept = !isHeaderDue && (rowCount > 0 || isExact)
        // SAFETY: the first `rowsEnd` bytes are set, and `carried` more. `next` has as much memory
        // as this chunk, which is not large if there is a `next`, and is another chunk.
        chunk.isOverlong = unsafe chunk.isLarge && isOverlong(chunk.storage, rowsEnd)
        if isKept { chunk.hash = unsafe hash(chunk.storage, rowsEnd) }
        if let next {
            precondition(!chunk.isLarge, "nothing follows the row of a large chunk")
            unsafe next.storage.copyMemory(from: chunk.storage + rowsEnd, byteCount: carried)
            self.chunk = next
        }
        takeHeader(from: chunk)
        start = ListPosition(
            byteOffset: chunk.end.byteOffset, row: isKept ? chunk.end.row : start.row,
            line: chunk.end.line)
        begin(filled: carried)
        if isKept {
            if next == nil { self.chunk = nil }
            return chunk
        }
        if next == nil { self.chunk = nil }
        pool.giveBack(chunk)
        return nil
    }

    private var isAtBoundary: Bool {
        guard let boundary else { return false }
        return start.byteOffset + UInt64(rowsEnd) + (overlong?.count ?? 0) == boundary.byteOffset
    }

    private mutating func begin(filled: Int) {
        self.filled = filled
        // The carried bytes were scanned, and no row ends in them.
        scan = filled
        rowsEnd = 0
        rowCount = 0
        lineCount = 0
        overlong = nil
    }

    private mutating func takeHeader(from chunk: RowChunk) {
        guard isHeaderDue, chunk.rowCount > 0 else { return }
        var text: [UInt8] = []
        let bytes = chunk.bytes
        text.reserveCapacity(bytes.byteCount)
        for offset in 0..<bytes.byteCount { text.append(bytes.byte(at: offset)) }
        // Blank lines before the header are not part of it.
        text = Array(text.drop { $0 == 0x0a || format.isBlank($0) })
        while let last = text.last, last == 0x0a || last == 0x0d { text.removeLast() }
        // A first line that names the separator precedes the header.
        let isFirst = chunk.start.byteOffset <= UInt64(ListFormat.byteOrderMark.count)
        if isFirst, SeparatorLine.separator(text) == format.separator { return }
        header = text
        isHeaderOverlong = chunk.isOverlong
        isHeaderDue = false
    }

    /// Counts and hashes the bytes of an overlong row that are not stored. Returns the row's chunk
    /// at the end of the row.
    mutating func goThroughOverlongRow(_ bytes: RawSpan, _ offset: inout Int) -> RowChunk? {
        guard let (count, hash) = overlong else { return nil }
        let first = offset
        var last = bytes.byteCount
        if let boundary {
            let left =
                boundary.byteOffset - start.byteOffset - UInt64(RowChunk.storedCountMax) - count
            last = first + Int(min(UInt64(last - first), left))
        }
        var scan = first
        let text = bytes.extracting(0..<last)
        let end =
            scanner.begin(text, from: scan) ? scanner.nextEnd(in: text, from: &scan) : nil
        if takeFault() { return cutOffBeforeFault() }
        offset = scan
        overlong = (
            count + UInt64(scan - first),
            MixingHash.extend(hash, by: bytes.extracting(first..<scan))
        )
        if let end { return endOverlongRow(lineCount: end.lineCount) }
        rowsEnd = RowChunk.storedCountMax
        let isEnd = isAtBoundary
        rowsEnd = 0
        guard isEnd else { return nil }
        let lineCount = scanner.endOfText(at: 0).lineCount
        return takeFault() ? cutOffBeforeFault() : endOverlongRow(lineCount: lineCount)
    }

    /// Ends an overlong row and returns its chunk; nil if it was the header.
    mutating func endOverlongRow(lineCount: UInt64) -> RowChunk? {
        guard let overlong, let chunk else { return nil }
        rowsEnd = RowChunk.storedCountMax
        if isAtBoundary { boundary = nil }
        chunk.start = start
        chunk.rowCount = 1
        chunk.byteCount = UInt64(RowChunk.storedCountMax) + overlong.count
        chunk.lineCount = lineCount
        chunk.hash = overlong.hash
        chunk.storedCount = RowChunk.storedCountMax
        chunk.isOverlong = true
        let wasHeader = isHeaderDue
        takeHeader(from: chunk)
        start = ListPosition(
            byteOffset: chunk.end.byteOffset, row: wasHeader ? start.row : chunk.end.row,
            line: chunk.end.line)
        begin(filled: 0)
        self.chunk = nil
        if wasHeader {
            pool.giveBack(chunk)
            return nil
        }
        return chunk
    }

    /// Whether a single row exceeds the maximum length of rows. `bytes` contains the row and, if it
    /// is stored, the row's line feed, which does not count.
    private func isOverlong(_ bytes: UnsafeMutableRawPointer, _ count: Int) -> Bool {
        guard count > RowChunk.rowByteCountMax else { return false }
        // SAFETY: the caller vouches for `count` bytes, which is more than 0 here.
        return unsafe bytes.load(fromByteOffset: count - 1, as: UInt8.self) != 0x0a
    }

    /// Hash of a chunk's stored bytes. Bytes beyond the usual capacity extend the hash of the bytes
    /// before them. All ledgers have hashes of this form.
    func hash(_ bytes: UnsafeMutableRawPointer, _ count: Int) -> UInt64 {
        let first = min(count, RowChunk.capacity)
        // SAFETY: the caller vouches for `count` bytes, which do not change meanwhile; `first` is
        // at most that.
        let hash = unsafe MixingHash.hash(RawSpan(_unsafeStart: bytes, byteCount: first))
        guard count > first else { return hash }
        return unsafe MixingHash.extend(
            hash, by: RawSpan(_unsafeStart: bytes + first, byteCount: count - first))
    }
}
