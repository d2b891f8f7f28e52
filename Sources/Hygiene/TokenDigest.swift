import BroadsideAPNs
import BroadsideSupport

/// 128 bits that represent a token when many are compared: two independent hashes.
///
/// The probability that two different tokens among a billion share a digest is about 1 in 10^21,
/// unless they were crafted.
public struct TokenDigest: Sendable, Equatable {
    /// Fingerprint, as in the ledger.
    public var high: UInt64
    /// A second, independent hash.
    public var low: UInt64

    /// Creates the digest of a canonical token.
    public init(_ digits: RawSpan) {
        high = TokenText.fingerprint(digits)
        var sum = UInt64(digits.byteCount)
        var offset = 0
        while offset < digits.byteCount {
            var word: UInt64 = 0
            let end = min(offset + 8, digits.byteCount)
            if end - offset == 8 {
                // SAFETY: eight bytes from `offset` on are inside the span, and any bits are valid.
                word = unsafe digits.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
            } else {
                while offset < end {
                    word = word << 8 | UInt64(digits.byte(at: offset))
                    offset += 1
                }
            }
            offset = end
            // Each step is invertible, so that two tokens that differ in one word never collide.
            sum = (sum ^ word) &* 0x9fb2_1c65_1e98_df25
            sum ^= sum >> 32
        }
        low = sum
    }
}
