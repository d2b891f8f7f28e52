internal import BroadsideAPNs
internal import BroadsideHPACK

/// A minimal HTTP/2 server session for benchmarks (`--fast`).
///
///     frames in -> HEADERS: decode, examine -> stream -> DATA: count -> END_STREAM: respond
///
/// It applies the same checks and outcomes as `ServerSession`, in one pass over the received bytes,
/// and does not allocate memory per request. It writes no journal, permits all streams from the
/// start, and has no idle timeout. It sends no `apns-unique-id`, and no GOAWAY when the endpoint
/// stops. It does not check the rules about header names and pseudo-headers.
final class FastSession {
    let context: WorkerContext
    private let topics: TopicTable
    private var credential: ConnectionCredential
    let slot: UInt32
    let generation: UInt32
    private var decoder = HeaderDecoder()
    private var lint: HPACKLint?
    var streams: FastStreamTable
    var output = ByteBuffer(capacity: 4096)

    /// The beginning of an incomplete frame.
    private var partial = ByteBuffer(capacity: 1024)
    private var prefaceCount = 0
    /// A header block that spans several frames, and the number of its stream; 0 if there is no
    /// such block.
    private var block = ByteBuffer(capacity: 256)
    private var blockStreamID: UInt32 = 0
    private var blockEndsStream = false
    private var lastStreamID: UInt32 = 0
    /// The highest stream whose request was processed.
    var highestTaken: UInt32 = 0
    private var skippedStreams = SkippedStreams()
    /// The client's flow-control window for the connection. Only bodies of refusals use it up.
    var sendWindow = 65_535
    var initialSendWindow = 65_535
    var blocked: [PendingResponse] = []
    /// Earliest time of the next response, nanoseconds, if a scenario limits the rate.
    var nextResponse: UInt64 = 0
    /// Number of DATA bytes for which no window credit was returned to the client.
    private var uncredited = 0
    /// True once GOAWAY is queued. The caller writes it and closes the connection.
    private(set) var isFinished = false

    /// Number of DATA bytes without returned credit that triggers a WINDOW_UPDATE: a quarter of the
    /// initial window.
    private static let creditThreshold = 16_384
    /// Bytes by which the connection window exceeds the initial window of 65,535 bytes, for clients
    /// that send many bodies together.
    private static let extraWindow = 1 << 20

    init(
        context: WorkerContext, credential: ConnectionCredential, topics: TopicTable, slot: UInt32,
        generation: UInt32
    ) {
        self.context = context
        self.credential = credential
        self.topics = topics
        self.slot = slot
        self.generation = generation
        streams = FastStreamTable(limit: Int(context.options.maxStreams))
        lint =
            context.options.lint == .off ? nil : HPACKLint(profile: context.options.lintProfile)
        FrameBytes.appendSettings(context.options.maxStreams, to: &output)
        FrameBytes.appendWindowUpdate(Self.extraWindow, to: &output)
    }

    deinit {
        if let lint { context.totals.add(lint) }
    }

    /// Moves the pending output to `target`.
    func takeOutput(into target: inout ByteBuffer) {
        if target.count == 0 {
            swap(&output, &target)
        } else {
            target.append(output.bytes)
            output.removeAll()
        }
    }

    // MARK: Frames

    /// Processes plaintext. Returns false if it is not HTTP/2; the caller then closes the
    /// connection.
    func receive(_ bytes: RawSpan) -> Bool {
        var offset = 0
        let text: StaticString = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        let preface = text.rawBytes
        while prefaceCount < preface.byteCount, offset < bytes.byteCount {
            guard bytes[offset] == preface[prefaceCount] else { return false }
            prefaceCount += 1
            offset += 1
        }
        while offset < bytes.byteCount, !isFinished {
            if partial.count > 0 {
                completePartial(bytes, &offset)
                continue
            }
            let rest = bytes.extracting(offset...)
            let count = FrameBytes.wholeCount(rest)
            guard count <= 9 + SimulatorLimits.frameSize else {
                fail(.frameSizeError)
                break
            }
            guard rest.byteCount >= 9, count <= rest.byteCount else {
                partial.append(rest)
                break
            }
            frame(rest.extracting(first: count))
            offset += count
        }
        return true
    }

    /// Adds bytes to the incomplete frame.
    private func completePartial(_ bytes: RawSpan, _ offset: inout Int) {
        let count = max(9, FrameBytes.wholeCount(partial.bytes))
        guard count <= 9 + SimulatorLimits.frameSize else {
            fail(.frameSizeError)
            return
        }
        assert(partial.count < count, "a whole frame does not wait")
        let taken = min(count - partial.count, bytes.byteCount - offset)
        partial.append(bytes.extracting(offset..<offset + taken))
        offset += taken
        guard partial.count >= 9, partial.count == FrameBytes.wholeCount(partial.bytes)
        else { return }
        // No frame handler modifies `partial` before it returns.
        frame(partial.bytes)
        partial.removeAll()
    }

    private func frame(_ bytes: RawSpan) {
        assert(bytes.byteCount == FrameBytes.wholeCount(bytes), "one whole frame")
        let type = bytes[3]
        let flags = bytes[4]
        let streamID = bytes.integer(at: 5) & 0x7fff_ffff
        let payload = bytes.extracting(9...)
        if blockStreamID != 0, type != FrameBytes.continuation || streamID != blockStreamID {
            fail(.protocolError)
            return
        }
        switch type {
        case FrameBytes.headers: headers(payload, flags: flags, streamID: streamID)
        case FrameBytes.data: data(payload, flags: flags, streamID: streamID)
        case FrameBytes.continuation: continuation(payload, flags: flags)
        case FrameBytes.resetStream: streams.remove(streamID)
        case FrameBytes.settings: settings(payload, flags: flags)
        case FrameBytes.ping:
            guard payload.byteCount == 8 else {
                fail(.frameSizeError)
                return
            }
            if flags & FrameBytes.acknowledgement == 0 {
                FrameBytes.appendPingAcknowledgement(payload, to: &output)
            }
        case FrameBytes.windowUpdate: windowUpdate(payload, streamID: streamID)
        // PRIORITY and unknown frame types are ignored. So is a client's GOAWAY, because the client
        // closes its socket anyway.
        default: break
        }
    }

