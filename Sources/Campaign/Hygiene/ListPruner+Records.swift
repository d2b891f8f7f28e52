import APNs

extension ListPruner {
    /// Goes through the records of a list with columns; where the last one that is whole ends.
    mutating func goThroughRecords(
        _ base: UnsafeMutableRawPointer, from start: Int, to end: Int, isLast: Bool,
        removed: inout [UInt8]
    ) -> Int {
        unsafe reader.open(UnsafeRawPointer(base), from: start, count: end, line: line)
        while let row = reader.next() {
            let next = reader.offset
            if !isLast, unsafe !isWhole(base, next) {
                line = row.line
                return row.start
            }
            if isHeaderDue {
                isHeaderDue = false
                if collectsRemoved {
                    // SAFETY: the header lies inside the window.
                    unsafe removed.append(
                        contentsOf: UnsafeRawBufferPointer(
                            start: base + row.start, count: next - row.start))
                }
                continue
            }
            counts.rows += 1
            if hasRegistration, reader.field(1).form != .missing { counts.withRegistration += 1 }
            let field = reader.field(0)
            guard field.isText, unsafe !isLong(base, row, next) else {
                counts.withoutToken += 1
                continue
            }
            let text = unsafe RawSpan(_unsafeBytes: reader.octets(of: field))
            guard let record = findDead(text), goes(record, row) else { continue }
            unsafe remove(base, row.start, next, reason: record.reason, removed: &removed)
        }
        line = reader.line
        if isLast { return end }
        return unsafe endOfLastLine(base, from: start, end)
    }

    /// Whether a row is longer than rows may be, its line feed not counted.
    private func isLong(
        _ base: UnsafeMutableRawPointer, _ row: RowReader.Row, _ next: Int
    ) -> Bool {
        let count = next - row.start
        guard count > RowChunk.rowByteCountMax else { return false }
        // SAFETY: `next` is behind the row's bytes.
        return unsafe count > RowChunk.storedCountMax
            || base.load(fromByteOffset: next - 1, as: UInt8.self) != UInt8(ascii: "\n")
    }

    /// Whether the row read last ends with a line end, and not because the window does.
    private func isWhole(_ base: UnsafeMutableRawPointer, _ next: Int) -> Bool {
        if reader.isRowOpen { return false }
        // SAFETY: `next` is behind at least one byte of the window.
        return unsafe base.load(fromByteOffset: next - 1, as: UInt8.self) == UInt8(ascii: "\n")
    }

    /// Where behind the last row only blank lines follow, the last of which may be a row's
    /// beginning.
    private mutating func endOfLastLine(
        _ base: UnsafeMutableRawPointer, from start: Int, _ end: Int
    ) -> Int {
        var place = end
        while place > start, unsafe base.load(fromByteOffset: place - 1, as: UInt8.self) != 0x0a {
            place -= 1
        }
        if place < end { line -= 1 }
        return place
    }

    /// Whether a dead token's row goes: not where its token was registered after it had died.
    private mutating func goes(_ record: DeadTokens.Record, _ row: RowReader.Row) -> Bool {
        guard hasRegistration else { return true }
        let field = reader.field(1)
        let time = field.isText ? RegistrationTime.milliseconds(reader.text(field)) : nil
        guard let time else {
            counts.unreadableRegistrations += 1
            if counts.firstUnreadableLine == nil { counts.firstUnreadableLine = row.line }
            return false
        }
        if time > 0, UInt64(time) > record.diedAt {
            counts.registeredLater += 1
            return false
        }
        return true
    }
}
