/// Cuts a HEADERS frame into HEADERS and CONTINUATION, and pads it.
///
/// nghttp2 writes a header block into one frame as long as it fits; clients have to take it in as
/// many as a server likes (RFC 9113 section 6.10).
enum FrameShaper {
    static func append(
        _ frame: UnsafeRawBufferPointer, _ shape: AnswerShape, to output: inout ByteBuffer
    ) {
        let flags = unsafe frame[4]
        let streamID = unsafe FrameBytes.integer(frame, at: 5)
        // Padding and priority are not asked of nghttp2, so the payload is the block.
        precondition(flags & (FrameBytes.padded | FrameBytes.priority) == 0)
        let block = unsafe UnsafeRawBufferPointer(rebasing: frame[9...])
        let pieces = min(shape.headerFrames, max(1, block.count))
        for piece in 0..<pieces {
            let range = block.count * piece / pieces..<block.count * (piece + 1) / pieces
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
            for shift in [16, 8, 0] { output.append(UInt8(truncatingIfNeeded: count >> shift)) }
            output.append(type)
            output.append(pieceFlags)
            for shift in [24, 16, 8, 0] as [UInt32] {
                output.append(UInt8(truncatingIfNeeded: streamID >> shift))
            }
            if let padding { output.append(UInt8(padding)) }
            unsafe output.append(UnsafeRawBufferPointer(rebasing: block[range]))
            for _ in 0..<(padding ?? 0) { output.append(0) }
        }
    }
}
