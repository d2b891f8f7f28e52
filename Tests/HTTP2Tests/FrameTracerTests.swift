import BroadsideHTTP2
import Testing

/// What a trace reads along with a connection, however the bytes are cut.
@Suite struct FrameTracerTests {
    /// A preface, SETTINGS, HEADERS with CONTINUATION and an entry for the dynamic table, HEADERS
    /// that uses it, DATA.
    static let bytes: [UInt8] =
        Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        + [0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
        + [0, 0, 3, 1, 0, 0, 0, 0, 1, 0x83, 0x40, 0x02] + [0, 0, 6, 9, 4, 0, 0, 0, 1]
        + Array("ab".utf8) + [0x03] + Array("xyz".utf8)
        + [0, 0, 4, 1, 0x0c, 0, 0, 0, 3, 0x02, 0xbe, 0, 0] + [
            0, 0, 2, 0, 1, 0, 0, 0, 1, 0x68, 0x69,
        ]

    @Test(arguments: 1...40) func `A frame trace is the same however the bytes are cut`(size: Int)
        throws
    {
        var tracer = FrameTracer(isClient: true)
        var frames: [TracedFrame] = []
        var start = 0
        while start < Self.bytes.count {
            let part = Array(Self.bytes[start..<min(Self.bytes.count, start + size)])
            tracer.take(part.span.bytes) { frames.append($0) }
            start += size
        }
        try #require(frames.count == 5)
        #expect(frames.map(\.header.type) == [.settings, .headers, .continuation, .headers, .data])
        #expect(frames.map(\.header.streamID) == [0, 1, 1, 3, 1])
        #expect(frames[0].payload == [0, 1, 0, 0, 0, 0])
        #expect(frames[1].fields == nil)
        #expect(text(frames[2]) == [":method POST", "ab xyz"])
        // Padded by two bytes.
        #expect(text(frames[3]) == ["ab xyz"])
        #expect(frames[4].payload == [0x68, 0x69])
    }

    /// HEADERS and CONTINUATION with a block of this many bytes, which puts `a: b` into the table
    /// first, and a HEADERS that uses it.
    private static func bytes(blockCount: Int) -> [UInt8] {
        var block: [UInt8] = [0x40, 1, 0x61, 1, 0x62]
        while block.count < blockCount {
            // A literal that is not indexed: the name `c` and a length of four bytes in front of it.
            let valueCount = min(blockCount - block.count - 7, 16_000)
            let rest = valueCount - 127
            block += [0x00, 1, 0x63, 0x7f]
            block += [UInt8(rest & 127) | 128, UInt8(rest >> 7 & 127) | 128, UInt8(rest >> 14)]
            block += [UInt8](repeating: 0x78, count: valueCount)
        }
        var bytes: [UInt8] = []
        var start = 0
        while start < block.count {
            let end = min(block.count, start + 16_384)
            let count = end - start
            bytes += [0, UInt8(count >> 8), UInt8(count & 255), start == 0 ? 1 : 9]
            bytes += [end == block.count ? 4 : 0, 0, 0, 0, 1]
            bytes += block[start..<end]
            start = end
        }
        return bytes + [0, 0, 1, 1, 4, 0, 0, 0, 3, 0xbe]
    }

    @Test func `A header block beyond 64 KiB in a trace is not decoded, nor are those after it`() {
        var told: [[String]] = []
        var tracer = FrameTracer(isClient: false)
        tracer.take(Self.bytes(blockCount: 65_536).span.bytes) { frame in
            if let fields = text(frame) { told.append(fields) }
        }
        #expect(told.count == 2)
        #expect(told.first?.count == 6 && told.last == ["a b"])

        var count = 0
        tracer = FrameTracer(isClient: false)
        tracer.take(Self.bytes(blockCount: 65_537).span.bytes) { frame in
            count += 1
            #expect(frame.fields == nil)
        }
        // All frames of the block, and none behind it.
        #expect(count == 5)
    }

    @Test func `Bytes that are not HTTP/2 end a trace`() {
        var tracer = FrameTracer(isClient: false)
        var count = 0
        tracer.take([UInt8](repeating: 0xff, count: 100).span.bytes) { _ in count += 1 }
        tracer.take(Array(Self.bytes.dropFirst(24)).span.bytes) { _ in count += 1 }
        #expect(count == 0)
    }

    private func text(_ frame: TracedFrame) -> [String]? {
        frame.fields?.map {
            String(decoding: $0.name, as: UTF8.self) + " "
                + String(decoding: $0.value, as: UTF8.self)
        }
    }
}
