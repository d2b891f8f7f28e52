/// Huffman code of header strings (RFC 7541 section 5.2 and Appendix B).
public enum Huffman {
    /// Number of bytes of the encoded form of `bytes`.
    public static func encodedCount(of bytes: [UInt8]) -> Int {
        var bits = 0
        for byte in bytes { bits += Int(HuffmanTable.lengths[Int(byte)]) }
        return (bits + 7) / 8
    }

    /// Appends the encoded form of `bytes`, padded to a whole byte with ones.
    public static func encode(_ bytes: [UInt8], into coded: inout [UInt8]) {
        var bits: UInt64 = 0
        var bitCount = 0
        for byte in bytes {
            // At most 7 bits are pending and a code has at most 30, so 64 bits suffice.
            let length = Int(HuffmanTable.lengths[Int(byte)])
            bits = bits << UInt64(length) | UInt64(HuffmanTable.codes[Int(byte)])
            bitCount += length
            while bitCount >= 8 {
                bitCount -= 8
                coded.append(UInt8(truncatingIfNeeded: bits >> UInt64(bitCount)))
            }
        }
        assert(bitCount < 8, "whole bytes are written")
        if bitCount > 0 {
            // "Padding corresponding to the most significant bits of the code for the EOS symbol",
            // all of which are ones.
            let padded = bits << UInt64(8 - bitCount) | (0xff >> UInt64(bitCount))
            coded.append(UInt8(truncatingIfNeeded: padded))
        }
    }

    /// Decodes `coded` and appends the string to `bytes`. Throws `huffmanPadding`,
    /// `huffmanEndOfString`, or `stringTooLong` if `bytes` is full.
    public static func decode(
        _ coded: RawSpan, into bytes: inout OutputRawSpan
    ) throws(HPACKError) {
        var bits: UInt64 = 0
        var bitCount = 0
        var offset = 0
        while true {
            while bitCount <= 56, offset < coded.byteCount {
                bits = bits << 8 | UInt64(coded.byte(at: offset))
                bitCount += 8
                offset += 1
            }
            guard bitCount > 0 else { return }
            let window = nextBits(bits, count: bitCount)
            if window >= endOfString {
                if bitCount >= 30 { throw HPACKError(code: .huffmanEndOfString, offset: offset) }
                // "A padding strictly longer than 7 bits MUST be treated as a decoding error."
                guard bitCount <= 7 else {
                    throw HPACKError(code: .huffmanPadding, offset: offset)
                }
                return
            }
            var row = 0
            while window >= HuffmanTable.limits[row] { row += 1 }
            let length = Int(HuffmanTable.distinctLengths[row])
            guard length <= bitCount else {
                throw HPACKError(code: .huffmanPadding, offset: offset)
            }
            guard bytes.freeCapacity > 0 else {
                throw HPACKError(code: .stringTooLong, offset: offset)
            }
            let position = Int((window - HuffmanTable.firstCodes[row]) >> UInt32(32 - length))
            bytes.append(HuffmanTable.symbols[Int(HuffmanTable.firstSymbols[row]) + position])
            bitCount -= length
        }
    }

    /// EOS, thirty ones, aligned to the highest bit.
    private static let endOfString: UInt32 = 0xffff_fffc

    /// Lowest `count` bits of `bits`, aligned to the highest bit and followed by ones, so that
    /// valid padding looks like the start of EOS.
    @inline(__always)
    private static func nextBits(_ bits: UInt64, count: Int) -> UInt32 {
        if count >= 32 { return UInt32(truncatingIfNeeded: bits >> UInt64(count - 32)) }
        let aligned = UInt32(truncatingIfNeeded: bits << UInt64(32 - count))
        return aligned | (UInt32.max >> UInt32(count))
    }
}
