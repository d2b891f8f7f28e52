/// A run of whole rows of a token list, in memory of its own: the unit in which work is handed out.
///
/// One holder at a time: the cutter fills a chunk, then a reactor reads it, then it goes back to its
/// pool. Nothing in it is guarded, because it is never shared. Its memory is only reached through
/// `bytes` and this module's cutter and readers.
@safe public final class RowChunk: @unchecked Sendable {
    /// The most bytes that several rows of a chunk have together. A single row may have more.
    public static let capacity = 64 * 1_024
    /// The most bytes of a row, its line feed not counted; a longer one is malformed.
    public static let rowByteCountMax = 1 << 20
    /// The most bytes that are stored of a single row: with its line feed.
    public static let storedCountMax = rowByteCountMax + 1

    /// Where the chunk starts in the list, its first row's number and its first line.
    public internal(set) var start = ListPosition()
    /// How many rows it has; blank lines are none.
    public internal(set) var rowCount = 0
    /// How many bytes of the list it covers.
    public internal(set) var byteCount: UInt64 = 0
    /// How many lines it covers, blank ones and those inside quotes included.
    var lineCount: UInt64 = 0
    /// The hash of the covered bytes: `MixingHash` of the stored ones, extended by others.
    public internal(set) var hash: UInt64 = 0
    /// How many bytes are stored: `byteCount`, but the first ones only where the chunk is overlong.
    var storedCount = 0
    /// Whether it is a single row of more than `rowByteCountMax` bytes.
    var isOverlong = false

    /// What the run does with each row; nil: all of them are sent.
    public var dispositions: [RowDisposition]?
    /// How often earlier runs sent each row; nil: none of them was sent.
    public var attempts: [UInt16]?
    /// For a resumed run: settled states whose rows are sent again.
    public var reopens: ReopenedStates = []

    // SAFETY: `room` bytes of this chunk's own, freed in `deinit`, of which the holder has set
    // `storedCount`. One thread at a time holds the chunk, and its readers keep it alive: see
    // above.
    private(set) var storage: UnsafeMutableRawPointer
    /// The bytes that there is room for: more than `capacity` for the sake of a long row.
    private(set) var room = RowChunk.capacity

    init() {
        // SAFETY: `room` bytes, of which `storedCount` says that none is set.
        unsafe storage = .allocate(byteCount: RowChunk.capacity, alignment: 64)
    }

    /// Whether it holds a row that is longer than other chunks are.
    public var isLarge: Bool { room > RowChunk.capacity }

    /// Makes room for more of a long row, and keeps the bytes that are set.
    func grow(keeping count: Int) {
        precondition(room < RowChunk.storedCountMax && count <= room)
        let larger = min(room * 2, RowChunk.storedCountMax)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 64)
        // SAFETY: both have room for `count` bytes.
        unsafe memory.copyMemory(from: storage, byteCount: count)
        unsafe storage.deallocate()
        unsafe storage = memory
        room = larger
    }

    deinit {
        // SAFETY: allocated in `init`, and readers keep the chunk alive while they look at it.
        unsafe storage.deallocate()
    }

    /// Where the next chunk starts.
    public var end: ListPosition {
        ListPosition(
            byteOffset: start.byteOffset + byteCount, row: start.row + UInt64(rowCount),
            line: start.line + lineCount)
    }

    /// The stored bytes.
    var bytes: RawSpan {
        @_lifetime(borrow self) get {
            // SAFETY: the memory lives as long as the chunk, and `storedCount` bytes are set.
            let span = unsafe RawSpan(_unsafeStart: storage, byteCount: storedCount)
            return unsafe _overrideLifetime(span, borrowing: self)
        }
    }

    func reset() {
        if isLarge {
            // SAFETY: the chunk is its pool's now, and no reader has it; `storedCount` becomes 0
            // below.
            unsafe storage.deallocate()
            unsafe storage = .allocate(byteCount: RowChunk.capacity, alignment: 64)
            room = RowChunk.capacity
        }
        start = ListPosition()
        rowCount = 0
        byteCount = 0
        lineCount = 0
        hash = 0
        storedCount = 0
        isOverlong = false
        dispositions = nil
        attempts = nil
        reopens = []
    }
}

extension RowChunk {
    /// What the ledger notes of a chunk before any of its rows is sent.
    public var reservation: ChunkReservation {
        ChunkReservation(
            firstRow: start.row, rowCount: rowCount, byteOffset: start.byteOffset,
            byteCount: byteCount, firstLine: start.line, lineCount: lineCount, hash: hash,
            reopens: reopens)
    }
}
