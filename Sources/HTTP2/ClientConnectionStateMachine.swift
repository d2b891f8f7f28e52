internal import Synchronization

/// One HTTP/2 connection to APNs, from the client's side, without I/O (RFC 9113).
///
///     start()             ready                    goAway / shutdown()
///        |                  |                              |
///     awaiting  ------>  running  --------------------> draining      no new streams
///        |                  |                              |
///        +------------------+---- failed(violation) -------+------>   failed: flush, close
///
/// A request, once the caller has room for it (`requestCapacity`):
///
///     openStream ----------> sent --- HEADERS ---> answered --- END_STREAM ---> response
///     openPartialStream       |                       |
///        | nextContinuation   +-- RST_STREAM ---------+--> notProcessed, or reset: in doubt
///        +----> sent          +-- GOAWAY below its id ---> notProcessed
///                             +-- cancelStream, takeOpenStream --> forgotten
///
/// Requests are written by the caller, HEADERS and DATA, right behind `openStream`. Everything that
/// the connection itself has to say waits in a buffer (`takeOutput`). A turn is: all input, then
/// `takeOutput`, then requests. The order matters: an acknowledgement of SETTINGS must be on its way
/// before anything that uses what they allow, or the server still measures by the old limits
/// (RFC 9113 section 6.5.3). After input or `openStream` windows and limits may have changed, so
/// `requestCapacity` and `nextContinuation` are asked anew each turn; there is no event for them.
@safe public struct ClientConnectionStateMachine: ~Copyable {
    /// What a connection is made with.
    public struct Configuration: Sendable {
        /// The most streams we ever open at once, whatever the server allows: 1...16,384.
        var maxStreams: Int
        /// With provider tokens one request goes first; the others follow after any answer but 403.
        var gateUntilFirstResponse: Bool
        /// The bytes of DATA that the server may send ahead on the connection: 65,535...2^31-1.
        var connectionReceiveWindow: Int
        /// The bytes of control frames that may wait for `takeOutput`. A server that makes us
        /// exceed it, by not reading what it asked for, is disconnected.
        public var outputLimit: Int

        /// The defaults are those of the engine.
        public init(
            maxStreams: Int = 1000, gateUntilFirstResponse: Bool = false,
            connectionReceiveWindow: Int = 16 << 20, outputLimit: Int = 32 << 10
        ) {
            self.maxStreams = maxStreams
            self.gateUntilFirstResponse = gateUntilFirstResponse
            self.connectionReceiveWindow = connectionReceiveWindow
            self.outputLimit = outputLimit
        }
    }

    /// What the server's bytes mean to the caller.
    public enum Event: Sendable, Equatable {
        /// The server's first SETTINGS are here: requests may start.
        case ready
        /// Later SETTINGS: stream limit, windows, `headerTableSize` may have changed.
        case settingsChanged
        /// The request `tag` is answered and its stream closed. Until the next call `responseBody`
        /// and `retryAfter` belong to it.
        case response(tag: UInt32, status: UInt16)
        /// The request `tag` was surely not acted on (RFC 9113 section 8.7).
        case notProcessed(tag: UInt32)
        /// The stream of `tag` ended without a whole, valid answer: in doubt.
        case reset(tag: UInt32, ErrorCode)
        /// The server wants no more streams; those above `lastStreamID` follow as `notProcessed`.
        /// `goAwayDebugData` belongs to it.
        case goAway(ErrorCode, lastStreamID: UInt32)
        /// The server answered our PING with this opaque value.
        case pong(UInt64)
        /// The server broke the protocol. A GOAWAY waits in the output; flush it and close. Open
        /// streams are in doubt (`takeOpenStream`). Nothing comes after this.
        case failed(ConnectionError)
    }

    enum Phase: UInt8 { case awaitingSettings, running, failed }

    /// Bytes of a stream's body that the server may send ahead. Not announced, so the initial value
    /// of RFC 9113 section 6.5.2.
    static let streamReceiveWindow: Int32 = 65_535

    /// Never used. An atomic ties the machine to its place in memory, so that a call that borrows it
    /// passes its address; without one each such call copies all of it to the stack first, which took
    /// longer than opening a stream.
    private let pin = Atomic<Bool>(false)

    let configuration: Configuration
    var phase = Phase.awaitingSettings
    var reader = FrameReader()
    var output: ControlOutput
    var streams: StreamTable
    var bodies = BodyPool()
    var inflater = ResponseInflater()
    var headerBlockCache = HeaderBlockCache()
    var fragments = HeaderFragments()
    var flood = FloodGuard()

    var settings = PeerSettings()
    var settingsAcknowledged = false
    var sendWindow = FlowControlWindow(available: 65_535)
    var receiveWindow: ReceiveWindow
    /// No stream ever had a larger `windowDelta`.
    var largestWindowDelta: Int32 = 0
    var partial = PartialStreams()
    var isGateOpen: Bool
    var pingsAwaited = 0

