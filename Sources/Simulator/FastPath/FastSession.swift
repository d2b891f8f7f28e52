internal import APNs
internal import HPACK

/// One connection's HTTP/2 as cheaply as it goes, for benchmarks (`--fast`).
///
///     frames in -> HEADERS: decode, examine -> stream -> DATA: count -> END_STREAM: answer
///
/// The same checks and fates as `ServerSession`, in one pass over the received bytes and without an
/// allocation a request; no journal, and all streams at once from the start.
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

    /// The start of a frame whose rest has not come yet.
    private var partial = ByteBuffer(capacity: 1024)
    private var prefaceCount = 0
    /// A header block of several frames, and the stream that it is for; 0 for none.
    private var block = ByteBuffer(capacity: 256)
    private var blockStreamID: UInt32 = 0
    private var blockEndsStream = false
    private var lastStreamID: UInt32 = 0
    /// The client's windows, which only bodies of refusals need.
    var sendWindow = 65_535
    var initialSendWindow = 65_535
    var blocked: [PendingAnswer] = []
    /// When the next answer may leave, where a scenario limits how many do; nanoseconds.
    var nextAnswer: UInt64 = 0
    /// Bytes of DATA that the client was not given credit for yet.
    private var uncredited = 0
    /// GOAWAY is queued: write it and close.
    private(set) var isFinished = false

    /// Bytes of DATA after which credit is given: a quarter of the first window.
    private static let creditThreshold = 16_384
    /// Beside the first window, for clients that send many bodies at once.
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

    /// Moves what waits to `target`.
    func takeOutput(into target: inout ByteBuffer) {
        if target.count == 0 {
            swap(&output, &target)
        } else {
            unsafe target.append(output.bytes)
            output.count = 0
        }
    }

    // MARK: Frames

    /// Takes plaintext in. False: no HTTP/2 at all, close.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        var offset = 0
        let preface: StaticString = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
        while prefaceCount < preface.utf8CodeUnitCount, offset < bytes.count {
            guard unsafe bytes[offset] == preface.utf8Start[prefaceCount] else { return false }
            prefaceCount += 1
            offset += 1
        }
        while offset < bytes.count, !isFinished {
            if partial.count > 0 {
                unsafe completePartial(bytes, &offset)
                continue
            }
            let rest = unsafe UnsafeRawBufferPointer(rebasing: bytes[offset...])
            let count = unsafe FrameBytes.wholeCount(rest)
            guard count <= 9 + SimulatorLimits.frameSize else {
                fail(.frameSizeError)
                break
            }
            guard rest.count >= 9, count <= rest.count else {
                unsafe partial.append(rest)
                break
            }
            unsafe frame(UnsafeRawBufferPointer(rebasing: rest[..<count]))
            offset += count
        }
        return true
    }

    /// Adds to a frame that began in earlier bytes.
    private func completePartial(_ bytes: UnsafeRawBufferPointer, _ offset: inout Int) {
        let count = unsafe max(9, FrameBytes.wholeCount(partial.bytes))
        guard count <= 9 + SimulatorLimits.frameSize else {
            fail(.frameSizeError)
            return
        }
        let taken = min(count - partial.count, bytes.count - offset)
        unsafe partial.append(UnsafeRawBufferPointer(rebasing: bytes[offset..<offset + taken]))
        offset += taken
        guard partial.count >= 9, unsafe partial.count == FrameBytes.wholeCount(partial.bytes)
        else { return }
        // SAFETY: no frame's handling touches `partial` before it returns.
        unsafe frame(partial.bytes)
        partial.count = 0
    }

    private func frame(_ bytes: UnsafeRawBufferPointer) {
        let type = unsafe bytes[3]
        let flags = unsafe bytes[4]
        let streamID = unsafe FrameBytes.integer(bytes, at: 5) & 0x7fff_ffff
        let payload = unsafe UnsafeRawBufferPointer(rebasing: bytes[9...])
        if blockStreamID != 0, type != FrameBytes.continuation || streamID != blockStreamID {
            fail(.protocolError)
            return
        }
        switch type {
        case FrameBytes.headers: unsafe headers(payload, flags: flags, streamID: streamID)
        case FrameBytes.data: unsafe data(payload, flags: flags, streamID: streamID)
        case FrameBytes.continuation: unsafe continuation(payload, flags: flags)
        case FrameBytes.resetStream: streams.remove(streamID)
        case FrameBytes.settings: unsafe settings(payload, flags: flags)
        case FrameBytes.ping:
            guard payload.count == 8 else {
                fail(.frameSizeError)
                return
            }
            if flags & FrameBytes.acknowledgement == 0 {
                unsafe FrameBytes.appendPingAcknowledgement(payload, to: &output)
            }
        case FrameBytes.windowUpdate: unsafe windowUpdate(payload, streamID: streamID)
        // PRIORITY and unknown types mean nothing here; a client's GOAWAY ends with its socket.
        default: break
        }
    }

    private func headers(_ payload: UnsafeRawBufferPointer, flags: UInt8, streamID: UInt32) {
        guard let fragment = unsafe FrameBytes.unpadded(payload, flags: flags, isHeaders: true),
            streamID & 1 == 1
        else {
            fail(.protocolError)
            return
        }
        let endsStream = flags & FrameBytes.endStream != 0
        guard streamID > lastStreamID else {
            // Trailers: nothing in them matters, but the table has to see them.
            unsafe decode(fragment)
            if endsStream { complete(streamID) }
            return
        }
        lastStreamID = streamID
        if flags & FrameBytes.endHeaders != 0 {
            unsafe began(streamID, fragment, endsStream: endsStream)
        } else {
            block.count = 0
            unsafe block.append(fragment)
            blockStreamID = streamID
            blockEndsStream = endsStream
        }
    }

    private func continuation(_ payload: UnsafeRawBufferPointer, flags: UInt8) {
        guard blockStreamID != 0 else {
            fail(.protocolError)
            return
        }
        guard block.count + payload.count <= SimulatorLimits.headerBlockCount else {
            fail(.enhanceYourCalm)
            return
        }
        unsafe block.append(payload)
        guard flags & FrameBytes.endHeaders != 0 else { return }
        let streamID = blockStreamID
        blockStreamID = 0
        // SAFETY: `block` stays as it is until the next HEADERS frame.
        unsafe began(streamID, block.bytes, endsStream: blockEndsStream)
    }

    private func decode(_ fragment: UnsafeRawBufferPointer) {
        context.head.reset()
        do throws(HPACKError) {
            unsafe try decoder.decode(fragment, into: &context.head, huffman: context.huffman)
        } catch {
            fail(.compressionError)
        }
    }

    /// A request's header block is complete.
    private func began(
        _ streamID: UInt32, _ fragment: UnsafeRawBufferPointer, endsStream: Bool
    ) {
        if lint != nil, let finding = unsafe lint?.check(fragment), context.options.lint == .refuse
        {
            fail(.protocolError, "HPACK discipline: \(finding)")
            return
        }
        unsafe decode(fragment)
        guard !isFinished else { return }
        guard let index = streams.insert(streamID) else {
            FrameBytes.appendReset(streamID, .refusedStream, to: &output)
            context.totals.violations += 1
            return
        }
        streams[index].identifier = context.identifier(context.head)
        streams[index].verdict =
            context.head.isTooLarge
            ? Verdict(early: Answer(status: 431, reason: nil))
            : context.examine(context.head, &credential, topics: topics)
        if endsStream { complete(streamID) }
    }

    private func data(_ payload: UnsafeRawBufferPointer, flags: UInt8, streamID: UInt32) {
        uncredited += payload.count
        if uncredited >= Self.creditThreshold {
            FrameBytes.appendWindowUpdate(uncredited, to: &output)
            uncredited = 0
        }
        guard let body = unsafe FrameBytes.unpadded(payload, flags: flags, isHeaders: false) else {
            fail(.protocolError)
            return
        }
        guard let index = streams.find(streamID) else { return }
        // Saturates: beyond the payload limit the number means nothing.
        streams[index].bodyCount = min(streams[index].bodyCount, 1 << 24) + UInt32(body.count)
        if flags & FrameBytes.endStream != 0 {
            complete(streamID)
        } else if payload.count > 0 {
            FrameBytes.appendWindowUpdate(payload.count, streamID: streamID, to: &output)
        }
    }

    private func settings(_ payload: UnsafeRawBufferPointer, flags: UInt8) {
        guard flags & FrameBytes.acknowledgement == 0 else { return }
        guard payload.count.isMultiple(of: 6) else {
            fail(.frameSizeError)
            return
        }
        for position in stride(from: 0, to: payload.count, by: 6) {
            // SAFETY: the payload is a multiple of 6, so each setting has all its bytes.
            let identifier = unsafe payload[position + 1]
            guard unsafe payload[position] == 0, identifier == 4 else { continue }
            initialSendWindow = unsafe Int(FrameBytes.integer(payload, at: position + 2))
        }
        FrameBytes.appendSettingsAcknowledgement(to: &output)
    }

    private func windowUpdate(_ payload: UnsafeRawBufferPointer, streamID: UInt32) {
        guard payload.count == 4 else {
            fail(.frameSizeError)
            return
        }
        guard streamID == 0 else { return }
        sendWindow += unsafe Int(FrameBytes.integer(payload, at: 0) & 0x7fff_ffff)
        let waiting = blocked
        blocked = []
        for answer in waiting { write(answer) }
    }

    /// A client certificate is refused: GOAWAY, no stream taken, and the end.
    func refuseCertificate(_ reason: Reason) {
        isFinished = true
        FrameBytes.appendGoAway(0, .noError, "{\"reason\":\"\(reason.text)\"}", to: &output)
    }

    private func fail(_ code: FrameBytes.ErrorCode, _ text: String = "") {
        guard !isFinished else { return }
        isFinished = true
        context.totals.violations += 1
        FrameBytes.appendGoAway(lastStreamID, code, text, to: &output)
    }
}
