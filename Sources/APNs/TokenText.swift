public import BroadsidePrimitives

/// A device token in its text forms for lists, requests and logs.
///
/// Apple advises against assuming a size ("Registering your app with APNs"): classic tokens have 64
/// digits, Live Activity tokens 160, and 200 digits (100 bytes) was announced as the limit in 2015.
public enum TokenText {
    /// Minimum number of digits in a token.
    public static let minimumDigitCount = 2

    /// Maximum number of digits in a token. `canonicalize` requires room for as many bytes.
    public static let maximumDigitCount = 200

    /// Writes the token in `text` to `digits` as lower-case hexadecimal digits.
    ///
    /// Accepts an even number of digits, 2 to 200, of either case, with surrounding whitespace
    /// (space, tab, carriage return). Also accepts the form `<aabb ccdd>` printed by `NSData`, with
    /// whitespace anywhere between its brackets.
    ///
    /// - Parameters:
    ///   - text: A line or field without its line end.
    ///   - digits: The output, which must have room for `maximumDigitCount` bytes.
    /// - Returns: False if the text is not a token; nothing is appended in that case.
    @inlinable
    public static func canonicalize(_ text: RawSpan, into digits: inout OutputRawSpan) -> Bool {
        if text.byteCount == 64, digits.freeCapacity >= 64 {
            // SAFETY: the span has exactly the 64 bytes that are read, the output has room for the
            // 64 that are written, and `initializedCount` determines whether they count.
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

    /// Converts 64 digits to lower case, sixteen at a time; returns false if one is not a digit.
    ///
    /// Each test adds a constant to a byte, or subtracts the byte from a constant. The top bit of
    /// the result shows the outcome. ASCII bytes are below 0x80, so nothing carries into the next
    /// byte. A byte of 0x80 or more is recognized by its own top bit.
    ///
    /// The code uses pairs of 64-bit words, because they compile to vector instructions. Vectors of
    /// bytes do not, and neither do comparisons and masks of SIMD types.
    @inlinable @inline(__always)
    static func lower64(_ text: RawSpan, to target: UnsafeMutableRawPointer) -> Bool {
        let ones = SIMD2<UInt64>(repeating: 0x0101_0101_0101_0101)
        var wrong = SIMD2<UInt64>(repeating: 0)
        for offset in stride(from: 0, to: 64, by: 16) {
            // SAFETY: the caller guarantees 64 bytes on both sides.
            let bytes = unsafe text.unsafeLoadUnaligned(
                fromUncheckedByteOffset: offset, as: SIMD2<UInt64>.self)
            // Setting bit 5 converts letters to lower case and leaves digits unchanged.
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

    /// The slow path of `canonicalize`, for tokens of any length, with whitespace or brackets.
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
        // Whitespace is ignored between brackets; without brackets every byte must be a digit.
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

    /// Returns whether a text is a device token. Not for hot paths.
    public static func isToken(_ text: some Collection<UInt8>) -> Bool {
        let text = Array(text)
        let room = UnsafeMutableRawBufferPointer.allocate(
            byteCount: maximumDigitCount, alignment: 8)
        // SAFETY: only `digits` accesses the memory and counts the bytes it initializes, and its
        // lifetime ends before the memory is freed; bytes have no padding.
        defer { unsafe room.deallocate() }
        var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        let isToken = unsafe canonicalize(text.span.bytes, into: &digits)
        _ = unsafe digits.finalize(for: room)
        return isToken
    }

    /// Returns the 64-bit fingerprint of a canonical token, as stored in the ledger for accepted
    /// rows.
    ///
    /// - Parameter digits: Lower-case digits as written by `canonicalize`.
    @inlinable
    public static func fingerprint(_ digits: RawSpan) -> UInt64 {
        MixingHash.hash(digits)
    }

    /// Returns the part of a token that a log may contain: its first eight digits and an ellipsis.
    ///
    /// A whole token would let any reader of the log address the device.
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
        // SAFETY: loading one byte is valid for any bits, and the load checks its bounds.
        unsafe text.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
    }
}

/// For each byte that is a hexadecimal digit, the digit in lower case; 0 for all other bytes.
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
