import BroadsideSupport

/// Whether a range of a text contains only blanks and line ends. For most rows, the first byte
/// already shows that the range contains something else.
@inlinable @inline(__always)
package func isBlank(_ text: RawSpan, _ start: Int, _ end: Int, _ format: ListFormat) -> Bool {
    // SAFETY: `start` is below `end`, which is not beyond the text.
    if UInt(bitPattern: start) < UInt(bitPattern: end), end <= text.byteCount,
        unsafe text.unsafeLoad(fromUncheckedByteOffset: start, as: UInt8.self) > 0x20
    {
        return false
    }
    return isAllBlank(text, start, end, format)
}

@usableFromInline @inline(never)
func isAllBlank(_ text: RawSpan, _ start: Int, _ end: Int, _ format: ListFormat) -> Bool {
    (start..<end).allSatisfy {
        let byte = text.byte(at: $0)
        return byte == UInt8(ascii: "\n") || format.isBlank(byte)
    }
}
