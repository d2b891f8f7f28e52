import BroadsidePrimitives
import Testing

struct FNV1aHashTests {
    /// From the list of the hash's authors.
    private static let vectors: [(String, UInt64)] = [
        ("", 0xcbf2_9ce4_8422_2325),
        ("a", 0xaf63_dc4c_8601_ec8c),
        ("foobar", 0x8594_4171_f739_67e8),
    ]

    @Test(arguments: vectors)
    func `The hash of a text equals that of the authors`(text: String, hash: UInt64) {
        let bytes = Array(text.utf8)
        #expect(FNV1aHash.hash(text.utf8) == hash)
        #expect(FNV1aHash.hash(bytes.span.bytes) == hash)
        #expect(bytes.reduce(FNV1aHash.initial, FNV1aHash.extend) == hash)
    }
}
