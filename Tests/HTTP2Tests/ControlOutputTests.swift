import Testing

@testable import BroadsideHTTP2

/// Frame headers as they go over the wire, and the buffer of what a connection itself has to say.
@Suite struct ControlOutputTests {
    @Test func `A frame header is nine bytes and reads back`() {
        let types: [FrameType] = [.data, .headers, .goAway, FrameType(rawValue: 0xfe)]
        for length in [0, 1, 255, 256, 0x01_0203, 0xff_ffff] {
            for id in [0, 1, 255, 256, 0x0102_0304, 0x7fff_ffff] as [UInt32] {
                for (type, flags) in zip(types, [0, 1, 0x25, 0xff] as [UInt8]) {
                    let header = FrameHeader(
                        length: length, type: type, flags: FrameFlags(rawValue: flags),
                        streamID: id)
                    let expected =
                        [length >> 16, length >> 8, length].map { UInt8(truncatingIfNeeded: $0) }
                        + [type.rawValue, flags] + Frame.be32(id)
                    #expect(header.bytes == expected)
                    #expect(FrameHeader(([7] + expected).span.bytes, at: 1) == header)
                    // The reserved bit means nothing.
                    var reserved = expected
                    reserved[5] |= 0x80
                    #expect(FrameHeader(reserved.span.bytes, at: 0) == header)
                }
            }
        }
    }

    private func take(_ output: inout ControlOutput, _ limit: Int) -> [UInt8] {
        var room = [UInt8](repeating: 0, count: limit)
        let count = room.withUnsafeMutableBytes { buffer in
            var span = OutputRawSpan(buffer: buffer, initializedCount: 0)
            output.take(into: &span)
            return span.finalize(for: buffer)
        }
        return Array(room[..<count])
    }

    private func ping(_ number: UInt64, into output: inout ControlOutput) -> Bool {
        guard output.begin(.ping, length: 8) else { return false }
        output.append(number)
        return true
    }

    @Test(arguments: [1, 7, 17, 100, 479])
    func `Frames are taken in order in pieces of any size`(piece: Int) {
        var output = ControlOutput(capacity: 640)
        var expected: [UInt8] = []
        var found: [UInt8] = []
        for number in 0..<200 as Range<UInt64> {
            let fits = ping(number, into: &output)
            #expect(fits)
            expected += Frame.ping(number).bytes
            // As much as keeps the buffer far from full, in pieces.
            while output.count > 300 { found += take(&output, piece) }
        }
        while output.count > 0 { found += take(&output, piece) }
        let isOverrun = output.isOverrun
        #expect(found == expected && !isOverrun)
    }

    @Test func `A full buffer drops frames and keeps room for a GOAWAY`() {
        var output = ControlOutput(capacity: 640)
        var pings: UInt64 = 0
        while ping(pings, into: &output) { pings += 1 }
        let (isOverrun, count) = (output.isOverrun, output.count)
        // 17 bytes each, of the 640 less what is kept.
        #expect(pings == 28 && isOverrun && count == 28 * 17)
        let fits = output.begin(.goAway, length: 8)
        #expect(fits)
        output.append(UInt32(0))
        output.append(UInt32(11))
        let more = ping(99, into: &output)
        #expect(!more)
        let frames = Frame.parse(take(&output, 1_000))
        #expect(frames.dropLast() == (0..<28).map { Frame.ping($0) }[...])
        #expect(frames.last == .goAway(0, ErrorCode(rawValue: 11)))
        // Room that was given back is used again.
        let isFree = ping(5, into: &output)
        #expect(isFree)
    }
}
