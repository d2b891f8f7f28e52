import BroadsidePrimitives
import BroadsideSupport

/// Fields between tabs. Most programs that write such lists (`mysql -B`, `COPY`) use no quoting, so
/// a quote in a field is text. Others (spreadsheets, Python) put some fields in quotes and double
/// the quotes inside.
///
/// - A row is a line.
/// - A field that begins and ends with a quote, and whose other quotes are doubled, is unquoted. In
///   any other field, quotes are text.
/// - The field `\N` is a missing value.
/// - If a line has more fields than the header, tabs between quotes are text. If it still has more
///   fields after that, it is malformed.
enum TabFields {
    static let tab = UInt8(ascii: "\t")
    private static let quote = UInt8(ascii: "\"")

    /// Returns the end of the field that begins at `start`, in a line where tabs between quotes are
    /// text. The end is after the closing quote if a tab or the line's end follows it, and
    /// otherwise at the next tab or the line's end.
    static func end(_ text: RawSpan, from start: Int, to stop: Int) -> Int {
        if start < stop, text.byte(at: start) == quote {
            var cursor = start + 1
            while let found = find(quote, in: text, cursor, stop) {
                if found + 1 < stop, text.byte(at: found + 1) == quote {
                    cursor = found + 2
                    continue
                }
                if found + 1 == stop || text.byte(at: found + 1) == tab { return found + 1 }
                break
            }
        }
        return find(tab, in: text, start, stop) ?? stop
    }

    /// Whether a field in quotes contains doubled quotes; nil if the field is not in quotes.
    static func hasDoubledQuotes(_ text: RawSpan, from start: Int, to stop: Int) -> Bool? {
        guard stop - start >= 2, text.byte(at: start) == quote, text.byte(at: stop - 1) == quote
        else { return nil }
        var cursor = start + 1
        let last = stop - 1
        var isDoubled = false
        while let found = find(quote, in: text, cursor, last) {
            guard found + 1 < last, text.byte(at: found + 1) == quote else { return nil }
            isDoubled = true
            cursor = found + 2
        }
        return isDoubled
    }

    /// Whether a field is `\N`.
    static func isMissing(_ text: RawSpan, from start: Int, to stop: Int) -> Bool {
        stop - start == 2 && text.byte(at: start) == UInt8(ascii: "\\")
            && text.byte(at: start + 1) == UInt8(ascii: "N")
    }
}

extension RowReader {
    /// Returns the next line as fields between tabs; nil if it is blank.
    mutating func nextTabbed() -> Row? {
        let start = offset
        // SAFETY: nothing is opened or closed here.
        let text = unsafe openText
        let newline = find(UInt8(ascii: "\n"), in: text, start, end)
        var stop = newline ?? end
        offset = newline.map { $0 + 1 } ?? end
        let line = self.line
        self.line += 1
        if isBlank(text, start, stop, .tsv) { return nil }
        stop = withoutCarriageReturn(start, stop)
        setAll(.missing)
        decodedCount = 0
        let wantedCount = columns.fieldAtColumn.count
        var (column, cursor) = (0, start)
        while column < wantedCount {
            let found = find(TabFields.tab, in: text, cursor, stop)
            setTabbed(column, text, cursor, found ?? stop)
            column += 1
            guard let found else {
                cursor = stop + 1
                break
            }
            cursor = found + 1
        }
        if cursor <= stop {
            column += 1 + ByteScan.count(TabFields.tab, in: text, from: cursor, to: stop)
        }
        if column > columns.columnCount { setTabbedWithQuotes(text, start, stop) }
        return Row(index: 0, number: 0, line: line, start: start, count: stop - start)
    }

    /// Sets the fields of a line with more fields than the header. Tabs between quotes are text in
    /// such a line.
    @inline(never)
    private mutating func setTabbedWithQuotes(_ text: RawSpan, _ start: Int, _ stop: Int) {
        setAll(.missing)
        decodedCount = 0
        var (column, cursor) = (0, start)
        while cursor <= stop {
            guard column < columns.columnCount else { return setMalformed(start, stop) }
            let found = TabFields.end(text, from: cursor, to: stop)
            setTabbed(column, text, cursor, found)
            column += 1
            cursor = found + 1
        }
    }

    @inline(__always)
    private mutating func setTabbed(_ column: Int, _ text: RawSpan, _ start: Int, _ stop: Int) {
        guard column < columns.fieldAtColumn.count, columns.fieldAtColumn[column] >= 0 else {
            return
        }
        let index = Int(columns.fieldAtColumn[column])
        let plain = Field(start: start, count: stop - start, form: .plain)
        let first = start < stop ? text.byte(at: start) : 0
        if first == UInt8(ascii: "\"") || first == UInt8(ascii: "\\") {
            setField(index, special(plain, text, start, stop))
        } else {
            setField(index, plain)
        }
    }

    /// Returns the field for a text that may be in quotes or may be a missing value.
    @inline(never)
    private mutating func special(
        _ plain: Field, _ text: RawSpan, _ start: Int, _ stop: Int
    ) -> Field {
        if TabFields.isMissing(text, from: start, to: stop) { return .missing }
        guard let isDoubled = TabFields.hasDoubledQuotes(text, from: start, to: stop) else {
            return plain
        }
        let inside = Field(start: start + 1, count: stop - start - 2, form: .plain)
        return isDoubled ? withoutDoubledQuotes(inside, text) ?? plain : inside
    }
}

extension RowLayout {
    /// Returns the names in a header with tabs, without surrounding blanks and quotes.
    static func tabColumns(_ header: [UInt8]) -> [String] {
        let text = header.rawSpan
        var columns: [String] = []
        var cursor = 0
        while cursor <= header.count {
            let end = TabFields.end(text, from: cursor, to: header.count)
            var name = header[cursor..<end]
            if let isDoubled = TabFields.hasDoubledQuotes(text, from: cursor, to: end) {
                name = name.dropFirst().dropLast()
                if isDoubled { name = withoutPairs(name)[...] }
            }
            let isBlank = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0d }
            let trimmed = name.drop(while: isBlank).reversed().drop(while: isBlank).reversed()
            columns.append(String(decoding: Array(trimmed), as: UTF8.self))
            cursor = end + 1
        }
        return columns
    }

    /// Returns a text with each pair of quotes replaced by one quote.
    private static func withoutPairs(_ text: ArraySlice<UInt8>) -> [UInt8] {
        var result: [UInt8] = []
        var isSecond = false
        for byte in text {
            isSecond = byte == UInt8(ascii: "\"") && !isSecond
            if !isSecond { result.append(byte) }
        }
        return result
    }
}
