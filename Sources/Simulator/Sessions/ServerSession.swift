internal import CBroadsideNghttp2

/// One connection's HTTP/2 session, based on nghttp2: an implementation independent of the
/// client's, so that each run is an interoperability test.
///
///     headers complete -> examine -> verdict --+
///     body bytes ----------- counted ---------+-> END_STREAM -> respond -> queue -> deliver
///
/// Bodies are counted and not kept. With provider tokens the connection has one stream until its
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
    /// All fields of that block, if requests are kept.
    var received: ReceivedRequest?
    /// The field values and the body of the response being queued.
    var responseTexts = ByteBuffer(capacity: 256)
    var responseFields: [ResponseField] = []
    private var scanner: HeaderBlockScanner
    private var lint: HPACKLint?
    var streams = StreamSlab()

    /// The stream limit announced last.
    var announcedLimit: UInt32
    /// The limit of an authenticated connection without refusals.
    var fullLimit: UInt32
    /// Limits in SETTINGS frames that are queued but not yet written, the oldest first.
    private var unwrittenLimits: [UInt32] = []
    /// Limits announced but not yet acknowledged, the oldest first.
    private var unacknowledgedLimits: [UInt32] = []
    /// The last acknowledged limit; before the first acknowledgement there is no limit (RFC 9113
    /// section 6.5.3).
    private(set) var acknowledgedLimit = UInt32.max
    var openStreams: UInt32 = 0
    var isGateOpen: Bool
    /// True once GOAWAY is queued: write it and close.
    var isEnding = false
    /// Earliest time of the next response under a scenario's rate limit, nanoseconds.
    var nextResponse: UInt64 = 0

    /// The scenario's counts for this connection.
    var counters: ScenarioCounters
    /// The fault requested for the connection; the worker takes it.
    var strike: ConnectionStrike?
    /// True if the connection is being aborted and accepts no more requests.
    var isBroken = false
    /// The last accepted stream once GOAWAY was sent.
    var lastTaken: UInt32?
    /// The highest stream whose request was processed; streams may be complete in any order.
    var highestTaken: UInt32 = 0
    /// The highest stream that HEADERS opened, and the numbers below it that were passed over.
    var highestOpened: UInt32 = 0
    var skippedStreams = SkippedStreams()
    /// Streams that were closed before their request was complete.
    var unfinishedStreams = UnfinishedStreams()
    /// Time of the second GOAWAY, nanoseconds, and its content.
    var goAwayDue: (at: UInt64, goAway: GoAway)?
    /// A whole frame to write before nghttp2's next one.
    var injected: [UInt8] = []
    /// The rate at which window credit is returned, and the time of the next return, nanoseconds.
    let window: Portion?
    var windowDue: UInt64 = .max
    /// Bytes of DATA not yet credited to the connection's window.
    var uncreditedBytes = 0
    /// Time of the last request, or of the connection's start, nanoseconds.
    var lastRequest: UInt64
    /// Refusals since the last accepted notification, and their weighted total.
    var refusalsInARow: UInt64 = 0
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
        isGateOpen = credential.hasCertificate
        let scenario = context.run?.scenario
        fullLimit = scenario?.settings.maxStreams ?? context.options.maxStreams
        announcedLimit = isGateOpen ? fullLimit : min(1, fullLimit)
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
            limit: announcedLimit,
            [
                Self.entry(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, settings.headerTableSize ?? 4096),
                // nghttp2 is given no limit, but the wire is: see `patchStreamLimit`.
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

    /// Queues SETTINGS and records the stream limit if they contain one.
    func submit(limit: UInt32, _ entries: [nghttp2_settings_entry]) {
        unwrittenLimits.append(limit)
        unacknowledgedLimits.append(limit)
        session.submit(entries)
    }

    // MARK: Input

    /// Processes plaintext. Returns false if the session has failed; the caller closes the
    /// connection after its output is written.
    func receive(_ bytes: RawSpan) -> Bool {
        guard !isEnding, !isBroken else { return true }
        var accepted = bytes.byteCount
        if let end = examineFrames(bytes) { accepted = end }
        var offset = 0
        while offset < accepted {
            let count = session.receive(bytes.extracting(offset..<accepted))
            guard count > 0 else {
                // nghttp2 reports protocol violations itself; this is a fatal error, such as a
                // missing preface.
                isEnding = true
                return false
            }
            offset += count
        }
        return true
    }

    /// Checks each complete header block, and DATA frames on closed streams, which nghttp2 would
    /// ignore. Returns the offset at which to stop reading if the session ends because of one.
    private func examineFrames(_ bytes: RawSpan) -> Int? {
        var refusedAt: Int?
        scanner.scan(bytes) { streamID, offset in
            guard refusedAt == nil, hasEnded(streamID) else { return }
            refusedAt = offset
            violate(.streamClosed, "DATA on stream \(streamID), which has ended")
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
        if !injected.isEmpty {
            for byte in injected { output.append(byte) }
            injected = []
        }
        let shape = context.run?.scenario.responses
        while session.send({ frame in
            if let shape, !shape.isPlain, frame[3] == FrameBytes.headers {
                FrameShaper.append(frame, shape, to: &output)
                return
            }
            let start = output.count
            output.append(frame)
            // SETTINGS without ACK: the frame type is the fourth byte, the flags are the fifth.
            if frame.byteCount > 9, frame[3] == 4, frame[4] & 1 == 0 {
                patchStreamLimit(in: &output, from: start)
            }
        }) {}
    }

    /// Writes the announced limit into the SETTINGS frame at the end of the output.
    ///
    /// nghttp2 would refuse streams above the limit as soon as it is submitted. A client may
    /// legitimately open them until it has received the SETTINGS frame, so the limit is enforced
    /// here.
    private func patchStreamLimit(in output: inout ByteBuffer, from start: Int) {
        let limit = unwrittenLimits.removeFirst()
        var position = start + 9
        while position + 6 <= output.count {
            if output.bytes[position] == 0, output.bytes[position + 1] == 3 {
                output.overwrite(at: position + 2, bigEndian: limit)
            }
            position += 6
        }
    }

    /// Whether nothing more will happen: nghttp2 accepts no input and has no output.
    var isFinished: Bool {
        if isEnding { return true }
        guard !session.wantsWrite else { return false }
        if lastTaken != nil { return openStreams == 0 }
        return !session.wantsRead
    }

    /// Ends the session with GOAWAY and a text because the client exceeded a limit.
    func violate(_ code: ErrorCode, _ text: String) {
        guard !isEnding else { return }
        isEnding = true
        context.totals.violations += 1
        session.submitGoAway(
            code.rawValue, Array(text.utf8), lastStream: session.lastProcessed)
    }

    /// Handles the acknowledgement of the oldest unacknowledged SETTINGS.
    func acknowledgedSettings() {
        guard !unacknowledgedLimits.isEmpty else { return }
        acknowledgedLimit = unacknowledgedLimits.removeFirst()
    }

    /// The error codes of RFC 9113 section 7 that the simulator sends itself.
    enum ErrorCode: UInt32 {
        case noError = 0
        case protocolError = 1
        case streamClosed = 5
        case refusedStream = 7
        case enhanceYourCalm = 11
    }
}
