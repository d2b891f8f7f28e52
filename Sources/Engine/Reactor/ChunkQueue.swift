import BroadsideAPNs
import BroadsideLedgerFormat
package import BroadsideRows

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

/// The chunks a reactor has in its hands: the one whose rows are being sent, and those behind it. If
/// rows are being sent, the reservation of those behind it is on its way to disk; if none need a
/// request, a chunk is reserved when it comes into use. No row of a chunk is sent before its
/// reservation would survive a power cut; who takes rows sees to that, by `reservedAt`.
struct ChunkQueue: ~Copyable {
    private struct Waiting {
        var chunk: RowChunk
        /// The ledger position that has to be synced before rows of the chunk are sent; nil: the chunk
        /// is not reserved.
        var reservedAt: UInt64?
    }

    private let pool: ChunkPool
    /// Stands at the row that was read last.
    private(set) var reader: RowReader
    private var current: RowChunk?
    /// The place in the current chunk of the row that comes next.
    private var nextIndex = 0
    /// How many rows the current chunk has; 0 without one.
    private var rowCount = 0
    /// True where the current chunk's rows have a past: what is left to do with each, and how often it
    /// was sent; the latter is empty if none was.
    private var hasDispositions = false
    private var dispositions: [RowDisposition] = []
    private var attempts: [UInt16] = []
    /// The place behind the last row of the current chunk that is left to do, if it has a past.
    private var openEnd = 0
    /// Rows that were passed over, as nothing is left to do with them, since the last look.
    private var settledBefore = 0
    /// The ledger position that has to be synced before rows of the current chunk are sent.
    private(set) var reservedAt: UInt64 = 0
    /// Rows that are sent of the chunk that is being read, so far.
    private var requestCount = 0
    /// The rows of the chunk that was read last, and how many were sent; nil: none was read.
    private var lastRead: (rows: Int, requests: Int)?
    private var waiting: [Waiting] = []
    /// How many of those that wait are reserved: the first ones.
    private(set) var reservedCount = 0
    private(set) var isAtEnd = false
    /// True where rows are to be had only once the canary is decided.
    var waitsForCanary = false
    /// Rows of the chunk that came last.
    private(set) var lastRowCount = 0
    /// True where that was a single row that is larger than chunks are.
    private(set) var lastIsLarge = false
    /// Requests for a chunk that the driver has not answered.
    private(set) var requestedCount = 0

    /// Chunks that are asked for together, ahead of the one being sent: a sync for each group.
    static let aheadMin = 2
    static let aheadMax = 8
    /// While rows need no request, others are asked for once no more wait: the list is read meanwhile.
    static let aheadRefill = aheadMax / 2

    init(pool: ChunkPool, layout: RowLayout) {
        self.pool = pool
        reader = RowReader(layout: layout)
    }

    /// Chunks asked for or waiting.
    var aheadCount: Int { waiting.count + requestedCount }

    /// True when no row is left here and none will come.
    var isExhausted: Bool { isAtEnd && isEmpty }

    /// True when no row is left here and none was asked for.
    var isEmpty: Bool { aheadCount == 0 && !hasUnread }

    /// True where nothing keeps rows from being sent but a read of the list that takes its time.
    var waitsForList: Bool { requestedCount > 0 && waiting.isEmpty && !hasUnread }

    /// True where the chunk in use has rows that were not taken. One that is read to its end lies here
    /// until the next row is wanted, and that may be never.
    private var hasUnread: Bool { nextIndex < rowCount }

    /// True where a row may be taken now.
    func hasRow(syncedPosition: UInt64) -> Bool {
        if hasUnread { return reservedAt <= syncedPosition }
        guard let first = waiting.first else { return false }
        return first.reservedAt.map { $0 <= syncedPosition } ?? false
    }

    /// False where no row of the chunk in use, and of the one before, needed a request: those of the
    /// next are likely none either.
    var expectsRequests: Bool { requestCount > 0 || lastRead?.requests != 0 }

