import BroadsideSupport

/// Whether a part of a text holds nothing but blanks and line ends. Most rows are told by their first
/// byte.
@inlinable @inline(__always)
package func isBlank(_ text: RawSpan, _ start: Int, _ end: Int, _ format: ListFormat) -> Bool {
    // SAFETY: `start` is below `end`, which is not behind the text.
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
