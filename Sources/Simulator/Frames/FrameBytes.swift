internal import Glibc

/// Frames as bytes (RFC 9113 sections 4 and 6), as far as the simulator reads and writes them itself.
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

    /// Error codes of section 7 that are sent from here.
    enum ErrorCode: UInt32 {
        case noError = 0
        case protocolError = 1
        case frameSizeError = 6
        case refusedStream = 7
        case compressionError = 9
        case enhanceYourCalm = 11
    }

    // MARK: Reading

    /// A big-endian integer of four bytes.
    @inline(__always)
    static func integer(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt32 {
        unsafe UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
    }

    /// The bytes of the frame that begins here, its header included; 0 where too few have come.
    @inline(__always)
    static func wholeCount(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard bytes.count >= 9 else { return 0 }
        return unsafe 9 + Int(integer(bytes, at: 0) >> 8)
    }

    /// What is left of a payload without padding and, for HEADERS, priority; nil where they are
    /// longer than it is.
    @inline(__always)
    static func unpadded(
        _ payload: UnsafeRawBufferPointer, flags: UInt8, isHeaders: Bool
    ) -> UnsafeRawBufferPointer? {
        let mask = isHeaders ? padded | priority : padded
        if flags & mask == 0 { return unsafe payload }
        var front = 0
        var back = 0
        if flags & padded != 0 {
            guard payload.count > 0 else { return nil }
            back = unsafe Int(payload[0])
            front = 1
        }
        if isHeaders, flags & priority != 0 { front += 5 }
        guard front + back <= payload.count else { return nil }
        return unsafe UnsafeRawBufferPointer(rebasing: payload[front..<payload.count - back])
    }

    // MARK: Writing

    @inline(__always)
    private static func writeHeader(
        _ base: UnsafeMutableRawPointer, count: Int, type: UInt8, flags: UInt8, streamID: UInt32
    ) {
        let head = UInt32(count) << 8 | UInt32(type)
        unsafe base.storeBytes(of: head.bigEndian, as: UInt32.self)
        unsafe base.storeBytes(of: flags, toByteOffset: 4, as: UInt8.self)
        unsafe base.storeBytes(of: streamID.bigEndian, toByteOffset: 5, as: UInt32.self)
    }

    /// Appends a frame whose payload is these words, big-endian.
    private static func append(
        _ type: UInt8, flags: UInt8 = 0, streamID: UInt32 = 0, words: [UInt32],
        to output: inout ByteBuffer
    ) {
        output.reserve(9 + 4 * words.count)
        // SAFETY: `reserve` made room for the header and all words.
        let base = unsafe output.base + output.count
        unsafe writeHeader(
            base, count: 4 * words.count, type: type, flags: flags, streamID: streamID)
        for (position, word) in words.enumerated() {
            unsafe base.storeBytes(
                of: word.bigEndian, toByteOffset: 9 + 4 * position, as: UInt32.self)
        }
        output.count += 9 + 4 * words.count
    }

    /// A GOAWAY frame.
    static func goAway(lastStreamID: UInt32, code: UInt32, debug: [UInt8]) -> [UInt8] {
        var frame: [UInt8] = []
        func append(_ value: UInt32, _ count: Int) {
            for octet in (0..<count).reversed() {
                frame.append(UInt8(truncatingIfNeeded: value >> UInt32(8 * octet)))
            }
        }
        append(UInt32(8 + debug.count), 3)
        frame += [goAway, 0]
        append(0, 4)
        append(lastStreamID, 4)
        append(code, 4)
        return frame + debug
    }

    /// The settings in the order of APNs' own frame.
    static func appendSettings(_ maxStreams: UInt32, to output: inout ByteBuffer) {
        let values: [(UInt16, UInt32)] = [
            (1, 4096), (3, maxStreams), (4, 65_535), (5, UInt32(SimulatorLimits.frameSize)),
            (6, UInt32(SimulatorLimits.headerListSize)),
        ]
        output.reserve(9 + 6 * values.count)
        // SAFETY: `reserve` made room for the header and all settings.
        let base = unsafe output.base + output.count
        unsafe writeHeader(base, count: 6 * values.count, type: settings, flags: 0, streamID: 0)
        for (position, entry) in values.enumerated() {
            unsafe base.storeBytes(
                of: entry.0.bigEndian, toByteOffset: 9 + 6 * position, as: UInt16.self)
            unsafe base.storeBytes(
                of: entry.1.bigEndian, toByteOffset: 11 + 6 * position, as: UInt32.self)
        }
        output.count += 9 + 6 * values.count
    }

    static func appendSettingsAcknowledgement(to output: inout ByteBuffer) {
        append(settings, flags: acknowledgement, words: [], to: &output)
    }

    static func appendWindowUpdate(
        _ credit: Int, streamID: UInt32 = 0, to output: inout ByteBuffer
    ) {
        output.reserve(13)
        // SAFETY: `reserve` made room for the 13 bytes of the frame.
        let base = unsafe output.base + output.count
        unsafe writeHeader(base, count: 4, type: windowUpdate, flags: 0, streamID: streamID)
        unsafe base.storeBytes(
            of: UInt32(credit).bigEndian, toByteOffset: 9, as: UInt32.self)
        output.count += 13
    }

    static func appendReset(_ streamID: UInt32, _ code: ErrorCode, to output: inout ByteBuffer) {
        append(resetStream, streamID: streamID, words: [code.rawValue], to: &output)
    }

    static func appendPingAcknowledgement(
        _ opaque: UnsafeRawBufferPointer, to output: inout ByteBuffer
    ) {
        append(
            ping, flags: acknowledgement,
            words: unsafe [integer(opaque, at: 0), integer(opaque, at: 4)], to: &output)
    }

    static func appendGoAway(
        _ lastStreamID: UInt32, _ code: ErrorCode, _ text: String, to output: inout ByteBuffer
    ) {
        let start = output.count
        append(goAway, words: [lastStreamID, code.rawValue], to: &output)
        let debug = Array(text.utf8)
        unsafe debug.withUnsafeBytes { unsafe output.append($0) }
        // SAFETY: it overwrites the header that `append` wrote there.
        unsafe writeHeader(
            output.base + start, count: 8 + debug.count, type: goAway, flags: 0, streamID: 0)
    }

    private static let identifierName: StaticString = "\u{0}\u{7}apns-id\u{24}"

    /// A 200: the static entry, and apns-id as a literal without indexing. 56 bytes.
    static func appendAccepted(_ pending: PendingAnswer, to output: inout ByteBuffer) {
        output.reserve(64)
        // SAFETY: of the 64 bytes that are reserved, 56 are written.
        let base = unsafe output.base + output.count
        unsafe writeHeader(
            base, count: 47, type: headers, flags: endStream | endHeaders,
            streamID: pending.streamID)
        unsafe base.storeBytes(of: 0x88, toByteOffset: 9, as: UInt8.self)
        unsafe writeIdentifier(pending.identifier, to: base + 10)
        output.count += 56
    }

    @inline(__always)
    private static func writeIdentifier(
        _ identifier: NotificationIDText, to target: UnsafeMutableRawPointer
    ) {
        // SAFETY: the callers reserved these 46 bytes: a name of 10, a text of 36.
        unsafe target.copyMemory(from: identifierName.utf8Start, byteCount: 10)
        unsafe (target + 10).storeBytes(of: identifier, as: NotificationIDText.self)
    }

    /// A refusal as in vector V19: HEADERS, then DATA with the reason. Returns the body's bytes.
    static func appendRefusal(
        _ pending: PendingAnswer, withBody: Bool, to output: inout ByteBuffer
    ) -> Int {
        output.reserve(256)
        // SAFETY: of 256 reserved bytes, at most 9 + 5 + 19 + 46 + 9 + 96 are written.
        let frame = unsafe output.base + output.count
        var block = unsafe frame + 9
        func text(_ text: StaticString) {
            unsafe block.copyMemory(from: text.utf8Start, byteCount: text.utf8CodeUnitCount)
            unsafe block += text.utf8CodeUnitCount
        }
        // `:status` by its name index 8, three digits.
        text("\u{8}\u{3}")
        unsafe block += Decimal.write(UInt64(pending.answer.status), to: block)
        let hasBody = withBody && pending.answer.reason != nil
        // `content-type` by its name index 31.
        if hasBody || pending.omitsBody { text("\u{f}\u{10}\u{10}application/json") }
        unsafe writeIdentifier(pending.identifier, to: block)
        unsafe block += 46
        let blockCount = unsafe block - frame - 9
        unsafe writeHeader(
            frame, count: blockCount, type: headers,
            flags: hasBody ? endHeaders : endHeaders | endStream, streamID: pending.streamID)
        output.count += 9 + blockCount
        guard hasBody else { return 0 }
        let bodyCount = unsafe pending.answer.writeBody(to: block + 9)
        unsafe writeHeader(
            block, count: bodyCount, type: data, flags: endStream, streamID: pending.streamID)
        output.count += 9 + bodyCount
        return bodyCount
    }
}
