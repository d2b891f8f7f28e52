import BroadsidePrimitives
import BroadsideSupport

extension RowReader {
    /// The deepest nesting inside a value that is passed here.
    private static let depthMax = 100

    /// Reads the line at `start` in one pass if it is written as nearly all are: an object whose
    /// keys are plain ASCII, with no blanks but spaces and tabs.
    ///
    /// Such a line has the same fields as `readObject` gives it, and all others are for that to read,
    /// malformed ones too.
    ///
    /// - Returns: where the line's text ends, and `offset` is behind the line; nil for other lines.
    @inline(__always)
    mutating func readFlatObject(_ start: Int) -> Int? {
        // SAFETY: nothing is opened or closed here.
        let text = unsafe openText
        let end = text.byteCount
        // A text's end reads as 0, which is not a byte of JSON.
        func byte(_ offset: Int) -> UInt8 {
            // SAFETY: offsets count from `start`, and are below the text's end where they are read.
            offset < end
                ? unsafe text.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self) : 0
        }
        func skipBlanks(_ place: inout Int) {
            while byte(place) == 0x20 || byte(place) == 0x09 { place &+= 1 }
        }
        let quote = UInt8(ascii: "\"")
        guard byte(start) == UInt8(ascii: "{") else { return nil }
        setAll(.missing)
        decodedCount = 0
        var place = start
        repeat {
            place &+= 1
            skipBlanks(&place)
            guard byte(place) == quote else { return nil }
            let keyStart = place &+ 1
            let keyEnd = ByteScan.endOfPlainASCII(in: text, from: keyStart)
            guard byte(keyEnd) == quote else { return nil }
            let index = columns.field(named: text.extracting(keyStart..<keyEnd))
            place = keyEnd &+ 1
            skipBlanks(&place)
            guard byte(place) == UInt8(ascii: ":") else { return nil }
            place &+= 1
            skipBlanks(&place)
            let valueStart = place &+ 1
            let valueEnd =
                byte(place) == quote
                ? ByteScan.endOfPlainASCII(in: text, from: valueStart) : valueStart
            if byte(place) == quote, byte(valueEnd) == quote {
                if index >= 0 {
                    setField(
                        index,
                        Field(start: valueStart, count: valueEnd &- valueStart, form: .plain))
                }
                place = valueEnd &+ 1
            } else {
                // No blank before the value is left, so that the tokenizer passes no line end.
                guard byte(place) > 0x20, let value = passValue(&place, text) else { return nil }
                if index >= 0 { setField(index, field(value, text)) }
            }
            skipBlanks(&place)
        } while byte(place) == UInt8(ascii: ",")
        guard byte(place) == UInt8(ascii: "}") else { return nil }
        place &+= 1
        skipBlanks(&place)
        let stop = place
        if byte(place) == UInt8(ascii: "\r") { place &+= 1 }
        guard place == end || byte(place) == UInt8(ascii: "\n") else { return nil }
        offset = min(place &+ 1, end)
        return stop
    }

    /// Goes behind a value of any kind that lies on one line.
    ///
    /// - Returns: its first token; nil where the value is malformed, deep, or over several lines.
    @inline(never)
    private func passValue(_ place: inout Int, _ text: RawSpan) -> JSONTokenizer.Token? {
        let start = place
        var tokenizer = JSONTokenizer(at: start)
        do throws(JSONError) {
            guard let value = try tokenizer.next(in: text) else { return nil }
            while tokenizer.depth > 0 {
                if tokenizer.depth > Self.depthMax { return nil }
                _ = try tokenizer.next(in: text)
            }
            place = tokenizer.offset
            let isOneLine = find(UInt8(ascii: "\n"), in: text, start, place) == nil
            return isOneLine ? value : nil
        } catch {
            return nil
        }
    }
}
