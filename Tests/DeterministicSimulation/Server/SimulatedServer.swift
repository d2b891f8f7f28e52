import Broadside
import CBroadsideNghttp2

/// The server's end of one connection: a session of nghttp2. It is independent of the engine, and
/// therefore checks whether the client obeys the protocol.
final class SimulatedServer {
    /// The received part of a request.
    struct Stream {
        var headers: [(name: [UInt8], value: [UInt8])] = []
        var body: [UInt8] = []
        var copy: Int?
        var fate: Fate?
        var answer: ServerAnswer?
        var isAnswered = false
        /// Time since when the windows permit the rest of its body, but it does not come.
        var roomSince: UInt64?
        /// Number of sent bytes after which the client knows this.
        var roomNews: Int?
        /// Whether its whole body has arrived.
        var isWhole = false
        /// Number of bytes of the response body that were sent.
        var answerOffset = 0
        /// Maximum number of bytes of the response body that are ever sent; nil: all.
        var bodyLimit: Int?
    }

    let link: Int
    var faults: FaultPlan
    unowned let simulation: Simulation
    var random: SimulationRandom
    var session: OpaquePointer?
    var streams: [Int32: Stream] = [:]
    /// Open streams, in the order in which they arrived.
    var order: [Int32] = []
    var requests = 0
    var hasSaidGoAway = false
    /// Whether nothing more is sent to the client.
    var isMute = false
    /// Whether the client may regard this server's bytes as invalid.
    var hasMisbehaved = false
    /// The stream with the last response, and its status.
    var lastAnswered: (stream: Int32, status: Int)?
    /// Range of the bytes to the client that HTTP/2 does not allow, and whether the client must
    /// notice them.
    var violation: (start: Int, end: Int, isSure: Bool)?
    /// Whether this connection has the fault of `faults.hostility`.
    let isHostile: Bool
    /// Number of complete responses that were sent.
    var responses = 0
    /// First bytes from the client if its SETTINGS must be changed, and whether they were.
    var firstBytes: [UInt8] = []
    var hasSeenSettings = false
    /// Whether a request got a response other than 403, so that several streams may be open.
    var isGateOpen = false
    /// The last stream that a GOAWAY named, and the offset after which the client knows it.
    var goAwayLast: (stream: Int32, offset: Int)?
    /// Number of DATA bytes for which no credit was returned to the connection's window. As with
    /// some real servers, bytes for refused or reset streams are never credited: the client must
    /// notice that no space is left.
    var owed = 0
    /// How this connection starves its client at some time; nil if it does not.
    let starvation: Starvation?
    var isStarving = false
    /// Number of frames that were sent, number up to the last frame that was useful to the client,
    /// and longest run of frames between two useful ones.
    var frameCount = 0
    private var usefulFrameCount = 0
    private var longestUselessStretch = 0
    /// The highest stream that was processed. No GOAWAY may name a lower one.
    var highestProcessed: Int32 = 0
    /// Number of bytes that were sent to the network.
    var sentCount = 0
    /// Outcomes of requests, with the offset after which the client knows each.
    var evidence: [(offset: Int, copy: Int, frameCount: Int)] = []
    var evidenceHead = 0
    /// Copies whose outcome is in the frame that is being sent.
    var freshEvidence: [Int] = []
    var freshGoAway: Int32?
    /// The last stream that its GOAWAY named.
    var namedLast: Int32 = 0
    /// Offset after which the client knows of the first GOAWAY, even if that is a notice, and
    /// whether a GOAWAY is being sent.
    var goAwayOffset: Int?
    var hasFreshGoAway = false
    /// Streams that nghttp2 refused automatically, with the offset after which the client knows it.
    var refusals: [(stream: Int32, offset: Int)] = []
    var freshRefusals: [Int32] = []

    init(link: Int, faults: FaultPlan, simulation: Simulation, random: SimulationRandom) {
        self.link = link
        self.faults = faults
        self.simulation = simulation
        var random = random
        starvation = faults.starvation.flatMap { random.chance($0.chance) ? $0 : nil }
        isHostile = faults.hostility.map { random.chance($0.chance) } ?? false
        self.random = random
        var callbacks: OpaquePointer?
        nghttp2_session_callbacks_new(&callbacks)
        Self.install(callbacks)
        var option: OpaquePointer?
        nghttp2_option_new(&option)
        nghttp2_option_set_no_auto_window_update(option, 1)
        nghttp2_option_set_no_auto_ping_ack(option, faults.answersPings ? 0 : 1)
        nghttp2_session_server_new2(
            &session, callbacks, Unmanaged.passUnretained(self).toOpaque(), option)
        nghttp2_option_del(option)
        nghttp2_session_callbacks_del(callbacks)
    }

