import BroadsideAPNs
import BroadsideLedgerFormat
package import BroadsideRows

/// A row of the chunk in use.
struct ListRow {
    /// Row number in the list.
    var number: UInt64
    /// What the row still needs after earlier runs.
    var disposition: RowDisposition
    /// Number of requests for the row in earlier runs.
    var attempts: UInt16
    /// Number of these requests that do not count for `--max-attempts`.
    var attemptsBefore: UInt16
    /// Whether an earlier run sent, or may have sent, a request for the row.
    var wasSent: Bool
    /// Position of the token's text in the chunk.
    var token: RowReader.Field
}

/// Chunks of a reactor: the one whose rows are being sent, and those that follow it. The
/// reservations of the following chunks are written to disk before the chunks are needed. An
/// exception applies while rows need no request: a chunk is then reserved only when its first row
/// is reached. No row is sent before its chunk's reservation is durable: callers that take rows
/// check `reservedAt`.
struct ChunkQueue: ~Copyable {
    private struct Waiting {
        var chunk: RowChunk
        /// Ledger position that must be synced before rows of the chunk are sent; nil: the chunk is
        /// not reserved.
        var reservedAt: UInt64?
    }

    private let pool: ChunkPool
    /// Reader of the current chunk, positioned at the row that was read last.
    private(set) var reader: RowReader
    private var current: RowChunk?
    /// Index of the next row in the current chunk.
    private var nextIndex = 0
    /// Number of rows in the current chunk; 0 if there is none.
    private var rowCount = 0
    /// Whether earlier runs left a disposition and an attempt count for each of the chunk's rows.
    /// `attempts` is empty if no row of the chunk was sent.
    private var hasDispositions = false
    private var dispositions: [RowDisposition] = []
    private var attempts: [UInt16] = []
    /// Number of these attempts that do not count for `--max-attempts`; empty if there are none.
    private var attemptsBefore: [UInt16] = []
    /// Whether earlier runs sent a request for each of the chunk's rows; empty if they sent none.
    private var wasSent: [Bool] = []
    /// Index after the last unsettled row of the current chunk; only set if there are dispositions.
    private var openEnd = 0
    /// Number of rows that were skipped as already settled since the last call of
    /// `takeSettledBefore`.
    private var settledBefore = 0
    /// Ledger position that must be synced before rows of the current chunk are sent.
    private(set) var reservedAt: UInt64 = 0
    /// Number of rows of the current chunk that have needed a request so far.
    private var requestCount = 0
    /// Number of rows in the previous chunk, and how many of these rows needed a request; nil if
    /// there was no previous chunk.
    private var lastRead: (rows: Int, requests: Int)?
    private var waiting: [Waiting] = []
    /// Number of waiting chunks that are reserved; these come first.
    private(set) var reservedCount = 0
    private(set) var isAtEnd = false
    /// Whether further rows are available only after the canary is decided.
    var waitsForCanary = false
    /// Number of rows in the chunk that arrived last.
    private(set) var lastRowCount = 0
    /// Whether the latest chunk is a single row, longer than the usual size of a chunk.
    private(set) var lastIsLarge = false
    /// Number of chunk requests to which the driver has not replied.
    private(set) var requestedCount = 0

    /// Minimum number of chunks that are requested together, ahead of the one being sent. They
    /// share a sync.
    static let aheadMin = 2
    static let aheadMax = 8
    /// Maximum number of requested or waiting chunks at which the reactor requests more, while rows
    /// are settled without being sent. The list is thus read before the reactor runs out of chunks.
    static let aheadRefill = aheadMax / 2

    init(pool: ChunkPool, layout: RowLayout) {
        self.pool = pool
        reader = RowReader(layout: layout)
    }

    /// Number of chunks that are requested or waiting.
    var aheadCount: Int { waiting.count + requestedCount }

    /// Whether the queue is at its end: it is empty, and no more rows will come.
    var isExhausted: Bool { isAtEnd && isEmpty }

    /// Whether the queue is empty: it has no row, and no chunk is requested.
    var isEmpty: Bool { aheadCount == 0 && !hasUnread }

    /// Whether the queue only waits for a read of the list. It then has no row.
    var waitsForList: Bool { requestedCount > 0 && waiting.isEmpty && !hasUnread }

