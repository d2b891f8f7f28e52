import BroadsideHPACK
import Testing

@Suite struct BlockWalkerTests {
    private func walk(_ block: [UInt8]) throws -> [BlockWalker.Field] {
        var walker = BlockWalker()
        var fields: [BlockWalker.Field] = []
        while let field = try walker.next(block.span.bytes) { fields.append(field) }
        #expect(walker.offset == block.count)
        return fields
    }

    private func failure(_ text: String) -> HPACKError? {
        do {
            _ = try walk(Vectors.hex(text))
            return nil
        } catch {
            return error as? HPACKError
        }
    }

    private func text(_ text: BlockWalker.Text, _ block: [UInt8]) -> String {
        String(decoding: block[text.offset..<text.offset + text.count], as: UTF8.self)
    }

    @Test
    func
        `The fields of the first example request are walked with their representations and indexes`()
        throws
    {
        let fields = try walk(Vectors.first)
        #expect(
            fields.map(\.representation) == [
                .indexed, .indexed, .withoutIndexing, .withoutIndexing, .incremental, .incremental,
                .withoutIndexing,
            ])
        #expect(fields.map(\.index) == [3, 7, 4, 1, 0, 0, 0])
        #expect(text(fields[2].value, Vectors.first).hasPrefix("/3/device/00fc"))
        #expect(text(fields[4].name, Vectors.first) == "apns-id")
        #expect(text(fields[5].value, Vectors.first) == "0")
        #expect(fields.allSatisfy { !$0.name.isHuffman && !$0.value.isHuffman })
    }

    @Test func `Dynamic indexes and Huffman-coded strings of later requests are recognized`() throws
    {
        #expect(try walk(Vectors.second).map(\.index) == [3, 7, 4, 1, 63, 62, 0])
        #expect(
            try walk(Vectors.tokenSecond).map(\.index) == [3, 7, 4, 67, 23, 66, 65, 64, 63, 62])
        let coded = try walk(Vectors.huffmanFirst)
        #expect(coded[2].value.isHuffman && coded[4].name.isHuffman)
    }

    @Test func `Size updates and never-indexed fields are walked like other fields`() throws {
        #expect(try walk(Vectors.hex("2083")).map(\.representation) == [.sizeUpdate, .indexed])
        #expect(try walk(Vectors.hex("203fe11f83")).map(\.index) == [0, 4096, 3])
        let never = try walk(Vectors.hex("14022f78"))
        #expect(never.map(\.representation) == [.neverIndexed])
        #expect(never[0].index == 4)
        #expect(try walk([]).isEmpty)
    }

    @Test(arguments: [
        ("80", HPACKError(code: .indexZero, offset: 0)),
        ("8320", HPACKError(code: .sizeUpdateNotFirst, offset: 1)),
        ("ff", HPACKError(code: .truncated, offset: 1)),
        ("04", HPACKError(code: .truncated, offset: 1)),
        ("04022f", HPACKError(code: .truncated, offset: 2)),
        ("0003616263", HPACKError(code: .truncated, offset: 5)),
        ("047fffffffff7f", HPACKError(code: .integerTooLarge, offset: 5)),
    ])
    func `A malformed block fails with the code and offset of its fault`(
        block: String, error: HPACKError
    ) {
        #expect(failure(block) == error)
    }

    /// Blocks of nghttp2's deflater, indexed and all, walked to their end with the right count.
    @Test(arguments: 0..<30 as Range<UInt64>)
    func `Blocks of nghttp2's deflater are walked with the number of fields that it encoded`(
        seed: UInt64
    ) throws {
        var random = SeededRandom(seed: seed)
        let deflater = ReferenceDeflater()
        for _ in 0..<30 {
            let fields = (0..<Int.random(in: 1...12, using: &random)).map { _ in
                let name = "x-\(Int.random(in: 0..<20, using: &random))"
                let value = String(
                    repeating: "v", count: Int.random(in: 0...150, using: &random))
                return (Array(name.utf8), Array(value.utf8))
            }
            let block = deflater.deflate(fields, noIndex: Bool.random(using: &random))
            let walked = try walk(block).filter { $0.representation != .sizeUpdate }
            #expect(walked.count == fields.count)
            // Torn anywhere the walk either throws or ends between two fields.
            let torn = Array(block[..<Int.random(in: 0..<block.count, using: &random)])
            do throws(HPACKError) {
                var walker = BlockWalker()
                while try walker.next(torn.span.bytes) != nil {}
            } catch {
                #expect(error.code == .truncated)
            }
        }
    }
}