    deinit {
        nghttp2_session_del(session)
    }

    /// Sends the server's first SETTINGS and opens the connection's window.
    func start() {
        var settings: [nghttp2_settings_entry] = []
        func set(_ id: nghttp2_settings_id, _ value: UInt32) {
            settings.append(nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: value))
        }
        if let maxStreams = faults.maxStreams {
            set(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, maxStreams)
        }
        if faults.initialWindow != 65_535 {
            set(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, faults.initialWindow)
        }
        let variesTables = faults.limits?.variesTables ?? false
        let headerTable = variesTables ? UInt32(random.below(700)) : faults.headerTable
        if headerTable != 4096 {
            set(NGHTTP2_SETTINGS_HEADER_TABLE_SIZE, headerTable)
        }
        if let limits = faults.limits, limits.frameSize != 16_384 {
            set(NGHTTP2_SETTINGS_MAX_FRAME_SIZE, limits.frameSize)
        }
        nghttp2_submit_settings(
            session, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
        if faults.connectionWindow > 65_535 {
            nghttp2_submit_window_update(
                session, 0, 0, Int32(faults.connectionWindow - 65_535))
        }
        planLimits()
        planHostility()
        pump()
    }

    /// Announces one setting.
    func announce(_ id: nghttp2_settings_id, _ value: UInt32) {
        var entry = nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: value)
        nghttp2_submit_settings(session, 0, &entry, 1)
    }

    /// Number of DATA bytes that the client may still send on the connection, and the stream limit,
    /// both as far as the client has acknowledged them.
    var connectionWindow: Int { Int(nghttp2_session_get_local_window_size(session)) }
    var streamLimit: UInt32 {
        nghttp2_session_get_local_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    }

    /// Receives bytes from the network.
    func receive(_ bytes: [UInt8]) {
        var bytes = bytes
        // Once begun, it must be completed, even if all faults have ended since.
        let hidesTable = faults.halves.tableFrom != nil || !firstBytes.isEmpty
        if hidesTable, !hasSeenSettings { bytes = hideTableSize(bytes) }
        guard !bytes.isEmpty else { return }
        let taken = nghttp2_session_mem_recv(session, bytes, bytes.count)
        if taken != bytes.count {
            simulation.fail("nghttp2 refuses the client's bytes (\(taken))")
        }
        pump()
    }

    /// Sends the session's output to the network.
    func pump() {
        var output: [UInt8] = []
        while true {
            var data: UnsafePointer<UInt8>?
            let count = nghttp2_session_mem_send(session, &data)
            if count < 0 { simulation.fail("nghttp2 can't send (\(count))") }
            guard count > 0, let data else { break }
            if isMute {
                freshGoAway = nil
                freshRefusals.removeAll()
                freshEvidence.removeAll()
                continue
            }
            output.append(contentsOf: UnsafeBufferPointer(start: data, count: count))
            if hasFreshGoAway, goAwayOffset == nil { goAwayOffset = sentCount + output.count }
            if let last = freshGoAway {
                goAwayLast = (last, sentCount + output.count)
                freshGoAway = nil
            }
            for stream in freshRefusals { refusals.append((stream, sentCount + output.count)) }
            freshRefusals.removeAll(keepingCapacity: true)
            for copy in freshEvidence {
                evidence.append((sentCount + output.count, copy, frameCount))
            }
            freshEvidence.removeAll(keepingCapacity: true)
        }
        sentCount += output.count
        if !output.isEmpty { simulation.serverSent(link: link, output) }
        let isOver =
            nghttp2_session_want_read(session) == 0 && nghttp2_session_want_write(session) == 0
        if isOver { simulation.serverCloses(link: link, errno: 0) }
    }

    /// Returns the copies whose outcome the client knows after this number of bytes, each with the
    /// number of frames sent by then.
    func takeEvidence(upTo count: Int) -> [(copy: Int, frameCount: Int)] {
        var known: [(copy: Int, frameCount: Int)] = []
        while evidenceHead < evidence.count, evidence[evidenceHead].offset <= count {
            known.append((evidence[evidenceHead].copy, evidence[evidenceHead].frameCount))
            evidenceHead += 1
        }
        return known
    }

    /// Records a frame that ends a response for which the client was still waiting.
    func noteUsefulFrame(_ count: Int) {
        longestUselessStretch = max(longestUselessStretch, count - usefulFrameCount)
        usefulFrameCount = count
    }

    /// Whether the client may have read so many useless frames in a row that it reports a flood:
    /// window updates of single bytes, or responses to requests that it has given up.
    var hasFlooded: Bool {
        max(longestUselessStretch, frameCount - usefulFrameCount) > 10_000
    }
}
