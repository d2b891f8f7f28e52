import BroadsidePayloads

/// Number of a row's slot in the slab; the row's stream has this number as its tag. Valid while the
/// reactor works on the row.
typealias RowTag = UInt32

/// State of a row between reading and settling it.
struct PendingRow {
    /// Row number in the list, from 0.
    var row: UInt64 = 0
    /// Time of the first write to a connection, monotonic nanoseconds; 0 before. Until this process
    /// sends the row, it is `sentByEarlierRun` if an earlier run sent, or may have sent, a request.
    var firstSentNanoseconds: UInt64 = 0
    /// Time at which the latest of these was written: the beginning of the request in flight, and
    /// its end if it is sent in parts.
    var sentNanoseconds: UInt64 = 0
    /// Next slot in the queue that contains the row.
    var next: RowTag = .max
    /// Version of the provider token in the request in flight.
    var authorizationVersion: UInt32 = 0
    /// Number of requests for the row, of all runs, without those that a server did not process.
    var attempts: UInt16 = 0
    /// Status of the last response, and its reason code; 0 if there was none.
    var lastStatus: UInt16 = 0
    var lastReason: UInt8 = 0
    /// Number of hexadecimal digits in the token.
    var tokenCount: UInt8 = 0
    /// Whether a response to the row was InvalidProviderToken.
    var hadInvalidToken: Bool = false
    /// Whether a request for the row got no response. A server may then have acted on it.
    var mayHaveBeenSent: Bool = false
    /// Layout of the row's field values, which are stored in the slab.
    var personal = PayloadRenderer.Shape()
    /// Number of `attempts` that do not count for `--max-attempts`.
    var attemptsBefore: UInt16 = 0
    /// First block of the field values that did not fit after the token.
    var firstBlock: UInt32 = .max

    /// Value of `firstSentNanoseconds` for a row that only earlier runs sent.
    static let sentByEarlierRun: UInt64 = 1

    /// Whether the last response to the row was a 5xx.
    var hadServerError: Bool { lastStatus >= 500 }
}

/// Memory of the rows that a reactor works on: in flight, waiting for a retry, or requeued. The
/// number of slots is fixed, so that processing a row never allocates.
///
/// A slot has 256 bytes: a `PendingRow`, up to 200 digits of the token, and the row's field values.
/// Field values that do not fit continue in blocks.
@safe struct RowSlab: ~Copyable {
    static let slotByteCount = 256
    static let tokenOffset = 56
    /// Limit on digits of a token in `--tokens` rows: 100 bytes, the upper bound in Apple's
    /// reference.
    static let tokenDigitsLimit = 200

    // SAFETY: `capacity` slots that never move, freed in `deinit`; one thread accesses them. A slot
    // that `take` returned holds a `PendingRow` from then on, and as many token bytes as the row's
    // `tokenCount`.
    private let memory: UnsafeMutableRawPointer
    private var freeHead: RowTag = .max
    private var untouched: RowTag = 0
    let capacity: Int
    private(set) var count = 0
    var blocks: BlockArena
    /// Maximum number of blocks that one row can need.
    let blocksPerRow: Int

    /// - Parameters:
    ///   - fieldValueByteCountMax: Limit on bytes of a row's field values; 0 for a constant
    ///     payload.
    ///   - blockCount: Blocks for field values that do not fit after the tokens.
    init(capacity: Int, fieldValueByteCountMax: Int = 0, blockCount: Int = 0) {
        blocksPerRow = BlockArena.blocks(for: fieldValueByteCountMax)
        precondition(blockCount >= blocksPerRow)
        blocks = BlockArena(capacity: blockCount)
        precondition(MemoryLayout<PendingRow>.size <= Self.tokenOffset)
        precondition(capacity > 0 && capacity < Int(RowTag.max))
        self.capacity = capacity
        // SAFETY: `take` sets a slot before it is read.
        unsafe memory = UnsafeMutableRawPointer.allocate(
            byteCount: capacity * Self.slotByteCount, alignment: 64)
    }

    // SAFETY: allocated in `init`, of trivial types; no pointer into the slab outlives it.
    deinit {
        blocks.deallocate()
        unsafe memory.deallocate()
    }

    /// Whether the slab may have no room for a further row. Its slots or memory blocks are then
    /// used up.
    var isFull: Bool { count == capacity || blocks.freeCount < blocksPerRow }

    /// Takes a free slot. The slab must not be full.
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

    /// Frees a slot after its row was settled or recorded as not sent.
    mutating func free(_ tag: RowTag) {
        precondition(count > 0)
        if self[tag].firstBlock != .max { freeBlocks(tag) }
        self[tag].next = freeHead
        freeHead = tag
        count -= 1
    }

    /// State of a row. The memory never moves, and each slot that was ever taken is initialized.
    subscript(tag: RowTag) -> PendingRow {
        // SAFETY: `state` checks the tag; a slot that was taken holds a row and does not move.
        @inline(__always)
        unsafeAddress { unsafe UnsafePointer(state(tag)) }
        @inline(__always)
        nonmutating unsafeMutableAddress { unsafe state(tag) }
    }

    // SAFETY: a slot within `memory`; `PendingRow` is trivial, so that it can be assigned without
    // initialization.
    @inline(__always)
    private func state(_ tag: RowTag) -> UnsafeMutablePointer<PendingRow> {
        precondition(Int(tag) < capacity)
        return unsafe (memory + Int(tag) * Self.slotByteCount).assumingMemoryBound(
            to: PendingRow.self)
    }

    /// Memory for the token's digits.
    func token(_ tag: RowTag) -> UnsafeMutableRawPointer {
        // SAFETY: the caller's tag came from `take` and is below `capacity`; a slot has
        // `tokenDigitsLimit` bytes behind the offset.
        unsafe memory + Int(tag) * Self.slotByteCount + Self.tokenOffset
    }

    /// Digits of the token.
    func tokenBytes(_ tag: RowTag) -> UnsafeRawBufferPointer {
        // SAFETY: `self[tag]` checks the tag, and `tokenCount` of the slot's 200 bytes are set.
        unsafe UnsafeRawBufferPointer(
            start: token(tag), count: Int(self[tag].tokenCount))
    }
}

/// FIFO queue of rows. The rows' slots in the slab link to each other, so the queue allocates no
/// memory.
struct RowQueue: Sendable {
    private var head: RowTag = .max
    private var tail: RowTag = .max
    private(set) var count = 0

    init() {}

    var isEmpty: Bool { head == .max }

    mutating func append(_ tag: RowTag, in slab: borrowing RowSlab) {
        assert(
            (head == .max) == (count == 0) && (tail == .max) == (count == 0),
            "only an empty queue has neither head nor tail")
        slab[tag].next = .max
        if tail == .max {
            head = tag
        } else {
            slab[tail].next = tag
        }
        tail = tag
        count += 1
    }

    /// Puts back a row that was taken and could not be sent.
    mutating func prepend(_ tag: RowTag, in slab: borrowing RowSlab) {
        assert(
            (head == .max) == (count == 0) && (tail == .max) == (count == 0),
            "only an empty queue has neither head nor tail")
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
            "only an empty queue has neither head nor tail")
        return tag
    }
}
