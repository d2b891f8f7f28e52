import APNs
import Campaign

/// A row of the chunk in use.
struct ListRow {
    /// The row's number in the list.
    var number: UInt64
    /// What an earlier run left to do with it.
    var disposition: RowDisposition
    /// How often earlier runs sent it.
    var attempts: UInt16
    /// Where its token's text lies.
    var token: RowReader.Field
}

/// The chunks a reactor has in its hands: the one whose rows are being sent, and those behind it
/// whose reservation is on its way to disk. No row of a chunk is sent before its reservation would
/// survive a power cut; who takes rows sees to that, by `reservedAt`.
struct ChunkQueue: ~Copyable {
    private struct Waiting {
        var chunk: RowChunk
        /// The ledger position that has to be synced before the chunk may be used.
        var reservedAt: UInt64
    }

    private let pool: ChunkPool
    /// Stands at the row that was read last.
    private(set) var reader: RowReader
    private var current: RowChunk?
    /// The place in the current chunk of the row that comes next.
    private var nextPlace = 0
    /// How many rows the current chunk has; 0 without one.
    private var placeCount = 0
    /// True where the current chunk's rows have a past.
    private var hasDispositions = false
    /// The ledger position that has to be synced before rows of the current chunk are sent.
    private(set) var reservedAt: UInt64 = 0
    /// Whether the chunk that was read last, or is being read, has rows that are sent.
    private var hadRequests = true
    private var hasRequests = true
    private var waiting: [Waiting] = []
    private(set) var isAtEnd = false
    /// True where rows are to be had only once the canary is decided.
    var isHeld = false
    /// Rows of the chunk that came last.
    private(set) var lastRowCount = 0
    /// True where that was a single row that is larger than chunks are.
    private(set) var lastIsLarge = false
    /// Requests for a chunk that the driver has not answered.
    private(set) var asked = 0

    /// Chunks that are asked for together, ahead of the one being sent: a sync for each group.
    static let aheadLeast = 2
    static let aheadMost = 8

    init(pool: ChunkPool, layout: RowLayout) {
        self.pool = pool
        reader = RowReader(layout: layout)
    }

    /// Chunks asked for or waiting.
    var aheadCount: Int { waiting.count + asked }

    /// True when no row is left here and none will come.
    var isExhausted: Bool { isAtEnd && asked == 0 && waiting.isEmpty && !hasUnread }

    /// True where the chunk in use has rows that were not taken. One that is read to its end lies here
    /// until the next row is wanted, and that may be never.
    private var hasUnread: Bool { nextPlace < placeCount }

    /// True where a row may be taken now.
    func hasRow(syncedPosition: UInt64) -> Bool {
        if hasUnread { return reservedAt <= syncedPosition }
        guard let first = waiting.first else { return false }
        return first.reservedAt <= syncedPosition
    }

    /// False where all rows of the chunk before needed no request: those of the next are likely none
    /// either.
    var expectsRequests: Bool { hadRequests || hasRequests }

    /// The row that was read last is to be sent.
    @inline(__always)
    mutating func noteRequest() { hasRequests = true }

    mutating func willAsk() {
        asked += 1
    }

    mutating func put(_ chunk: RowChunk, reservedAt: UInt64) {
        precondition(asked > 0)
        asked -= 1
        lastRowCount = chunk.rowCount
        lastIsLarge = chunk.isLarge
        waiting.append(Waiting(chunk: chunk, reservedAt: reservedAt))
    }

    mutating func listEnded() {
        isAtEnd = true
        asked = max(0, asked - 1)
    }

    /// No further rows are to be had; what was asked for is still to come.
    mutating func noteEnd() {
        isAtEnd = true
    }

    mutating func listHeld() {
        isHeld = true
        asked = max(0, asked - 1)
    }

    /// The next row, whether its reservation is synced or not; nil where none came yet.
    mutating func nextRow() -> ListRow? {
        while true {
            if let row = reader.next() {
                nextPlace = row.index + 1
                let result = ListRow(
                    number: row.number, disposition: .send, attempts: 0, token: reader.field(0))
                return hasDispositions ? withPast(result, place: row.index) : result
            }
            guard turnToNextChunk() else { return nil }
        }
    }

    // What is done once a chunk stays out of the function that runs for each row: it counts
    // references.

    /// Gives back the chunk that is read to its end and opens the next; false where there is none.
    @inline(never)
    private mutating func turnToNextChunk() -> Bool {
        if let chunk = reader.close() { pool.giveBack(chunk) }
        current = nil
        placeCount = 0
        hasDispositions = false
        guard let first = waiting.first else { return false }
        waiting.removeFirst()
        reservedAt = first.reservedAt
        hadRequests = hasRequests
        hasRequests = false
        current = first.chunk
        hasDispositions = first.chunk.dispositions != nil
        nextPlace = 0
        placeCount = first.chunk.rowCount
        reader.open(first.chunk)
        return true
    }

    /// A row with what an earlier run left to do with it.
    @inline(never)
    private func withPast(_ row: ListRow, place: Int) -> ListRow {
        guard let current, let dispositions = current.dispositions else { return row }
        var result = row
        result.disposition = RowDisposition(rawValue: dispositions[place]) ?? .settled
        result.attempts = UInt16(current.attempts?[place] ?? 0)
        return result
    }

    /// Writes the token of the row that was read last; why it has none.
    @inline(__always)
    func readToken(_ field: RowReader.Field, into digits: inout OutputRawSpan) -> Reason? {
        reader.readToken(field, into: &digits)
    }

    /// Copies what a field says, as much of it as fits; returns how much.
    func copyText(_ field: RowReader.Field, into room: UnsafeMutableRawBufferPointer) -> Int {
        let text = reader.text(field)
        let count = min(text.byteCount, room.count)
        // SAFETY: `count` bytes lie within both; the room is the slab's, the text the chunk's or
        // the reader's.
        unsafe text.withUnsafeBytes { bytes in
            unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
        return count
    }

    /// Takes away rows that will not be sent, a run of neighbours a call; those that an earlier run
    /// left in doubt stay so.
    mutating func takeUnsentRange() -> (firstRow: UInt64, count: Int)? {
        while true {
            if current == nil {
                guard !waiting.isEmpty else { return nil }
                current = waiting.removeFirst().chunk
                nextPlace = 0
            }
            guard let chunk = current else { return nil }
            placeCount = chunk.rowCount
            let dispositions = chunk.dispositions
            func isToSend(_ place: Int) -> Bool {
                guard let dispositions else { return true }
                switch RowDisposition(rawValue: dispositions[place]) {
                case .send, .suppressed, .duplicate: return true
                case .settled, .becomesUnknown, .sendAgain, .beyondLimit, nil: return false
                }
            }
            var first = nextPlace
            while first < chunk.rowCount, !isToSend(first) { first += 1 }
            var end = first
            while end < chunk.rowCount, isToSend(end) { end += 1 }
            nextPlace = end
            if first < end { return (chunk.start.row + UInt64(first), end - first) }
            _ = reader.close()
            pool.giveBack(chunk)
            current = nil
            placeCount = 0
        }
    }
}

extension ChunkPool {
    /// A pool for so many reactors: each holds one chunk and has others ahead; the cutter holds two
    /// more.
    package convenience init(reactors: Int) {
        self.init(limit: reactors * (1 + ChunkQueue.aheadMost) + 3)
    }
}
