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
///     openStream ----------> sent --- HEADERS ---> response  --- END_STREAM ---> response
///     openPartialStream       |                       |
///        | nextContinuation   +-- RST_STREAM ---------+--> notProcessed, or reset: in doubt
///        +----> sent          +-- malformed response -----> streamError: in doubt
///                             +-- GOAWAY below its id ---> notProcessed
///                             +-- cancelStream, takeOpenStream --> forgotten
///
/// Frames on a stream that is forgotten, or whose request was not processed, are ignored.
///
/// The caller writes a request, HEADERS and DATA, right after `openStream`. Control frames of the
/// connection wait in a buffer (`takeOutput`).
///
/// In each iteration, the caller processes all input, then calls `takeOutput`, then writes
/// requests. The order matters, because the server applies its old limits until it gets the
/// acknowledgement of its SETTINGS (RFC 9113 section 6.5.3). So the acknowledgement must precede
/// anything that depends on the SETTINGS.
///
/// Input and `openStream` may change windows and limits without an event. So the caller calls
/// `requestCapacity` and `nextContinuation` again in each iteration.
@safe public struct ClientConnectionStateMachine: ~Copyable {
    /// Configuration of a connection.
    public struct Configuration: Sendable {
        /// Our own limit on open streams, in addition to the server's: 1...16,384.
        var maxStreams: Int
        /// Whether the first request is sent alone. Other requests follow after any response except
        /// 403. Used with provider tokens.
        var gateUntilFirstResponse: Bool
        /// Window for DATA from the server on the connection, in bytes: 65,535...2^31-1.
        var connectionReceiveWindow: Int
        /// Maximum byte count of the control frames that wait for `takeOutput`. If a server
        /// requests replies and does not read them, the connection ends when this limit is
        /// exceeded.
        public var outputLimit: Int

        /// Creates a configuration. The default values are those of the engine.
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

    /// Status that represents a 200 with an apns-unique-id. A separate event for it would make the
    /// handling of each response slower.
    public static var identifiedStatus: UInt16 { Stream.identifiedStatus }

    /// Events for the caller.
    public enum Event: Sendable, Equatable {
        /// The server's first SETTINGS arrived: requests may start.
        case ready
        /// Later SETTINGS arrived: stream limit, windows and `headerTableSize` may have changed.
        case settingsChanged
        /// The response to the request `tag` is complete and its stream closed. `responseBody` and
        /// `retryAfter` refer to this response until the next call. The status of a 200 with an
        /// `apns-unique-id` is `identifiedStatus`, and `responseBody` is the ID.
        case response(tag: UInt32, status: UInt16)
        /// The server did not act on the request `tag` (RFC 9113 section 8.7).
        case notProcessed(tag: UInt32)
        /// Response headers arrived for a request that was reported as `notProcessed`, so the server
        /// has processed the request.
        case disownedResponse
        /// The server reset the stream of `tag` after the request was complete and before its
        /// response was, so the request is in doubt.
        case reset(tag: UInt32, ErrorCode)
        /// The server violated the protocol on the stream of `tag`, so we reset the stream; the
        /// request is in doubt.
        case streamError(tag: UInt32, StreamError)
        /// The server accepts no more streams. For open streams above `lastStreamID`,
        /// `notProcessed` follows. `goAwayDebugData` returns the debug data of this GOAWAY.
        case goAway(ErrorCode, lastStreamID: UInt32)
        /// The server acknowledged our PING with this opaque value.
        case pong(UInt64)
        /// The server violated the protocol. A GOAWAY is pending; flush the output and close. Open
        /// streams are in doubt (`takeOpenStream`). No event follows.
        case failed(ConnectionError)
    }

    enum Phase: UInt8 { case awaitingSettings, running, failed }

    /// Window for DATA from the server per stream, in bytes. It is the initial value of RFC 9113
    /// section 6.5.2, because we announce no other value.
    static let streamReceiveWindow: Int32 = 65_535

    /// Never used. Because of this atomic, the state machine has a fixed address, and calls that
    /// borrow the state machine pass only the address. Without an atomic, each such call first
    /// copies the whole state machine to the stack, which takes longer than opening a stream.
    private let pin = Atomic<Bool>(false)

    let configuration: Configuration
    var phase = Phase.awaitingSettings
    var reader = FrameReader()
    var output: ControlOutput
    var streams: StreamTable
    var bodies = BodyPool()
    var inflater = ResponseInflater()
    var headerBlockCache = HeaderBlockCache()
    /// apns-unique-id of the latest block that was decoded; nil if it has none.
    var uniqueID: UniqueID?
    var fragments = HeaderFragments()
    var flood: FloodGuard

    var settings = PeerSettings()
    var settingsAcknowledged = false
    var sendWindow = FlowControlWindow(available: 65_535)
    var receiveWindow: ReceiveWindow
    /// Largest `windowDelta` that any stream ever had.
    var largestWindowDelta: Int32 = 0
    var partial = PartialStreams()
    var isGateOpen: Bool
    var pingsAwaited = 0

    /// Whether a GOAWAY was received, or sent by `shutdown`.
    var isGoingAway = false
    var isShuttingDown = false
    var lastProcessedID = StreamTable.lastID
    /// Number of slots to be checked for streams that a GOAWAY left unprocessed.
    var slotsToCheck = 0

