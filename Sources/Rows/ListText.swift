import Glibc
import Support

/// The offset of the first `byte` in a part of a text.
@inline(__always)
func find(_ byte: UInt8, in text: RawSpan, _ start: Int, _ end: Int) -> Int? {
    precondition(
        UInt(bitPattern: start) <= UInt(bitPattern: end) && end <= text.byteCount,
        "outside of the text")
    // SAFETY: the part was checked to lie in the text; memchr reads nothing beyond it.
    return unsafe text.withUnsafeBytes { bytes in
        guard let first = bytes.baseAddress,
            let found = unsafe memchr(first + start, Int32(byte), end - start)
        else { return nil }
        return unsafe UnsafeRawPointer(found) - first
    }
}

/// Whether a part of a text holds nothing but blanks and line ends. Most rows are told by their first
/// byte.
@inline(__always)
func isBlank(_ text: RawSpan, _ start: Int, _ end: Int, _ format: ListFormat) -> Bool {
    // SAFETY: `start` is below `end`, which is not behind the text.
    if UInt(bitPattern: start) < UInt(bitPattern: end), end <= text.byteCount,
        unsafe text.unsafeLoad(fromUncheckedByteOffset: start, as: UInt8.self) > 0x20
    {
        return false
    }
    return isAllBlank(text, start, end, format)
}

@inline(never)
private func isAllBlank(_ text: RawSpan, _ start: Int, _ end: Int, _ format: ListFormat) -> Bool {
    (start..<end).allSatisfy {
        let byte = text.byte(at: $0)
        return byte == UInt8(ascii: "\n") || format.isBlank(byte)
    }
}
