import BroadsideHTTP2
import Testing

@testable import BroadsideCampaigns

/// Whole responses from frames as a server may cut and pad them (RFC 9113 section 6).
@Suite struct ResponseRecorderTests {
    private func frame(_ type: UInt8, _ flags: UInt8, _ payload: [UInt8]) -> [UInt8] {
        [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0, 0, 0, 1]
            + payload
    }

    /// A literal without indexing, with its name in the block (RFC 7541 section 6.2.2).
    private func literal(_ name: String, _ value: String) -> [UInt8] {
        [0, UInt8(name.utf8.count)] + Array(name.utf8) + [UInt8(value.utf8.count)]
            + Array(value.utf8)
    }

    /// `:status: 200` is entry 8 of the static table.
    private var block: [UInt8] { [0x88] + literal("apns-channel-id", "YQ==") }

    private func record(_ frames: [UInt8], limit: Int = 100, step: Int) -> ResponseRecorder {
        var recorder = ResponseRecorder(bodyLimit: limit)
        recorder.begin()
        for start in stride(from: 0, to: frames.count, by: step) {
            recorder.take(Array(frames[start..<min(start + step, frames.count)]))
        }
        return recorder
    }

    @Test(arguments: [1, 2, 7, 10_000])
    func `Fields and body are the same however frames are cut, padded and continued`(step: Int) {
        let interim = frame(1, 4, literal(":status", "103"))
        let padded = frame(1, 0x28 | 0, [3, 0, 0, 0, 0, 9] + Array(block.prefix(4)) + [0, 0, 0])
        let rest = frame(9, 4, Array(block.dropFirst(4)))
        let body =
            frame(0, 8, [2] + Array("{\"chan".utf8) + [0, 0]) + frame(0, 1, Array("nels\"".utf8))
        let settings = frame(4, 0, [0, 3, 0, 0, 0, 9])
        let trailers = frame(1, 5, literal("x", "y"))
        let recorder = record(
            settings + interim + padded + rest + settings + body + trailers, step: step)
        #expect(recorder.fields.map(\.name) == [":status", "apns-channel-id"])
        #expect(recorder.fields.last?.value == Array("YQ==".utf8))
        #expect(recorder.body == Array("{\"channels\"".utf8) && !recorder.isTooLong)
    }

    @Test(arguments: [(10, false), (9, true)])
    func `A body above its limit is cut and known as too long`(_ limit: Int, _ isTooLong: Bool) {
        let frames =
            frame(1, 4, block) + frame(0, 0, Array("12345".utf8)) + frame(0, 1, Array("67890".utf8))
        let recorder = record(frames, limit: limit, step: 3)
        #expect(recorder.body.count == limit && recorder.isTooLong == isTooLong)
    }

    /// An entry of 4,000 bytes, and then references to it of one byte each.
    @Test func `A header block with more than 64 KiB of fields is refused, and all after it`()
        throws
    {
        let reader = try #require(HeaderBlockReader())
        func count(_ block: [UInt8]) -> Int? { reader.read(block.span.bytes)?.count }
        func references(_ count: Int) -> [UInt8] { Array(repeating: 0xbe, count: count) }
        let entry: [UInt8] =
            [0x40, 1, 0x78, 0x7f, 0xa1, 0x1e] + Array(repeating: 0x61, count: 4000)
        #expect(count(entry + references(15)) == 16)
        #expect(count(references(16)) == 16)
        #expect(count(references(17)) == nil)
        #expect(count([0x88]) == nil)
    }

    @Test func `A header block is that of RFC 7541 for each length of a value`() throws {
        let reader = try #require(HeaderBlockReader())
        for count in [0, 1, 126, 127, 128, 254, 255, 300, 4000] {
            let text = String(repeating: "a", count: count)
            let request = SingleRequest(
                method: "DELETE", path: "/1/apps/a/channels",
                fields: [("apns-channel-id", text), ("apns-expiration", "0")])
            let block = request.headerBlock(
                authority: "h:1", authorization: Array(text.utf8), tableSize: 4096)
            let read = reader.read(block.span.bytes)
            let fields = try #require(read)
            #expect(
                fields.map(\.name) == [
                    ":method", ":scheme", ":path", ":authority", "authorization",
                    "apns-channel-id", "apns-expiration",
                ])
            #expect(
                fields.map { String(decoding: $0.value, as: UTF8.self) }
                    == ["DELETE", "https", "/1/apps/a/channels", "h:1", text, text, "0"])
        }
    }

    @Test(
        arguments: [
            (0, [0x20]), (31, [0x3f, 0]), (4095, [0x3f, 0xe0, 0x1f]), (4096, []), (1 << 20, []),
        ] as [(UInt32, [UInt8])])
    func `A header block for a smaller table begins with a size update and adds no entry`(
        tableSize: UInt32, update: [UInt8]
    ) throws {
        let request = SingleRequest(method: "GET", path: "/", fields: [("apns-expiration", "0")])
        let block = request.headerBlock(
            authority: "h", authorization: nil, tableSize: tableSize)
        #expect(Array(block.prefix(update.count)) == update)
        // GET and https, the path, the authority, and then the literal.
        let literal = try #require(block.dropFirst(update.count + 8).first)
        #expect(block[update.count...].starts(with: [0x82, 0x87]))
        #expect(literal == (update.isEmpty ? 0x40 : 0))
    }
}
