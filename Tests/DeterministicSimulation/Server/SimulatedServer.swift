import Broadside
import CBroadsideNghttp2

/// The server's end of one connection: nghttp2's session, which nobody here wrote and which
/// therefore checks whether our client keeps to the protocol.
final class SimulatedServer {
    /// A request as far as it arrived.
    struct Stream {
        var headers: [(name: [UInt8], value: [UInt8])] = []
        var body: [UInt8] = []
        var copy: Int?
        var fate: Fate?
        var answer: ServerAnswer?
        var isAnswered = false
        /// Since when the windows let all of its body go, and it does not come.
        var roomSince: UInt64?
        /// The bytes after which the client knows.
        var roomNews: Int?
        /// All of its body arrived.
        var isWhole = false
        /// Bytes of the answer's body that were given out.
        var answerOffset = 0
        /// No more of it ever is; nil: all of it.
        var bodyLimit: Int?
    }

    let link: Int
    var faults: FaultPlan
    unowned let simulation: Simulation
    var random: SimulationRandom
    var session: OpaquePointer?
    var streams: [Int32: Stream] = [:]
    /// Streams that are open, in the order in which they arrived.
    var order: [Int32] = []
    var requests = 0
    var hasSaidGoAway = false
    /// Nothing goes to the client any more.
    var isMute = false
    /// The client has reason to call this server's bytes wrong.
    var hasMisbehaved = false
    /// The stream that was answered last, and with what status.
    var lastAnswered: (stream: Int32, status: Int)?
    /// Which of the client's bytes are what HTTP/2 does not allow, and whether it has to notice.
    var violation: (start: Int, end: Int, isSure: Bool)?
    /// Its faults's hostility is this connection's.
    let isHostile: Bool
    /// Responses that were given out whole.
    var responses = 0
    /// What the client sent first, where its SETTINGS are to be changed, and whether they were.
    var firstBytes: [UInt8] = []
    var hasSeenSettings = false
    /// Some request was answered otherwise than by 403: more than one may be open.
    var isGateOpen = false
    /// The last stream that a GOAWAY named, and when the client knows of it.
    var goAwayLast: (stream: Int32, offset: Int)?
    /// Bytes of DATA for which the connection's window was not given back yet. What arrives for a
    /// stream that was refused or reset is never given back, as with careless servers: the client has
    /// to notice that no room is left.
    var owed = 0
    /// How this connection starves its client one day; nil where it does not.
    let starvation: Starvation?
    var isStarving = false
    /// Frames that were sent, how many up to the last that the client had use for, and the most between
    /// two of those.
    var frameCount = 0
    private var usefulFrameCount = 0
    private var longestUselessStretch = 0
    /// The highest stream that was acted on: no GOAWAY may say otherwise.
    var highestProcessed: Int32 = 0
    /// Bytes given to the network so far.
    var sentCount = 0
    /// What the client learns once it has so many bytes.
    var evidence: [(offset: Int, copy: Int, frameCount: Int)] = []
    var evidenceHead = 0
    /// Copies whose evidence lies in the frame that is being sent.
    var freshEvidence: [Int] = []
    var freshGoAway: Int32?
    /// The last stream that its GOAWAY named.
    var namedLast: Int32 = 0
    /// When the client knows of the first GOAWAY, be it a notice, and whether one is being sent.
    var goAwayOffset: Int?
    var hasFreshGoAway = false
    /// Streams that nghttp2 refused by itself, and when the client knows of it.
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

    /// What the client may still send of DATA on the connection, and the stream limit, so far as it has
    /// acknowledged them.
    var connectionWindow: Int { Int(nghttp2_session_get_local_window_size(session)) }
    var streamLimit: UInt32 {
        nghttp2_session_get_local_settings(session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
    }

    /// Takes bytes from the network.
    func receive(_ bytes: [UInt8]) {
        var bytes = bytes
        // What was begun is ended, should all become well meanwhile.
        let hidesTable = faults.halves.tableFrom != nil || !firstBytes.isEmpty
        if hidesTable, !hasSeenSettings { bytes = hideTableSize(bytes) }
        guard !bytes.isEmpty else { return }
        let taken = nghttp2_session_mem_recv(session, bytes, bytes.count)
        if taken != bytes.count {
            simulation.fail("nghttp2 refuses the client's bytes (\(taken))")
        }
        pump()
    }

    /// Gives the network what the session has to say.
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

    /// Copies whose outcome the client knows once it has so many bytes, each with the number of frames
    /// sent up to it.
    func takeEvidence(upTo count: Int) -> [(copy: Int, frameCount: Int)] {
        var known: [(copy: Int, frameCount: Int)] = []
        while evidenceHead < evidence.count, evidence[evidenceHead].offset <= count {
            known.append((evidence[evidenceHead].copy, evidence[evidenceHead].frameCount))
            evidenceHead += 1
        }
        return known
    }

    /// The client awaited the response that ends with this frame: no response to a request that it had
    /// given up.
    func noteUsefulFrame(_ count: Int) {
        longestUselessStretch = max(longestUselessStretch, count - usefulFrameCount)
        usefulFrameCount = count
    }

    /// True if the client may have read so many frames in a row that were of no use to it that it calls
    /// them a flood: a window given back byte by byte, or responses to what it no longer awaits.
    var hasFlooded: Bool {
        max(longestUselessStretch, frameCount - usefulFrameCount) > 10_000
    }
}
