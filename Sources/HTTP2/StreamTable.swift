/// An open stream, or the record of how it ended.
struct Stream {
    enum State: UInt8 {
        /// Never used.
        case unused
        /// The response has not arrived or is incomplete.
        case open
        /// Ended by the server; no frame may follow.
        case closedByServer
        /// Reset by us. Later frames are ignored, because the server may have sent them before our
        /// reset arrived (RFC 9113 section 5.1).
        case closedByUs
        /// Ended by the server, which did not process the request. Later frames are ignored, because
        /// the other streams must not end with a server that responds nevertheless.
        case disowned
    }

    var id: UInt32 = 0
    /// Identifier of the request, chosen by the caller.
    var tag: UInt32 = 0
    /// Final status; 0 until it is known.
    var status: UInt16 = 0
    var state = State.unused
    /// Whether an interim response came. If so, the server is processing the request.
    var isBegun = false
    /// Pool slot of the kept body, which has `bodyCount` bytes; `BodyPool.none` if none is kept.
    var bodySlot = BodyPool.none
    var bodyCount: UInt16 = 0
    /// Number of bytes of the request's body that were sent. The body has `payloadCount` bytes.
    var sentCount: Int32 = 0
    var payloadCount: Int32 = 0
    /// Difference of the send window from the current initial size (RFC 9113 section 6.9.2).
    var windowDelta: Int32 = 0
    /// Number of received bytes of the response's body. The announced length is `contentLength`,
    /// and the credit of `receiveUsed` bytes was not returned yet.
    var receivedCount: Int32 = 0
    var contentLength: Int32 = -1
    var receiveUsed: Int32 = 0
    var retryAfter = RetryAfter.none

    /// Status of a 200 with an apns-unique-id, which is kept in place of a body. No server can send
    /// this status, because a status has three digits.
    static let identifiedStatus: UInt16 = 1_200

    /// Whether the response is a 200 with an apns-unique-id.
    var isIdentified: Bool { status == Self.identifiedStatus }

    /// Whether the request was sent up to its END_STREAM.
    var isComplete: Bool { sentCount == payloadCount }

    /// Whether a response or part of one came. If so, the request was processed, whatever the
    /// server sends later.
    var hasResponse: Bool { status != 0 || isBegun }
}

/// The streams of a connection.
///
///     id        1   3   5   7   9  ...
///     slot      0   1   2   3   0  ...     (id >> 1) & mask, here of four
///
/// A ring at least twice as large as the number of open streams. It doubles on demand, because most
/// connections never use all permitted streams. If the slot of the next ID is still taken by a slow
/// stream, that ID is skipped: IDs need not be consecutive (RFC 9113 section 5.1.1). This needs
/// neither hashing nor searching.
@safe struct StreamTable: ~Copyable {
    /// State of an ID in a frame from the server.
    enum Lookup {
        case open(slot: Int)
        /// Never opened.
        case idle
        /// Ended by the server.
        case closedByServer
        /// Reset by us, skipped, or so old that its slot belongs to another stream.
        case forgotten
        /// Ended by the server, which did not process the request.
        case disowned
    }

    /// Highest stream ID; an ID has 31 bits.
    static let lastID: UInt32 = 0x7fff_ffff

    // SAFETY: `init` and `grow` allocate `slotCount` streams and set them all; `grow` frees the
    // previous ones, `deinit` the last. Streams are plain values without deinitialization.
    private var streams: UnsafeMutablePointer<Stream>
    private var mask: Int
    /// Number of slots up to which the ring may grow.
    private let slotLimit: Int
    private(set) var openCount = 0
    /// ID of the next stream, unless its slot is taken.
    var nextID: UInt32 = 1
    /// The lower bound of the IDs of open streams.
    private var oldestID: UInt32 = 1

    private static let firstSlotCount = 256

    /// Creates a table for at most `limit` open streams.
    init(limit: Int) {
        precondition(limit >= 1 && limit <= 16_384, "1 to 16,384 streams")
        var slotLimit = 2
        while slotLimit < 2 * limit { slotLimit *= 2 }
        self.slotLimit = slotLimit
        let slotCount = min(slotLimit, Self.firstSlotCount)
        mask = slotCount - 1
        // SAFETY: all slots are set at once.
        unsafe streams = .allocate(capacity: slotCount)
        unsafe streams.initialize(repeating: Stream(), count: slotCount)
    }

