import BroadsidePrimitives
import BroadsideSupport

extension RowReader {
    /// Returns the next line; nil if it is blank.
    @inline(__always)
    mutating func nextLine() -> Row? {
        let start = offset
        // SAFETY: nothing is opened or closed here; `start` is below the text's end, and `stop` is
        // between them.
        let text = unsafe openText
        let end = text.byteCount
        precondition(UInt(bitPattern: start) < UInt(bitPattern: end))
        var stop = find(UInt8(ascii: "\n"), in: text, start, end) ?? end
        offset = min(stop &+ 1, end)
        let line = self.line
        self.line &+= 1
        let first = unsafe text.unsafeLoad(fromUncheckedByteOffset: start, as: UInt8.self)
        if first <= 0x20, isBlank(text, start, stop, .lines) { return nil }
        let last = unsafe text.unsafeLoad(
            fromUncheckedByteOffset: max(start, stop &- 1), as: UInt8.self)
        if last == 0x0d, stop > start { stop &-= 1 }
        let count = stop &- start
        setField(0, Field(start: start, count: count, form: .plain))
        return Row(index: 0, number: 0, line: line, start: start, count: count)
    }

    /// End of a line's text without the CR of a CRLF. With the CR, reading the token would be
    /// slower.
    @inline(__always)
    func withoutCarriageReturn(_ start: Int, _ stop: Int) -> Int {
        precondition(stop <= end && start >= 0)
        // SAFETY: the byte before `stop` is not before `start`.
        let isReturn =
            unsafe stop > start
            && openText.unsafeLoad(fromUncheckedByteOffset: stop &- 1, as: UInt8.self) == 0x0d
        return isReturn ? stop &- 1 : stop
    }
}
