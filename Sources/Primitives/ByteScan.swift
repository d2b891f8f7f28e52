public import Glibc

/// The searches for significant bytes in a text, sixteen at a time.
///
/// Comparisons name the type of both sides, such as `SIMD16<UInt8>(repeating:)`. With
/// `SIMD16(repeating:)`, the compiler would make generic loops instead of vector instructions.
///
/// The result of a comparison is read as two 64-bit words in little-endian order. The lowest set
/// byte of the first nonzero word is the first match in the text.
public enum ByteScan {
    @usableFromInline static let vectorByteCount = 16

    /// Returns the offset of the first occurrence of either of two bytes in a range; `end` if there
    /// is none.
    ///
    /// - Parameters:
    ///   - one: The first byte.
    ///   - other: The second byte.
    ///   - text: The text that contains the range.
    ///   - start: Start of the range.
    ///   - end: End of the range, at most the text's count.
    @inlinable @inline(__always)
    public static func first(
        _ one: UInt8, or other: UInt8, in text: RawSpan, from start: Int, to end: Int
    ) -> Int {
        precondition(start >= 0 && end <= text.byteCount, "outside of the text")
        var offset = start
        while end &- offset >= vectorByteCount {
            // SAFETY: the loop condition leaves a whole vector before `end`, which was checked.
            let bytes = unsafe text.unsafeLoadUnaligned(
                fromUncheckedByteOffset: offset, as: SIMD16<UInt8>.self)
            let found =
                bytes .== SIMD16<UInt8>(repeating: one)
                .| bytes .== SIMD16<UInt8>(repeating: other)
            if let index = firstIndex(found) { return offset &+ index }
            offset &+= vectorByteCount
        }
        while offset < end {
            // SAFETY: `offset` is below `end`, which was checked.
            let byte = unsafe text.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            if byte == one || byte == other { return offset }
            offset &+= 1
        }
        return max(start, end)
    }

    /// Returns the number of occurrences of a byte in a range.
    ///
    /// - Parameters:
    ///   - byte: The byte.
    ///   - text: The text that contains the range.
    ///   - start: Start of the range.
    ///   - end: End of the range, at most the text's count.
    @inlinable @inline(__always)
    public static func count(
        _ byte: UInt8, in text: RawSpan, from start: Int, to end: Int
    ) -> Int {
        precondition(start >= 0 && end <= text.byteCount, "outside of the text")
        var offset = start
        var count = 0
        while end &- offset >= vectorByteCount {
            // SAFETY: the loop condition leaves a whole vector before `end`, which was checked;
            // both types have sixteen bytes, and any bits are a valid value of the second.
            let bytes = unsafe text.unsafeLoadUnaligned(
                fromUncheckedByteOffset: offset, as: SIMD16<UInt8>.self)
            let found = bytes .== SIMD16<UInt8>(repeating: byte)
            let halves = unsafe unsafeBitCast(found, to: SIMD2<UInt64>.self)
            // A matching byte has all bits set.
            count &+= (halves.x.nonzeroBitCount &+ halves.y.nonzeroBitCount) >> 3
            offset &+= vectorByteCount
        }
        while offset < end {
            // SAFETY: `offset` is below `end`, which was checked.
            if unsafe text.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self) == byte {
                count &+= 1
            }
            offset &+= 1
        }
        return count
    }

    /// Returns the offset of the first byte, from `start` on, that is a quotation mark, a
    /// backslash, a control character or a byte of 0x80 or more; the text's count if there is none.
    /// A JSON string cannot contain the first three verbatim.
    ///
    /// - Parameters:
    ///   - text: The text that contains the string.
    ///   - start: Offset at which to begin.
    @inlinable @inline(__always)
    public static func endOfPlainASCII(in text: RawSpan, from start: Int) -> Int {
        precondition(start >= 0, "outside of the text")
        let end = text.byteCount
        var offset = start
        while end &- offset >= vectorByteCount {
            // SAFETY: the loop condition leaves a whole vector before the end of the text.
            let bytes = unsafe text.unsafeLoadUnaligned(
                fromUncheckedByteOffset: offset, as: SIMD16<Int8>.self)
            // As signed values, bytes of 0x80 or more are also below 0x20.
            let found =
                bytes .< SIMD16<Int8>(repeating: 0x20)
                .| bytes .== SIMD16<Int8>(repeating: 0x22)
                .| bytes .== SIMD16<Int8>(repeating: 0x5c)
            if let index = firstIndex(found) { return offset &+ index }
            offset &+= vectorByteCount
        }
        while offset < end {
            // SAFETY: `offset` is below the text's end.
            let byte = unsafe text.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            if byte == 0x22 || byte == 0x5c || byte &- 0x20 >= 0x60 { return offset }
            offset &+= 1
        }
        return max(start, end)
    }

    /// Whether a text contains a byte of 0x80 or more.
    @inlinable
    public static func hasNonASCII(_ text: RawSpan) -> Bool {
        let end = text.byteCount
        var offset = 0
        while end &- offset >= vectorByteCount {
            // SAFETY: the loop condition leaves a whole vector before the end of the text.
            let bytes = unsafe text.unsafeLoadUnaligned(
                fromUncheckedByteOffset: offset, as: SIMD16<Int8>.self)
            if firstIndex(bytes .< SIMD16<Int8>(repeating: 0)) != nil { return true }
            offset &+= vectorByteCount
        }
        while offset < end {
            // SAFETY: `offset` is below the text's end.
            let byte = unsafe text.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            if byte >= 0x80 { return true }
            offset &+= 1
        }
        return false
    }

    @inlinable @inline(__always)
    static func firstIndex(_ found: SIMDMask<SIMD16<Int8>>) -> Int? {
        // SAFETY: both have sixteen bytes, and any bits are a valid value of the second type.
        let halves = unsafe unsafeBitCast(found, to: SIMD2<UInt64>.self)
        guard halves.x | halves.y != 0 else { return nil }
        if halves.x != 0 { return halves.x.littleEndian.trailingZeroBitCount >> 3 }
        return 8 &+ halves.y.littleEndian.trailingZeroBitCount >> 3
    }
}

/// Returns the offset of the first `byte` in a range of a text; nil if there is none.
@inlinable @inline(__always)
package func find(_ byte: UInt8, in text: RawSpan, _ start: Int, _ end: Int) -> Int? {
    precondition(
        UInt(bitPattern: start) <= UInt(bitPattern: end) && end <= text.byteCount,
        "outside of the text")
    // SAFETY: the range was checked to be within the text; memchr reads nothing beyond it.
    return unsafe text.withUnsafeBytes { bytes in
        guard let first = bytes.baseAddress,
            let found = unsafe memchr(first + start, Int32(byte), end - start)
        else { return nil }
        return unsafe UnsafeRawPointer(found) - first
    }
}