    // SAFETY: accessed only through this value.
    deinit { unsafe streams.deallocate() }

    var slotCount: Int { mask + 1 }

    /// The lower bound on the number of streams that can still be opened. Opening a stream uses up
    /// its ID and the skipped IDs before it. There are fewer skipped IDs than slots.
    var remainingIDs: Int {
        let remaining = (Int(Self.lastID) - Int(nextID)) / 2 + 1
        return max(0, remaining - slotLimit)
    }

    subscript(slot: Int) -> Stream {
        @inline(__always) unsafeAddress {
            // SAFETY: the mask keeps each slot within the allocation, and all slots are set.
            unsafe UnsafePointer(streams + (slot & mask))
        }
        @inline(__always) unsafeMutableAddress {
            // SAFETY: the mask keeps each slot within the allocation, and all slots are set.
            unsafe streams + (slot & mask)
        }
    }

    @inline(__always)
    func slot(of id: UInt32) -> Int { Int(id >> 1) & mask }

    @inline(__always)
    func lookUp(_ id: UInt32) -> Lookup {
        let slot = slot(of: id)
        // Even IDs belong to the server, which never opens any: push is off.
        guard id < nextID, id & 1 == 1 else { return .idle }
        guard self[slot].id == id else { return .forgotten }
        switch self[slot].state {
        case .open: return .open(slot: slot)
        case .closedByServer: return .closedByServer
        case .closedByUs, .unused: return .forgotten
        case .disowned: return .disowned
        }
    }

    /// Opens a stream and returns its slot.
    mutating func open(tag: UInt32, payloadCount: Int, sentCount: Int) -> Int {
        assert(sentCount >= 0 && sentCount <= payloadCount, "no more is sent than the request has")
        if openCount > mask >> 1 { grow() }
        while self[slot(of: nextID)].state == .open { nextID += 2 }
        precondition(nextID <= Self.lastID, "the ids are used up")
        let id = nextID
        nextID += 2
        if openCount == 0 { oldestID = id }
        openCount += 1
        let slot = slot(of: id)
        assert(self[slot].state != .open, "an open stream keeps its slot")
        var stream = Stream()
        stream.id = id
        stream.tag = tag
        stream.state = .open
        stream.sentCount = Int32(sentCount)
        stream.payloadCount = Int32(payloadCount)
        stream.windowDelta = -Int32(sentCount)
        self[slot] = stream
        assert(openCount <= slotCount / 2, "half of the table is free")
        return slot
    }

    /// Doubles the ring. Streams with different slots in the smaller ring have different slots in
    /// the larger ring, too. The same is true for the records of ended streams.
    @inline(never)
    private mutating func grow() {
        precondition(slotCount < slotLimit, "more streams than the table was made for")
        let larger = 2 * slotCount
        let moved = UnsafeMutablePointer<Stream>.allocate(capacity: larger)
        // SAFETY: all slots of the new allocation are set, and its mask keeps each index within it.
        // An access to a slot borrows the whole table, so none is in progress when the old one is
        // freed.
        unsafe moved.initialize(repeating: Stream(), count: larger)
        for slot in 0...mask where self[slot].state != .unused {
            unsafe moved[Int(self[slot].id >> 1) & (larger - 1)] = self[slot]
        }
        unsafe streams.deallocate()
        unsafe streams = moved
        mask = larger - 1
    }

    mutating func close(slot: Int, _ state: Stream.State) {
        assert(self[slot].state == .open && state != .open, "a stream is closed once")
        self[slot].state = state
        assert(openCount > 0, "an open stream was counted")
        openCount -= 1
    }

    /// Slot of the open stream with the lowest ID; nil if no stream is open. The search begins at
    /// `oldestID`, which only advances, so that all calls together visit each ID once. If
    /// `oldestID` is far behind, one pass over all slots finds the stream instead.
    mutating func oldestSlot() -> Int? {
        guard openCount > 0 else { return nil }
        if Int(nextID - oldestID) > 4 * slotCount {
            var lowest = UInt32.max
            for slot in 0...mask where self[slot].state == .open {
                lowest = min(lowest, self[slot].id)
            }
            assert(lowest < nextID, "one of the streams is open")
            oldestID = lowest
        }
        while true {
            assert(oldestID < nextID, "the oldest stream is one of those that were opened")
            let slot = slot(of: oldestID)
            if self[slot].id == oldestID, self[slot].state == .open { return slot }
            oldestID += 2
        }
    }
}