    /// How many rows of the chunk that came last are sent, if their share is as it was lately; 0: no
    /// chunk came.
    var requestsPerChunk: Int {
        guard let lastRead, lastRead.requests < lastRead.rows else { return lastRowCount }
        return max(1, requestCount, lastRead.requests * lastRowCount / lastRead.rows)
    }

    /// The row that was read last is to be sent.
    @inline(__always)
    mutating func countRequest() { requestCount &+= 1 }

    /// Takes the number of rows that were passed over since the last time.
    @inline(__always)
    mutating func takeSettledBefore() -> Int {
        defer { settledBefore = 0 }
        return settledBefore
    }

    mutating func willRequest() {
        requestedCount += 1
        assert(aheadCount <= Self.aheadMax, "only so many chunks are read ahead")
    }

    /// A chunk came that is not reserved yet.
    mutating func put(_ chunk: RowChunk) {
        precondition(requestedCount > 0)
        requestedCount -= 1
        lastRowCount = chunk.rowCount
        lastIsLarge = chunk.isLarge
        waiting.append(Waiting(chunk: chunk, reservedAt: nil))
    }

    /// A chunk came too late to be reserved: no record is about its rows, they stay what they were.
    mutating func refuse(_ chunk: RowChunk) {
        precondition(requestedCount > 0)
        requestedCount -= 1
        pool.giveBack(chunk)
    }

    /// The first chunk that is not reserved; nil where all are.
    var firstUnreserved: RowChunk? {
        reservedCount < waiting.count ? waiting[reservedCount].chunk : nil
    }

    /// The first chunk that was not reserved is, up to a position of the ledger.
    mutating func markReserved(at position: UInt64) {
        assert(
            reservedCount == 0 || waiting[reservedCount - 1].reservedAt ?? .max <= position,
            "the positions of reservations only grow")
        waiting[reservedCount].reservedAt = position
        reservedCount += 1
    }

    mutating func listEnded() {
        isAtEnd = true
        requestedCount = max(0, requestedCount - 1)
    }

    /// No further rows are to be had; what was asked for is still to come.
    mutating func markEnded() {
        isAtEnd = true
    }

    mutating func listHeldByCanary() {
        waitsForCanary = true
        requestedCount = max(0, requestedCount - 1)
    }

    /// The next row that something is left to do with, whether its reservation is synced or not; nil
    /// where none came yet, or the chunk that comes next is not reserved.
    mutating func nextRow() -> ListRow? {
        while true {
            if hasDispositions {
                if let row = nextRowWithPast() { return row }
            } else if let row = reader.next() {
                nextIndex = row.index + 1
                return ListRow(
                    number: row.number, disposition: .send, attempts: 0, token: reader.field(0))
            }
            guard advanceToNextChunk() else { return nil }
        }
    }

    // What is done once a chunk stays out of the function that runs for each row: it counts
    // references.

    /// Gives back the chunk that is read to its end and opens the next, if it is reserved; false where
    /// there is none.
    @inline(never)
    private mutating func advanceToNextChunk() -> Bool {
        if let chunk = reader.close() {
            lastRead = (rowCount, requestCount)
            pool.giveBack(chunk)
        }
        current = nil
        rowCount = 0
        hasDispositions = false
        guard let first = waiting.first, let position = first.reservedAt else { return false }
        waiting.removeFirst()
        reservedCount -= 1
        assert(reservedCount >= 0, "a chunk is read once")
        reservedAt = position
        requestCount = 0
        current = first.chunk
        nextIndex = 0
        rowCount = first.chunk.rowCount
        if let past = first.chunk.dispositions {
            hasDispositions = true
            dispositions = past
            attempts = first.chunk.attempts ?? []
            openEnd = (past.lastIndex { $0 != .settled } ?? -1) + 1
        }
        assert(!hasDispositions || dispositions.count == rowCount, "each row has one disposition")
        reader.open(first.chunk)
        return true
    }

