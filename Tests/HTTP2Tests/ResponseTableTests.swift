import CBroadsideNghttp2
import Testing

@testable import BroadsideHTTP2

/// Whole conversations with servers whose header tables live on, by nghttp2's deflater: an encoder
/// that nobody here wrote, and that refers to what it inserted wherever it can.
@Suite struct ResponseTableTests {
    /// Deflates fields; `indexes` false: none of them is inserted or looked up in the table.
    private final class Deflater {
        private var deflater: OpaquePointer!

        init(tableSize: Int = 4096) {
            nghttp2_hd_deflate_new(&deflater, 4096)
            if tableSize < 4096 { nghttp2_hd_deflate_change_table_size(deflater, tableSize) }
        }

        deinit { nghttp2_hd_deflate_del(deflater) }

        func change(_ size: Int) { nghttp2_hd_deflate_change_table_size(deflater, size) }

        func deflate(_ fields: [(String, String)], indexes: Bool) -> [UInt8] {
            let flags = indexes ? 0 : UInt8(NGHTTP2_NV_FLAG_NO_INDEX.rawValue)
            let texts = fields.map { (Array($0.0.utf8), Array($0.1.utf8)) }
            let copies = texts.map { name, value in
                let memory = UnsafeMutablePointer<UInt8>.allocate(
                    capacity: name.count + value.count + 1)
                memory.update(from: name + value + [0], count: name.count + value.count + 1)
                return memory
            }
            defer { for copy in copies { copy.deallocate() } }
            let pairs = zip(texts, copies).map { text, copy in
                nghttp2_nv(
                    name: copy, value: copy + text.0.count, namelen: text.0.count,
                    valuelen: text.1.count, flags: flags)
            }
            var block = [UInt8](repeating: 0, count: 4096)
            let count = nghttp2_hd_deflate_hd(deflater, &block, block.count, pairs, pairs.count)
            precondition(count > 0)
            return Array(block[..<count])
        }
    }

    private static func fields(
        _ status: Int, _ number: Int, _ random: inout SeededRandom
    ) -> [(String, String)] {
        var fields = [(":status", "\(status)")]
        let more = [
            ("server", "h2o/2.2.5"), ("date", "Sun, 22 Nov 2026 08:4\(number % 7):00 GMT"),
            ("apns-id", "EABEAE54-14A8-11E5-B60B-\(100_000_000_000 + number)"),
            ("content-type", "application/json"), ("x-node", "node\(number % 5)"),
            ("retry-after", "\(number % 9)"),
        ]
        for field in more where Bool.random(using: &random) { fields.append(field) }
        return fields
    }

    /// From the first, the second and the thousandth response on; with interim responses, trailers,
    /// blocks in pieces, streams that are reset or given up between; and tables of any size.
    @Test(arguments: [0, 1, 1000], [4096, 300, 0])
    func `Responses that use a dynamic table from the first, second or thousandth on are decoded`(
        plainResponses: Int, tableSize: Int
    ) throws {
        var random = SeededRandom(seed: UInt64(plainResponses * 7 + tableSize))
        let deflater = Deflater(tableSize: tableSize)
        let peer = Peer.ready(maxStreams: 16)
        for number in 0..<(plainResponses + 600) {
            let tag = UInt32(number)
            let stream = peer.open(tag)[0]
            let indexes = number >= plainResponses
            if indexes, tableSize == 300, number % 97 == 0 { deflater.change(number % 400) }
            let status = [200, 200, 400, 410, 429, 503, 600].randomElement(using: &random)!
            var events: [ClientConnectionStateMachine.Event] = []
            if indexes, number % 3 == 0 {
                let interim = deflater.deflate([(":status", "103"), ("link", "x")], indexes: true)
                events += peer.receive(.headers(stream, interim, end: false))
            }
            let isGivenUp = indexes && number % 11 == 0
            if isGivenUp { peer.machine.cancelStream(stream) }
            let block = deflater.deflate(Self.fields(status, number, &random), indexes: indexes)
            let hasTrailers = indexes && number % 5 == 0
            let isReset = indexes && number % 13 == 0
            let cut = Int.random(in: 0...block.count, using: &random)
            if number % 2 == 0 {
                events += peer.receive(
                    .headers(
                        stream, Array(block[..<cut]), end: !hasTrailers && !isReset,
                        endHeaders: false),
                    .continuation(stream, Array(block[cut...])))
            } else {
                events += peer.receive(
                    .headers(stream, block, end: !hasTrailers && !isReset))
            }
            if isReset {
                events += peer.receive(.reset(stream, .internalError))
            } else if hasTrailers {
                let trailers = deflater.deflate(
                    [("grpc-status", "0"), ("x-t", "u")], indexes: true)
                events += peer.receive(.headers(stream, trailers))
            }
            let expected: [ClientConnectionStateMachine.Event] =
                isGivenUp
                ? []
                : isReset
                    ? [.reset(tag: tag, .internalError)]
                    : [.response(tag: tag, status: UInt16(status))]
            try #require(events == expected, "response \(number)")
            _ = peer.takeBytes()
        }
        #expect(peer.usesInflater == (tableSize > 0))
    }
}

extension Peer {
    var usesInflater: Bool { machine.inflater.isActive }
}
