/// Streams whose request body is sent in pieces, as the windows let it go.
@safe struct PartialStreams: ~Copyable {
    /// How many may be under way at once. Servers with windows below a payload are rare, and each
    /// piece that waits is looked at every turn.
    static let limit = 64

    // SAFETY: `init` allocates `limit` elements and sets them, `deinit` frees them; `count` is at
    // most as many.
    private let ids: UnsafeMutablePointer<UInt32>
    private(set) var count = 0
    /// Whose turn it is, so that none starves.
    var next = 0

    init() {
        // SAFETY: all elements are set at once.
        unsafe ids = .allocate(capacity: Self.limit)
        unsafe ids.initialize(repeating: 0, count: Self.limit)
    }

    // SAFETY: reached only through this value; numbers need no deinitialisation.
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
        // SAFETY: both are below the old count, as checked; the last takes the place of the removed
        // one.
        unsafe ids[position] = ids[count]
    }
}

/// What we send: requests, and the ends of them.
extension ClientConnectionStateMachine {
    /// The streams that may be opened now, whatever they carry.
    private var freeStreams: Int {
        guard phase == .running, !isGoingAway else { return 0 }
        let limit = isGateOpen ? streamLimit : min(1, streamLimit)
        return min(limit - streams.openCount, streams.remainingIDs)
    }

    /// How many requests may start now with a whole payload of `payloadCount` bytes each: by the
    /// gate, both stream limits, both windows, the frame size and the ids that are left.
    public func requestCapacity(payloadCount: Int) -> Int {
        let free = freeStreams
        guard free > 0 else { return 0 }
        guard payloadCount > 0 else { return free }
        guard payloadCount <= Int(settings.initialWindowSize),
            payloadCount <= Int(settings.maxFrameSize), sendWindow.available > 0
        else { return 0 }
        return min(free, sendWindow.available / payloadCount)
    }

    /// Opens a stream for the request `tag`, whose payload of `payloadCount` bytes goes out whole,
    /// and returns its id. The caller writes HEADERS and DATA with END_STREAM at once, before those
    /// of the next stream. There must be capacity for it.
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

    /// Whether a payload of `payloadCount` bytes has to go in pieces: a stream is free, but the
    /// stream's window can't hold it, or the connection's can't and no answer is awaited that could
    /// move the server to widen it.
    public func mustSendInParts(payloadCount: Int) -> Bool {
        guard freeStreams > 0, partial.count < PartialStreams.limit, sendWindow.available > 0,
            payloadCount > 0
        else { return false }
        return payloadCount > Int(settings.initialWindowSize)
            || payloadCount > sendWindow.available && streams.openCount == 0
    }

    /// Opens a stream for the request `tag` although the windows may not hold its payload of
    /// `payloadCount` bytes. The caller writes HEADERS without END_STREAM and, if `allowed` is not
    /// 0, as many bytes of DATA; the rest goes as `nextContinuation` says. END_STREAM goes with the
    /// last of them. Nil: not now.
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

    /// A piece of a payload that the windows let go.
    public struct Continuation: Sendable, Equatable {
        /// Whose payload.
        public var tag: UInt32
        /// The stream it goes on.
        public var streamID: UInt32
        /// Where the piece starts in the payload.
        public var offset: Int
        /// The bytes of the piece, at least 1.
        public var count: Int
        /// DATA has END_STREAM.
        public var isLast: Bool
    }

    /// The next piece to send of the payloads that are under way; nil while no window lets any go.
    /// The caller writes its DATA at once.
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
            // Below zero after the initial size was lowered: "A sender MUST track the negative
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

    /// Queues a PING; `pong` brings `opaque` back.
    public mutating func ping(_ opaque: UInt64) {
        guard phase != .failed else { return }
        pingsAwaited += 1
        queue(.ping, length: 8) { $0.append(opaque) }
    }
}
