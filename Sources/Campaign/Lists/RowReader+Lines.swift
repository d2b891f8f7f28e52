extension RowReader {
    /// The next line; nil where it is blank.
    @inline(__always)
    mutating func nextLine() -> Row? {
        let start = offset
        // SAFETY: `start` is below `end`, up to where the text is set, and `stop` lies between
        // them; a layout names at least one field.
        let newline = unsafe find(UInt8(ascii: "\n"), bytes, start, end)
        var stop = newline ?? end
        offset = newline.map { $0 + 1 } ?? end
        let line = self.line
        self.line += 1
        if unsafe isBlank(bytes, start, stop, .lines) { return nil }
        stop = withoutCarriageReturn(start, stop)
        unsafe fields[0] = Field(start: start, count: stop - start, form: .plain)
        return Row(index: 0, number: 0, line: line, start: start, count: stop - start)
    }

    /// The end of a line's text: CRLF ends a line too, and costs the token's fast path otherwise.
    @inline(__always)
    func withoutCarriageReturn(_ start: Int, _ stop: Int) -> Int {
        // SAFETY: `stop` is above `start`, and both are inside the chunk.
        if stop > start, unsafe bytes.load(fromByteOffset: stop - 1, as: UInt8.self) == 0x0d {
            return stop - 1
        }
        return stop
    }
}
