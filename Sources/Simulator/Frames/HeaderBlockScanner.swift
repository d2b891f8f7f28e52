/// Reads a client's bytes before nghttp2 decodes them. Extracts header blocks, and the stream
/// numbers of DATA and RST_STREAM frames.
///
///     preface (24) -> frame header (9) -> payload -> frame header ...
///                          |                 |
///                          |   HEADERS, CONTINUATION: fragment -> block -> handed out at END_HEADERS
///                          +-> DATA, RST_STREAM: stream number
///
/// Invalid frames are ignored here, because nghttp2 reports them. A block of more than
/// `SimulatorLimits.headerBlockCount` bytes is skipped.
struct HeaderBlockScanner: ~Copyable {
    private static let prefaceCount = 24

    private var skipping = Self.prefaceCount
    private var header = InlineArray<9, UInt8>(repeating: 0)
    private var headerCount = 0
    /// Remaining payload bytes of the current HEADERS or CONTINUATION frame.
    private var payloadLeft = 0
    private var isBlockFrame = false
    private var block = ByteBuffer(capacity: 2048)
    /// Offset of the current frame's payload in `block`.
    private var frameStart = 0
    private var isPassedOver = false

    /// Scans the next bytes.
    ///
    /// - Parameters:
    ///   - data: Receives the stream of each DATA frame, and the offset of the byte after the
    ///     frame's header.
    ///   - reset: Receives the stream of each RST_STREAM frame.
    ///   - found: Receives each complete block, and the offset of the byte after its last frame.
    mutating func scan(
        _ bytes: RawSpan, data: (UInt32, Int) -> Void = { _, _ in },
        reset: (UInt32) -> Void = { _ in }, found: (RawSpan, Int) -> Void
    ) {
        var offset = 0
        while offset < bytes.byteCount {
            if skipping > 0 {
                let count = min(skipping, bytes.byteCount - offset)
                skipping -= count
                offset += count
                continue
            }
            if headerCount < 9 {
                header[headerCount] = bytes[offset]
                headerCount += 1
                offset += 1
                if headerCount == 9 {
                    if header[3] == FrameBytes.data { data(streamID, offset) }
                    if header[3] == FrameBytes.resetStream { reset(streamID) }
                    beginFrame()
                }
            } else if payloadLeft > 0 {
                let count = min(payloadLeft, bytes.byteCount - offset)
                if block.count + count > SimulatorLimits.headerBlockCount {
                    isPassedOver = true
                } else {
                    block.append(bytes.extracting(offset..<offset + count))
                }
                payloadLeft -= count
                offset += count
            }
            if headerCount == 9, isBlockFrame, payloadLeft == 0 {
                endFrame(offset: offset, found: found)
            }
        }
    }

    /// The 31-bit stream number in the current frame's header. The bit before the number is
    /// reserved.
    private var streamID: UInt32 {
        UInt32(header[5] & 0x7f) << 24 | UInt32(header[6]) << 16 | UInt32(header[7]) << 8
            | UInt32(header[8])
    }

    private mutating func beginFrame() {
        assert(skipping == 0 && payloadLeft == 0, "a frame inside another one")
        let length = Int(header[0]) << 16 | Int(header[1]) << 8 | Int(header[2])
        isBlockFrame = header[3] == 1 || header[3] == 9
        if isBlockFrame {
            if header[3] == 1 {
                block.removeAll()
                isPassedOver = false
            }
            frameStart = block.count
            payloadLeft = length
        } else {
            skipping = length
            headerCount = 0
        }
    }

    private mutating func endFrame(offset: Int, found: (RawSpan, Int) -> Void) {
        assert(isPassedOver || block.count <= SimulatorLimits.headerBlockCount)
        headerCount = 0
        isBlockFrame = false
        let flags = header[4]
        if header[3] == 1, !isPassedOver { stripHeadersFrame(flags) }
        if flags & 0x4 != 0, !isPassedOver { found(block.bytes, offset) }
    }

    /// Removes padding and priority from a HEADERS frame's payload (RFC 9113 section 6.2).
    private mutating func stripHeadersFrame(_ flags: UInt8) {
        var front = 0
        var back = 0
        let count = block.count - frameStart
        if flags & 0x8 != 0, count > 0 {
            back = Int(block.bytes[frameStart])
            front = 1
        }
        if flags & 0x20 != 0 { front += 5 }
        guard front + back <= count else {
            isPassedOver = true
            return
        }
        block.removeLast(back)
        if frameStart == 0, front > 0 { block.removeFirst(front) }
    }
}