    private func headers(_ payload: RawSpan, flags: UInt8, streamID: UInt32) {
        guard let fragment = FrameBytes.unpadded(payload, flags: flags, isHeaders: true),
            streamID & 1 == 1
        else {
            fail(.protocolError)
            return
        }
        let endsStream = flags & FrameBytes.endStream != 0
        guard streamID > lastStreamID else {
            if skippedStreams.contains(streamID) {
                fail(.protocolError, "stream \(streamID) after stream \(lastStreamID)")
                return
            }
            // Trailers are ignored, but they must pass through the dynamic table.
            decode(fragment)
            if endsStream { complete(streamID) }
            return
        }
        skippedStreams.record(from: lastStreamID, to: streamID)
        lastStreamID = streamID
        if flags & FrameBytes.endHeaders != 0 {
            began(streamID, fragment, endsStream: endsStream)
        } else {
            block.removeAll()
            block.append(fragment)
            blockStreamID = streamID
            blockEndsStream = endsStream
        }
    }

    private func continuation(_ payload: RawSpan, flags: UInt8) {
        guard blockStreamID != 0 else {
            fail(.protocolError)
            return
        }
        guard block.count + payload.byteCount <= SimulatorLimits.headerBlockCount else {
            fail(.enhanceYourCalm)
            return
        }
        block.append(payload)
        guard flags & FrameBytes.endHeaders != 0 else { return }
        let streamID = blockStreamID
        let endsStream = blockEndsStream
        blockStreamID = 0
        // No handler of a header block modifies `block` before it returns.
        began(streamID, block.bytes, endsStream: endsStream)
        block.removeAll()
    }

    private func decode(_ fragment: RawSpan) {
        context.head.reset()
        do throws(HPACKError) {
            try decoder.decode(fragment, into: &context.head, huffman: context.huffman)
        } catch {
            fail(.compressionError)
        }
    }

    /// Handles a complete header block of a request.
    private func began(_ streamID: UInt32, _ fragment: RawSpan, endsStream: Bool) {
        assert(blockStreamID == 0, "a header block is whole")
        if lint != nil, let finding = lint?.check(fragment), context.options.lint == .refuse {
            fail(.protocolError, "HPACK discipline: \(finding)")
            return
        }
        decode(fragment)
        guard !isFinished else { return }
        guard let index = streams.insert(streamID) else {
            FrameBytes.appendReset(streamID, .refusedStream, to: &output)
            context.totals.violations += 1
            return
        }
        streams[index].identifier = context.identifier(context.head)
        streams[index].verdict =
            context.head.isTooLarge
            ? Verdict(early: Response(status: 431, reason: nil))
            : context.examine(context.head, &credential, topics: topics)
        if endsStream { complete(streamID) }
    }

    private func data(_ payload: RawSpan, flags: UInt8, streamID: UInt32) {
        uncredited += payload.byteCount
        if uncredited >= Self.creditThreshold {
            FrameBytes.appendWindowUpdate(uncredited, to: &output)
            uncredited = 0
        }
        assert(uncredited < Self.creditThreshold, "what was received is credited")
        guard let body = FrameBytes.unpadded(payload, flags: flags, isHeaders: false) else {
            fail(.protocolError)
            return
        }
        guard let index = streams.find(streamID) else { return }
        // The count saturates, because all values beyond the payload limit have the same effect.
        streams[index].bodyCount = min(streams[index].bodyCount, 1 << 24) + UInt32(body.byteCount)
        if flags & FrameBytes.endStream != 0 {
            complete(streamID)
        } else if payload.byteCount > 0 {
            FrameBytes.appendWindowUpdate(payload.byteCount, streamID: streamID, to: &output)
        }
    }

    private func settings(_ payload: RawSpan, flags: UInt8) {
        guard flags & FrameBytes.acknowledgement == 0 else { return }
        guard payload.byteCount.isMultiple(of: 6) else {
            fail(.frameSizeError)
            return
        }
        for position in stride(from: 0, to: payload.byteCount, by: 6) {
            let identifier = payload[position + 1]
            guard payload[position] == 0, identifier == 4 else { continue }
            initialSendWindow = Int(payload.integer(at: position + 2))
        }
        FrameBytes.appendSettingsAcknowledgement(to: &output)
    }

    private func windowUpdate(_ payload: RawSpan, streamID: UInt32) {
        guard payload.byteCount == 4 else {
            fail(.frameSizeError)
            return
        }
        guard streamID == 0 else { return }
        sendWindow += Int(payload.integer(at: 0) & 0x7fff_ffff)
        let waiting = blocked
        blocked = []
        for response in waiting { write(response) }
    }

    /// Rejects a client certificate with a GOAWAY that accepts no stream, and ends the session.
    func refuseCertificate(_ reason: Reason) {
        isFinished = true
        FrameBytes.appendGoAway(0, .noError, "{\"reason\":\"\(reason.text)\"}", to: &output)
    }

    private func fail(_ code: ErrorCode, _ text: String = "") {
        guard !isFinished else { return }
        isFinished = true
        context.totals.violations += 1
        FrameBytes.appendGoAway(highestTaken, code, text, to: &output)
    }
}
