import BroadsideRows
import BroadsideSupport

extension ListPruner {
    /// Processes the records of a list with columns; returns the end of the last complete one.
    mutating func goThroughRecords(
        _ window: PrunerWindow, from start: Int, isLast: Bool, removed: inout [UInt8]
    ) -> Int {
        // SAFETY: nothing is read with the reader after this window.
        unsafe window.open(&reader, from: start, line: line)
        while let row = reader.next() {
            let next = reader.offset
            if !isLast, !isWhole(window, next) {
                line = row.line
                return row.start
            }
            if isHeaderDue {
                isHeaderDue = isSeparatorDue && isSeparatorLine(row)
                isSeparatorDue = false
                handOut(window, row.start..<next, to: &removed)
                continue
            }
            counts.rows += 1
            if hasRegistration, reader.field(1).form != .missing {
                counts.withRegistration += 1
                // One readable time is enough to recognize the column.
                if !counts.hasReadableRegistration {
                    counts.hasReadableRegistration = registration() != nil
                }
            }
            let field = reader.field(0)
            guard field.isText, !isLong(window, row, next) else {
                counts.withoutToken += 1
                counts.overwritten.take(row, of: reader)
                continue
            }
            // SAFETY: nothing is read or moved before the lookup of the text ends, and no row is
            // read before it.
            let text = unsafe _overrideLifetime(reader.text(field), borrowing: ())
            guard let record = findDead(text), goes(record, row) else {
                continue
            }
            remove(window, row.start, next, reason: record.reason, removed: &removed)
        }
        line = reader.line
        return isLast ? window.count : endOfLastLine(window, from: start)
    }

    /// Whether the row read last is a line that names the separator.
    private func isSeparatorLine(_ row: RowReader.Row) -> Bool {
        let text = reader.text(of: row)
        guard text.byteCount <= SeparatorLine.lengthLimit else { return false }
        return SeparatorLine.separator([UInt8](text)) == layout.format.separator
    }

    /// Whether a row without its line feed exceeds the maximum length.
    private func isLong(_ window: PrunerWindow, _ row: RowReader.Row, _ next: Int) -> Bool {
        let count = next - row.start
        guard count > RowChunk.rowByteCountMax else { return false }
        return count > RowChunk.storedCountMax
            || window.byte(at: next - 1) != UInt8(ascii: "\n")
    }

    /// Whether the row read last ends with a line end, not merely with the window.
    private func isWhole(_ window: PrunerWindow, _ next: Int) -> Bool {
        if reader.isRowOpen { return false }
        return window.byte(at: next - 1) == UInt8(ascii: "\n")
    }

    /// Offset after the last whole line of a window. The last row must have been read, so that only
    /// blank lines follow that row. A line without an end is not included, because it may be the
    /// start of a row.
    private mutating func endOfLastLine(_ window: PrunerWindow, from start: Int) -> Int {
        var offset = window.count
        while offset > start, window.byte(at: offset - 1) != 0x0a { offset -= 1 }
        if offset < window.count { line -= 1 }
        assert(line > 0, "lines are counted from 1")
        return offset
    }

    /// Registration time of the row read last; nil if it is unreadable.
    private mutating func registration() -> RegistrationTime.Reading? {
        let field = reader.field(1)
        return field.isText ? registrationTime.read(reader.text(field)) : nil
    }

    /// Whether a dead token's row is removed. The row is kept if the token was registered after its
    /// death, or if its registration time is unreadable.
    private mutating func goes(_ record: DeadTokens.Record, _ row: RowReader.Row) -> Bool {
        guard hasRegistration else { return true }
        guard let time = registration() else {
            counts.unreadableRegistrations += 1
            if counts.firstUnreadableLine == nil { counts.firstUnreadableLine = row.line }
            return false
        }
        if time.lacksOffset, counts.firstLineWithoutOffset == nil {
            counts.firstLineWithoutOffset = row.line
        }
        if DeadTokens.lives(registeredAt: time.milliseconds, diedAt: record.diedAt) {
            counts.registeredLater += 1
            return false
        }
        return true
    }
}
