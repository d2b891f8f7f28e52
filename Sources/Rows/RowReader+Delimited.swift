import BroadsidePrimitives
import BroadsideSupport

extension RowReader {
    /// Returns the next record of RFC 4180; nil if the line is blank.
    mutating func nextDelimited(separator: UInt8) -> Row? {
        let start = offset
        // SAFETY: nothing is opened or closed here.
        let text = unsafe openText
        if text.byte(at: start) <= 0x20 {
            let newline = find(UInt8(ascii: "\n"), in: text, start, end)
            let stop = newline ?? end
            if isBlank(text, start, stop, columns.format) {
                offset = newline.map { $0 + 1 } ?? end
                line += 1
                return nil
            }
        }
        let firstLine = line
        setAll(.missing)
        decodedCount = 0
        guard let textEnd = splitRow(start, separator) else {
            return malformedRow(start, firstLine)
        }
        return Row(index: 0, number: 0, line: firstLine, start: start, count: textEnd - start)
    }

    /// Returns a malformed row. `RowScanner` determines where it ends.
    private mutating func malformedRow(_ start: Int, _ firstLine: UInt64) -> Row {
        var scanner = RowScanner(format: columns.format)
        var scan = start
        var textEnd = end
        // SAFETY: nothing is opened or closed here.
        if let rowEnd = unsafe scanner.nextEnd(in: openText, from: &scan) {
            precondition(rowEnd.isMalformed, "a well-formed row was not split")
            offset = rowEnd.offset
            line = firstLine + rowEnd.lineCount
            textEnd = withoutCarriageReturn(start, rowEnd.offset - 1)
        } else {
            isRowOpen = true
            offset = end
            line = firstLine + scanner.endOfText(at: end).lineCount
        }
        setMalformed(start, textEnd)
        return Row(index: 0, number: 0, line: firstLine, start: start, count: textEnd - start)
    }

    @inline(__always)
    private mutating func set(_ column: Int, _ field: Field) {
        guard column < columns.fieldAtColumn.count else { return }
        let index = columns.fieldAtColumn[column]
        if index >= 0 { setField(Int(index), field) }
    }

    /// Sets the wanted fields of a well-formed row, and moves to the next row.
    ///
    /// - Returns: End of the row's text; nil if the row is malformed.
    @inline(__always)
    private mutating func splitRow(_ start: Int, _ separator: UInt8) -> Int? {
        let (quote, lineFeed) = (UInt8(ascii: "\""), UInt8(ascii: "\n"))
        var column = 0
        var cursor = start
        // SAFETY: nothing is opened or closed here.
        let text = unsafe openText
        let end = text.byteCount
        // SAFETY: offsets count from the row's start, and are below `end` when they are read.
        func byte(_ offset: Int) -> UInt8 {
            unsafe text.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
        }
        while true {
            let fieldStart = cursor
            if cursor < end, byte(cursor) == quote {
                guard let field = quoted(from: fieldStart, &cursor, isWanted: isWanted(column))
                else { return nil }
                set(column, field)
                let stop = cursor
                let next = cursor < end ? byte(cursor) : lineFeed
                if next == separator {
                    cursor += 1
                    column += 1
                    continue
                }
                if next == UInt8(ascii: "\r") { cursor += 1 }
                guard cursor == end || byte(cursor) == lineFeed else { return nil }
                offset = min(cursor + 1, end)
                line += 1
                if column >= columns.columnCount { setMalformed(start, stop) }
                return stop
            }
            let found: Int
            if column < columns.fieldAtColumn.count {
                found = ByteScan.first(separator, or: lineFeed, in: text, from: cursor, to: end)
            } else {
                found = endOrQuotedField(text, from: cursor, separator, &column)
            }
            if found < end, byte(found) == separator {
                set(column, Field(start: fieldStart, count: found - fieldStart, form: .plain))
                cursor = found + 1
                column += 1
                continue
            }
            let stop = withoutCarriageReturn(fieldStart, found)
            set(column, Field(start: fieldStart, count: stop - fieldStart, form: .plain))
            offset = min(found + 1, end)
            line += 1
            if column >= columns.columnCount { setMalformed(start, stop) }
            return stop
        }
    }

    /// Returns the offset of the separator before the next field in quotes, of the row's line feed,
    /// or of the text's end, whichever comes first. Used after the last wanted field, where only
    /// quotes and the number of fields matter.
    ///
    /// - Parameter column: Increases by the number of fields that end before the returned offset.
    @inline(__always)
    private func endOrQuotedField(
        _ text: RawSpan, from start: Int, _ separator: UInt8, _ column: inout Int
    ) -> Int {
        let (quote, lineFeed) = (UInt8(ascii: "\""), UInt8(ascii: "\n"))
        let end = text.byteCount
        // SAFETY: offsets count from the row's start, and are below `end` when they are read.
        func byte(_ offset: Int) -> UInt8 {
            unsafe text.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
        }
        var cursor = start
        while true {
            let found = ByteScan.first(quote, or: lineFeed, in: text, from: cursor, to: end)
            let isEnd = found == end || byte(found) == lineFeed
            if isEnd || found > start && byte(found - 1) == separator {
                let stop = isEnd ? found : found - 1
                if start < stop { column += countSeparators(text, start, stop, separator) }
                return stop
            }
            cursor = found + 1
        }
    }

    /// Counts separators. It is not inlined, so that the loop over fields stays short.
    @inline(never)
    private func countSeparators(
        _ text: RawSpan, _ start: Int, _ stop: Int, _ separator: UInt8
    ) -> Int {
        ByteScan.count(separator, in: text, from: start, to: stop)
    }

    private func isWanted(_ column: Int) -> Bool {
        column < columns.fieldAtColumn.count && columns.fieldAtColumn[column] >= 0
    }

    /// Reads a field in quotes and counts its line ends. Afterwards `cursor` is after the closing
    /// quote.
    ///
    /// - Returns: The field; nil if the quotes are not closed.
    private mutating func quoted(
        from opening: Int, _ cursor: inout Int, isWanted: Bool
    ) -> Field? {
        let (quote, lineFeed) = (UInt8(ascii: "\""), UInt8(ascii: "\n"))
        // SAFETY: nothing is opened or closed here.
        let text = unsafe openText
        let end = text.byteCount
        var hasDoubledQuotes = false
        cursor = opening + 1
        while true {
            let found = ByteScan.first(quote, or: lineFeed, in: text, from: cursor, to: end)
            if found >= end { return nil }
            cursor = found + 1
            if text.byte(at: found) == lineFeed {
                line += 1
                continue
            }
            if cursor < end, text.byte(at: cursor) == quote {
                hasDoubledQuotes = true
                cursor += 1
                continue
            }
            let field = Field(start: opening + 1, count: found - opening - 1, form: .plain)
            return hasDoubledQuotes && isWanted ? withoutDoubledQuotes(field, text) : field
        }
    }

    /// Returns a field's text with each pair of quotes replaced by one quote.
    mutating func withoutDoubledQuotes(_ field: Field, _ text: RawSpan) -> Field? {
        decode(field.count) { output in
            var isSecondQuote = false
            for offset in field.start..<field.start + field.count {
                let byte = text.byte(at: offset)
                isSecondQuote = byte == UInt8(ascii: "\"") && !isSecondQuote
                // The first quote of each pair is omitted.
                if !isSecondQuote { output.append(byte) }
            }
            return true
        }
    }
}
