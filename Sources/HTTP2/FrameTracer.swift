/// A frame for a trace.
public struct TracedFrame: Sendable {
    /// Type, flags, stream and length.
    public var header: FrameHeader
    /// The fields of a complete header block; nil for other frames or if the block could not be
    /// decoded.
    public var fields: [(name: [UInt8], value: [UInt8])]?
    /// Payload of the frame.
    public var payload: [UInt8]
}

/// Decodes one direction of a connection for traces. Not for the hot path: it allocates. An error
/// ends the trace, never the connection.
public struct FrameTracer: ~Copyable {
    /// Maximum byte count of a payload or a header block; a longer one ends the trace.
    private static let payloadLimit = 1 << 16

    private var pending: [UInt8] = []
    private let inflater = HeaderInflater()
    private var block: [UInt8] = []
    private var isReadable: Bool
    /// Bytes of the preface still to come (RFC 9113 section 3.4).
    private var prefaceCount: Int

    /// - Parameter isClient: Whether the bytes come from the client and start with the preface.
    public init(isClient: Bool) {
        prefaceCount = isClient ? 24 : 0
        isReadable = true
    }

    /// Processes the next bytes of the direction.
    public mutating func take(_ bytes: RawSpan, _ report: (TracedFrame) -> Void) {
        guard isReadable else { return }
        let skipped = min(prefaceCount, bytes.byteCount)
        prefaceCount -= skipped
        for offset in skipped..<bytes.byteCount { pending.append(bytes.byte(at: offset)) }
        var offset = 0
        while isReadable, pending.count - offset >= FrameHeader.byteCount {
            // SAFETY: bytes have no padding; the span ends with the statement.
            let header = FrameHeader(unsafe pending.span.bytes, at: offset)
            guard header.length <= Self.payloadLimit else {
                isReadable = false
                pending = []
                return
            }
            let start = offset + FrameHeader.byteCount
            guard pending.count - start >= header.length else { break }
            let payload = Array(pending[start..<(start + header.length)])
            report(TracedFrame(header: header, fields: fields(header, payload), payload: payload))
            offset = start + header.length
        }
        assert(offset <= pending.count, "frames are in what was taken")
        pending.removeFirst(offset)
    }

    /// Fields of a block that ends with this frame.
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
                // Without this block, the table is unknown for all later blocks.
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
        // SAFETY: bytes have no padding.
        let isGood = inflater?.inflate(unsafe block.span.bytes) { name, value in
            fields.append((Self.array(name), Self.array(value)))
        }
        isReadable = isGood ?? false
        return isReadable ? fields : nil
    }

    private static func array(_ bytes: RawSpan) -> [UInt8] {
        // SAFETY: a span's bytes are set, and are copied before the closure ends.
        unsafe bytes.withUnsafeBytes { unsafe Array($0) }
    }
}
