public import Glibc

/// Finds the bytes that mean something in a text, sixteen at a time.
///
/// Comparisons of `SIMD16` become vector instructions if both sides name their type; with
/// `SIMD16(repeating:)` alone they are generic loops. Whether a vector has a byte set is asked of its
/// two halves as words: in little-endian order, the lowest set byte of the first half that has one
/// is the first in the text.
public enum ByteScan {
    @usableFromInline static let vectorByteCount = 16

    /// The offset of the first of two bytes in a part of a text; the part's end if there is none.
    ///
    /// - Parameters:
    ///   - one: a byte to look for.
    ///   - other: another.
    ///   - text: what holds the part.
    ///   - start: where the part starts.
    ///   - end: where it ends, at most the text's count.
    @inlinable @inline(__always)
    public static func first(
        _ one: UInt8, or other: UInt8, in text: RawSpan, from start: Int, to end: Int
    ) -> Int {
        precondition(start >= 0 && end <= text.byteCount, "outside of the text")
        var offset = start
        while end &- offset >= vectorByteCount {
            // SAFETY: the loop's condition leaves a whole vector before `end`, which was checked.
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

    /// How often a byte is in a part of a text.
    ///
    /// - Parameters:
    ///   - byte: what is counted.
    ///   - text: what holds the part.
    ///   - start: where the part starts.
    ///   - end: where it ends, at most the text's count.
    @inlinable @inline(__always)
    public static func count(
        _ byte: UInt8, in text: RawSpan, from start: Int, to end: Int
    ) -> Int {
        precondition(start >= 0 && end <= text.byteCount, "outside of the text")
        var offset = start
        var count = 0
        while end &- offset >= vectorByteCount {
            // SAFETY: the loop's condition leaves a whole vector before `end`, which was checked; both
            // types have sixteen bytes, and any bits are a value of the second.
            let bytes = unsafe text.unsafeLoadUnaligned(
                fromUncheckedByteOffset: offset, as: SIMD16<UInt8>.self)
            let found = bytes .== SIMD16<UInt8>(repeating: byte)
            let halves = unsafe unsafeBitCast(found, to: SIMD2<UInt64>.self)
            // A byte that is one is all bits.
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

    /// The offset of the first byte from `start` on that a JSON string does not hold as it is, and
    /// that is not plain ASCII: a quote, a backslash, a control character or a byte of 0x80 or more.
    /// The text's end if there is none.
    ///
    /// - Parameters:
    ///   - text: what holds the string.
    ///   - start: where to begin.
    @inlinable @inline(__always)
    public static func endOfPlainASCII(in text: RawSpan, from start: Int) -> Int {
        precondition(start >= 0, "outside of the text")
        let end = text.byteCount
        var offset = start
        while end &- offset >= vectorByteCount {
            // SAFETY: the loop's condition leaves a whole vector before the text's end.
            let bytes = unsafe text.unsafeLoadUnaligned(
                fromUncheckedByteOffset: offset, as: SIMD16<Int8>.self)
            // With a sign, bytes of 0x80 or more are below 0x20 as well.
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

    @inlinable @inline(__always)
    static func firstIndex(_ found: SIMDMask<SIMD16<Int8>>) -> Int? {
        // SAFETY: both have sixteen bytes, and any bits are a value of the second type.
        let halves = unsafe unsafeBitCast(found, to: SIMD2<UInt64>.self)
        guard halves.x | halves.y != 0 else { return nil }
        if halves.x != 0 { return halves.x.littleEndian.trailingZeroBitCount >> 3 }
        return 8 &+ halves.y.littleEndian.trailingZeroBitCount >> 3
    }
}

/// The offset of the first `byte` in a part of a text.
@inlinable @inline(__always)
package func find(_ byte: UInt8, in text: RawSpan, _ start: Int, _ end: Int) -> Int? {
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
