import BroadsideAPNs
import BroadsideSupport

/// 128 bits that stand for a token where many are compared: two hashes that have nothing in common.
///
/// Among a billion tokens that nobody crafted two different ones share a digest with a probability of
/// about one to 10^21.
public struct TokenDigest: Sendable, Equatable {
    /// The ledger's fingerprint.
    public var high: UInt64
    /// Another hash.
    public var low: UInt64

    /// The digest of a canonical token.
    public init(_ digits: RawSpan) {
        high = TokenText.fingerprint(digits)
        var sum = UInt64(digits.byteCount)
        var offset = 0
        while offset < digits.byteCount {
            var word: UInt64 = 0
            let end = min(offset + 8, digits.byteCount)
            if end - offset == 8 {
                // SAFETY: eight bytes from `offset` on lie inside the span, and any bits will do.
                word = unsafe digits.unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
            } else {
                while offset < end {
                    word = word << 8 | UInt64(digits.byte(at: offset))
                    offset += 1
                }
            }
            offset = end
            // Each step can be undone, so that two tokens never meet by one word alone.
            sum = (sum ^ word) &* 0x9fb2_1c65_1e98_df25
            sum ^= sum >> 32
        }
        low = sum
    }
}