    /// Both directions of GOAWAY: the server's, or ours by `shutdown`.
    var isGoingAway = false
    var isShuttingDown = false
    var lastProcessedID = StreamTable.lastID
    /// How many slots are still to be looked at for streams that a GOAWAY disowned.
    var slotsToCheck = 0

    // SAFETY: `init` allocates two halves of `BodyPool.keptCount` bytes, and `deinit` frees them;
    // `responseByteCount` bytes of the first and `debugCount` of the second are set.
    /// The body of the last response in the first `BodyPool.keptCount` bytes, the debug data of the
    /// last GOAWAY behind.
    let kept: UnsafeMutableRawPointer
    var responseByteCount = 0
    var debugCount = 0
    var responseRetryAfter = RetryAfter.none

    /// A connection whose transport and TLS are up, with h2 negotiated.
    public init(configuration: Configuration = .init()) {
        precondition(
            (65_535...FlowControlWindow.limit).contains(configuration.connectionReceiveWindow),
            "the connection's window starts at 65,535 bytes and can't be lowered")
        self.configuration = configuration
        output = ControlOutput(capacity: configuration.outputLimit)
        streams = StreamTable(limit: configuration.maxStreams)
        receiveWindow = ReceiveWindow(size: configuration.connectionReceiveWindow)
        isGateOpen = !configuration.gateUntilFirstResponse
        // SAFETY: no byte is read before it is set: both counts are 0.
        unsafe kept = .allocate(byteCount: 2 * BodyPool.keptCount, alignment: 16)
    }

    // SAFETY: spans of it borrow this value, so that none is left.
    deinit { unsafe kept.deallocate() }

    /// Queues the preface: its 24 bytes, our SETTINGS and the window of the connection
    /// (RFC 9113 section 3.4). Once, before anything else.
    public mutating func start() {
        output.appendPreface()
        queue(.settings, length: 12) { output in
            // No dynamic table for responses: then nothing that a response says can shift what a
            // later one means. A server that does not obey costs time, nothing else
            // (`ResponseInflater`).
            output.append(SettingIdentifier.headerTableSize)
            output.append(UInt32(0))
            output.append(SettingIdentifier.enablePush)
            output.append(UInt32(0))
        }
        let increment = configuration.connectionReceiveWindow - 65_535
        if increment > 0 { queueWindowUpdate(streamID: 0, increment: UInt32(increment)) }
    }

    /// The bytes of control frames that wait for `takeOutput`.
    public var pendingOutputCount: Int { output.count }

    /// Moves waiting control bytes into `output`, in order and as many as fit. A frame may be cut;
    /// its rest has to be the next that goes out.
    public mutating func takeOutput(into output: inout OutputRawSpan) {
        self.output.take(into: &output)
    }

    /// The body of the response that was the last event: its first 512 bytes.
    public var responseBody: RawSpan {
        @_lifetime(borrow self)
        get {
            // SAFETY: `responseByteCount` bytes are set, and change only in calls that no borrower
            // allows.
            let body = unsafe RawSpan(_unsafeStart: kept, byteCount: responseByteCount)
            return unsafe _overrideLifetime(body, borrowing: self)
        }
    }

    /// The debug data of the last GOAWAY: its first 512 bytes. Not always JSON.
    public var goAwayDebugData: RawSpan {
        @_lifetime(borrow self)
        get {
            // SAFETY: `debugCount` bytes of the second half are set, and change only in calls that
            // no borrower allows.
            let data = unsafe RawSpan(
                _unsafeStart: kept + BodyPool.keptCount, byteCount: debugCount)
            return unsafe _overrideLifetime(data, borrowing: self)
        }
    }

    /// `retry-after` of the response that was the last event.
    public var retryAfter: RetryAfter { responseRetryAfter }

    /// The streams that are open now.
    public var openStreamCount: Int { streams.openCount }

    /// The streams that may be open now: the server's limit or ours. The gate isn't counted in.
    public var streamLimit: Int {
        min(configuration.maxStreams, Int(clamping: settings.maxConcurrentStreams))
    }

    /// A GOAWAY came or went, or the ids are used up: open streams end, no new ones start.
    public var isDraining: Bool { isGoingAway || streams.remainingIDs == 0 }

    /// Whether requests may start now or later.
    public var isUsable: Bool { phase == .running && !isDraining }

    /// The limit in bytes for the encoder's mirror of the server's table: the lowest
    /// SETTINGS_HEADER_TABLE_SIZE so far, at most 4,096.
    public var headerTableSize: UInt32 { settings.headerTableSize }

    /// The server's SETTINGS_MAX_FRAME_SIZE in bytes.
    public var maxFrameSize: UInt32 { settings.maxFrameSize }

    /// How full is what could grow, and the most of it where no other number here says so: bytes of
    /// control frames, requests in parts, and places of bodies that come in parts.
    package var occupancy:
        (controlBytes: Int, parts: Int, partsLimit: Int, bodies: Int, bodiesLimit: Int)
    {
        (
            output.count, partial.count, PartialStreams.limit, bodies.slotCount,
            max(16, 2 * configuration.maxStreams)
        )
    }
}
