import HTTP2
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

    @Test(arguments: 1...40) func `frames and fields are the same for every cut`(size: Int) throws {
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

    @Test func `what is not an HTTP/2 ends the reading`() {
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
