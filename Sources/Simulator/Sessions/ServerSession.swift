internal import CBroadsideNghttp2

/// HTTP/2 session of one connection, based on nghttp2. This implementation is independent of the
/// client's, so that each run is an interoperability test.
///
///     headers complete -> examine -> verdict --+
///     body bytes ----------- counted ---------+-> END_STREAM -> respond -> queue -> deliver
///
/// Bodies are counted and not kept. A connection with provider tokens has one stream until its
/// first authenticated response (Apple, "Establishing a token-based connection to APNs").
final class ServerSession {
    let context: WorkerContext
    let topics: TopicTable
    var credential: ConnectionCredential
    let slot: UInt32
    let generation: UInt32
    /// The connection's number in the journal.
    let number: UInt64
    var session = NativeSession()
    /// The header block that nghttp2 is decoding, possibly in several parts.
    var head = RequestHead()
    /// All fields of the header block that nghttp2 is decoding; nil if requests are not kept.
    var received: ReceivedRequest?
    /// The field values and the body of the response being queued.
    var responseTexts = ByteBuffer(capacity: 256)
    var responseFields: [ResponseField] = []
    private var scanner: HeaderBlockScanner
    private var lint: HPACKLint?
    var streams = StreamSlab()

    var streamLimits: StreamLimits
    var openStreams: UInt32 = 0
    /// True once GOAWAY is queued. The caller writes it and closes the connection.
    var isEnding = false
    /// Earliest time of the next response, nanoseconds, if a scenario limits the rate.
    var nextResponse: UInt64 = 0

