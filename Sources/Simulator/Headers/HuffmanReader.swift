internal import BroadsideHPACK

/// Decodes Huffman-coded strings, with one table lookup per character. The table has codes of up to
/// 12 bits, which cover nearly all printable ASCII. `Huffman` decodes strings with longer codes.
struct HuffmanReader: ~Copyable {
    private static let bits = 12
    /// Table of the codes with at most 12 bits. The index is the next 12 bits of the input. The low
    /// byte of an element is the character, and the high byte is the length of the character's
    /// code. An element is 0 if the 12 bits do not begin with such a code.
    ///
    /// The table is not an `InlineArray`. In a member of a type, each lookup would copy the whole
    /// `InlineArray`.
    private var table = [UInt16](repeating: 0, count: 1 << bits)

    init() {
        for character in UInt8.min...UInt8.max {
            // Eight repetitions of a code occupy as many bytes as the code has bits.
            let length = Huffman.encodedCount(of: [UInt8](repeating: character, count: 8))
            guard length <= Self.bits else { continue }
            var coded: [UInt8] = []
            Huffman.encode([character], into: &coded)
            let first = Int(coded[0]) << 8 | Int(coded.count > 1 ? coded[1] : 0xff)
            let code = first >> (16 - length)
            let free = Self.bits - length
            for rest in 0..<(1 << free) {
                // `code` has `length` bits and `rest` has the others: 12 in total.
                table[code << free | rest] = UInt16(length) << 8 | UInt16(character)
            }
        }
    }

    /// Decodes a string to `target`, which must have room for 8/5 of the string's bytes. Returns
    /// the number of bytes written.
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
            assert(bitCount <= 64, "the bits that wait fit a word")
            guard bitCount > 0 else { return count }
            // Bits after the last byte count as ones, as padding does.
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
                // A long or invalid code is rare and is handled by the slow path. SAFETY: the
                // caller guarantees the capacity of the target.
                return unsafe try decodeSlowly(coded, to: target)
            }
            // SAFETY: a code has at least 5 bits, so the caller's capacity of 8/5 is sufficient.
            assert(count < target.count, "a character has five bits or more")
            unsafe target[count] = UInt8(truncatingIfNeeded: entry)
            count += 1
            bitCount -= length
        }
    }

    private func decodeSlowly(
        _ coded: RawSpan, to target: UnsafeMutableRawBufferPointer
    ) throws(HPACKError) -> Int {
        // SAFETY: the target belongs to the caller for this call, and the output checks its count.
        var output = unsafe OutputRawSpan(buffer: target, initializedCount: 0)
        try Huffman.decode(coded, into: &output)
        return unsafe output.finalize(for: target)
    }
}
