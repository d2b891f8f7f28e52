import BroadsideSupport

extension RowReader {
    /// Returns the index of the first field in a malformed row that is an object or an array without
    /// quotes, such as `{"a":1,"b":2}`, if such fields explain why the row is malformed: with each
    /// of them as one field, the row has as many fields as the header. Otherwise returns nil.
    public func unquotedBrackets(_ row: Row) -> Int? {
        guard columns.format.separator != nil else { return nil }
        let rowText = text(of: row)
        var (fields, first): (Int, Int?) = (0, nil)
        var offset = 0
        while offset <= rowText.byteCount {
            let start = offset
            let next = offset < rowText.byteCount ? rowText.byte(at: offset) : separator
            if next == UInt8(ascii: "\"") {
                guard let end = Self.endOfQuotes(rowText, from: start) else { return nil }
                offset = end
            } else if next == UInt8(ascii: "{") || next == UInt8(ascii: "["),
                let end = Self.endOfBrackets(rowText, from: start)
            {
                offset = end
                if first == nil,
                    (start..<end).contains(where: { rowText.byte(at: $0) == separator })
                {
                    first = fields
                }
            } else {
                while offset < rowText.byteCount, rowText.byte(at: offset) != separator {
                    offset += 1
                }
            }
            // Other text after a field's end has another cause.
            guard offset == rowText.byteCount || rowText.byte(at: offset) == separator else {
                return nil
            }
            fields += 1
            offset += 1
        }
        return fields == columns.columnCount ? first : nil
    }

    /// Returns the offset after a quoted field, in which quotes are doubled; nil if it has no end.
    private static func endOfQuotes(_ text: RawSpan, from start: Int) -> Int? {
        let quote = UInt8(ascii: "\"")
        var offset = start + 1
        while offset < text.byteCount {
            if text.byte(at: offset) == quote {
                guard offset + 1 < text.byteCount, text.byte(at: offset + 1) == quote else {
                    return offset + 1
                }
                offset += 1
            }
            offset += 1
        }
        return nil
    }

    /// Returns the offset after the bracket that closes the one at `start`; nil if there is none.
    /// Brackets in JSON strings do not count.
    private static func endOfBrackets(_ text: RawSpan, from start: Int) -> Int? {
        var depth = 0
        var isString = false
        var offset = start
        while offset < text.byteCount {
            switch text.byte(at: offset) {
            case UInt8(ascii: "\\") where isString: offset += 1
            case UInt8(ascii: "\""): isString.toggle()
            case UInt8(ascii: "{") where !isString, UInt8(ascii: "[") where !isString: depth += 1
            case UInt8(ascii: "}") where !isString, UInt8(ascii: "]") where !isString: depth -= 1
            default: break
            }
            offset += 1
            if depth == 0 { return offset }
        }
        return nil
    }
}
