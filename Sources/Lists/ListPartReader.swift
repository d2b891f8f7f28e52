import APNs
package import Campaign
package import Support

/// Reads parts of a token list again, for an export: each must have the hash that the ledger notes.
package struct ListPartReader: LedgerListReader {
    private let list: TokenList
    /// What a run reads its list with: there is one idea of what a row is.
    private let cursor: ListCursor
    /// The gap that `cursor` is in, as far as it was not read; nil: it is elsewhere.
    private var gap: ListGap?
    /// The list is cut off or damaged.
    private var damage: BroadsideError?
    private var lines: [UInt64] = []
    /// Tokens one after the other; `ends` says where each one ends.
    private var tokens: [UInt8] = []
    private var ends: [Int] = []

    package init(list: TokenList) {
        self.list = list
        cursor = ListCursor(list, pool: ChunkPool(limit: 3), rows: CampaignRows(limit: nil))
    }

    package var isAvailable: Bool { true }

    package mutating func load(_ chunk: ChunkReservation) throws(LedgerError) {
        take(try read(chunk))
    }

    /// A part as it was sent.
    private mutating func read(_ chunk: ChunkReservation) throws(LedgerError) -> RowChunk {
        gap = nil
        do throws(BroadsideError) {
            if let read = try cursor.read(chunk) { return read }
        } catch {
            throw unreadable(error)
        }
        throw LedgerError(
            .badList,
            detail: "it is not the list that was sent, from line \(chunk.firstLine) on")
    }

    /// Reads every part that was begun, and compares its hash with the ledger's.
    ///
    /// - Parameter isFinished: Whether all rows of the list, or of the part of it, were begun: there
    ///   are not others.
    /// - Throws: Exit code 2 where one has changed: what a resume would send is another list.
    package mutating func check(_ index: LedgerIndex, isFinished: Bool) throws(BroadsideError) {
        var previous: ChunkReservation?
        for number in 0..<index.chunkCount {
            try SignalWatch.stopIfAsked()
            let chunk = index.chunk(number)
            try check(line: chunk.firstLine) { (reader) throws(LedgerError) in
                try reader.checkNoRows(after: previous, before: chunk)
                try reader.check(chunk)
            }
            previous = chunk
        }
        guard isFinished, let previous else { return }
        try check(line: previous.firstLine + previous.lineCount) { (reader) throws(LedgerError) in
            try reader.checkNoRows(
                from: previous.byteOffset + previous.byteCount, to: index.rows.part.endByteOffset)
        }
    }

    /// A list that can't be read on; one that is damaged is not the one that was sent.
    private mutating func unreadable(_ error: BroadsideError) -> LedgerError {
        if error.isDamage { damage = error }
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
                " is not the list this campaign was begun with, from line \(line) on: "
                    + "resume with the list as it was")
        }
    }

    /// Between two parts whose rows adjoin there is nothing but blank lines.
    private mutating func checkNoRows(
        after previous: ChunkReservation?, before next: ChunkReservation
    ) throws(LedgerError) {
        guard let previous, previous.rows.upperBound == next.firstRow else { return }
        try checkNoRows(from: previous.byteOffset + previous.byteCount, to: next.byteOffset)
    }

    private mutating func checkNoRows(from offset: UInt64, to end: UInt64?) throws(LedgerError) {
        guard offset != end else { return }
        gap = nil
        cursor.begin(
            ListGap(
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

    /// Reads a part that was begun, and compares its hash with the ledger's.
    package mutating func check(_ chunk: ChunkReservation) throws(LedgerError) {
        cursor.giveBack(try read(chunk))
    }

    package mutating func loadNext(of gap: ListGap) throws(LedgerError) -> ChunkReservation? {
        // The rest of the gap that was read last goes on where the cursor is.
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
        self.gap = gap.rest(behind: reservation)
        take(read)
        return reservation
    }

    package func line(ofRow index: Int) -> UInt64 { lines[index] }

    package func appendToken(ofRow index: Int, to output: inout [UInt8]) {
        output += tokens[(index == 0 ? 0 : ends[index - 1])..<ends[index]]
    }

    private mutating func take(_ chunk: RowChunk) {
        lines.removeAll(keepingCapacity: true)
        tokens.removeAll(keepingCapacity: true)
        ends.removeAll(keepingCapacity: true)
        var reader = RowReader(layout: list.layout)
        var digits = TokenDigits()
        reader.open(chunk)
        while let row = reader.next() {
            lines.append(row.line)
            let field = reader.field(0)
            let refusal = digits.write { reader.readToken(field, into: &$0) }
            if refusal == nil {
                tokens.append(digits.bytes)
            } else {
                // As much of it as the ledger keeps of a row that was settled.
                tokens += reader.value(field).prefix(TokenText.maximumDigitCount)
            }
            ends.append(tokens.count)
        }
        if let chunk = reader.close() { cursor.giveBack(chunk) }
    }
}
