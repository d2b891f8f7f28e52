extension RowReader {
    /// The next record of RFC 4180; nil where the line is blank.
    mutating func nextDelimited(separator: UInt8) -> Row? {
        let start = offset
        // SAFETY: `start` is below `end`, up to where the text is set, and `stop` lies between
        // them; `fields` has `fieldCount` elements.
        let newline = unsafe find(UInt8(ascii: "\n"), bytes, start, end)
        let stop = newline ?? end
        if unsafe isBlank(bytes, start, stop, layout.format) {
            offset = newline.map { $0 + 1 } ?? end
            line += 1
            return nil
        }
        let firstLine = line
        for index in 0..<fieldCount { unsafe fields[index] = .missing }
        if unsafe find(UInt8(ascii: "\""), bytes, start, stop) == nil {
            // Nearly all rows of nearly all lists.
            offset = newline.map { $0 + 1 } ?? end
            line += 1
            let textEnd = withoutCarriageReturn(start, stop)
            splitPlain(start, textEnd, separator)
            return Row(index: 0, number: 0, line: firstLine, start: start, count: textEnd - start)
        }
        decodedCount = 0
        guard let textEnd = splitQuoted(start, separator) else {
            return malformedRow(start, firstLine)
        }
        return Row(index: 0, number: 0, line: firstLine, start: start, count: textEnd - start)
    }

    /// A row that breaks the rules: where it ends is the scanner's to say.
    private mutating func malformedRow(_ start: Int, _ firstLine: UInt64) -> Row {
        var scanner = RowScanner(format: layout.format)
        var scan = start
        var textEnd = end
        // SAFETY: `start` is below `end`, up to where the text is set.
        if let rowEnd = unsafe scanner.nextEnd(in: bytes, from: &scan, to: end) {
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

    /// Sets the wanted fields of a row without quotes.
    private func splitPlain(_ start: Int, _ stop: Int, _ separator: UInt8) {
        var fieldStart = start
        for place in 0..<placeCount {
            // SAFETY: `fieldStart` is at most `stop`: it lies behind a separator that was found
            // below it.
            let found = unsafe find(separator, bytes, fieldStart, stop)
            set(place, Field(start: fieldStart, count: (found ?? stop) - fieldStart, form: .plain))
            guard let found else { return }
            fieldStart = found + 1
        }
    }

    private func set(_ place: Int, _ field: Field) {
        guard place < placeCount else { return }
        // SAFETY: the place is below `placeCount`, and the entry is below `fieldCount` or -1.
        let index = unsafe fieldAtPlace[place]
        if index >= 0 { unsafe fields[Int(index)] = field }
    }

    /// Sets the wanted fields of a well-formed row with quotes, and goes behind the row.
    ///
    /// - Returns: its text's end; nil where it is malformed.
    private mutating func splitQuoted(_ start: Int, _ separator: UInt8) -> Int? {
        let quote = UInt8(ascii: "\"")
        var place = 0
        var cursor = start
        // The first line feed at the cursor or behind it.
        var newline = -1
        while true {
            let fieldStart = cursor
            // SAFETY: a byte is read only below `end`; the finds begin at a cursor that is at most
            // `end`, and end at a line feed that was found behind it, or at `end`.
            if cursor < end, unsafe bytes.load(fromByteOffset: cursor, as: UInt8.self) == quote {
                guard let field = quoted(from: fieldStart, &cursor, isWanted: isWanted(place))
                else { return nil }
                set(place, field)
                let stop = cursor
                let byte =
                    cursor < end ? unsafe bytes.load(fromByteOffset: cursor, as: UInt8.self) : 0x0a
                if byte == separator {
                    cursor += 1
                    place += 1
                    continue
                }
                if byte == UInt8(ascii: "\r") { cursor += 1 }
                guard
                    unsafe cursor == end
                        || bytes.load(fromByteOffset: cursor, as: UInt8.self) == 0x0a
                else { return nil }
                offset = min(cursor + 1, end)
                line += 1
                return stop
            }
            if newline < cursor {
                newline = unsafe find(UInt8(ascii: "\n"), bytes, cursor, end) ?? end
            }
            let found = unsafe find(separator, bytes, cursor, newline)
            var stop = found ?? newline
            if found == nil { stop = withoutCarriageReturn(fieldStart, newline) }
            set(place, Field(start: fieldStart, count: stop - fieldStart, form: .plain))
            if let found {
                cursor = found + 1
                place += 1
                continue
            }
            offset = min(newline + 1, end)
            line += 1
            return stop
        }
    }

    private func isWanted(_ place: Int) -> Bool {
        // SAFETY: read only where the place is below `placeCount`; it counts from 0.
        unsafe place < placeCount && fieldAtPlace[place] >= 0
    }

    /// A field between quotes; `cursor` ends behind the closing one. Line ends inside are counted.
    ///
    /// - Returns: nil where the quotes are not closed.
    private mutating func quoted(
        from opening: Int, _ cursor: inout Int, isWanted: Bool
    ) -> Field? {
        let quote = UInt8(ascii: "\"")
        var hasDoubledQuotes = false
        cursor = opening + 1
        while true {
            // SAFETY: `cursor` is at most `end`, behind a byte that was read below it, and `found`
            // lies between them.
            guard let found = unsafe find(quote, bytes, cursor, end) else { return nil }
            var newline = unsafe find(UInt8(ascii: "\n"), bytes, cursor, found)
            while let inner = newline {
                line += 1
                newline = unsafe find(UInt8(ascii: "\n"), bytes, inner + 1, found)
            }
            cursor = found + 1
            if cursor < end, unsafe bytes.load(fromByteOffset: cursor, as: UInt8.self) == quote {
                hasDoubledQuotes = true
                cursor += 1
                continue
            }
            let field = Field(start: opening + 1, count: found - opening - 1, form: .plain)
            return hasDoubledQuotes && isWanted ? withoutDoubledQuotes(field) : field
        }
    }

    private mutating func withoutDoubledQuotes(_ field: Field) -> Field {
        // SAFETY: the field lies between quotes that were found in the text; no more bytes are
        // stored than it has, for all of which `roomToDecode` made room.
        let room = unsafe roomToDecode(field.count)
        var count = 0
        var isSecondQuote = false
        for place in field.start..<field.start + field.count {
            let byte = unsafe bytes.load(fromByteOffset: place, as: UInt8.self)
            isSecondQuote = byte == UInt8(ascii: "\"") && !isSecondQuote
            // The first quote of each pair goes.
            if isSecondQuote { continue }
            unsafe room.storeBytes(of: byte, toByteOffset: count, as: UInt8.self)
            count += 1
        }
        defer { decodedCount += count }
        return Field(start: decodedCount, count: count, form: .decoded)
    }
}