    /// Whether the current chunk has rows that were not taken. A chunk without such rows stays
    /// current until the next row is requested, which may never happen.
    private var hasUnread: Bool { nextIndex < rowCount }

    /// Whether a row may be taken now.
    func hasRow(syncedPosition: UInt64) -> Bool {
        if hasUnread { return reservedAt <= syncedPosition }
        guard let first = waiting.first else { return false }
        return first.reservedAt.map { $0 <= syncedPosition } ?? false
    }

    /// Whether further rows are likely to need requests. False if no row in the current chunk or in
    /// the previous chunk needed a request.
    var expectsRequests: Bool { requestCount > 0 || lastRead?.requests != 0 }

    /// Whether most rows of the previous chunk, and of the current one so far, needed a request.
    @inline(__always)
    var mostNeedRequests: Bool {
        guard let lastRead, 2 * lastRead.requests >= lastRead.rows else { return false }
        return 2 * requestCount >= nextIndex
    }

    /// Estimated number of requests for the chunk that arrived last, based on the share of recent
    /// rows that needed one; 0 if no chunk arrived.
    var requestsPerChunk: Int {
        guard let lastRead, lastRead.requests < lastRead.rows else { return lastRowCount }
        return max(1, requestCount, lastRead.requests * lastRowCount / lastRead.rows)
    }

    /// Counts a request for the row that was read last.
    @inline(__always)
    mutating func countRequest() { requestCount &+= 1 }

    /// Returns and resets the number of rows skipped as already settled.
    @inline(__always)
    mutating func takeSettledBefore() -> Int {
        defer { settledBefore = 0 }
        return settledBefore
    }

    mutating func willRequest() {
        requestedCount += 1
        assert(aheadCount <= Self.aheadMax, "only so many chunks are read ahead")
    }

    /// Adds a chunk that is not reserved yet.
    mutating func put(_ chunk: RowChunk) {
        precondition(requestedCount > 0)
        requestedCount -= 1
        lastRowCount = chunk.rowCount
        lastIsLarge = chunk.isLarge
        waiting.append(Waiting(chunk: chunk, reservedAt: nil))
    }

    /// Returns a chunk to the pool, because the chunk came too late to be reserved. The ledger gets
    /// no record of the chunk, so the chunk's rows keep their states.
    mutating func refuse(_ chunk: RowChunk) {
        precondition(requestedCount > 0)
        requestedCount -= 1
        pool.giveBack(chunk)
    }

    /// The first chunk that is not reserved; nil if all are.
    var firstUnreserved: RowChunk? {
        reservedCount < waiting.count ? waiting[reservedCount].chunk : nil
    }

    /// Marks the first unreserved chunk as reserved at a ledger position.
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

    /// Ends the list early; chunks that were requested still arrive.
    mutating func markEnded() {
        isAtEnd = true
    }

    mutating func listHeldByCanary() {
        waitsForCanary = true
        requestedCount = max(0, requestedCount - 1)
    }

    /// Returns the next unsettled row, even if its reservation is not synced. Returns nil if there
    /// is no such row yet, or if the next chunk is not reserved.
    mutating func nextRow() -> ListRow? {
        while true {
            if hasDispositions {
                if let row = nextRowWithPast() { return row }
            } else if let row = reader.next() {
                nextIndex = row.index + 1
                return ListRow(
                    number: row.number, disposition: .send, attempts: 0, attemptsBefore: 0,
                    wasSent: false, token: reader.field(0))
            }
            guard advanceToNextChunk() else { return nil }
        }
    }

    // Work per chunk stays out of the function that runs for each row, because that work includes
    // reference counting.

