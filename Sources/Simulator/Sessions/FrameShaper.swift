/// Splits a HEADERS frame into HEADERS and CONTINUATION, and pads it.
///
/// nghttp2 writes a header block into one frame if it fits, but clients must accept any number of
/// frames (RFC 9113 section 6.10).
enum FrameShaper {
    static func append(
        _ frame: RawSpan, _ shape: ResponseShape, to output: inout ByteBuffer
    ) {
        let flags = frame[4]
        let streamID = frame.integer(at: 5)
        // nghttp2 is never asked for padding or priority, so the payload is the block.
        precondition(flags & (FrameBytes.padded | FrameBytes.priority) == 0)
        let block = frame.extracting(9...)
        let pieces = min(shape.headerFrames, max(1, block.byteCount))
        for piece in 0..<pieces {
            let range = block.byteCount * piece / pieces..<block.byteCount * (piece + 1) / pieces
            let isLast = piece == pieces - 1
            var type = FrameBytes.continuation
            var pieceFlags: UInt8 = isLast ? FrameBytes.endHeaders : 0
            var padding: Int?
            if piece == 0 {
                type = FrameBytes.headers
                pieceFlags |= flags & FrameBytes.endStream
                if shape.padding > 0 {
                    pieceFlags |= FrameBytes.padded
                    padding = shape.padding
                }
            }
            let count = range.count + (padding.map { $0 + 1 } ?? 0)
            output.append(bigEndian: UInt32(count) << 8 | UInt32(type))
            output.append(pieceFlags)
            output.append(bigEndian: streamID)
            if let padding { output.append(UInt8(padding)) }
            output.append(block.extracting(range))
            for _ in 0..<(padding ?? 0) { output.append(0) }
        }
    }
}
