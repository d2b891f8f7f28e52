import APNs

extension RowReader {
    /// The next record of RFC 4180; nil where the line is blank.
    mutating func nextDelimited(separator: UInt8) -> Row? {
        let start = offset
        // SAFETY: `start` is below `end`, up to where the text is set, and `stop` lies between
        // them; `fields` has `fieldCount` elements.
        if unsafe bytes.load(fromByteOffset: start, as: UInt8.self) <= 0x20 {
            let newline = unsafe find(UInt8(ascii: "\n"), bytes, start, end)
            let stop = newline ?? end
            if unsafe isBlank(bytes, start, stop, layout.format) {
                offset = newline.map { $0 + 1 } ?? end
                line += 1
                return nil
            }
        }
        let firstLine = line
        for index in 0..<fieldCount { unsafe fields[index] = .missing }
        decodedCount = 0
        guard let textEnd = splitRow(start, separator) else {
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

    private func set(_ place: Int, _ field: Field) {
        guard place < placeCount else { return }
        // SAFETY: the place is below `placeCount`, and the entry is below `fieldCount` or -1.
        let index = unsafe fieldAtPlace[place]
        if index >= 0 { unsafe fields[Int(index)] = field }
    }

    /// Sets the wanted fields of a well-formed row, and goes behind the row.
    ///
    /// - Returns: its text's end; nil where it is malformed.
    @inline(__always)
    private mutating func splitRow(_ start: Int, _ separator: UInt8) -> Int? {
        let (quote, lineFeed) = (UInt8(ascii: "\""), UInt8(ascii: "\n"))
        var place = 0
        var cursor = start
        // SAFETY: `end` bytes are set and stay during this call; a byte is read only below `end`,
        // and where something was found is not behind it.
        let text = unsafe RawSpan(_unsafeStart: bytes, byteCount: end)
        while true {
            let fieldStart = cursor
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
                        || bytes.load(fromByteOffset: cursor, as: UInt8.self) == lineFeed
                else { return nil }
                offset = min(cursor + 1, end)
                line += 1
                return stop
            }
            let found: Int
            if place < placeCount {
                found = ByteScan.first(separator, or: lineFeed, in: text, from: cursor, to: end)
            } else {
                found = endOrQuotedField(text, from: cursor, separator)
            }
            if found < end, unsafe bytes.load(fromByteOffset: found, as: UInt8.self) == separator {
                set(place, Field(start: fieldStart, count: found - fieldStart, form: .plain))
                cursor = found + 1
                place += 1
                continue
            }
            let stop = withoutCarriageReturn(fieldStart, found)
            set(place, Field(start: fieldStart, count: stop - fieldStart, form: .plain))
            offset = min(found + 1, end)
            line += 1
            return stop
        }
    }

    /// Behind the last wanted field, where only quotes matter: the separator before the next field
    /// in quotes, or the row's line feed or the text's end if that comes first.
    @inline(__always)
    private func endOrQuotedField(_ text: RawSpan, from start: Int, _ separator: UInt8) -> Int {
        let (quote, lineFeed) = (UInt8(ascii: "\""), UInt8(ascii: "\n"))
        var cursor = start
        while true {
            let found = ByteScan.first(quote, or: lineFeed, in: text, from: cursor, to: end)
            // SAFETY: `found` is below `end` where it is read, and behind `start` where the byte
            // before it is.
            if found == end { return found }
            if unsafe bytes.load(fromByteOffset: found, as: UInt8.self) == lineFeed {
                return found
            }
            if found > start,
                unsafe bytes.load(fromByteOffset: found - 1, as: UInt8.self) == separator
            {
                return found - 1
            }
            cursor = found + 1
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
        let (quote, lineFeed) = (UInt8(ascii: "\""), UInt8(ascii: "\n"))
        // SAFETY: `end` bytes are set and stay during this call.
        let text = unsafe RawSpan(_unsafeStart: bytes, byteCount: end)
        var hasDoubledQuotes = false
        cursor = opening + 1
        while true {
            // SAFETY: `found` is below `end` where it is read.
            let found = ByteScan.first(quote, or: lineFeed, in: text, from: cursor, to: end)
            if found >= end { return nil }
            cursor = found + 1
            if unsafe bytes.load(fromByteOffset: found, as: UInt8.self) == lineFeed {
                line += 1
                continue
            }
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
