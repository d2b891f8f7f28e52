import Testing

@testable import BroadsideHPACK

/// Runs the Huffman decoder over a whole array.
func huffmanDecode(_ coded: [UInt8], room: Int = 4096) throws(HPACKError) -> [UInt8] {
    let storage = UnsafeMutableRawBufferPointer.allocate(byteCount: max(room, 1), alignment: 1)
    defer { storage.deallocate() }
    var output = OutputRawSpan(
        buffer: UnsafeMutableRawBufferPointer(rebasing: storage[..<room]), initializedCount: 0)
    try Huffman.decode(coded.span.bytes, into: &output)
    return Array(storage[..<output.byteCount])
}

@Suite struct PrefixIntegerTests {
    /// RFC 7541 Appendix C.1.
    @Test func `The examples of RFC 7541 C.1 encode and decode as printed`() throws {
        var bytes: [UInt8] = []
        PrefixInteger.encode(10, prefixBits: 5, pattern: 0, into: &bytes)
        PrefixInteger.encode(1337, prefixBits: 5, pattern: 0, into: &bytes)
        PrefixInteger.encode(42, prefixBits: 8, pattern: 0, into: &bytes)
        #expect(bytes == [0x0a, 0x1f, 0x9a, 0x0a, 0x2a])
        var offset = 0
        let read10 = try PrefixInteger.decode(bytes.span.bytes, at: &offset, prefixBits: 5)
        #expect(read10 == 10)
        let read1337 = try PrefixInteger.decode(bytes.span.bytes, at: &offset, prefixBits: 5)
        #expect(read1337 == 1337)
        let read42 = try PrefixInteger.decode(bytes.span.bytes, at: &offset, prefixBits: 8)
        #expect(read42 == 42)
        #expect(offset == 5)
    }

    @Test func `A prefix integer of each prefix length decodes to the value that was encoded`()
        throws
    {
        for prefixBits in 1...8 {
            for value in Array(0...600) + [16383, 16384, 1 << 21, (1 << 24) - 1, 1 << 24] {
                var bytes: [UInt8] = []
                let pattern: UInt8 = prefixBits == 8 ? 0 : 0x80
                PrefixInteger.encode(value, prefixBits: prefixBits, pattern: pattern, into: &bytes)
                var offset = 0
                let read = try PrefixInteger.decode(
                    bytes.span.bytes, at: &offset, prefixBits: prefixBits)
                #expect(read == value)
                #expect(offset == bytes.count)
            }
        }
    }