    /// The next row with what an earlier run, or another part of the list, left to do with it; nil
    /// where nothing is left to do with any.
    @inline(never)
    private mutating func nextRowWithPast() -> ListRow? {
        while nextIndex < openEnd, let row = reader.next() {
            nextIndex = row.index + 1
            let disposition = dispositions[row.index]
            guard disposition == .settled else {
                return ListRow(
                    number: row.number, disposition: disposition,
                    attempts: attempts.isEmpty ? 0 : attempts[row.index],
                    token: reader.field(0))
            }
            settledBefore += 1
        }
        assert(nextIndex <= rowCount, "a row is one of its chunk's")
        settledBefore += rowCount - nextIndex
        nextIndex = rowCount
        return nil
    }

    /// What does not hold although it always has to; nil if all is well.
    var brokenInvariant: String? {
        if aheadCount > Self.aheadMax { return "\(aheadCount) chunks ahead" }
        let reserved = waiting.prefix { $0.reservedAt != nil }.count
        // A reactor reserves rows in the order of the list.
        return reserved == reservedCount
            && waiting.dropFirst(reserved).allSatisfy { $0.reservedAt == nil }
            ? nil : "\(reservedCount) chunks reserved, and \(reserved) come first"
    }

    /// Writes the token of the row that was read last; why it has none.
    @inline(__always)
    func readToken(_ field: RowReader.Field, into digits: inout OutputRawSpan) -> Reason? {
        reader.readToken(field, into: &digits)
    }

    /// Copies what a field says, as much of it as a ledger keeps; returns how much.
    func copyText(_ field: RowReader.Field, into room: UnsafeMutableRawBufferPointer) -> Int {
        precondition(room.count >= TextExcerpt.byteCountMax)
        let text = reader.text(field)
        let count = TextExcerpt.keptCount(of: text.byteCount)
        // SAFETY: `count` bytes lie within both; the room is the slab's, the text the chunk's or
        // the reader's. It has as many more as the ellipsis where `count` is less than all.
        unsafe text.withUnsafeBytes { bytes in
            unsafe room.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[..<count]))
        }
        guard count < text.byteCount else { return count }
        let ellipsisCount = TextExcerpt.ellipsis.utf8CodeUnitCount
        for index in 0..<ellipsisCount {
            unsafe room[count + index] = TextExcerpt.ellipsisByte(index)
        }
        return count + ellipsisCount
    }

    /// Takes away rows that will not be sent, a run of neighbours a call; those that an earlier run
    /// left in doubt stay so.
    mutating func takeUnsentRange() -> (firstRow: UInt64, count: Int)? {
        while true {
            if current == nil {
                guard !waiting.isEmpty else { return nil }
                let next = waiting.removeFirst()
                // No record is about its rows: they stay what they were.
                guard next.reservedAt != nil else {
                    pool.giveBack(next.chunk)
                    continue
                }
                reservedCount -= 1
                assert(reservedCount >= 0, "a chunk is read once")
                current = next.chunk
                nextIndex = 0
            }
            guard let chunk = current else { return nil }
            rowCount = chunk.rowCount
            let dispositions = chunk.dispositions
            func isToSend(_ index: Int) -> Bool {
                guard let dispositions else { return true }
                switch dispositions[index] {
                case .send, .skipped: return true
                case .settled, .becomesUnknown, .sendAgain, .beyondLimit: return false
                }
            }
            var first = nextIndex
            while first < chunk.rowCount, !isToSend(first) { first += 1 }
            var end = first
            while end < chunk.rowCount, isToSend(end) { end += 1 }
            nextIndex = end
            if first < end { return (chunk.start.row + UInt64(first), end - first) }
            _ = reader.close()
            pool.giveBack(chunk)
            current = nil
            rowCount = 0
        }
    }
}

extension ChunkPool {
    /// A pool for so many reactors: each holds one chunk and has others ahead; the cutter holds two
    /// more.
    package convenience init(reactors: Int) {
        self.init(limit: reactors * (1 + ChunkQueue.aheadMax) + 3)
    }
}
