import APNs
import Campaign

/// Reads parts of a token list again, for an export: each must have the hash that the ledger notes.
struct ListPartReader: LedgerListReader {
    private let list: TokenList
    private let pool = ChunkPool(limit: 3)
    private var lines: [UInt64] = []
    /// Tokens one after the other; `ends` says where each one ends.
    private var tokens: [UInt8] = []
    private var ends: [Int] = []

    init(list: TokenList) throws(BroadsideError) {
        self.list = list
    }

    var isAvailable: Bool { true }

    mutating func load(_ chunk: ChunkReservation) throws(LedgerError) {
        take(try read(chunk))
    }

    /// A part as it was sent.
    private mutating func read(_ chunk: ChunkReservation) throws(LedgerError) -> RowChunk {
        let start = ListPosition(
            byteOffset: chunk.byteOffset, row: chunk.firstRow, line: chunk.firstLine)
        let read = try cut(
            from: start, end: chunk.byteOffset + chunk.byteCount, isExact: true)
        guard let read, read.hash == chunk.hash, read.rowCount == chunk.rowCount else {
            throw LedgerError(
                .badList,
                detail: "it is not the list that was sent, from line \(chunk.firstLine) on")
        }
        return read
    }

    /// Reads every part that was begun, and compares its hash with the ledger's.
    ///
    /// - Parameter isFinished: Whether all rows of the list, or of the part of it, were begun: there
    ///   are no others.
    /// - Throws: Exit code 2 where one has changed: what a resume would send is another list.
    mutating func check(_ index: LedgerIndex, isFinished: Bool) throws(BroadsideError) {
        var previous: ChunkReservation?
        for number in 0..<index.chunkCount {
            try SignalWatch.stopIfAsked()
            let chunk = index.chunk(number)
            try check(line: chunk.firstLine) { (reader) throws(LedgerError) in
                try reader.checkNoRows(after: previous, before: chunk)
                try reader.compare(chunk)
            }
            previous = chunk
        }
        guard isFinished, let previous else { return }
        try check(line: previous.firstLine + previous.lineCount) { (reader) throws(LedgerError) in
            try reader.checkNoRows(
                from: previous.byteOffset + previous.byteCount, to: index.part.endByteOffset)
        }
    }

    private mutating func check(
        line: UInt64, _ look: (inout Self) throws(LedgerError) -> Void
    ) throws(BroadsideError) {
        do throws(LedgerError) {
            try look(&self)
        } catch {
            try list.checkUnchanged()
            guard error.code == .badList else {
                throw BroadsideError("--tokens: \(error)", exitCode: ExitCode.disk)
            }
            throw .request(
                "\(list.name) is not the list this campaign was begun with, from line \(line) on: "
                    + "resume with the list as it was")
        }
    }

    /// Between two parts whose rows adjoin there is nothing but blank lines.
    private func checkNoRows(
        after previous: ChunkReservation?, before next: ChunkReservation
    ) throws(LedgerError) {
        guard let previous, previous.rows.upperBound == next.firstRow else { return }
        try checkNoRows(from: previous.byteOffset + previous.byteCount, to: next.byteOffset)
    }

    private func checkNoRows(from offset: UInt64, to end: UInt64?) throws(LedgerError) {
        let start = ListPosition(byteOffset: offset, row: 0, line: 1)
        guard offset != end, let found = try cut(from: start, end: end, isExact: false) else {
            return
        }
        pool.giveBack(found)
        throw LedgerError(.badList, detail: "it has other rows")
    }

    private mutating func compare(_ chunk: ChunkReservation) throws(LedgerError) {
        pool.giveBack(try read(chunk))
    }

    mutating func loadNext(of gap: ListGap) throws(LedgerError) -> ChunkReservation? {
        let start = ListPosition(byteOffset: gap.byteOffset, row: gap.firstRow, line: gap.firstLine)
        guard let read = try cut(from: start, end: gap.endByteOffset, isExact: false) else {
            return nil
        }
        let reservation = read.reservation
        take(read)
        return reservation
    }

    func line(ofRow index: Int) -> UInt64 { lines[index] }

    func appendToken(ofRow index: Int, to output: inout [UInt8]) {
        output += tokens[(index == 0 ? 0 : ends[index - 1])..<ends[index]]
    }

    private func cut(
        from start: ListPosition, end: UInt64?, isExact: Bool
    ) throws(LedgerError) -> RowChunk? {
        var cutter = RowCutter(format: list.format, pool: pool, start: start)
        if let end {
            guard end > start.byteOffset else { return nil }
            if isExact { cutter.endChunk(at: end, isExact: true) }
        }
        let buffer = UnsafeMutableRawBufferPointer.allocate(
            byteCount: RowChunk.capacity, alignment: 64)
        defer { unsafe buffer.deallocate() }
        var offset = start.byteOffset
        while true {
            let count: Int
            do {
                // The list ends here for the cutter, even where blank lines come before the end.
                let left = (end ?? .max) - min(end ?? .max, offset)
                let room = Int(min(left, UInt64(RowChunk.capacity)))
                count = unsafe try list.read(
                    at: offset, into: UnsafeMutableRawBufferPointer(rebasing: buffer[..<room]))
            } catch {
                throw LedgerError(.inputOutput, detail: error.message)
            }
            if count == 0 { return cutter.finish() }
            let bytes = unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(rebasing: buffer[..<count]))
            var consumed = 0
            if case .chunk(let chunk) = cutter.next(bytes, at: &consumed) { return chunk }
            offset += UInt64(count)
        }
    }

    private mutating func take(_ chunk: RowChunk) {
        lines.removeAll(keepingCapacity: true)
        tokens.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        var reader = RowReader(layout: list.layout)
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: TokenText.maximumDigitCount, alignment: 8)
        defer { unsafe room.deallocate() }
        reader.open(chunk)
        while let row = reader.next() {
            lines.append(row.line)
            let field = reader.field(0)
            var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
            let refusal = reader.readToken(field, into: &digits)
            let count = unsafe digits.finalize(for: room)
            if refusal == nil {
                unsafe tokens += room[..<count]
            } else {
                // As much of it as the ledger keeps of a row that was settled.
                tokens += reader.value(field).prefix(TokenText.maximumDigitCount)
            }
            ends.append(tokens.count)
        }
        if let chunk = reader.close() { pool.giveBack(chunk) }
    }
}