    /// The scenario's counts for this connection.
    var counters: ScenarioCounters
    /// A fault that the worker must apply to the connection; nil if there is none. The session sets
    /// the fault, and the worker clears it.
    var strike: ConnectionStrike?
    /// True if the connection is being aborted and accepts no more requests.
    var isBroken = false
    /// The last accepted stream; nil until GOAWAY is sent.
    var lastTaken: UInt32?
    /// The highest stream whose request was processed. Requests may be complete in any order.
    var highestTaken: UInt32 = 0
    /// Latest time at which a connection with too many streams ends, nanoseconds.
    var violationEnd: UInt64 = .max
    /// The highest stream that HEADERS opened.
    var highestOpened: UInt32 = 0
    /// The stream numbers below `highestOpened` that the client skipped.
    var skippedStreams = SkippedStreams()
    /// The streams that were closed on this side before their request was complete.
    var unfinishedStreams = UnfinishedStreams()
    /// Time of the second GOAWAY, nanoseconds, and its content.
    var goAwayDue: (at: UInt64, goAway: GoAway)?
    /// A whole frame to write before the next frame of nghttp2.
    var injected: [UInt8] = []
    /// Whether the connection's first frame, SETTINGS, is in the output.
    private var hasWrittenSettings = false
    /// The rate at which window credit is returned, and the time of the next return, nanoseconds.
    let window: Portion?
    var windowDue: UInt64 = .max
    /// Number of DATA bytes for which no credit was returned to the connection's window.
    var uncreditedBytes = 0
    /// Time of the last request, or of the connection's start, nanoseconds.
    var lastRequest: UInt64
    /// Number of refusals since the last accepted notification.
    var refusalsInARow: UInt64 = 0
    /// Sum of the weights of all refusals.
    var refusalCount: UInt64 = 0
    /// Additional delay of responses because of refusals, nanoseconds.
    var slowedNanoseconds: UInt64 = 0

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
        let scenario = context.run?.scenario
        streamLimits = StreamLimits(
            full: scenario?.settings.maxStreams ?? context.options.maxStreams,
            isAuthenticated: credential.hasCertificate)
        counters = ScenarioCounters(run: context.run, connection: number)
        window = scenario?.window
        lastRequest = context.now
        scanner = HeaderBlockScanner()
        lint =
            context.options.lint == .off ? nil : HPACKLint(profile: context.options.lintProfile)
    }

    deinit {
        if let lint { context.totals.add(lint) }
    }

    /// Announces the settings, in the order used by APNs.
    func start() {
        session.open(for: self)
        let settings = context.run?.scenario.settings ?? SettingsChange()
        submit(
            [
                Self.entry(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, settings.headerTableSize ?? 4096),
                // nghttp2 gets no limit, but the frame on the wire has one: see `patchStreamLimit`.
                Self.unlimitedStreams,
                Self.entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, settings.initialWindow ?? 65_535),
                Self.entry(
                    NGHTTP2_SETTINGS_MAX_FRAME_SIZE,
                    settings.maxFrameSize ?? UInt32(SimulatorLimits.frameSize)),
                Self.entry(
                    NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
                    settings.maxHeaderListSize ?? UInt32(SimulatorLimits.headerListSize)),
            ])
    }

    static func entry(
        _ identifier: nghttp2_settings_id, _ value: UInt32
    ) -> nghttp2_settings_entry {
        nghttp2_settings_entry(settings_id: Int32(identifier.rawValue), value: value)
    }

    static let unlimitedStreams = entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, .max)

    /// Queues SETTINGS. If they contain a stream limit, it is the announced one.
    func submit(_ entries: [nghttp2_settings_entry]) {
        streamLimits.submitted()
        session.submit(entries)
    }

    // MARK: Input

    /// Processes plaintext. Returns false if the session has failed. The caller then closes the
    /// connection after its output is written.
    func receive(_ bytes: RawSpan) -> Bool {
        guard !isEnding, !isBroken else { return true }
        var accepted = bytes.byteCount
        if let end = examineFrames(bytes) { accepted = end }
        var offset = 0
        while offset < accepted {
            let count = session.receive(bytes.extracting(offset..<accepted))
            guard count > 0 else {
                // nghttp2 reports protocol violations in another way. This is a fatal error, such
                // as a missing preface.
                isEnding = true
                return false
            }
            offset += count
        }
        return true
    }

    /// Checks each complete header block. Also checks DATA frames on closed streams, because
    /// nghttp2 would ignore them. If a check ends the session, returns the offset at which to stop
    /// reading.
    private func examineFrames(_ bytes: RawSpan) -> Int? {
        var refusedAt: Int?
        // Streams that the client resets in these bytes, which nghttp2 has not read yet.
        var reset: Set<UInt32> = []
        scanner.scan(bytes) { streamID, offset in
            let isReset = reset.contains(streamID) && streamID <= lastTaken ?? .max
            guard refusedAt == nil, isReset || hasEnded(streamID) else { return }
            refusedAt = offset
            violate(.streamClosed, "DATA on stream \(streamID), which has ended")
        } reset: { streamID in
            reset.insert(streamID)
        } found: { block, offset in
            guard refusedAt == nil, let finding = lint?.check(block) else { return }
            if context.options.lint == .refuse {
                refusedAt = offset
                violate(.protocolError, "HPACK discipline: \(finding)")
            }
        }
        return refusedAt
    }

    // MARK: Output

    /// Moves the pending output to `output`.
    func takeOutput(into output: inout ByteBuffer) {
        // SETTINGS is the first frame of a connection.
        if hasWrittenSettings { takeInjected(into: &output) }
        let shape = context.run?.scenario.responses
        while session.send({ frame in
            if let shape, !shape.isPlain, frame[3] == FrameBytes.headers {
                FrameShaper.append(frame, shape, to: &output)
                return
            }
            let start = output.count
            output.append(frame)
            // SETTINGS without ACK: the frame type is the fourth byte, the flags are the fifth.
            if frame.byteCount > 9, frame[3] == FrameBytes.settings, frame[4] & 1 == 0 {
                patchStreamLimit(in: &output, from: start)
                hasWrittenSettings = true
            }
            if frame[3] == FrameBytes.goAway { patchLastStream(in: &output, from: start) }
        }) {}
        takeInjected(into: &output)
    }

    private func takeInjected(into output: inout ByteBuffer) {
        for byte in injected { output.append(byte) }
        injected.removeAll(keepingCapacity: true)
    }

    /// Writes the announced limit into the SETTINGS frame at the end of the output.
    ///
    /// nghttp2 would enforce the limit as soon as it is submitted, and refuse streams above it. A
    /// client may open such streams until it has received the SETTINGS frame. Therefore the limit
    /// is enforced here.
    private func patchStreamLimit(in output: inout ByteBuffer, from start: Int) {
        let limit = streamLimits.written()
        var position = start + 9
        while position + 6 <= output.count {
            if output.bytes[position] == 0, output.bytes[position + 1] == 3 {
                output.overwrite(at: position + 2, bigEndian: limit)
            }
            position += 6
        }
    }

    /// Corrects the last stream in the GOAWAY frame at the end of the output. If the stream was not
    /// processed, the last processed stream replaces it.
    ///
    /// If nghttp2 ends a session because of an error, it names the last stream that HEADERS opened.
    /// But clients repeat only requests above the named stream (RFC 9113 section 6.8).
    private func patchLastStream(in output: inout ByteBuffer, from start: Int) {
        assert(highestTaken <= highestOpened, "HEADERS opened each stream that was processed")
        let named = output.bytes.integer(at: start + 9)
        output.overwrite(at: start + 9, bigEndian: min(named, lastTaken ?? highestTaken))
    }

    /// Whether the session is over: nghttp2 accepts no input and has no output.
    var isFinished: Bool {
        if isEnding { return true }
        guard !session.wantsWrite else { return false }
        if lastTaken != nil { return openStreams == 0 }
        return !session.wantsRead
    }

    /// Ends the session with a GOAWAY and a text, because the client violated the protocol. No
    /// further request is processed.
    func violate(_ code: ErrorCode, _ text: String) {
        guard !isEnding else { return }
        isEnding = true
        context.totals.violations += 1
        session.submitGoAway(
            code.rawValue, Array(text.utf8), lastStream: Int32(highestTaken))
    }
}
