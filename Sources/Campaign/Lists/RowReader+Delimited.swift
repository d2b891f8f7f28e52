extension RowReader {
    /// The next record of RFC 4180; nil where the line is blank.
    mutating func nextDelimited(separator: UInt8) -> Row? {
        let start = offset
        let newline = unsafe find(UInt8(ascii: "\n"), octets, start, end)
        let stop = newline ?? end
        if unsafe isBlank(octets, start, stop, layout.format) {
            offset = newline.map { $0 + 1 } ?? end
            line += 1
            return nil
        }
        let firstLine = line
        for index in 0..<fieldCount { unsafe fields[index] = .missing }
        if unsafe find(UInt8(ascii: "\""), octets, start, stop) == nil {
            // Nearly all rows of nearly all lists.
            offset = newline.map { $0 + 1 } ?? end
            line += 1
            let textEnd = withoutCarriageReturn(start, stop)
            splitPlain(start, textEnd, separator)
            return Row(index: 0, number: 0, line: firstLine, start: start, count: textEnd - start)
        }
        let textEnd = splitQuoted(start, separator)
        return Row(index: 0, number: 0, line: firstLine, start: start, count: textEnd - start)
    }

    /// Sets the wanted fields of a row without quotes.
    private func splitPlain(_ start: Int, _ stop: Int, _ separator: UInt8) {
        var fieldStart = start
        for place in 0..<placeCount {
            let found = unsafe find(separator, octets, fieldStart, stop)
            set(place, Field(start: fieldStart, count: (found ?? stop) - fieldStart, form: .plain))
            guard let found else { return }
            fieldStart = found + 1
        }
    }

    private func set(_ place: Int, _ field: Field) {
        guard place < placeCount else { return }
        // SAFETY: the place is below the count allocated, and the entry is a field or -1.
        let index = unsafe fieldAtPlace[place]
        if index >= 0 { unsafe fields[Int(index)] = field }
    }

    /// Sets the wanted fields of a row with quotes, and goes behind the row; its text's end.
    ///
    /// It follows `RowScanner`: a quote opens at a field's start only.
    private mutating func splitQuoted(_ start: Int, _ separator: UInt8) -> Int {
        let quote = UInt8(ascii: "\"")
        var place = 0
        var cursor = start
        while true {
            let fieldStart = cursor
            var field = Field.missing
            // SAFETY: the cursor is below `end` where it is looked at.
            if cursor < end, unsafe octets.load(fromByteOffset: cursor, as: UInt8.self) == quote {
                field = quoted(from: cursor, &cursor)
            }
            let newline = unsafe find(UInt8(ascii: "\n"), octets, cursor, end)
            let limit = newline ?? end
            let found = unsafe find(separator, octets, cursor, limit)
            var stop = found ?? limit
            if found == nil { stop = max(cursor, withoutCarriageReturn(fieldStart, limit)) }
            // Text behind a closing quote breaks the grammar: then the field is what stands there.
            if field.form == .missing || cursor != stop {
                field = Field(start: fieldStart, count: stop - fieldStart, form: .plain)
            }
            set(place, field)
            if let found {
                cursor = found + 1
                place += 1
                continue
            }
            offset = newline.map { $0 + 1 } ?? end
            line += 1
            return stop
        }
    }

    /// A field between quotes; `cursor` ends behind the closing one. Line ends inside are counted.
    private mutating func quoted(from opening: Int, _ cursor: inout Int) -> Field {
        let quote = UInt8(ascii: "\"")
        var form = Field.Form.plain
        cursor = opening + 1
        while true {
            let found = unsafe find(quote, octets, cursor, end) ?? end
            var newline = unsafe find(UInt8(ascii: "\n"), octets, cursor, found)
            while let inner = newline {
                line += 1
                newline = unsafe find(UInt8(ascii: "\n"), octets, inner + 1, found)
            }
            cursor = min(found + 1, end)
            // SAFETY: the cursor is below `end` where it is looked at.
            if cursor < end, unsafe octets.load(fromByteOffset: cursor, as: UInt8.self) == quote {
                form = .doubledQuotes
                cursor += 1
                continue
            }
            return Field(start: opening + 1, count: found - opening - 1, form: form)
        }
    }
}
