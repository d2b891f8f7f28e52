internal import CNghttp2

/// A frame as a trace tells it.
public struct TracedFrame: Sendable {
    /// Type, flags, stream and length.
    public var header: FrameHeader
    /// Of a whole header block; nil for other frames, or where the block could not be read.
    public var fields: [(name: [UInt8], value: [UInt8])]?
    /// The frame's bytes; of long ones the beginning.
    public var payload: [UInt8]
}

/// Reads along with one direction of a connection and tells each frame: for traces alone, it
/// allocates as it likes. Errors end the reading, never the connection.
@safe public struct FrameTracer: ~Copyable {
    /// Bytes that are kept of a frame.
    private static let payloadLimit = 1 << 16

    private var pending: [UInt8] = []
    private var inflater: OpaquePointer?
    private var block: [UInt8] = []
    private var isReadable: Bool
    /// Bytes of the preface that are still to come (RFC 9113 section 3.4).
    private var prefaceCount: Int

    /// - Parameter isClient: Whether it is the client's direction, which begins with the preface.
    public init(isClient: Bool) {
        prefaceCount = isClient ? 24 : 0
        unsafe inflater = nil
        isReadable = unsafe nghttp2_hd_inflate_new(&inflater) == 0
    }

    deinit {
        if let inflater = unsafe inflater { unsafe nghttp2_hd_inflate_del(inflater) }
    }

    /// Takes the next bytes of the direction.
    public mutating func take(_ bytes: RawSpan, _ tell: (TracedFrame) -> Void) {
        guard isReadable else { return }
        let skipped = min(prefaceCount, bytes.byteCount)
        prefaceCount -= skipped
        for offset in skipped..<bytes.byteCount { pending.append(bytes.byte(at: offset)) }
        var offset = 0
        while isReadable, pending.count - offset >= FrameHeader.byteCount {
            let header = FrameHeader(unsafe pending.span.bytes, at: offset)
            guard header.length <= Self.payloadLimit else {
                isReadable = false
                pending = []
                return
            }
            let start = offset + FrameHeader.byteCount
            guard pending.count - start >= header.length else { break }
            let payload = Array(pending[start..<(start + header.length)])
            tell(TracedFrame(header: header, fields: fields(header, payload), payload: payload))
            offset = start + header.length
        }
        pending.removeFirst(offset)
    }

    /// The fields of a block that ends with this frame.
    private mutating func fields(
        _ header: FrameHeader, _ payload: [UInt8]
    ) -> [(name: [UInt8], value: [UInt8])]? {
        switch header.type {
        case .headers:
            var start = 0
            var end = payload.count
            if header.flags.contains(.padded), let padding = payload.first {
                start += 1
                end -= Int(padding)
            }
            if header.flags.contains(.priority) { start += 5 }
            guard start <= end else { return nil }
            block = Array(payload[start..<end])
        case .continuation:
            guard block.count + payload.count <= Self.payloadLimit else {
                // Without this block the table of all that follow is unknown.
                isReadable = false
                return nil
            }
            block += payload
        default:
            return nil
        }
        guard header.flags.contains(.endHeaders) else { return nil }
        defer { block = [] }
        return inflate()
    }

    private mutating func inflate() -> [(name: [UInt8], value: [UInt8])]? {
        var fields: [(name: [UInt8], value: [UInt8])] = []
        var offset = 0
        while true {
            var field = unsafe nghttp2_nv()
            var flags: Int32 = 0
            let (inflater, count) = unsafe (inflater, block.count)
            let read = unsafe block.withUnsafeBufferPointer { bytes in
                // No more than the `count` bytes are read from there on.
                unsafe nghttp2_hd_inflate_hd2(
                    inflater, &field, &flags, bytes.baseAddress.map { unsafe $0 + offset },
                    count - offset, 1)
            }
            guard read >= 0 else {
                isReadable = false
                return nil
            }
            offset += Int(read)
            if flags & Int32(NGHTTP2_HD_INFLATE_EMIT.rawValue) != 0 {
                // Name and value live until the next call to the inflater.
                unsafe fields.append(
                    (
                        Array(UnsafeBufferPointer(start: field.name, count: field.namelen)),
                        Array(UnsafeBufferPointer(start: field.value, count: field.valuelen))
                    ))
            }
            if flags & Int32(NGHTTP2_HD_INFLATE_FINAL.rawValue) != 0 {
                unsafe nghttp2_hd_inflate_end_headers(inflater)
                return fields
            }
            if read == 0, flags == 0 { return fields }
        }
    }
}