    /// Returns the finished chunk to the pool and opens the next one. Returns false if there is no
    /// next chunk or it is not reserved.
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
            attemptsBefore = first.chunk.attemptsBefore ?? []
            wasSent = first.chunk.wasSent ?? []
            openEnd = (past.lastIndex { $0 != .settled } ?? -1) + 1
        }
        assert(!hasDispositions || dispositions.count == rowCount, "each row has one disposition")
        reader.open(first.chunk)
        return true
    }

    /// Returns the next row that earlier runs, or other parts of the list, did not settle; nil if
    /// there is none.
    @inline(never)
    private mutating func nextRowWithPast() -> ListRow? {
        while nextIndex < openEnd, let row = reader.next() {
            nextIndex = row.index + 1
            let disposition = dispositions[row.index]
            guard disposition == .settled else {
                return ListRow(
                    number: row.number, disposition: disposition,
                    attempts: attempts.isEmpty ? 0 : attempts[row.index],
                    attemptsBefore: attemptsBefore.isEmpty ? 0 : attemptsBefore[row.index],
                    wasSent: !wasSent.isEmpty && wasSent[row.index],
                    token: reader.field(0))
            }
            settledBefore += 1
        }
        assert(nextIndex <= rowCount, "a row is one of its chunk's")
        settledBefore += rowCount - nextIndex
        nextIndex = rowCount
        return nil
    }

    /// Description of a violated invariant; nil if there is none.
    var brokenInvariant: String? {
        if aheadCount > Self.aheadMax { return "\(aheadCount) chunks ahead" }
        let reserved = waiting.prefix { $0.reservedAt != nil }.count
        // A reactor reserves rows in list order.
        return reserved == reservedCount
            && waiting.dropFirst(reserved).allSatisfy { $0.reservedAt == nil }
            ? nil : "\(reservedCount) chunks are reserved, but only \(reserved) are at the front"
    }

    /// Writes the token of the row that was read last; returns the reason if it is invalid.
    @inline(__always)
    func readToken(_ field: RowReader.Field, into digits: inout OutputRawSpan) -> Reason? {
        reader.readToken(field, into: &digits)
    }

    /// Whether the row that was read last is masked, because its device was erased from the list.
    ///
    /// - Parameter token: The row's token, which is invalid.
    func isMasked(_ token: RowReader.Field) -> Bool {
        // The keys of a masked JSON object are masked, too.
        token.form == .missing
            ? DeviceSet.isMasked(reader.lastLine()) : DeviceSet.isMasked(reader.text(token))
    }

    /// Copies the part of a field's text that a ledger keeps; returns the number of bytes.
    func copyText(_ field: RowReader.Field, into room: UnsafeMutableRawBufferPointer) -> Int {
        precondition(room.count >= TextExcerpt.byteCountMax)
        let text = reader.text(field)
        let count = TextExcerpt.keptCount(of: text.byteCount)
        // SAFETY: `count` bytes are within the text and within the room. The room belongs to the
        // slab, the text to the chunk or the reader. The room has space for the ellipsis if `count`
        // is less than the text.
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

    /// Removes a contiguous range of rows that will not be sent, with the number of requests for each
    /// of them in earlier runs. Rows that an earlier run left in doubt keep their state.
    mutating func takeUnsentRange() -> (firstRow: UInt64, count: Int, attempts: UInt16)? {
        while true {
            if current == nil {
                guard !waiting.isEmpty else { return nil }
                let next = waiting.removeFirst()
                // The ledger gets no record of the chunk, so its rows keep their states.
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
                case .invalid: return true
                case .erased(let mayHaveBeenSent): return !mayHaveBeenSent
                case .settled, .becomesUnknown, .sendAgain, .beyondLimit, .notDue: return false
                }
            }
            var first = nextIndex
            while first < chunk.rowCount, !isToSend(first) { first += 1 }
            let earlier = chunk.attempts.flatMap { $0.isEmpty ? nil : $0 }
            let attempts = first < chunk.rowCount ? earlier?[first] ?? 0 : 0
            var end = first
            while end < chunk.rowCount, isToSend(end), earlier?[end] ?? 0 == attempts { end += 1 }
            nextIndex = end
            if first < end { return (chunk.start.row + UInt64(first), end - first, attempts) }
            _ = reader.close()
            pool.giveBack(chunk)
            current = nil
            rowCount = 0
        }
    }
}

extension ChunkPool {
    /// Creates a pool that is large enough for a number of reactors. Each reactor has one chunk in
    /// use and others ahead. The remaining chunks are for the splitter.
    package convenience init(reactors: Int) {
        self.init(limit: reactors * (1 + ChunkQueue.aheadMax) + 3)
    }
}
