import BroadsidePayloads

/// The number of a row's place in the slab while the row is being worked on; what a stream carries
/// as its tag.
typealias RowTag = UInt32

/// What the reactor remembers of a row between reading and settling it.
struct PendingRow {
    /// The row's number in the list, from 0.
    var row: UInt64 = 0
    /// When the row was first written to a connection, monotonic nanoseconds; 0 before.
    var firstSentNanoseconds: UInt64 = 0
    /// When the request in flight was written.
    var sentNanoseconds: UInt64 = 0
    /// The next place in whichever list the row waits in.
    var next: RowTag = .max
    /// The version of the provider token that the request in flight carries.
    var authorizationVersion: UInt32 = 0
    /// Requests made for it that count against `--max-attempts`.
    var attempts: UInt16 = 0
    /// The status and the reason code of the last answer, 0 where none came.
    var lastStatus: UInt16 = 0
    var lastReason: UInt8 = 0
    /// Hexadecimal digits in the token.
    var tokenCount: UInt8 = 0
    /// Whether InvalidProviderToken was met once already.
    var hadInvalidToken: Bool = false
    /// Whether some request for it was never answered: a server may have acted on it.
    var mayHaveBeenSent: Bool = false
    /// What the row's request has of its own, where rows have any: kept in the slab.
    var personal = PayloadRenderer.Shape()
    /// The first block of what did not fit behind the token.
    var firstBlock: UInt32 = .max
}

/// The rows a reactor has in its hands: in flight, waiting for another try, or handed back. A fixed
/// number of fixed places, so that working on a row never allocates.
///
/// Each place holds a `PendingRow` and up to 200 digits of the token: 256 bytes. Behind the token
/// stand the row's personal pieces; what does not fit there lies in blocks.
@safe struct RowSlab: ~Copyable {
    static let slotByteCount = 256
    static let tokenOffset = 56
    /// `--tokens` rows hold at most so many digits (100 bytes, the reference's upper bound).
    static let tokenDigitsLimit = 200

    // SAFETY: `capacity` places that never move, freed in `deinit`; one thread reaches them. A
    // place that `take` gave holds a `PendingRow`, for ever, and as many bytes of a token as that
    // says.
    private let memory: UnsafeMutableRawPointer
    private var freeHead: RowTag = .max
    private var untouched: RowTag = 0
    let capacity: Int
    private(set) var count = 0
    var blocks: BlockArena
    /// Blocks that a row may need at most.
    let blocksPerRow: Int

    /// - Parameters:
    ///   - piecesLimit: The most bytes of a row's personal pieces; 0 where rows have none.
    ///   - blockCount: Blocks for what does not fit behind tokens.
    init(capacity: Int, fieldValueByteCountMax: Int = 0, blockCount: Int = 0) {
        blocksPerRow = BlockArena.blocks(for: fieldValueByteCountMax)
        precondition(blockCount >= blocksPerRow)
        blocks = BlockArena(capacity: blockCount)
        precondition(MemoryLayout<PendingRow>.size <= Self.tokenOffset)
        precondition(capacity > 0 && capacity < Int(RowTag.max))
        self.capacity = capacity
        // SAFETY: `take` sets a place before it is read.
        unsafe memory = UnsafeMutableRawPointer.allocate(
            byteCount: capacity * Self.slotByteCount, alignment: 64)
    }

    // SAFETY: allocated in `init`, of trivial types, and nobody keeps a pointer into a slab that
    // ends.
    deinit {
        blocks.deallocate()
        unsafe memory.deallocate()
    }

    /// Whether another row may find no room.
    var isFull: Bool { count == capacity || blocks.freeCount < blocksPerRow }

    /// Takes a free place. The slab must not be full.
    mutating func take() -> RowTag {
        precondition(count < capacity)
        count += 1
        if freeHead != .max {
            let tag = freeHead
            freeHead = self[tag].next
            self[tag] = PendingRow()
            return tag
        }
        let tag = untouched
        untouched += 1
        assert(Int(untouched) <= capacity, "a row is in the slab")
        self[tag] = PendingRow()
        return tag
    }

    /// Gives a place back; its row is settled or recorded as not sent.
    mutating func free(_ tag: RowTag) {
        precondition(count > 0)
        if self[tag].firstBlock != .max { freeBlocks(tag) }
        self[tag].next = freeHead
        freeHead = tag
        count -= 1
    }

    /// The state of a row. The memory never moves, and all of it that was ever taken is initialized.
    subscript(tag: RowTag) -> PendingRow {
        // SAFETY: `state` checks the tag; a place that was taken holds a row, and stays where it
        // is.
        @inline(__always)
        unsafeAddress { unsafe UnsafePointer(state(tag)) }
        @inline(__always)
        nonmutating unsafeMutableAddress { unsafe state(tag) }
    }

    // SAFETY: a place within `memory`; `PendingRow` is trivial, so that it may be assigned to at
    // once.
    @inline(__always)
    private func state(_ tag: RowTag) -> UnsafeMutablePointer<PendingRow> {
        precondition(Int(tag) < capacity)
        return unsafe (memory + Int(tag) * Self.slotByteCount).assumingMemoryBound(
            to: PendingRow.self)
    }

    /// Room for the token's digits.
    func token(_ tag: RowTag) -> UnsafeMutableRawPointer {
        // SAFETY: the caller's tag is one that `take` gave, so below `capacity`; behind the offset
        // a place has `tokenDigitsLimit` bytes.
        unsafe memory + Int(tag) * Self.slotByteCount + Self.tokenOffset
    }

    /// The token's digits.
    func tokenBytes(_ tag: RowTag) -> UnsafeRawBufferPointer {
        // SAFETY: `self[tag]` checks the tag, and `tokenCount` is what was set of the place's 200
        // bytes.
        unsafe UnsafeRawBufferPointer(
            start: token(tag), count: Int(self[tag].tokenCount))
    }
}

/// Rows waiting in order, threaded through the slab: no memory of its own.
struct RowQueue: Sendable {
    private var head: RowTag = .max
    private var tail: RowTag = .max
    private(set) var count = 0

    init() {}

    var isEmpty: Bool { head == .max }

    mutating func append(_ tag: RowTag, in slab: borrowing RowSlab) {
        assert(
            (head == .max) == (count == 0) && (tail == .max) == (count == 0),
            "an empty queue has no ends")
        slab[tag].next = .max
        if tail == .max {
            head = tag
        } else {
            slab[tail].next = tag
        }
        tail = tag
        count += 1
    }

    /// Puts a row back that was taken and could not be sent.
    mutating func prepend(_ tag: RowTag, in slab: borrowing RowSlab) {
        assert(
            (head == .max) == (count == 0) && (tail == .max) == (count == 0),
            "an empty queue has no ends")
        slab[tag].next = head
        head = tag
        if tail == .max { tail = tag }
        count += 1
    }

    mutating func popFirst(in slab: borrowing RowSlab) -> RowTag? {
        guard head != .max else { return nil }
        let tag = head
        head = slab[tag].next
        if head == .max { tail = .max }
        count -= 1
        assert(
            (head == .max) == (count == 0) && (tail == .max) == (count == 0),
            "an empty queue has no ends")
        return tag
    }
}