    @Test func `A prefix integer that is truncated or too large fails with its code`() {
        func failure(_ bytes: [UInt8]) -> HPACKError.Code? {
            var offset = 0
            do throws(HPACKError) {
                _ = try PrefixInteger.decode(bytes.span.bytes, at: &offset, prefixBits: 7)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(failure([]) == .truncated)
        #expect(failure([0x7f]) == .truncated)
        #expect(failure([0x7f, 0x80]) == .truncated)
        #expect(failure([0x7f, 0x80, 0x80, 0x80, 0x00]) == nil)
        #expect(failure([0x7f, 0x80, 0x80, 0x80, 0x08]) == .integerTooLarge)
        #expect(failure([0x7f, 0x80, 0x80, 0x80, 0x80, 0x00]) == .integerTooLarge)
        #expect(failure([0x7f] + [UInt8](repeating: 0xff, count: 30)) == .integerTooLarge)
    }
}

@Suite struct HuffmanTests {
    /// RFC 7541 Appendix C.4 and C.6.
    @Test(arguments: [
        ("www.example.com", "f1e3c2e5f23a6ba0ab90f4ff"), ("no-cache", "a8eb10649cbf"),
        ("custom-key", "25a849e95ba97d7f"), ("custom-value", "25a849e95bb8e8b4bf"),
        ("302", "6402"), ("private", "aec3771a4b"),
        ("Mon, 21 Oct 2013 20:13:21 GMT", "d07abe941054d444a8200595040b8166e082a62d1bff"),
        ("https://www.example.com", "9d29ad171863c78f0b97c8e9ae82ae43d3"),
        ("307", "640eff"), ("gzip", "9bd9ab"),
        (
            "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            "94e7821dd7f2e6c7b335dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007"
        ),
    ])
    func `The strings of RFC 7541 C.4 and C.6 encode and decode as printed`(
        text: String, coded: String
    ) throws {
        let bytes = Array(text.utf8)
        var encoded: [UInt8] = []
        Huffman.encode(bytes, into: &encoded)
        #expect(encoded == Vectors.hex(coded))
        #expect(encoded.count == Huffman.encodedCount(of: bytes))
        #expect(try huffmanDecode(encoded) == bytes)
    }

    @Test func `Each byte, alone and between others, decodes to itself`() throws {
        for symbol in UInt8.min...UInt8.max {
            for bytes in [[symbol], [symbol, symbol], [97, symbol, 255, symbol, 48]] {
                var encoded: [UInt8] = []
                Huffman.encode(bytes, into: &encoded)
                #expect(try huffmanDecode(encoded) == bytes)
            }
        }
    }

    @Test func `Wrong padding and EOS in a Huffman-coded string fail`() {
        func failure(_ coded: [UInt8], room: Int = 100) -> HPACKError.Code? {
            do throws(HPACKError) {
                _ = try huffmanDecode(coded, room: room)
                return nil
            } catch {
                return error.code
            }
        }
        #expect(failure([]) == nil)
        // '0' is 00000: three bits are left to pad.
        #expect(failure([0b0000_0111]) == nil)
        #expect(failure([0b0000_0110]) == .huffmanPadding)
        #expect(failure([0b0000_0000]) == .huffmanPadding)
        #expect(failure([0b0000_0111, 0xff]) == .huffmanPadding)
        #expect(failure([0xff]) == .huffmanPadding)
        #expect(failure([0xff, 0xff, 0xff, 0xff]) == .huffmanEndOfString)
        #expect(failure([0b0000_0111, 0xff, 0xff, 0xff, 0xff]) == .huffmanEndOfString)
        #expect(failure([0x00, 0x3f, 0xff, 0xff, 0xff]) == .huffmanEndOfString)
        #expect(failure([0b0000_0000, 0b0011_1111], room: 2) == nil)
        #expect(failure([0b0000_0000, 0b0011_1111], room: 1) == .stringTooLong)
    }

    /// Strings that nghttp2 coded, found in its blocks by the walker.
    @Test(arguments: 0..<30 as Range<UInt64>)
    func `Strings that nghttp2 encoded decode to the original`(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        let deflater = ReferenceDeflater()
        for _ in 0..<40 {
            let value = (0..<Int.random(in: 0...300, using: &random)).map { _ in
                Bool.random(using: &random)
                    ? UInt8.random(in: 97...122, using: &random)
                    : UInt8.random(in: 0...255, using: &random)
            }
            let block = deflater.deflate([(Array("x-name".utf8), value)], noIndex: true)
            var walker = BlockWalker()
            let next = try walker.next(block.span.bytes)
            let field = try #require(next)
            #expect(field.representation == .neverIndexed)
            let bytes = Array(block[field.value.offset..<field.value.offset + field.value.count])
            let decoded = field.value.isHuffman ? try huffmanDecode(bytes) : bytes
            #expect(decoded == value)
            let end = try walker.next(block.span.bytes)
            #expect(end == nil)
        }
    }
}

@Suite struct StaticTableTests {
    /// Every entry is what nghttp2 decodes its index to.
    @Test func `Each static entry is what nghttp2 decodes for its index`() throws {
        let inflater = ReferenceInflater()
        for index in 1...StaticTable.count {
            let fields = try inflater.inflate([0x80 | UInt8(index)])
            let own = PlainField(
                name: StaticTable.name(at: index).description,
                value: StaticTable.value(at: index).description)
            #expect(fields == [own])
        }
        for name in RequestFieldName.allCases {
            guard let index = name.staticIndex else { continue }
            #expect(StaticTable.name(at: index).description == name.text.description)
        }
    }
}
