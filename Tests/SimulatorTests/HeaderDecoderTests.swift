import BroadsideHPACK
import Testing

@testable import BroadsideSimulator

/// The fast session's decoder against the vectors and the rules of RFC 7541.
@Suite struct HeaderDecoderTests {
    static let token = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"

    /// Decodes blocks of one connection; the values of each that are told apart.
    private func decode(_ blocks: [String]) throws -> [[RequestHead.Name: String]] {
        var head = RequestHead()
        var decoder = HeaderDecoder()
        let huffman = HuffmanReader()
        var heads: [[RequestHead.Name: String]] = []
        for block in blocks {
            head.reset()
            try hexBytes(block).withBytes {
                try decoder.decode($0, into: &head, huffman: huffman)
            }
            var values: [RequestHead.Name: String] = [:]
            for name in RequestHead.Name.allCases {
                if let value = head[name] { values[name] = String(decoding: value) }
            }
            heads.append(values)
        }
        return heads
    }

    @Test(arguments: [
        [Vectors.strictFirst, Vectors.strictSecond],
        [Vectors.huffmanFirst, Vectors.huffmanSecond],
        [Vectors.indexingFirst, Vectors.indexingSecond],
        [Vectors.compactFirst, Vectors.compactSecond],
        [Vectors.strictFirst, Vectors.collapseSecond],
    ])
    func `The vectors of all indexing policies decode to the same requests`(_ blocks: [String])
        throws
    {
        let heads = try decode(blocks)
        for head in heads {
            #expect(head[.method] == "POST")
            #expect(head[.scheme] == "https")
            #expect(head[.path] == "/3/device/" + Self.token)
            #expect(head[.expiration] == "0")
            #expect(head[.priority] == "10")
        }
        #expect(heads[0][.identifier] == "eabeae54-14a8-11e5-b60b-1697f925ec7b")
        #expect(heads[1][.identifier] == "123e4567-e89b-12d3-a456-4266554400a0")
        #expect(heads[0][.authority] == heads[1][.authority])
    }

    @Test func `Indexes shift with each insertion`() throws {
        let heads = try decode([Vectors.strictFirst, Vectors.collapseSecond, Vectors.collapseThird])
        #expect(heads[1][.collapseIdentifier] == "score-42")
        #expect(heads[2][.collapseIdentifier] == "score-43")
        #expect(heads[2][.identifier] == "9f3c1d2e-0b7a-4c55-8e21-6d4f0a9b8c7d")
        #expect(heads[2][.expiration] == "0")
    }

    /// Thousands of insertions: the table turns over, the value buffer moves its content.
    @Test func `After 2,000 insertions the newest and oldest entries are found`() throws {
        var blocks: [String] = []
        for number in 0..<2000 {
            let id = String(100_000 + number) + String(repeating: "a", count: 30)
            // apns-id inserted, then the entry referred to as a whole as the newest and the oldest.
            blocks.append("400761706e732d6964" + "24" + hex(id))
        }
        blocks.append("be")
        blocks.append("f3")
        let heads = try decode(blocks)
        #expect(heads[2000][.identifier]?.hasPrefix("101999") == true)
        #expect(heads[2001][.identifier]?.hasPrefix("101946") == true)
    }

    @Test(arguments: ["be", "0f2f0130", "7e0130", "80", "3fe21f83", "8320", "04"])
    func `A malformed block fails`(_ block: String) {
        #expect(throws: HPACKError.self) { try decode([block]) }
    }

    @Test func `A table size update to 0 empties the table`() throws {
        // Limit 0 empties the table: index 62 is gone.
        #expect(throws: HPACKError.self) {
            try decode([Vectors.strictFirst, "20" + "83", "be"])
        }
        #expect(try decode(["3fe11f83"])[0][.method] == "POST")
    }

    /// Each character alone and all together, against the encoder.
    @Test func `Each byte that the Huffman encoder writes is read back`() throws {
        let reader = HuffmanReader()
        var texts = (UInt8.min...UInt8.max).map { [$0] }
        texts.append(Array(UInt8.min...UInt8.max))
        texts.append(Array("bearer eyJhbGciOiJFUzI1NiIsImtpZCI6IkFCQzEyM0RFRkcifQ".utf8))
        texts.append([])
        let target = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
        defer { target.deallocate() }
        for text in texts {
            var coded: [UInt8] = []
            Huffman.encode(text, into: &coded)
            let count = try coded.withBytes { try reader.decode($0, to: target) }
            #expect(Array(target[..<count]) == text)
        }
        // Padding of a whole byte, and padding that is not ones.
        for broken: [UInt8] in [[0xff], [0x00], [0x1f, 0xff]] {
            #expect(throws: HPACKError.self) {
                try broken.withBytes { _ = try reader.decode($0, to: target) }
            }
        }
    }

    private func hex(_ text: String) -> String {
        text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }
}
