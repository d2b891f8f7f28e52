internal import APNs
internal import CNghttp2

/// One connection's HTTP/2 on nghttp2's server session: another implementation than our client's,
/// so that each run is an interoperability test.
///
///     headers complete -> examine -> verdict --+
///     body octets ----------- counted ---------+-> END_STREAM -> answer -> queue -> deliver
///
/// Bodies are counted, not kept. With provider tokens the connection has one stream until its first
/// authenticated answer (Apple, "Establishing a token-based connection to APNs").
@safe final class ServerSession {
    private let context: WorkerContext
    private let topics: TopicTable
    private var credential: ConnectionCredential
    private let slot: UInt32
    private let generation: UInt32
    /// As the journal numbers it.
    private let number: UInt64
    private var session: OpaquePointer?
    /// The header block that nghttp2 is reading, which may come in pieces.
    private var head = RequestHead.withArena()
    private var scanner: HeaderBlockScanner
    private var lint: HPACKLint?
    private var streams = StreamSlab()

    /// The stream limit that was announced last.
    private var announcedLimit: UInt32
    /// Limits of SETTINGS frames that are queued and not written yet, the oldest first.
    private var unwrittenLimits: [UInt32] = []
    /// Limits that were announced and not acknowledged yet, the oldest first.
    private var unacknowledgedLimits: [UInt32] = []
    /// What the client knows of; until it acknowledged a limit, none holds (RFC 9113 6.5.3).
    private var acknowledgedLimit = UInt32.max
    private var openStreams: UInt32 = 0
    private var isGateOpen: Bool
    /// GOAWAY is queued: write it and close.
    private(set) var isEnding = false

    init(
        context: WorkerContext, credential: ConnectionCredential, topics: TopicTable, slot: UInt32,
        generation: UInt32, number: UInt64
    ) {
        self.context = context
        self.credential = credential
        self.topics = topics
        self.slot = slot
        self.generation = generation
        self.number = number
        isGateOpen = credential.hasCertificate
        announcedLimit = isGateOpen ? context.options.maxStreams : 1
        scanner = HeaderBlockScanner()
        lint =
            context.options.lint == .off ? nil : HPACKLint(profile: context.options.lintProfile)
    }

    deinit {
        if let session = unsafe session { unsafe nghttp2_session_del(session) }
        streams.deallocateAll()
        head.deallocateArena()
        if let lint { lint.addFindings(to: &context.totals) }
    }

