internal import BroadsideHPACK

/// Reads Huffman-coded strings with one look-up a character, for codes of up to 12 bits: all
/// printable ASCII but a few. Strings with longer codes go to `Huffman`.
struct HuffmanReader: ~Copyable {
    private static let bits = 12
    /// By the next 12 bits: the character, and in the high byte its code's length; 0 for none. Not an
    /// `InlineArray`: a look-up in one that is a part of another value copies all of it.
    private var table = [UInt16](repeating: 0, count: 1 << bits)

    init() {
        for character in UInt8.min...UInt8.max {
            // Eight times the same code are as many bytes as the code has bits.
            let length = Huffman.encodedCount(of: [UInt8](repeating: character, count: 8))
            guard length <= Self.bits else { continue }
            var coded: [UInt8] = []
            Huffman.encode([character], into: &coded)
            let first = Int(coded[0]) << 8 | Int(coded.count > 1 ? coded[1] : 0xff)
            let code = first >> (16 - length)
            let free = Self.bits - length
            for rest in 0..<(1 << free) {
                // `code` has `length` bits and `rest` the others: 12 in all.
                table[code << free | rest] = UInt16(length) << 8 | UInt16(character)
            }
        }
    }

    /// Decodes a string to `target`, which has room for 8/5 of its bytes; returns the count.
    func decode(
        _ coded: RawSpan, to target: UnsafeMutableRawBufferPointer
    ) throws(HPACKError) -> Int {
        var bits: UInt64 = 0
        var bitCount = 0
        var offset = 0
        var count = 0
        while true {
            while bitCount <= 56, offset < coded.byteCount {
                bits = bits << 8 | UInt64(coded[offset])
                bitCount += 8
                offset += 1
            }
            guard bitCount > 0 else { return count }
            // Behind the last byte ones follow, as padding has them.
            let window =
                bitCount >= Self.bits
                ? Int(truncatingIfNeeded: bits >> UInt64(bitCount - Self.bits)) & 0xfff
                : (Int(truncatingIfNeeded: bits << UInt64(Self.bits - bitCount)) & 0xfff)
                    | (0xfff >> bitCount)
            let entry = table[window]
            let length = Int(entry >> 8)
            guard length > 0, length <= bitCount else {
                // "The most significant bits of the code for the EOS symbol", less than a byte.
                if bitCount < 8, offset == coded.byteCount, window == 0xfff { return count }
                // A long code, or nonsense: rare, and somebody else's to tell apart.
                // SAFETY: the room is the caller's.
                return unsafe try decodeSlowly(coded, to: target)
            }
            // SAFETY: a code has 5 bits at least, so the caller's room, 8/5, is enough.
            unsafe target[count] = UInt8(truncatingIfNeeded: entry)
            count += 1
            bitCount -= length
        }
    }

    private func decodeSlowly(
        _ coded: RawSpan, to target: UnsafeMutableRawBufferPointer
    ) throws(HPACKError) -> Int {
        // SAFETY: the target is the caller's for this call, and the output checks its count.
        var output = unsafe OutputRawSpan(buffer: target, initializedCount: 0)
        try Huffman.decode(coded, into: &output)
        return unsafe output.finalize(for: target)
    }
}
