/// A stream that is open, or the memory of how it ended.
struct Stream {
    enum State: UInt8 {
        /// Never used.
        case unused
        /// The response is awaited or under way.
        case open
        /// The server ended it; nothing more may come.
        case closedByServer
        /// We reset it; what the server had sent before it knew is ignored (RFC 9113 section 5.1).
        case closedByUs
    }

    var id: UInt32 = 0
    /// The caller's name for the request.
    var tag: UInt32 = 0
    /// The final status, 0 until it is known.
    var status: UInt16 = 0
    var state = State.unused
    /// An interim response came: the request is being processed.
    var isBegun = false
    /// The place of the body in the pool, if it has one, and how much of it is kept.
    var bodySlot = BodyPool.none
    var bodyCount: UInt16 = 0
    /// The request's body: what of it was sent, and all of it.
    var sentCount: Int32 = 0
    var payloadCount: Int32 = 0
    /// The send window is the initial size, as of now, and this (RFC 9113 section 6.9.2).
    var windowDelta: Int32 = 0
    /// The response's body so far, its announced length, and what is not given back to its window.
    var receivedCount: Int32 = 0
    var contentLength: Int32 = -1
    var receiveUsed: Int32 = 0
    var retryAfter = RetryAfter.none

    /// A response came, or a part of one: the request was processed, whatever the server says later.
    var hasResponse: Bool { status != 0 || isBegun }
}

/// The streams of a connection.
///
///     id        1   3   5   7   9  ...
///     slot      0   1   2   3   0  ...     (id >> 1) & mask, here of four
///
/// A ring at least twice as large as the streams that are open. It doubles as they become more:
/// most connections never use all that they might. Where the slot of the next id is still taken
/// by a slow stream, that id is skipped: ids need not be consecutive (RFC 9113 section 5.1.1). So
/// there is neither a hash nor a search.
@safe struct StreamTable: ~Copyable {
    /// What an id of a frame from the server stands for.
    enum Lookup {
        case open(slot: Int)
        /// Never opened.
        case idle
        /// Ended by the server.
        case closedByServer
        /// Reset by us, skipped, or so long ago that its slot is another stream's.
        case forgotten
    }

    /// "Unique 31-bit identifier."
    static let lastID: UInt32 = 0x7fff_ffff

    // SAFETY: `init` and `grow` allocate `slotCount` streams and set them all; `grow` frees those
    // before, `deinit` the last. Streams are plain values, without deinitialisation.
    private var streams: UnsafeMutablePointer<Stream>
    private var mask: Int
    /// The slots of the largest ring.
    private let slotLimit: Int
    private(set) var openCount = 0
    /// The id that the next stream gets, unless its slot is taken.
    var nextID: UInt32 = 1
    /// No stream below is open.
    private var oldestID: UInt32 = 1

    private static let firstSlotCount = 256

    /// A table for at most `limit` open streams.
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

    // SAFETY: reached only through this value.
    deinit { unsafe streams.deallocate() }

    var slotCount: Int { mask + 1 }

    /// How many streams may surely still be opened. Opening one uses up its id and those skipped
    /// before it, of which there are fewer than slots.
    var remainingIDs: Int {
        let remaining = (Int(Self.lastID) - Int(nextID)) / 2 + 1
        return max(0, remaining - slotLimit)
    }

    subscript(slot: Int) -> Stream {
        @inline(__always) unsafeAddress {
            // SAFETY: the mask keeps every slot within the allocation, of which all slots are set.
            unsafe UnsafePointer(streams + (slot & mask))
        }
        @inline(__always) unsafeMutableAddress {
            // SAFETY: the mask keeps every slot within the allocation, of which all slots are set.
            unsafe streams + (slot & mask)
        }
    }

    @inline(__always)
    func slot(of id: UInt32) -> Int { Int(id >> 1) & mask }

    @inline(__always)
    func lookUp(_ id: UInt32) -> Lookup {
        let slot = slot(of: id)
        // Even ids are the server's, which never opens any: push is off.
        guard id < nextID, id & 1 == 1 else { return .idle }
        guard self[slot].id == id else { return .forgotten }
        switch self[slot].state {
        case .open: return .open(slot: slot)
        case .closedByServer: return .closedByServer
        case .closedByUs, .unused: return .forgotten
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

    /// Makes the ring twice as large. Streams that shared no slot of the smaller ring share none of
    /// the larger one, so each has its own again, and so has the memory of those that ended.
    @inline(never)
    private mutating func grow() {
        precondition(slotCount < slotLimit, "more streams than the table was made for")
        let larger = 2 * slotCount
        let moved = UnsafeMutablePointer<Stream>.allocate(capacity: larger)
        // SAFETY: all slots of the new allocation are set, and its mask keeps each place within it.
        // An access to a slot holds the whole table, so that none is open while the old one is
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

    /// The slot of the open stream with the lowest id. The cursor only moves on, so that all calls
    /// together look at each id once; far behind, one look at every slot takes its place.
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