    /// Announces the settings. The order is that of APNs' own frame.
    func start() {
        precondition(unsafe session == nil)
        unsafe session = SessionCallbacks.makeSession(for: self)
        submit(
            limit: announcedLimit,
            [
                nghttp2_settings_entry(
                    settings_id: Int32(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE.rawValue), value: 4096),
                // nghttp2 is told of no limit, the wire is: see `patchStreamLimit`.
                Self.unlimitedStreams,
                nghttp2_settings_entry(
                    settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), value: 65_535
                ),
                nghttp2_settings_entry(
                    settings_id: Int32(NGHTTP2_SETTINGS_MAX_FRAME_SIZE.rawValue),
                    value: UInt32(SimulatorLimits.frameSize)),
                nghttp2_settings_entry(
                    settings_id: Int32(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE.rawValue),
                    value: UInt32(SimulatorLimits.headerListSize)),
            ])
    }

    private static let unlimitedStreams = nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS.rawValue), value: .max)

    private func submit(limit: UInt32, _ entries: [nghttp2_settings_entry]) {
        unwrittenLimits.append(limit)
        unacknowledgedLimits.append(limit)
        _ = unsafe entries.withUnsafeBufferPointer {
            unsafe nghttp2_submit_settings(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue), $0.baseAddress, $0.count)
        }
    }

    // MARK: Bytes in

    /// Takes plaintext in. False: the connection is dead, close it once output is written.
    func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard !isEnding else { return true }
        var accepted = bytes.count
        if lint != nil, let end = unsafe lintBlocks(bytes) { accepted = end }
        var offset = 0
        while offset < accepted {
            let base = unsafe bytes.baseAddress!.assumingMemoryBound(to: UInt8.self)
            let count = unsafe nghttp2_session_mem_recv(
                session, base + offset, accepted - offset)
            guard count > 0 else {
                // A violation is answered by nghttp2 itself; this is worse, such as no preface.
                isEnding = true
                return false
            }
            offset += count
        }
        return true
    }

    /// Lets the lint see each complete header block. Returns where to stop reading, if it refuses.
    private func lintBlocks(_ bytes: UnsafeRawBufferPointer) -> Int? {
        var refusedAt: Int?
        unsafe scanner.scan(bytes) { block, offset in
            guard refusedAt == nil, let finding = unsafe lint?.check(block) else { return }
            if context.options.lint == .refuse {
                refusedAt = offset
                end(.protocolError, "HPACK discipline: \(finding)")
            }
        }
        return refusedAt
    }

    // MARK: Bytes out

    /// Moves what waits to `output`.
    func takeOutput(into output: inout ByteBuffer) {
        while true {
            var data: UnsafePointer<UInt8>?
            let count = unsafe nghttp2_session_mem_send(session, &data)
            guard count > 0, let data = unsafe data else { return }
            let frame = unsafe UnsafeRawBufferPointer(start: data, count: count)
            let start = output.count
            unsafe output.append(frame)
            // SETTINGS without ACK: the frame type is the fourth octet, the flags the fifth.
            if count > 9, unsafe frame[3] == 4, unsafe frame[4] & 1 == 0 {
                unsafe patchStreamLimit(
                    UnsafeMutableRawBufferPointer(start: output.base + start, count: count))
            }
        }
    }

    /// Writes the announced limit into a SETTINGS frame.
    ///
    /// nghttp2 would refuse streams above the limit from the moment it is submitted. A client may
    /// open them in good faith until it has seen the SETTINGS frame, so the limit is kept here.
    private func patchStreamLimit(_ frame: UnsafeMutableRawBufferPointer) {
        let limit = unwrittenLimits.removeFirst()
        var position = 9
        while position + 6 <= frame.count {
            if unsafe frame[position] == 0, unsafe frame[position + 1] == 3 {
                unsafe frame.storeBytes(
                    of: limit.bigEndian, toByteOffset: position + 2, as: UInt32.self)
            }
            position += 6
        }
    }

    /// Nothing more will come: nghttp2 has no use for input and no output.
    var isFinished: Bool {
        unsafe isEnding
            || (nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0)
    }

    /// Says GOAWAY with a text and takes no more.
    func end(_ code: ErrorCode, _ text: String) {
        guard !isEnding else { return }
        isEnding = true
        context.totals.violations += 1
        let debug = Array(text.utf8)
        _ = unsafe debug.withUnsafeBufferPointer {
            unsafe nghttp2_submit_goaway(
                session, UInt8(NGHTTP2_FLAG_NONE.rawValue),
                nghttp2_session_get_last_proc_stream_id(session), code.rawValue, $0.baseAddress,
                $0.count)
        }
    }

    /// Error codes of RFC 9113 section 7 that are sent from here.
    enum ErrorCode: UInt32 {
        case noError = 0
        case protocolError = 1
        case refusedStream = 7
        case enhanceYourCalm = 11
    }

    // MARK: What nghttp2 reports

    /// A request's header block begins.
    func beganHeaders(_ streamID: Int32) {
        head.reset()
        openStreams += 1
        let stream = unsafe streams.take()
        unsafe stream.pointee.streamID = UInt32(streamID)
        _ = unsafe nghttp2_session_set_stream_user_data(
            session, streamID, UnsafeMutableRawPointer(stream))
        if openStreams > max(acknowledgedLimit, announcedLimit) {
            // Word for word what APNs was seen to say.
            end(.refusedStream, "Maximum active streams violated for this endpoint.")
        }
    }

    /// A field of that block.
    func receivedHeader(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        unsafe head.add(name: name, value: value)
    }

    /// A request's header block is complete.
    func endedHeaders(_ stream: UnsafeMutablePointer<StreamState>) {
        if let host = unsafe head[.host], let authority = unsafe head[.authority],
            unsafe !host.elementsEqual(authority)
        {
            // RFC 9113 section 8.3.1: both, if present, agree.
            unsafe reset(stream.pointee.streamID, .protocolError)
            return
        }
        if head.isTooLarge {
            unsafe stream.pointee.verdict = Verdict(early: Answer(status: 431, reason: nil))
        } else {
            unsafe stream.pointee.verdict = context.examine(head, &credential, topics: topics)
        }
        unsafe stream.pointee.identifier = context.identifier(head)
        if context.journal != nil {
            var token = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
            if unsafe RequestChecks.findToken(head[.path], token: &token) == nil,
                unsafe TokenFate.head(ofDigits: token) != nil
            {
                unsafe stream.pointee.setToken(token)
            }
        }
    }

    /// A request is complete.
    func endedRequest(_ stream: UnsafeMutablePointer<StreamState>) {
        guard unsafe !stream.pointee.isComplete else { return }
        unsafe stream.pointee.isComplete = true
        let answer = unsafe stream.pointee.verdict.answer(bodyCount: stream.pointee.bodyCount)
        context.totals.count(answer)
        unsafe stream.pointee.withToken { token in
            unsafe context.journal?.append(
                microseconds: context.nowMicroseconds, connection: number,
                stream: stream.pointee.streamID, identifier: stream.pointee.identifier,
                token: token, answer: answer, now: context.now)
        }
        let pending = unsafe PendingAnswer(
            slot: slot, generation: generation, streamID: stream.pointee.streamID,
            isAuthenticated: stream.pointee.verdict.isAuthenticated, answer: answer,
            identifier: stream.pointee.identifier)
        if context.delaysAnswers {
            context.queue.push(pending, due: context.dueTime())
        } else {
            deliver(pending)
        }
    }

    /// A stream is gone, answered or not.
    func closedStream(_ stream: UnsafeMutablePointer<StreamState>) {
        openStreams -= 1
        unsafe streams.giveBack(stream)
    }

    /// The client has seen the oldest SETTINGS that it had not acknowledged.
    func acknowledgedSettings() {
        guard !unacknowledgedLimits.isEmpty else { return }
        acknowledgedLimit = unacknowledgedLimits.removeFirst()
    }

    private func reset(_ streamID: UInt32, _ code: ErrorCode) {
        _ = unsafe nghttp2_submit_rst_stream(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), Int32(streamID), code.rawValue)
    }

    // MARK: Answers

    /// Gives a stream its answer, unless the client has let go of it.
    func deliver(_ pending: PendingAnswer) {
        guard !isEnding,
            let data = unsafe nghttp2_session_get_stream_user_data(
                session, Int32(pending.streamID))
        else { return }
        let stream = unsafe data.assumingMemoryBound(to: StreamState.self)
        if pending.isAuthenticated, !isGateOpen {
            isGateOpen = true
            announcedLimit = context.options.maxStreams
            submit(limit: announcedLimit, [Self.unlimitedStreams])
        }
        unsafe ResponseSubmission.submit(pending, to: stream, session: session)
    }
}
