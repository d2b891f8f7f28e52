import BroadsidePrimitives
import Testing

/// The hash of arms, against examples of FIPS 180-4 and its predecessors.
@Suite struct ShortSHA256Tests {
    private func hash(_ text: String, times: Int = 1) -> UInt64 {
        var hash = ShortSHA256()
        for _ in 0..<times { for byte in text.utf8 { hash.append(byte) } }
        return hash.first64Bits
    }

    @Test func `Published examples have their digests`() {
        #expect(hash("") == 0xe3b0_c442_98fc_1c14)
        #expect(hash("abc") == 0xba78_16bf_8f01_cfea)
        let twoBlocks = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"
        #expect(hash(twoBlocks) == 0x248d_6a61_d206_38b8)
        #expect(hash("a", times: 1_000_000) == 0xcdc7_6e5c_9914_fb92)
    }

    @Test func `A message continues after its digest was read, and a copy continues on its own`() {
        var hash = ShortSHA256()
        hash.append(UInt8(ascii: "a"))
        _ = hash.first64Bits
        var copy = hash
        hash.append(UInt8(ascii: "b"))
        hash.append(UInt8(ascii: "c"))
        copy.append(UInt8(ascii: "x"))
        #expect(hash.first64Bits == 0xba78_16bf_8f01_cfea)
        #expect(copy.first64Bits == self.hash("ax"))
    }
}
