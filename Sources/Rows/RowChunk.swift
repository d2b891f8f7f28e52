/// A range of whole rows of a token list, in its own memory: the unit of work.
///
/// A chunk has one holder at a time, so that no lock is needed: the row splitter fills it, a
/// reactor reads it, and it returns to its pool. The row splitter and the readers in this module
/// access the chunk's memory directly. All other code uses `bytes`.
@safe public final class RowChunk: @unchecked Sendable {
    /// Maximum number of bytes of a chunk with several rows. A single row may have more.
    public static let capacity = 64 * 1_024
    /// Maximum number of bytes of a row, without its line feed. A longer row is malformed.
    public static let rowByteCountMax = 1 << 20
    /// Maximum number of bytes stored of a single row, with its line feed.
    public static let storedCountMax = rowByteCountMax + 1

    /// Position of the chunk in the list: offset, number of its first row, and first line.
    public internal(set) var start = ListPosition()
    /// Number of rows. Blank lines are not rows.
    public internal(set) var rowCount = 0
    /// Number of bytes of the list that the chunk covers.
    public internal(set) var byteCount: UInt64 = 0
    /// Number of lines that the chunk covers, including blank ones and those inside quotes.
    var lineCount: UInt64 = 0
    /// Hash of the covered bytes: `MixingHash` of the stored bytes, extended by the bytes that are
    /// not stored.
    public internal(set) var hash: UInt64 = 0
    /// Number of stored bytes: all `byteCount` bytes, or fewer if the chunk is overlong.
    var storedCount = 0
    /// Whether the chunk is a single row of more than `rowByteCountMax` bytes.
    var isOverlong = false

    /// What to do with each row; nil if all rows are sent.
    public var dispositions: [RowDisposition]?
    /// Number of attempts of earlier runs for each row; nil if no earlier run sent a row of the
    /// chunk.
    public var attempts: [UInt16]?
    /// Number of these attempts that do not count for `--max-attempts`; nil if there are none.
    public var attemptsBefore: [UInt16]?
    /// Whether an earlier run sent, or may have sent, a request for each row; nil if none did for any
    /// row of the chunk.
    public var wasSent: [Bool]?
    /// The states of settled rows that this run sends again.
    public var reopens: ReopenedStates = []
    /// Verdicts of rows that the reservation reopens but this run does not send. They are recorded
    /// again right after the reservation.
    public var kept: [KeptVerdict] = []

    // SAFETY: `room` bytes owned by this chunk, freed in `deinit`, of which the holder has set
    // `storedCount`. One thread at a time holds the chunk, and its readers keep it alive: see
    // above.
    private(set) var storage: UnsafeMutableRawPointer
    /// Number of allocated bytes; above `capacity` for a long row.
    private(set) var room = RowChunk.capacity

    init() {
        // SAFETY: `room` bytes, of which none counts as set, because `storedCount` is 0.
        unsafe storage = .allocate(byteCount: RowChunk.capacity, alignment: 64)
    }

    /// Whether the chunk has memory for a row that is longer than the usual capacity.
    public var isLarge: Bool { room > RowChunk.capacity }

    /// Enlarges the memory for a long row, and keeps the first `count` bytes.
    func grow(keeping count: Int) {
        precondition(room < RowChunk.storedCountMax && count <= room)
        let larger = min(room * 2, RowChunk.storedCountMax)
        let memory = UnsafeMutableRawPointer.allocate(byteCount: larger, alignment: 64)
        // SAFETY: both have at least `count` bytes.
        unsafe memory.copyMemory(from: storage, byteCount: count)
        unsafe storage.deallocate()
        unsafe storage = memory
        room = larger
    }

    deinit {
        // SAFETY: allocated in `init`, and readers keep the chunk alive while they read it.
        unsafe storage.deallocate()
    }

    /// Position at which the next chunk starts.
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
            // SAFETY: the chunk belongs to its pool now, and no reader has it; `storedCount`
            // becomes 0 below.
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
        attemptsBefore = nil
        wasSent = nil
        reopens = []
        kept = []
    }
}

extension RowChunk {
    /// Returns whether the chunk has the hash that the ledger recorded. If the recorded hash is
    /// unknown, returns true and sets the chunk's hash to unknown. A run that reserves the chunk
    /// again then records the hash as unknown, too.
    public func takeHash(of known: ChunkReservation) -> Bool {
        if known.hash == ChunkReservation.unknownHash { hash = known.hash }
        return hash == known.hash
    }

    /// Sets the chunk's hash to unknown, because it would identify an erased device.
    public func removeHash() { hash = ChunkReservation.unknownHash }

    /// Description of the chunk that the ledger records before any of its rows is sent.
    public var reservation: ChunkReservation {
        ChunkReservation(
            firstRow: start.row, rowCount: rowCount, byteOffset: start.byteOffset,
            byteCount: byteCount, firstLine: start.line, lineCount: lineCount, hash: hash,
            reopens: reopens)
    }
}
