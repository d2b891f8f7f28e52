import BroadsidePrimitives
import Testing

struct KeyedHashTests {
    @Test func `The hash of a word equals that of the paper's authors`() {
        // vectors.h of the reference implementation: key 00 to 0f, message 00 to 07.
        let hash = KeyedHash(key: (0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908))
        #expect(hash.hash(0x0706_0504_0302_0100) == 0x93f5_f579_9a93_2462)
    }

    @Test func `Another key or another word has another hash`() {
        let hash = KeyedHash(key: (1, 2))
        #expect(hash.hash(3) != KeyedHash(key: (1, 3)).hash(3))
        #expect(hash.hash(3) != hash.hash(4))
    }
}
