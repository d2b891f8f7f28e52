/// A fast 64-bit mixing hash for fingerprints stored on disk.
///
/// It is not cryptographic and offers no protection against crafted input. The definition is part
/// of the ledger's format and never changes:
///
///     words   the bytes, padded with zeros to a multiple of 32, read as little-endian 64-bit
///             words; an empty input has no words
///     fold    fold(x, y) = low half ^ high half of the 128-bit product x * y
///     lanes   a = b = count; for each four words w0...w3:
///             a = fold(w0 ^ key0 ^ a, w1 ^ key1), b = fold(w2 ^ key2 ^ b, w3 ^ key3)
///     end     fold(a ^ key2, b ^ key3)
///
/// In the keys, the top bit of each byte is set, and ASCII never sets this bit. So for an ASCII
/// text, no factor of the first products is zero.
public enum MixingHash {
    @usableFromInline static let key0: UInt64 = 0x9eb7_f9b9_ffa6_d1c5
    @usableFromInline static let key1: UInt64 = 0xbfd8_e6b5_94d0_9beb
    @usableFromInline static let key2: UInt64 = 0xd6e8_fd9c_b2a7_c48d
    @usableFromInline static let key3: UInt64 = 0xe783_f5a1_8cda_adb3

    @inlinable @inline(__always)
    static func fold(_ x: UInt64, _ y: UInt64) -> UInt64 {
        let product = x.multipliedFullWidth(by: y)
        return product.high ^ product.low
    }

    /// Returns the hash of `bytes`.
    @inlinable
    public static func hash(_ bytes: RawSpan) -> UInt64 {
        let count = bytes.byteCount
        var a = UInt64(count)
        var b = UInt64(count)
        var offset = 0
        while count - offset >= 32 {
            // SAFETY: 32 bytes from `offset` on are within the span.
            unsafe mix(
                &a, &b,
                UInt64(
                    littleEndian: bytes.unsafeLoadUnaligned(
                        fromUncheckedByteOffset: offset, as: UInt64.self)),
                UInt64(
                    littleEndian: bytes.unsafeLoadUnaligned(
                        fromUncheckedByteOffset: offset + 8, as: UInt64.self)),
                UInt64(
                    littleEndian: bytes.unsafeLoadUnaligned(
                        fromUncheckedByteOffset: offset + 16, as: UInt64.self)),
                UInt64(
                    littleEndian: bytes.unsafeLoadUnaligned(
                        fromUncheckedByteOffset: offset + 24, as: UInt64.self)))
            offset += 32
        }
        if offset < count {
            mix(
                &a, &b, paddedWord(bytes, offset), paddedWord(bytes, offset + 8),
                paddedWord(bytes, offset + 16), paddedWord(bytes, offset + 24))
        }
        return finish(a, b)
    }

    /// Continues a hash byte by byte; slow, for input that arrives in parts of any size.
    @inlinable
    public static func extend(_ hash: UInt64, by bytes: RawSpan) -> UInt64 {
        var hash = hash
        for offset in 0..<bytes.byteCount {
            // SAFETY: the offset is within the span.
            let byte = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
            hash ^= hash >> 29
        }
        return hash
    }

    @inlinable @inline(__always)
    static func mix(
        _ a: inout UInt64, _ b: inout UInt64,
        _ w0: UInt64, _ w1: UInt64, _ w2: UInt64, _ w3: UInt64
    ) {
        a = fold(w0 ^ key0 ^ a, w1 ^ key1)
        b = fold(w2 ^ key2 ^ b, w3 ^ key3)
    }

    @inlinable @inline(__always)
    static func finish(_ a: UInt64, _ b: UInt64) -> UInt64 {
        fold(a ^ key2, b ^ key3)
    }

    @inlinable
    static func paddedWord(_ bytes: RawSpan, _ start: Int) -> UInt64 {
        var word: UInt64 = 0
        var offset = min(bytes.byteCount, start + 8) - 1
        while offset >= start {
            // SAFETY: the offset is not negative and below the span's count.
            let byte = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            word = word << 8 | UInt64(byte)
            offset -= 1
        }
        return word
    }
}
