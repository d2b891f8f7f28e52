import APNs

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
        // SAFETY: `end` bytes of the text are set and stay during this call; bytes are read below
        // `end`; `wantedField` gives an index of `fields`, or -1.
        let bytes = unsafe bytes
        let end = end
        let text = unsafe RawSpan(_unsafeStart: bytes, byteCount: end)
        func byte(_ place: Int) -> UInt8 {
            // SAFETY: read only below `end`, and places count from `start`. A text's end reads as
            // 0, which is not a byte of JSON.
            unsafe place < end ? bytes.load(fromByteOffset: place, as: UInt8.self) : 0
        }
        func skipBlanks(_ place: inout Int) {
            while byte(place) == 0x20 || byte(place) == 0x09 { place &+= 1 }
        }
        let quote = UInt8(ascii: "\"")
        guard byte(start) == UInt8(ascii: "{") else { return nil }
        for index in 0..<fieldCount { unsafe fields[index] = .missing }
        decodedCount = 0
        var place = start
        repeat {
            place &+= 1
            skipBlanks(&place)
            guard byte(place) == quote else { return nil }
            let keyStart = place &+ 1
            let keyEnd = ByteScan.endOfPlainASCII(in: text, from: keyStart)
            guard byte(keyEnd) == quote else { return nil }
            let index = unsafe wantedField(
                UnsafeRawBufferPointer(start: bytes + keyStart, count: keyEnd &- keyStart))
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
                    unsafe fields[index] = Field(
                        start: valueStart, count: valueEnd &- valueStart, form: .plain)
                }
                place = valueEnd &+ 1
            } else {
                // No blank before the value is left, so that the tokenizer passes no line end.
                guard byte(place) > 0x20, let value = passValue(&place, text) else { return nil }
                if index >= 0 { unsafe fields[index] = field(value, bytes) }
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
        do throws(APNsError) {
            guard let value = try tokenizer.next(in: text) else { return nil }
            while tokenizer.depth > 0 {
                if tokenizer.depth > Self.depthMax { return nil }
                _ = try tokenizer.next(in: text)
            }
            place = tokenizer.offset
            // SAFETY: both lie in the text, which stays during this call.
            let isOneLine = unsafe find(UInt8(ascii: "\n"), bytes, start, place) == nil
            return isOneLine ? value : nil
        } catch {
            return nil
        }
    }
}
