internal import CBroadsideNghttp2

/// One connection's HTTP/2 on nghttp2's server session: another implementation than our client's,
/// so that each run is an interoperability test.
///
///     headers complete -> examine -> verdict --+
///     body bytes ----------- counted ---------+-> END_STREAM -> answer -> queue -> deliver
///
/// Bodies are counted, not kept. With provider tokens the connection has one stream until its first
/// authenticated answer (Apple, "Establishing a token-based connection to APNs").
final class ServerSession {
    let context: WorkerContext
    let topics: TopicTable
    var credential: ConnectionCredential
    let slot: UInt32
    let generation: UInt32
    /// As the journal numbers it.
    let number: UInt64
    var session = NativeSession()
    /// The header block that nghttp2 is reading, which may come in pieces.
    var head = RequestHead()
    /// Values of the fields of a response that is being queued, and its body.
    var responseTexts = ByteBuffer(capacity: 256)
    var responseFields: [ResponseField] = []
    private var scanner: HeaderBlockScanner
    private var lint: HPACKLint?
    var streams = StreamSlab()

    /// The stream limit that was announced last.
    var announcedLimit: UInt32
    /// The limit of an authenticated connection without refusals.
    var fullLimit: UInt32
    /// Limits of SETTINGS frames that are queued and not written yet, the oldest first.
    private var unwrittenLimits: [UInt32] = []
    /// Limits that were announced and not acknowledged yet, the oldest first.
    private var unacknowledgedLimits: [UInt32] = []
    /// What the client knows of; until it acknowledged a limit, none holds (RFC 9113 6.5.3).
    private(set) var acknowledgedLimit = UInt32.max
    var openStreams: UInt32 = 0
    var isGateOpen: Bool
    /// GOAWAY is queued: write it and close.
    var isEnding = false
    /// When the next answer may leave, where a scenario limits how many do; nanoseconds.
    var nextResponse: UInt64 = 0

    /// What the scenario counts here.
    var counters: ScenarioCounters
    /// What the connection is to suffer; the worker takes it.
    var strike: ConnectionStrike?
    /// No request is taken any more: the connection is being broken.
    var isBroken = false
    /// The last stream that is taken, once GOAWAY said so.
    var lastTaken: UInt32?
    /// When the second step of GOAWAY is due, nanoseconds, and what it says.
    var goAwayDue: (at: UInt64, goAway: GoAway)?
    /// A whole frame that goes out before nghttp2's next.
    var injected: [UInt8] = []
    /// How window credit is given back, and when next, nanoseconds.
    let window: Portion?
    var windowDue: UInt64 = .max
    /// Bytes of DATA for which the connection's window has not been given back.
    var uncreditedBytes = 0
    /// When the last request came, or the connection; nanoseconds.
    var lastRequest: UInt64
    /// Refusals since the last accepted notification, and in all as they count.
    var refusalsInARow: UInt64 = 0
    var refusalCount: UInt64 = 0

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

    /// Announces the settings. The order is that of APNs' own frame.
    func start() {
        session.open(for: self)
        let settings = context.run?.scenario.settings ?? SettingsChange()
        submit(
            limit: announcedLimit,
            [
                Self.entry(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, settings.headerTableSize ?? 4096),
                // nghttp2 is told of no limit, the wire is: see `patchStreamLimit`.
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

    /// Queues SETTINGS that announce this stream limit, where they have such an entry.
    func submit(limit: UInt32, _ entries: [nghttp2_settings_entry]) {
        unwrittenLimits.append(limit)
        unacknowledgedLimits.append(limit)
        session.submit(entries)
    }

    // MARK: Bytes in

    /// Takes plaintext in. False: the connection is dead, close it once output is written.
    func receive(_ bytes: RawSpan) -> Bool {
        guard !isEnding, !isBroken else { return true }
        var accepted = bytes.byteCount
        if lint != nil, let end = lintBlocks(bytes) { accepted = end }
        var offset = 0
        while offset < accepted {
            let count = session.receive(bytes.extracting(offset..<accepted))
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
    private func lintBlocks(_ bytes: RawSpan) -> Int? {
        var refusedAt: Int?
        scanner.scan(bytes) { block, offset in
            guard refusedAt == nil, let finding = lint?.check(block) else { return }
            if context.options.lint == .refuse {
                refusedAt = offset
                violate(.protocolError, "HPACK discipline: \(finding)")
            }
        }
        return refusedAt
    }

    // MARK: Bytes out

    /// Moves what waits to `output`.
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
            // SETTINGS without ACK: the frame type is the fourth byte, the flags the fifth.
            if frame.byteCount > 9, frame[3] == 4, frame[4] & 1 == 0 {
                patchStreamLimit(in: &output, from: start)
            }
        }) {}
    }

    /// Writes the announced limit into the SETTINGS frame that ends the output.
    ///
    /// nghttp2 would refuse streams above the limit from the moment it is submitted. A client may
    /// open them in good faith until it has seen the SETTINGS frame, so the limit is kept here.
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

    /// Nothing more will come: nghttp2 has no use for input and no output.
    var isFinished: Bool {
        if isEnding { return true }
        guard !session.wantsWrite else { return false }
        if lastTaken != nil { return openStreams == 0 }
        return !session.wantsRead
    }

    /// Says GOAWAY with a text, since the client exceeded a limit, and takes no more.
    func violate(_ code: ErrorCode, _ text: String) {
        guard !isEnding else { return }
        isEnding = true
        context.totals.violations += 1
        session.submitGoAway(
            code.rawValue, Array(text.utf8), lastStream: session.lastProcessed)
    }

    /// The client has seen the oldest SETTINGS that it had not acknowledged.
    func acknowledgedSettings() {
        guard !unacknowledgedLimits.isEmpty else { return }
        acknowledgedLimit = unacknowledgedLimits.removeFirst()
    }

    /// Error codes of RFC 9113 section 7 that are sent from here.
    enum ErrorCode: UInt32 {
        case noError = 0
        case protocolError = 1
        case refusedStream = 7
        case enhanceYourCalm = 11
    }
}
