package import BroadsideLedgerFormat
package import BroadsideRows
package import BroadsideSupport

/// Reader of a token list's chunks for an export. Each chunk must have the hash that the ledger
/// records.
package struct ListPartReader: LedgerListReader {
    private let list: TokenList
    /// Cursor of the same type as in runs, so that exports and runs agree on where rows begin and
    /// end.
    private let cursor: ListCursor
    /// Unread part of the gap at `cursor`; nil if the cursor is not in a gap.
    private var gap: ListExtent?
    /// Error of the list, if it is cut off, damaged or faulty.
    private var damage: BroadsideError?

    package init(list: TokenList) {
        self.list = list
        cursor = ListCursor(list)
    }

    package var isAvailable: Bool { true }

    package mutating func load(
        _ chunk: ChunkReservation, into rows: inout ListRows
    ) throws(LedgerError) {
        let read = try read(chunk)
        rows.read(read, layout: list.layout)
        cursor.giveBack(read)
        guard rows.count == chunk.rowCount else { throw Self.otherList(chunk) }
    }

    /// Reads a chunk, and checks that its bytes are those that were sent. The caller checks the
    /// number of rows.
    private mutating func read(_ chunk: ChunkReservation) throws(LedgerError) -> RowChunk {
        gap = nil
        do throws(BroadsideError) {
            if let read = try cursor.readUncut(chunk) { return read }
        } catch {
            throw unreadable(error)
        }
        throw Self.otherList(chunk)
    }

    private static func otherList(_ chunk: ChunkReservation) -> LedgerError {
        LedgerError(
            .badList,
            detail: "it is not the list that was sent "
                + "(it differs on line \(chunk.firstLine) or later)")
    }

    /// Reads every reserved chunk, and compares its hash with the ledger's.
    ///
    /// - Parameter isFinished: Whether all rows of the list or its range were reserved. In this
    ///   case, the list must have no other rows.
    /// - Throws: Exit code 2 if a chunk has changed, because a resume would send another list.
    package mutating func check(_ index: LedgerIndex, isFinished: Bool) throws(BroadsideError) {
        var previous: ChunkReservation?
        for number in 0..<index.chunkCount {
            try SignalWatch.stopIfRequested()
            let chunk = index.chunk(number)
            assert(
                previous.map { $0.end.row <= chunk.firstRow } ?? true,
                "chunks are in the list's order")
            try check(line: chunk.firstLine) { (reader) throws(LedgerError) in
                try reader.checkNoRows(after: previous, before: chunk)
                try reader.check(chunk)
            }
            previous = chunk
        }
        guard isFinished, let previous else { return }
        try check(line: previous.end.line) { (reader) throws(LedgerError) in
            try reader.checkNoRows(
                from: previous.end.byteOffset, to: index.rows.part.endByteOffset)
        }
    }

    /// Converts an error of reading the list. A damaged list is not the list that was sent.
    private mutating func unreadable(_ error: BroadsideError) -> LedgerError {
        if error.isDamage || error.isFaultyList { damage = error }
        if error.isFaultyList { return LedgerError(.faultyList, detail: error.message) }
        return LedgerError(error.isDamage ? .badList : .inputOutput, detail: error.message)
    }

    private mutating func check(
        line: UInt64, _ look: (inout Self) throws(LedgerError) -> Void
    ) throws(BroadsideError) {
        do throws(LedgerError) {
            try look(&self)
        } catch {
            try list.checkUnchanged()
            if let damage { throw damage }
            guard error.code == .badList else {
                throw BroadsideError(list.name, ": \(error)", exitCode: ExitCode.disk)
            }
            throw .request(
                list.name,
                " is not the list with which this campaign began (it differs on line \(line) "
                    + "or later): resume with the original list")
        }
    }

    /// Checks that there are only blank lines between two chunks with consecutive rows.
    private mutating func checkNoRows(
        after previous: ChunkReservation?, before next: ChunkReservation
    ) throws(LedgerError) {
        guard let previous, previous.end.row == next.firstRow else { return }
        try checkNoRows(from: previous.end.byteOffset, to: next.byteOffset)
    }

    private mutating func checkNoRows(from offset: UInt64, to end: UInt64?) throws(LedgerError) {
        guard offset != end else { return }
        gap = nil
        cursor.begin(
            ListExtent(
                firstRow: 0, byteOffset: offset, firstLine: 1, endRow: nil, endByteOffset: end))
        let found: RowChunk?
        do throws(BroadsideError) {
            found = try cursor.cutRows(atMost: 1)
        } catch {
            throw unreadable(error)
        }
        guard let found else { return }
        cursor.giveBack(found)
        throw LedgerError(.badList, detail: "it has other rows")
    }

    /// Reads a reserved chunk, and compares its hash with the ledger's.
    package mutating func check(_ chunk: ChunkReservation) throws(LedgerError) {
        let read = try read(chunk)
        var reader = RowReader(layout: list.layout)
        let count = reader.countRows(read)
        cursor.giveBack(read)
        guard count == chunk.rowCount else { throw Self.otherList(chunk) }
    }

    package mutating func loadNext(
        of gap: ListExtent, into rows: inout ListRows
    ) throws(LedgerError) -> ChunkReservation? {
        // The unread part of the latest gap starts at the cursor.
        if self.gap != gap { cursor.begin(gap) }
        self.gap = nil
        let read: RowChunk?
        do throws(BroadsideError) {
            read = try cursor.cutRows(atMost: .max)
        } catch {
            throw unreadable(error)
        }
        guard let read else { return nil }
        let reservation = read.reservation
        assert(reservation.firstRow >= gap.firstRow, "a chunk is in its gap")
        self.gap = gap.rest(behind: reservation)
        rows.read(read, layout: list.layout)
        cursor.giveBack(read)
        return reservation
    }
}
