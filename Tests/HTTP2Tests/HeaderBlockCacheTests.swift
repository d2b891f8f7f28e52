import BroadsideHPACK
import Testing

@testable import BroadsideHTTP2

/// A block that is known is one that would be read to the same effect.
@Suite struct HeaderBlockCacheTests {
    private static let identifiers = [
        "EABEAE54-14A8-11E5-B60B-1697F925EC7B", "00000000-0000-0000-0000-000000000000",
    ]

    private func read(_ block: [UInt8]) -> ResponseHeaders? {
        var headers = ResponseHeaders()
        guard let isRead = try? headers.read(block.span.bytes), isRead else { return nil }
        return headers
    }

    private func response(
        _ identifier: String, status: [UInt8] = [0x88], isHuffman: Bool = false
    ) -> [UInt8] {
        var block = status + [0x00]
        ResponseHeadersTests.append("apns-id", isHuffman, to: &block)
        ResponseHeadersTests.append(identifier, isHuffman, to: &block)
        return block
    }

    @Test(arguments: 0..<200 as Range<UInt64>)
    func `A header block found in the cache gives the headers that reading it gives`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var known = HeaderBlockCache()
        for _ in 0..<50 {
            var block = ResponseHeadersTests.block(&random)
            if Bool.random(using: &random) {
                block += response(
                    Self.identifiers.randomElement(using: &random)!, status: [],
                    isHuffman: .random(using: &random))
            }
            if let headers = read(block) { known.remember(block.span.bytes, headers) }
            for _ in 0..<20 {
                var other = block
                for _ in 0..<Int.random(in: 0...2, using: &random) where !other.isEmpty {
                    other[Int.random(in: 0..<other.count, using: &random)] =
                        [0x00, 0x0a, 0x0d, .random(in: 0...255, using: &random)]
                        .randomElement(using: &random)!
                }
                guard let start = known.start(of: other.span.bytes) else { continue }
                #expect(start == read(other).map(ResponseStart.init), "\(other) after \(block)")
            }
        }
    }

    @Test(arguments: [false, true])
    func `A cached block with another apns-id of the same length is found`(isHuffman: Bool) throws {
        var known = HeaderBlockCache()
        let first = response(Self.identifiers[0], isHuffman: isHuffman)
        known.remember(first.span.bytes, try #require(read(first)))
        #expect(known.start(of: first.span.bytes)?.status == 200)
        // Of the same length, Huffman-coded too: hexadecimal digits of as many bits.
        let second = response(
            "EABEAE54-14A8-11E5-B60B-1697F925EC7E", isHuffman: isHuffman)
        try #require(second.count == first.count)
        #expect(known.start(of: second.span.bytes)?.status == 200)
    }

    @Test func `A cached block is found only if no byte but those of the apns-id differs`() throws {
        var known = HeaderBlockCache()
        let block = response(Self.identifiers[0])
        known.remember(block.span.bytes, try #require(read(block)))
        let free = block.count - 36..<block.count
        for place in block.indices {
            for byte in 0...255 as ClosedRange<UInt8> where byte != block[place] {
                var other = block
                other[place] = byte
                let isAllowed = free.contains(place) && ![0x00, 0x0a, 0x0d].contains(byte)
                let headers = known.start(of: other.span.bytes)
                #expect((headers != nil) == isAllowed, "\(byte) at \(place)")
            }
        }
    }

    /// Blocks at the ends of what is kept, one of each kind of place.
    @Test(arguments: [15, 16, 17, 31, 32, 33, 127, 128, 129])
    func `Blocks at the limits of the cached lengths are found exactly if the length is kept`(
        count: Int
    ) throws {
        var known = HeaderBlockCache()
        var block: [UInt8] = [0x88, 0x00]
        ResponseHeadersTests.append("server", false, to: &block)
        let rest = count - block.count - (count - block.count > 127 ? 2 : 1)
        ResponseHeadersTests.append(String(repeating: "x", count: rest), false, to: &block)
        if block.count < count { block.append(0xa1) }  // cache-control without a value
        try #require(block.count == count || count == 129)
        known.remember(block.span.bytes, try #require(read(block)))
        let isKept = HeaderBlockCache.byteCounts.contains(block.count)
        #expect((known.start(of: block.span.bytes) != nil) == isKept)
        for place in block.indices {
            var other = block
            other[place] ^= 1
            #expect(known.start(of: other.span.bytes) == nil, "\(place)")
        }
    }

    /// Two responses of one length each find their own.
    @Test func `Of several blocks of one length the last remembered is found`() throws {
        var known = HeaderBlockCache()
        for status: [UInt8] in [[0x88], [0x8c], [0x88]] {
            let block = response(Self.identifiers[1], status: status)
            known.remember(block.span.bytes, try #require(read(block)))
            #expect(
                known.start(of: block.span.bytes)?.status == (status == [0x88] ? 200 : 400))
        }
        #expect(known.start(of: response(Self.identifiers[1], status: [0x8c]).span.bytes) == nil)
    }

    /// The client's words: an identifier that no response may have, behind ten that are fine.
    @Test(arguments: Tearing.allCases)
    func `A malformed response behind ten cached ones is an error of its own stream only`(
        tearing: Tearing
    ) {
        let peer = Peer(tearing, .init(maxStreams: 100))
        peer.machine.start()
        peer.receive(.settings((4, 1000)))
        for tag in 0..<12 as Range<UInt32> { peer.open(tag) }
        for stream in 0..<10 as Range<UInt32> {
            peer.receive(.headers(2 * stream + 1, response(Self.identifiers[Int(stream) % 2])))
        }
        var bad = Self.identifiers[0]
        bad.replaceSubrange(bad.startIndex...bad.startIndex, with: "\n")
        peer.receive(.headers(21, response(bad)))
        peer.receive(.headers(23, response(Self.identifiers[1])))
        let answers = peer.heard.suffix(12)
        for (tag, heard) in answers.enumerated() {
            let expected =
                tag == 10
                ? ClientConnectionStateMachine.Event.streamError(tag: 10, .invalidValue)
                : .response(tag: UInt32(tag), status: 200)
            #expect(heard.event == expected)
        }
    }
}