    // SAFETY: `init` allocates two halves of `BodyPool.keptCount` bytes, and `deinit` frees them;
    // `responseByteCount` bytes of the first and `debugCount` of the second are set.
    /// Two areas of `BodyPool.keptCount` bytes: the first has the body of the last response, the
    /// second has the debug data of the last GOAWAY.
    let kept: UnsafeMutableRawPointer
    var responseByteCount = 0
    var debugCount = 0
    var responseRetryAfter = RetryAfter.none

    /// Creates the state machine for a connection whose TLS session is established, with h2
    /// negotiated.
    public init(configuration: Configuration = .init()) {
        precondition(
            (65_535...FlowControlWindow.limit).contains(configuration.connectionReceiveWindow),
            "the connection's window starts at 65,535 bytes and can't be lowered")
        self.configuration = configuration
        output = ControlOutput(capacity: configuration.outputLimit)
        streams = StreamTable(limit: configuration.maxStreams)
        flood = FloodGuard(maxStreams: configuration.maxStreams)
        receiveWindow = ReceiveWindow(size: configuration.connectionReceiveWindow)
        isGateOpen = !configuration.gateUntilFirstResponse
        // SAFETY: no byte is read before it is set: both counts are 0.
        unsafe kept = .allocate(byteCount: 2 * BodyPool.keptCount, alignment: 16)
    }

    // SAFETY: spans of this memory borrow this value, so none exists any more.
    deinit { unsafe kept.deallocate() }

    /// Queues the preface: its 24 bytes, our SETTINGS and the connection's window (RFC 9113 section
    /// 3.4). Call once, before anything else.
    public mutating func start() {
        output.appendPreface()
        queue(.settings, length: 12) { output in
            // No dynamic table for responses, so that no response can change the meaning of a later
            // one. A server that ignores this only costs time (`ResponseInflater`).
            output.append(SettingIdentifier.headerTableSize)
            output.append(UInt32(0))
            output.append(SettingIdentifier.enablePush)
            output.append(UInt32(0))
        }
        let increment = configuration.connectionReceiveWindow - 65_535
        if increment > 0 { queueWindowUpdate(streamID: 0, increment: UInt32(increment)) }
    }

    /// Byte count of the control frames that wait for `takeOutput`.
    public var pendingOutputCount: Int { output.count }

    /// Moves waiting control bytes into `output`, in order, until it is full. If this splits a
    /// frame, the rest of the frame must be sent next.
    public mutating func takeOutput(into output: inout OutputRawSpan) {
        self.output.take(into: &output)
    }

    /// First 512 bytes of the body of the response in the last event. If the response's status is
    /// `identifiedStatus`, this is the text of the response's apns-unique-id instead.
    public var responseBody: RawSpan {
        @_lifetime(borrow self)
        get {
            // SAFETY: `responseByteCount` bytes are set, and only calls that are impossible during
            // a borrow change them.
            let body = unsafe RawSpan(_unsafeStart: kept, byteCount: responseByteCount)
            return unsafe _overrideLifetime(body, borrowing: self)
        }
    }

    /// First 512 bytes of the debug data of the last GOAWAY; not always JSON.
    public var goAwayDebugData: RawSpan {
        @_lifetime(borrow self)
        get {
            // SAFETY: `debugCount` bytes of the second half are set, and only calls that are
            // impossible during a borrow change them.
            let data = unsafe RawSpan(
                _unsafeStart: kept + BodyPool.keptCount, byteCount: debugCount)
            return unsafe _overrideLifetime(data, borrowing: self)
        }
    }

    /// `retry-after` of the response in the last event.
    public var retryAfter: RetryAfter { responseRetryAfter }

    /// Notes the current time, monotonic nanoseconds. Without calls, frames that advance no request
    /// count as if all of them came within a second.
    public mutating func advance(to now: UInt64) { flood.advance(to: now) }

    /// Lower bound of the IDs of streams that will be opened; higher than all earlier IDs.
    public var nextStreamID: UInt32 { streams.nextID }

    /// Number of open streams.
    public var openStreamCount: Int { streams.openCount }

    /// Limit on open streams: the lower of the server's and ours. Ignores `gateUntilFirstResponse`.
    public var streamLimit: Int {
        min(configuration.maxStreams, Int(clamping: settings.maxConcurrentStreams))
    }

    /// Whether a GOAWAY was received or sent, or the IDs are used up. If so, open streams continue
    /// to their end, and no new ones start.
    public var isDraining: Bool { isGoingAway || streams.remainingIDs == 0 }

    /// Whether requests may start, at once or after responses free a stream or a window.
    public var isUsable: Bool { phase == .running && !isDraining }

    /// The limit in bytes for the encoder's mirror of the server's table: the lowest
    /// SETTINGS_HEADER_TABLE_SIZE so far, at most 4,096.
    public var headerTableSize: UInt32 { settings.headerTableSize }

    /// The server's SETTINGS_MAX_FRAME_SIZE in bytes.
    public var maxFrameSize: UInt32 { settings.maxFrameSize }

    /// The fill levels of the bounded tables (bytes of control frames, requests in parts, and body
    /// buffers), with the limits that no other property returns.
    package var occupancy:
        (controlBytes: Int, parts: Int, partsLimit: Int, bodies: Int, bodiesLimit: Int)
    {
        (
            output.count, partial.count, PartialStreams.limit, bodies.slotCount,
            max(16, 2 * configuration.maxStreams)
        )
    }
}
