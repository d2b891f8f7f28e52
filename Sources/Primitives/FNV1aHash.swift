/// The FNV-1a hash with 64 bits (draft-eastlake-fnv): for short texts, because it takes one byte at
/// a time.
///
/// It is not cryptographic. The file `epoch` of a ledger contains it, so the definition never
/// changes. `MixingHash` is faster for longer input.
public enum FNV1aHash {
    /// Hash of no bytes.
    @inlinable public static var initial: UInt64 { 0xcbf2_9ce4_8422_2325 }

    /// Returns the hash of the bytes of `hash`, followed by `byte`.
    @inlinable @inline(__always)
    public static func extend(_ hash: UInt64, by byte: UInt8) -> UInt64 {
        (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01b3
    }

    /// Returns the hash of bytes.
    @inlinable
    public static func hash(_ bytes: some Sequence<UInt8>) -> UInt64 {
        var hash = initial
        for byte in bytes { hash = extend(hash, by: byte) }
        return hash
    }

    /// Returns the hash of bytes.
    @inlinable
    public static func hash(_ bytes: RawSpan) -> UInt64 {
        var hash = initial
        for offset in 0..<bytes.byteCount {
            // SAFETY: the offset is within the span.
            let byte = unsafe bytes.unsafeLoad(fromUncheckedByteOffset: offset, as: UInt8.self)
            hash = extend(hash, by: byte)
        }
        return hash
    }
}
