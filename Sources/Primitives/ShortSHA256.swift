/// SHA-256 (FIPS 180-4) of a short message, without allocation. If several messages have a common
/// beginning, the caller adds the beginning to one value, copies the value, and adds the rest of
/// each message to a copy. The beginning is then computed only once.
public struct ShortSHA256: Sendable {
    private var state: InlineArray<8, UInt32> = [
        0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a,
        0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19,
    ]
    /// The last, incomplete block, which has `blockCount` bytes so far.
    private var block = InlineArray<64, UInt8>(repeating: 0)
    private var blockCount = 0
    /// Number of bytes of the whole message.
    private var byteCount: UInt64 = 0

    /// Starts a computation with an empty message.
    public init() {}

    /// Adds a byte to the message.
    @inline(__always)
    public mutating func append(_ byte: UInt8) {
        assert(blockCount < 64, "a whole block is compressed at once")
        block[blockCount] = byte
        blockCount += 1
        byteCount += 1
        if blockCount == 64 { compress() }
    }

    /// The first eight bytes of the digest, as a big-endian number.
    public var first64Bits: UInt64 {
        var last = self
        let bits = byteCount * 8
        last.append(0x80)
        while last.blockCount != 56 { last.append(0) }
        for shift in stride(from: 56, through: 0, by: -8) {
            last.append(UInt8(truncatingIfNeeded: bits >> UInt64(shift)))
        }
        assert(last.blockCount == 0, "the padding ends a block")
        return UInt64(last.state[0]) << 32 | UInt64(last.state[1])
    }

    private mutating func compress() {
        assert(blockCount == 64, "only a whole block is compressed")
        var words = InlineArray<64, UInt32>(repeating: 0)
        for index in 0..<16 {
            let at = 4 * index
            words[index] =
                UInt32(block[at]) << 24 | UInt32(block[at + 1]) << 16
                | UInt32(block[at + 2]) << 8 | UInt32(block[at + 3])
        }
        for index in 16..<64 {
            let (early, late) = (words[index - 15], words[index - 2])
            words[index] =
                words[index - 16] &+ words[index - 7]
                &+ (Self.rotated(early, 7) ^ Self.rotated(early, 18) ^ early >> 3)
                &+ (Self.rotated(late, 17) ^ Self.rotated(late, 19) ^ late >> 10)
        }
        var (a, b, c, d) = (state[0], state[1], state[2], state[3])
        var (e, f, g, h) = (state[4], state[5], state[6], state[7])
        for index in 0..<64 {
            let first =
                h &+ (Self.rotated(e, 6) ^ Self.rotated(e, 11) ^ Self.rotated(e, 25))
                &+ (e & f ^ ~e & g) &+ Self.roundConstants[index] &+ words[index]
            let second =
                (Self.rotated(a, 2) ^ Self.rotated(a, 13) ^ Self.rotated(a, 22))
                &+ (a & b ^ a & c ^ b & c)
            (h, g, f, e) = (g, f, e, d &+ first)
            (d, c, b, a) = (c, b, a, first &+ second)
        }
        state[0] &+= a
        state[1] &+= b
        state[2] &+= c
        state[3] &+= d
        state[4] &+= e
        state[5] &+= f
        state[6] &+= g
        state[7] &+= h
        blockCount = 0
    }

    @inline(__always)
    private static func rotated(_ word: UInt32, _ count: UInt32) -> UInt32 {
        word >> count | word << (32 - count)
    }

    private static let roundConstants: [UInt32] = [
        0x428a_2f98, 0x7137_4491, 0xb5c0_fbcf, 0xe9b5_dba5, 0x3956_c25b, 0x59f1_11f1, 0x923f_82a4,
        0xab1c_5ed5, 0xd807_aa98, 0x1283_5b01, 0x2431_85be, 0x550c_7dc3, 0x72be_5d74, 0x80de_b1fe,
        0x9bdc_06a7, 0xc19b_f174, 0xe49b_69c1, 0xefbe_4786, 0x0fc1_9dc6, 0x240c_a1cc, 0x2de9_2c6f,
        0x4a74_84aa, 0x5cb0_a9dc, 0x76f9_88da, 0x983e_5152, 0xa831_c66d, 0xb003_27c8, 0xbf59_7fc7,
        0xc6e0_0bf3, 0xd5a7_9147, 0x06ca_6351, 0x1429_2967, 0x27b7_0a85, 0x2e1b_2138, 0x4d2c_6dfc,
        0x5338_0d13, 0x650a_7354, 0x766a_0abb, 0x81c2_c92e, 0x9272_2c85, 0xa2bf_e8a1, 0xa81a_664b,
        0xc24b_8b70, 0xc76c_51a3, 0xd192_e819, 0xd699_0624, 0xf40e_3585, 0x106a_a070, 0x19a4_c116,
        0x1e37_6c08, 0x2748_774c, 0x34b0_bcb5, 0x391c_0cb3, 0x4ed8_aa4a, 0x5b9c_ca4f, 0x682e_6ff3,
        0x748f_82ee, 0x78a5_636f, 0x84c8_7814, 0x8cc7_0208, 0x90be_fffa, 0xa450_6ceb, 0xbef9_a3f7,
        0xc671_78f2,
    ]
}
