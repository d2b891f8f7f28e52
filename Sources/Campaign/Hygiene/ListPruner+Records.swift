import APNs

extension ListPruner {
    /// Goes through the records of a list with columns; where the last one that is whole ends.
    mutating func goThroughRecords(
        _ base: UnsafeMutableRawPointer, from start: Int, to end: Int, isLast: Bool,
        removed: inout [UInt8]
    ) throws(PruneError) -> Int {
        unsafe reader.open(UnsafeRawPointer(base), from: start, count: end, line: line)
        while let row = reader.next() {
            let next = reader.offset
            if unsafe !isWhole(base, row, next) {
                guard isLast else {
                    line = row.line
                    return row.start
                }
                try unsafe checkQuotes(base, row, next)
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
            let field = reader.field(0)
            guard field.form == .plain || field.form == .string else {
                // No such column, or quotes or escapes inside a token, which has none.
                counts.withoutToken += 1
                continue
            }
            let text = unsafe RawSpan(_unsafeStart: base + field.start, byteCount: field.count)
            guard let record = findDead(text), goes(record, row) else { continue }
            unsafe remove(base, row.start, next, reason: record.reason, removed: &removed)
        }
        line = reader.line
        if isLast { return end }
        return unsafe endOfLastLine(base, from: start, end)
    }

    /// Whether the row ends with a line end, and not because the window does.
    private func isWhole(
        _ base: UnsafeMutableRawPointer, _ row: RowReader.Row, _ next: Int
    ) -> Bool {
        guard next > row.start + row.count else { return false }
        // SAFETY: `next` is behind at least one octet of the window.
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

    private func checkQuotes(
        _ base: UnsafeMutableRawPointer, _ row: RowReader.Row, _ end: Int
    ) throws(PruneError) {
        var scanner = RowScanner(format: layout.format)
        var scan = row.start
        while unsafe scanner.nextEnd(in: UnsafeRawPointer(base), from: &scan, to: end) != nil {}
        if scanner.isInsideQuotes {
            throw .unclosedQuote(line: row.line + scanner.linesBeforeQuote)
        }
    }

    /// Whether a dead token's row goes: not where its token was registered after it had died.
    private mutating func goes(_ record: DeadTokens.Record, _ row: RowReader.Row) -> Bool {
        guard hasRegistration else { return true }
        let field = reader.field(1)
        let isText = field.form == .plain || field.form == .string
        let time = isText ? RegistrationTime.milliseconds(reader.text(field)) : nil
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
