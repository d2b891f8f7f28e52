/// Serialization of the frames that the simulator reads and writes itself (RFC 9113 sections 4 and
/// 6).
enum FrameBytes {
    static let data: UInt8 = 0
    static let headers: UInt8 = 1
    static let resetStream: UInt8 = 3
    static let settings: UInt8 = 4
    static let ping: UInt8 = 6
    static let goAway: UInt8 = 7
    static let windowUpdate: UInt8 = 8
    static let continuation: UInt8 = 9

    static let endStream: UInt8 = 0x1
    static let acknowledgement: UInt8 = 0x1
    static let endHeaders: UInt8 = 0x4
    static let padded: UInt8 = 0x8
    static let priority: UInt8 = 0x20

    // MARK: Reading

    /// Returns the byte count of the frame at the start of `bytes`, including the frame's header; 0
    /// if the header is incomplete.
    @inline(__always)
    static func wholeCount(_ bytes: RawSpan) -> Int {
        guard bytes.byteCount >= 9 else { return 0 }
        return 9 + Int(bytes.integer(at: 0) >> 8)
    }

    /// Returns a payload without padding and, for HEADERS, without priority; nil if these are
    /// longer than the payload.
    @inline(__always)
    @_lifetime(copy payload)
    static func unpadded(_ payload: RawSpan, flags: UInt8, isHeaders: Bool) -> RawSpan? {
        let mask = isHeaders ? padded | priority : padded
        if flags & mask == 0 { return payload }
        var front = 0
        var back = 0
        if flags & padded != 0 {
            guard payload.byteCount > 0 else { return nil }
            back = Int(payload[0])
            front = 1
        }
        if isHeaders, flags & priority != 0 { front += 5 }
        guard front + back <= payload.byteCount else { return nil }
        return payload.extracting(front..<payload.byteCount - back)
    }

    // MARK: Writing

    @inline(__always)
    private static func appendHeader(
        count: Int, type: UInt8, flags: UInt8 = 0, streamID: UInt32 = 0, to output: inout ByteBuffer
    ) {
        assert(
            count >= 0 && count < 1 << 24 && streamID >> 31 == 0,
            "the frame header can be written")
        output.append(bigEndian: UInt32(count) << 8 | UInt32(type))
        output.append(flags)
        output.append(bigEndian: streamID)
    }

    /// Completes the frame header at `start`: sets the frame's length to the number of bytes after
    /// the header.
    @inline(__always)
    private static func endFrame(from start: Int, type: UInt8, in output: inout ByteBuffer) {
        let count = output.count - start - 9
        assert(count >= 0 && count < 1 << 24, "a length has 24 bits")
        output.overwrite(at: start, bigEndian: UInt32(count) << 8 | UInt32(type))
    }

    /// Appends a frame whose payload is the given big-endian words.
    private static func append(
        _ type: UInt8, flags: UInt8 = 0, streamID: UInt32 = 0, words: [UInt32],
        to output: inout ByteBuffer
    ) {
        appendHeader(
            count: 4 * words.count, type: type, flags: flags, streamID: streamID, to: &output)
        for word in words { output.append(bigEndian: word) }
    }

    /// Returns a GOAWAY frame.
    static func goAway(lastStreamID: UInt32, code: UInt32, debug: [UInt8]) -> [UInt8] {
        var frame: [UInt8] = []
        func append(_ value: UInt32, _ count: Int) {
            for byte in (0..<count).reversed() {
                frame.append(UInt8(truncatingIfNeeded: value >> UInt32(8 * byte)))
            }
        }
        append(UInt32(8 + debug.count), 3)
        frame += [goAway, 0]
        append(0, 4)
        append(lastStreamID, 4)
        append(code, 4)
        return frame + debug
    }

    /// Appends a SETTINGS frame with the entries in the order used by APNs.
    static func appendSettings(_ maxStreams: UInt32, to output: inout ByteBuffer) {
        let values: [(UInt16, UInt32)] = [
            (1, 4096), (3, maxStreams), (4, 65_535), (5, UInt32(SimulatorLimits.frameSize)),
            (6, UInt32(SimulatorLimits.headerListSize)),
        ]
        appendHeader(count: 6 * values.count, type: settings, to: &output)
        for (identifier, value) in values {
            output.append(bigEndian: identifier)
            output.append(bigEndian: value)
        }
    }

    static func appendSettingsAcknowledgement(to output: inout ByteBuffer) {
        append(settings, flags: acknowledgement, words: [], to: &output)
    }

    static func appendWindowUpdate(
        _ credit: Int, streamID: UInt32 = 0, to output: inout ByteBuffer
    ) {
        output.reserve(13)
        appendHeader(count: 4, type: windowUpdate, streamID: streamID, to: &output)
        output.append(bigEndian: UInt32(credit))
    }

    static func appendReset(_ streamID: UInt32, _ code: ErrorCode, to output: inout ByteBuffer) {
        append(resetStream, streamID: streamID, words: [code.rawValue], to: &output)
    }

    static func appendPingAcknowledgement(_ opaque: RawSpan, to output: inout ByteBuffer) {
        append(
            ping, flags: acknowledgement,
            words: [opaque.integer(at: 0), opaque.integer(at: 4)], to: &output)
    }

    static func appendGoAway(
        _ lastStreamID: UInt32, _ code: ErrorCode, _ text: String, to output: inout ByteBuffer
    ) {
        let start = output.count
        append(goAway, words: [lastStreamID, code.rawValue], to: &output)
        let debug = Array(text.utf8)
        output.append(debug.span.rawBytes)
        endFrame(from: start, type: goAway, in: &output)
    }

    private static let identifierName: StaticString = "\u{0}\u{7}apns-id\u{24}"

    /// Appends a 200 response of 56 bytes: the entry of the static table, and apns-id as a literal
    /// without indexing.
    static func appendAccepted(_ pending: PendingResponse, to output: inout ByteBuffer) {
        output.reserve(64)
        appendHeader(
            count: 47, type: headers, flags: endStream | endHeaders, streamID: pending.streamID,
            to: &output)
        output.append(0x88)
        output.append(identifierName)
        output.append(pending.identifier)
    }

    /// Appends a refusal, encoded as in test vector V19: HEADERS, then DATA with the reason.
    /// Returns the number of bytes in the body.
    static func appendRefusal(
        _ pending: PendingResponse, withBody: Bool, to output: inout ByteBuffer
    ) -> Int {
        // At most 9 + 5 + 19 + 46 + 9 + 96 bytes are written.
        output.reserve(256)
        let start = output.count
        let hasBody = withBody && pending.response.reason != nil
        appendHeader(
            count: 0, type: headers, flags: hasBody ? endHeaders : endHeaders | endStream,
            streamID: pending.streamID, to: &output)
        // `:status` with name index 8 and a value of three digits.
        output.append("\u{8}\u{3}")
        output.append(decimal: UInt64(pending.response.status))
        // `content-type` with name index 31.
        if hasBody || pending.omitsBody { output.append("\u{f}\u{10}\u{10}application/json") }
        output.append(identifierName)
        output.append(pending.identifier)
        endFrame(from: start, type: headers, in: &output)
        guard hasBody else { return 0 }
        let body = output.count
        appendHeader(
            count: 0, type: data, flags: endStream, streamID: pending.streamID, to: &output)
        let bodyCount = pending.response.appendBody(to: &output)
        endFrame(from: body, type: data, in: &output)
        return bodyCount
    }
}
