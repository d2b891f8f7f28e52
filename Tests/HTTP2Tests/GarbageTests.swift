import BroadsideHPACK
import Testing

@testable import BroadsideHTTP2

/// Bytes that a server would not send: nothing traps, and how they are torn changes nothing.
@Suite struct GarbageTests {
    /// What a connection with eight open requests hears and says.
    private func outcome(_ bytes: [UInt8], _ tearing: Tearing) -> ([Heard], [UInt8]) {
        let peer = Peer(tearing, .init(maxStreams: 8))
        peer.machine.start()
        peer.receive(.settings((4, 100)))
        for tag in 0..<7 as Range<UInt32> { peer.open(tag) }
        _ = peer.machine.openPartialStream(tag: 7, payloadCount: 500)
        peer.receive(bytes)
        while let piece = peer.machine.nextContinuation() { #expect(piece.count > 0) }
        while peer.machine.takeOpenStream() != nil {}
        return (peer.heard, peer.takeBytes())
    }

    private func plausibleFrames(_ random: inout SeededRandom) -> [UInt8] {
        let blocks: [[UInt8]] = [
            [0x88], ResponseTests.ok, [0x8c, 0x0f, 0x26, 1, 50], [0x08, 3, 0x34, 0x32, 0x39],
            [0x20, 0x88], [0x88, 0x40, 1, 97, 1, 98], [0x88, 0xbe], [0x08, 0x82, 0x64, 0x02],
        ]
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 1...30, using: &random) {
            let stream = UInt32.random(in: 0...8, using: &random) * 2 + 1
            let block = blocks.randomElement(using: &random)!
            let end = Bool.random(using: &random)
            let frame: Frame =
                switch Int.random(in: 0..<12, using: &random) {
                case 0...3: .headers(stream, block, end: end)
                case 4: .headers(stream, block, end: end, endHeaders: false)
                case 5: .continuation(stream, block, end: end)
                case 6, 7: .data(stream, #"{"reason":"x"}"#, end: end)
                case 8: .windowUpdate(stream - 1, 70)
                case 9: .reset(stream, .refusedStream)
                case 10: .settings((4, 200), (3, 5))
                default: .goAway(stream, .noError, "why")
                }
            bytes += frame.bytes
        }
        return bytes
    }

    @Test(arguments: 0..<12 as Range<UInt64>)
    func `Damaged frames lead to the same events and output however the bytes are torn`(
        seed: UInt64
    ) {
        var random = SeededRandom(seed: seed)
        for _ in 0..<25 {
            var bytes = plausibleFrames(&random)
            for _ in 0..<Int.random(in: 0...4, using: &random) {
                let position = Int.random(in: 0..<bytes.count, using: &random)
                bytes[position] = UInt8.random(in: 0...255, using: &random)
            }
            let (heard, said) = outcome(bytes, .whole)
            for tearing in Tearing.allCases {
                let (tornHeard, tornSaid) = outcome(bytes, tearing)
                #expect(tornHeard == heard)
                #expect(tornSaid == said)
            }
            // Nobody's request is settled twice.
            let tags = heard.compactMap { heard -> UInt32? in
                switch heard.event {
                case .response(let tag, _), .notProcessed(let tag),
                    .reset(let tag, _), .streamError(let tag, _):
                    tag
                default: nil
                }
            }
            #expect(Set(tags).count == tags.count)
        }
    }

    /// Blocks that the fast path takes say the same to nghttp2.
    @Test(arguments: 0..<20 as Range<UInt64>)
    func `Damaged blocks that the short reader accepts mean the same to nghttp2`(seed: UInt64)
        throws
    {
        var random = SeededRandom(seed: seed)
        var taken = 0
        for _ in 0..<500 {
            var block =
                [0x88, 0x0f, 0x26, 1, 50, 0x0f, 0x0d, 1, 48] + ResponseTests.literal("apns-x", "yz")
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let position = Int.random(in: 0..<block.count, using: &random)
                block[position] = UInt8.random(in: 0...255, using: &random)
            }
            var own = ResponseHeaders()
            do throws(HPACKError) {
                guard try own.read(block.span.bytes) else { continue }
            } catch {
                continue
            }
            var theirs = ResponseHeaders()
            var inflater = ResponseInflater()
            // What the fast path doesn't read it doesn't decode either.
            guard inflater.inflate(block.span.bytes, into: &theirs) else { continue }
            taken += 1
            #expect(own.status == theirs.status)
            #expect(own.contentLength == theirs.contentLength)
            #expect(own.retryAfter == theirs.retryAfter)
            if theirs.error == nil { #expect(own.error == nil) }
        }
        #expect(taken > 50)
    }
}
