/// The streams whose request body is sent in pieces, because the windows do not permit the whole
/// body at once.
@safe struct PartialStreams: ~Copyable {
    /// Maximum number of partial streams. It is low, because each of them is checked in each
    /// iteration, and servers with windows smaller than a payload are rare.
    static let limit = 64

    // SAFETY: `init` allocates `limit` elements and sets them, `deinit` frees them; `count` is at
    // most `limit`.
    private let ids: UnsafeMutablePointer<UInt32>
    private(set) var count = 0
    /// Position of the next stream to serve, so that none starves.
    var next = 0

    init() {
        // SAFETY: all elements are set at once.
        unsafe ids = .allocate(capacity: Self.limit)
        unsafe ids.initialize(repeating: 0, count: Self.limit)
    }

    // SAFETY: accessed only through this value; numbers need no deinitialization.
    deinit { unsafe ids.deallocate() }

    subscript(position: Int) -> UInt32 {
        precondition(position >= 0 && position < count, "no such stream")
        // SAFETY: checked in the line above; `count` is at most the limit.
        return unsafe ids[position]
    }

    mutating func append(_ id: UInt32) {
        precondition(count < Self.limit, "too many requests in pieces")
        // SAFETY: checked in the line above to be below the limit.
        unsafe ids[count] = id
        count += 1
    }

    mutating func remove(at position: Int) {
        precondition(position >= 0 && position < count, "no such stream")
        count -= 1
        // SAFETY: both are below the old count, as checked; the last element replaces the removed
        // one.
        unsafe ids[position] = ids[count]
    }
}

/// Sending of requests.
extension ClientConnectionStateMachine {
    /// Number of streams that may be opened now, regardless of their payloads.
    private var freeStreams: Int {
        guard phase == .running, !isGoingAway else { return 0 }
        let limit = isGateOpen ? streamLimit : min(1, streamLimit)
        return min(limit - streams.openCount, streams.remainingIDs)
    }

    /// Number of requests that may start now if each sends a whole payload of `payloadCount` bytes.
    /// The limits are `gateUntilFirstResponse`, both stream limits, both windows, the frame size
    /// and the remaining IDs.
    public func requestCapacity(payloadCount: Int) -> Int {
        let free = freeStreams
        guard free > 0 else { return 0 }
        guard payloadCount > 0 else { return free }
        guard payloadCount <= Int(settings.initialWindowSize),
            payloadCount <= Int(settings.maxFrameSize), sendWindow.available > 0
        else { return 0 }
        return min(free, sendWindow.available / payloadCount)
    }

    /// Opens a stream for the request `tag`, whose payload of `payloadCount` bytes is sent whole.
    /// Returns the ID of the stream. The caller writes HEADERS and DATA with END_STREAM
    /// immediately, before it opens the next stream. `requestCapacity` must be above 0.
    public mutating func openStream(tag: UInt32, payloadCount: Int) -> UInt32 {
        precondition(freeStreams > 0, "no stream may be opened now")
        precondition(
            payloadCount <= sendWindow.available && payloadCount <= Int(settings.initialWindowSize)
                || payloadCount == 0, "the windows are too small")
        sendWindow.debit(payloadCount)
        flood.progress()
        let slot = streams.open(tag: tag, payloadCount: payloadCount, sentCount: payloadCount)
        return streams[slot].id
    }

    /// Whether a stream is free but a payload of `payloadCount` bytes has to be sent in pieces.
    /// There are two cases. Either the payload is larger than a new stream's window. Or the payload
    /// is larger than the connection's window, and no stream is open, so that the server has no
    /// reason to widen that window.
    public func mustSendInParts(payloadCount: Int) -> Bool {
        guard freeStreams > 0, partial.count < PartialStreams.limit, sendWindow.available > 0,
            payloadCount > 0
        else { return false }
        return payloadCount > Int(settings.initialWindowSize)
            || payloadCount > sendWindow.available && streams.openCount == 0
    }

    /// Opens a stream for the request `tag`, even if its payload of `payloadCount` bytes does not
    /// fit into the windows. The caller writes HEADERS without END_STREAM and, if `allowed` is not
    /// 0, that many bytes of DATA. `nextContinuation` returns the remaining pieces; the last one
    /// has END_STREAM. Returns nil if no such stream can be opened now.
    public mutating func openPartialStream(
        tag: UInt32, payloadCount: Int
    ) -> (streamID: UInt32, allowed: Int)? {
        guard freeStreams > 0, partial.count < PartialStreams.limit, sendWindow.available > 0,
            payloadCount > 0
        else { return nil }
        let allowed = min(
            payloadCount, sendWindow.available, Int(settings.initialWindowSize),
            Int(settings.maxFrameSize))
        sendWindow.debit(allowed)
        flood.progress()
        let slot = streams.open(tag: tag, payloadCount: payloadCount, sentCount: allowed)
        if allowed < payloadCount { partial.append(streams[slot].id) }
        return (streams[slot].id, allowed)
    }

    /// A piece of a payload that the windows permit.
    public struct Continuation: Sendable, Equatable {
        /// Tag of the request.
        public var tag: UInt32
        /// ID of the stream.
        public var streamID: UInt32
        /// Offset of the piece in the payload.
        public var offset: Int
        /// Byte count of the piece, at least 1.
        public var count: Int
        /// Whether this is the last piece, whose DATA has END_STREAM.
        public var isLast: Bool
    }

    /// Returns the next piece of a payload in progress; nil if the windows permit no piece. The
    /// caller writes the piece as DATA immediately.
    public mutating func nextContinuation() -> Continuation? {
        guard phase == .running, sendWindow.available > 0 else { return nil }
        var checked = 0
        while checked < partial.count {
            if partial.next >= partial.count { partial.next = 0 }
            let position = partial.next
            guard case .open(let slot) = streams.lookUp(partial[position]) else {
                partial.remove(at: position)
                continue
            }
            let stream = streams[slot]
            // Negative after the initial size was lowered: "A sender MUST track the negative
            // flow-control window" (section 6.9.2).
            let window = Int(settings.initialWindowSize) + Int(stream.windowDelta)
            let rest = Int(stream.payloadCount - stream.sentCount)
            assert(rest > 0, "a request that is sent whole is in no list")
            let count = min(rest, window, sendWindow.available, Int(settings.maxFrameSize))
            checked += 1
            partial.next += 1
            guard count > 0 else { continue }
            sendWindow.debit(count)
            flood.progress()
            streams[slot].windowDelta -= Int32(count)
            streams[slot].sentCount += Int32(count)
            if count == rest { partial.remove(at: position) }
            return Continuation(
                tag: stream.tag, streamID: stream.id, offset: Int(stream.sentCount), count: count,
                isLast: count == rest)
        }
        return nil
    }

    /// Queues a PING; the event `pong` returns `opaque`.
    public mutating func ping(_ opaque: UInt64) {
        guard phase != .failed else { return }
        pingsAwaited += 1
        queue(.ping, length: 8) { $0.append(opaque) }
    }
}
