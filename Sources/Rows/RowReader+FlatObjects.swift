import BroadsidePrimitives
import BroadsideSupport

extension RowReader {
    /// Maximum nesting depth of a value that `passValue` skips.
    private static let depthMax = 100

    /// Reads the line at `start` in one pass if it has the usual form: an object whose keys are
    /// plain ASCII, with no whitespace except spaces and tabs.
    ///
    /// `readObject` would give such a line the same fields. It reads all other lines, including
    /// malformed ones.
    ///
    /// - Returns: End of the line's text; `offset` is then after the line. nil for other lines.
    @inline(__always)
    mutating func readFlatObject(_ start: Int) -> Int? {
        // SAFETY: nothing is opened or closed here.
        let text = unsafe openText
        let end = text.byteCount
        // The text's end reads as 0, which does not occur in JSON.
        func byte(_ offset: Int) -> UInt8 {
            // SAFETY: offsets count from `start`, and are below the text's end when they are read.
            offset < end
                ? unsafe text.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self) : 0
        }
        func skipBlanks(_ position: inout Int) {
            while byte(position) == 0x20 || byte(position) == 0x09 { position &+= 1 }
        }
        let quote = UInt8(ascii: "\"")
        guard byte(start) == UInt8(ascii: "{") else { return nil }
        setAll(.missing)
        decodedCount = 0
        var position = start
        repeat {
            position &+= 1
            skipBlanks(&position)
            guard byte(position) == quote else { return nil }
            let keyStart = position &+ 1
            let keyEnd = ByteScan.endOfPlainASCII(in: text, from: keyStart)
            guard byte(keyEnd) == quote else { return nil }
            let index = columns.field(named: text.extracting(keyStart..<keyEnd))
            position = keyEnd &+ 1
            skipBlanks(&position)
            guard byte(position) == UInt8(ascii: ":") else { return nil }
            position &+= 1
            skipBlanks(&position)
            let valueStart = position &+ 1
            let valueEnd =
                byte(position) == quote
                ? ByteScan.endOfPlainASCII(in: text, from: valueStart) : valueStart
            if byte(position) == quote, byte(valueEnd) == quote {
                if index >= 0 {
                    setField(
                        index,
                        Field(start: valueStart, count: valueEnd &- valueStart, form: .plain))
                }
                position = valueEnd &+ 1
            } else {
                // No blank remains before the value, so the tokenizer skips no line end.
                guard byte(position) > 0x20, let value = passValue(&position, text) else {
                    return nil
                }
                if index >= 0 { setField(index, field(value, text)) }
            }
            skipBlanks(&position)
        } while byte(position) == UInt8(ascii: ",")
        guard byte(position) == UInt8(ascii: "}") else { return nil }
        position &+= 1
        skipBlanks(&position)
        let stop = position
        if byte(position) == UInt8(ascii: "\r") { position &+= 1 }
        guard position == end || byte(position) == UInt8(ascii: "\n") else { return nil }
        offset = min(position &+ 1, end)
        return stop
    }

    /// Moves past a value of any kind that is on one line.
    ///
    /// - Returns: First token of the value; nil if the value is malformed, too deep, or spans
    ///   lines.
    @inline(never)
    private func passValue(_ position: inout Int, _ text: RawSpan) -> JSONTokenizer.Token? {
        let start = position
        var tokenizer = JSONTokenizer(at: start)
        do throws(JSONError) {
            guard let value = try tokenizer.next(in: text) else { return nil }
            while tokenizer.depth > 0 {
                if tokenizer.depth > Self.depthMax { return nil }
                _ = try tokenizer.next(in: text)
            }
            position = tokenizer.offset
            let isOneLine = find(UInt8(ascii: "\n"), in: text, start, position) == nil
            return isOneLine ? value : nil
        } catch {
            return nil
        }
    }
}
