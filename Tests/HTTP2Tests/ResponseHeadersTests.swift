import BroadsideHPACK
import Testing

@testable import BroadsideHTTP2

/// The short way through a header block says of it what the whole walk says.
@Suite struct ResponseHeadersTests {
    private static let names = [
        "apns-id", "apns-ie", "apns-i", "content-length", "retry-after", ":status", "server",
        "date",
        "connection", "Server", "", ":path", "a\u{7f}b", "apns-unique-id",
    ]
    private static let values = [
        "200", "410", "20", "", "0", "17", "EABEAE54-14A8-11E5-B60B-1697F925EC7B", "a\nb",
        "seven77\r", "1234567\0", "0123456789abcde\n", "\r0123456789abcdef", "nghttpd",
        String(repeating: "x", count: 126), String(repeating: "y", count: 127),
    ]

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `The short and the full reader of a block agree on random, cut and damaged blocks`(
        seed: UInt64
    ) {
        var random = SeededRandom(seed: seed)
        for _ in 0..<100 {
            var block = Self.block(&random)
            // Some are cut or spoilt.
            switch Int.random(in: 0..<4, using: &random) {
            case 0 where !block.isEmpty:
                block.removeLast(Int.random(in: 1...block.count, using: &random))
            case 1 where !block.isEmpty:
                block[Int.random(in: 0..<block.count, using: &random)] =
                    .random(in: 0...255, using: &random)
            default: break
            }
            let short = outcome(block) { (headers, span) throws(HPACKError) in
                try headers.read(span)
            }
            let whole = outcome(block) { (headers, span) throws(HPACKError) in
                try headers.readAnything(span)
            }
            #expect(short == whole, "\(block)")
        }
    }

    @Test func `A block with status and one literal field is read by the short reader`() {
        for huffman in [false, true] {
            for name in ["apns-id", "server"] {
                var block: [UInt8] = [0x88, 0x00]
                Self.append(name, huffman, to: &block)
                Self.append("EABEAE54-14A8-11E5-B60B-1697F925EC7B", huffman, to: &block)
                var headers = ResponseHeaders()
                let isRead = headers.readOrdinary(block.span.bytes)
                #expect(isRead && headers.status == 200 && headers.error == nil)
            }
        }
    }

    @Test(arguments: 1...40, [0x00, 0x0a, 0x0d] as [UInt8])
    func `A forbidden byte at each offset of a value makes the response malformed`(
        count: Int, byte: UInt8
    ) throws {
        for place in 0..<count {
            var value = [UInt8](repeating: UInt8(ascii: "x"), count: count)
            value[place] = byte
            var block: [UInt8] = [0x88, 0x00]
            Self.append("server", false, to: &block)
            Self.append(String(decoding: value, as: UTF8.self), false, to: &block)
            var headers = ResponseHeaders()
            let isRead = try headers.read(block.span.bytes)
            #expect(isRead && headers.error == .invalidValue, "at \(place)")
        }
    }

    @Test(arguments: [28, 33, 53, 54, 61], [false, true])
    func `A :status behind any other field makes the response malformed`(
        index: Int, isLiteral: Bool
    ) throws {
        var field: [UInt8] = []
        if isLiteral {
            field.append(0x00)
            let name = "\(StaticTable.name(at: index))"
            Self.append(name, false, to: &field)
        } else {
            PrefixInteger.encode(index, prefixBits: 4, pattern: 0x00, into: &field)
        }
        Self.append("1", false, to: &field)
        for (block, error) in [([0x88] + field, nil), (field + [0x88], StreamError.lateStatus)] {
            var short = ResponseHeaders()
            let isRead = try short.read(block.span.bytes)
            #expect(isRead && short.error == error)
            var whole = ResponseHeaders()
            let isWhollyRead = try whole.readAnything(block.span.bytes)
            #expect(isWhollyRead && whole.error == error)
        }
    }

    private func outcome(
        _ block: [UInt8],
        _ read: (inout ResponseHeaders, RawSpan) throws(HPACKError) -> Bool
    ) -> String {
        var headers = ResponseHeaders()
        do throws(HPACKError) {
            // What was read of a block that needs a table is worthless.
            return try read(&headers, block.span.bytes) ? headers.meaning : "needs a table"
        } catch {
            return "\(error)"
        }
    }

    static func block(_ random: inout SeededRandom) -> [UInt8] {
        var block: [UInt8] = []
        if Int.random(in: 0..<5, using: &random) > 0 { block.append(0x88) }
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            switch Int.random(in: 0..<12, using: &random) {
            case 0:
                block.append(0x80 | .random(in: 0...127, using: &random))
            case 1:
                PrefixInteger.encode(
                    .random(in: 0...70, using: &random), prefixBits: 6, pattern: 0x40, into: &block)
                append(values.randomElement(using: &random)!, false, to: &block)
            case 2...4:
                let pattern: UInt8 = Bool.random(using: &random) ? 0x00 : 0x10
                PrefixInteger.encode(
                    .random(in: 1...63, using: &random), prefixBits: 4, pattern: pattern,
                    into: &block)
                append(values.randomElement(using: &random)!, .random(using: &random), to: &block)
            default:
                block.append(Bool.random(using: &random) ? 0x00 : 0x10)
                append(names.randomElement(using: &random)!, .random(using: &random), to: &block)
                append(values.randomElement(using: &random)!, .random(using: &random), to: &block)
            }
        }
        return block
    }

    static func append(_ text: String, _ huffman: Bool, to block: inout [UInt8]) {
        var bytes = Array(text.utf8)
        if huffman {
            var coded: [UInt8] = []
            Huffman.encode(bytes, into: &coded)
            bytes = coded
        }
        PrefixInteger.encode(
            bytes.count, prefixBits: 7, pattern: huffman ? 0x80 : 0, into: &block)
        block += bytes
    }
}

extension ResponseHeaders {
    /// All that a response's receiver learns.
    var meaning: String {
        "\(status), \(contentLength) bytes, \(retryAfter), \(String(describing: error)), \(sawRegularField)"
            + ", \(uniqueID, default: "none")"
    }
}
