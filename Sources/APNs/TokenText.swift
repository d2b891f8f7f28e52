public import BroadsidePrimitives

/// A device token as text: what lists hold, what the wire wants, what a log may show.
///
/// Apple forbids assuming a size ("Registering your app with APNs"): classic tokens have 64 digits,
/// Live Activity tokens 160, and 200 digits (100 bytes) was announced as the bound in 2015.
public enum TokenText {
    /// The fewest digits a token may have.
    public static let minimumDigitCount = 2

    /// The most digits a token may have; also the room `canonicalize` needs.
    public static let maximumDigitCount = 200

    /// Writes the token in `text` to `digits` as lower-case hexadecimal digits.
    ///
    /// Accepted are an even count of 2 to 200 digits of any case, with blanks (space, tab, carriage
    /// return) round them, and the form `<aabb ccdd>` that `NSData` prints, with blanks anywhere
    /// between its brackets.
    ///
    /// - Parameters:
    ///   - text: a line or field without its line end.
    ///   - digits: must have room for `maximumDigitCount` bytes.
    /// - Returns: false where this is not a token; then nothing was appended.
    @inlinable
    public static func canonicalize(_ text: RawSpan, into digits: inout OutputRawSpan) -> Bool {
        if text.byteCount == 64, digits.freeCapacity >= 64 {
            // SAFETY: the span holds exactly the 64 bytes that are read, the output has room for
            // the 64 that are written, and `initializedCount` says whether they count.
            let isToken = unsafe digits.withUnsafeMutableBytes { buffer, initializedCount in
                let target = unsafe buffer.baseAddress.unsafelyUnwrapped + initializedCount
                let isToken = unsafe lower64(text, to: target)
                if isToken { initializedCount += 64 }
                return isToken
            }
            if isToken { return true }
        }
        return canonicalizeAnyForm(text, into: &digits)
    }

    /// Lowers 64 digits, sixteen at a time; false where one is not a digit.
    ///
    /// Each byte is judged by whether a sum reaches its top bit. Bytes stay below 0x80, so that
    /// nothing carries into the next one; where one does not, its own top bit already tells. Words
    /// in pairs become vector instructions; comparisons and masks of SIMD types, and vectors of
    /// bytes, do not.
    @inlinable @inline(__always)
    static func lower64(_ text: RawSpan, to target: UnsafeMutableRawPointer) -> Bool {
        let ones = SIMD2<UInt64>(repeating: 0x0101_0101_0101_0101)
        var wrong = SIMD2<UInt64>(repeating: 0)
        for offset in stride(from: 0, to: 64, by: 16) {
            // SAFETY: the caller vouches for 64 bytes on both sides.
            let bytes = unsafe text.unsafeLoadUnaligned(
                fromUncheckedByteOffset: offset, as: SIMD2<UInt64>.self)
            // Setting bit 5 lowers letters and leaves digits as they are.
            let lowered = bytes | ones &* 0x20
            let digit = bytes ^ ones &* 0x30
            let letter = lowered ^ ones &* 0x60
            let isNoDigit = digit &+ ones &* (0x80 - 10)
            let isAboveF = letter &+ ones &* (0x80 - 7)
            let isBelowA = ones &* 0x80 &- letter
            wrong |= bytes | (isNoDigit & (isAboveF | isBelowA))
            unsafe target.storeBytes(of: lowered, toByteOffset: offset, as: SIMD2<UInt64>.self)
        }
        return (wrong.x | wrong.y) & 0x8080_8080_8080_8080 == 0
    }

    /// The slow path: any length, blanks and brackets.
    @usableFromInline
    static func canonicalizeAnyForm(_ text: RawSpan, into digits: inout OutputRawSpan) -> Bool {
        var start = 0
        var end = text.byteCount
        while start < end, isBlank(byte(text, start)) { start += 1 }
        while start < end, isBlank(byte(text, end - 1)) { end -= 1 }
        var isBracketed = false
        if end - start >= 2, byte(text, start) == UInt8(ascii: "<"),
            byte(text, end - 1) == UInt8(ascii: ">")
        {
            isBracketed = true
            start += 1
            end -= 1
        }
        // Between brackets blanks count for nothing; without them every byte is a digit.
        if !isBracketed {
            let count = end - start
            if count > maximumDigitCount || !count.isMultiple(of: 2) { return false }
        }

        var count = 0
        for offset in start..<end {
            let byte = byte(text, offset)
            if isBracketed, isBlank(byte) { continue }
            let digit = hexDigits[Int(byte)]
            if digit == 0 || count == maximumDigitCount {
                digits.removeLast(count)
                return false
            }
            digits.append(digit)
            count += 1
        }
        if count < minimumDigitCount || !count.isMultiple(of: 2) {
            digits.removeLast(count)
            return false
        }
        return true
    }

    /// Whether a text is a device token. Not for hot paths.
    public static func isToken(_ text: some Collection<UInt8>) -> Bool {
        let text = Array(text)
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: maximumDigitCount, alignment: 8)
        // SAFETY: only `digits` reaches the memory, counts what it sets, and ends before it; bytes
        // have no padding.
        defer { unsafe room.deallocate() }
        var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        let isToken = unsafe canonicalize(text.span.bytes, into: &digits)
        _ = unsafe digits.finalize(for: room)
        return isToken
    }

    /// The 64-bit fingerprint of a canonical token, as the ledger keeps it for accepted rows.
    ///
    /// - Parameter digits: lower-case digits as `canonicalize` writes them.
    @inlinable
    public static func fingerprint(_ digits: RawSpan) -> UInt64 {
        MixingHash.hash(digits)
    }

    /// What a log may show of a token: its first eight digits and an ellipsis.
    ///
    /// A whole token in a log would let whoever reads it address the device.
    static func shortened(_ digits: RawSpan) -> String {
        var text = ""
        for offset in 0..<min(8, digits.byteCount) {
            text.unicodeScalars.append(Unicode.Scalar(byte(digits, offset)))
        }
        return digits.byteCount > 8 ? text + "…" : text
    }

    static func isBlank(_ byte: UInt8) -> Bool {
        byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") || byte == UInt8(ascii: "\r")
    }

    static func byte(_ text: RawSpan, _ offset: Int) -> UInt8 {
        // SAFETY: a load of one byte is valid for any bits, and it checks its bounds.
        unsafe text.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}

/// For each byte its lower-case hexadecimal digit, or 0 where it is none.
let hexDigits: [UInt8] = [
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37,
    0x38, 0x39, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
    0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
]
