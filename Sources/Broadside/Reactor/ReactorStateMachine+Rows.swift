import APNs
import Campaign
package import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// True where rows are left that this reactor will send or wait for.
    var hasWork: Bool {
        !again.isEmpty || retryQueue.count > 0 || held.count > 0 || !chunks.isExhausted
            || shared.exchange.hasRows
    }

    /// True where a row could go out now.
    package func hasRowReady(_ now: Now) -> Bool {
        if !again.isEmpty { return true }
        if let due = retryQueue.nextDue, due <= now.nanoseconds { return true }
        // A held row has its place already.
        if held.count > 0, hasListRow { return true }
        if slab.isFull { return false }
        return shared.exchange.hasRows || hasListRow
    }

    /// Asks for rows ahead of use: their reservation has to be on disk before the first is sent.
    /// Chunks are asked for together, when the last one has come into use, so that they share a
    /// sync: it costs more than writing their verdicts.
    mutating func requestChunks(_ now: Now) {
        guard case .running = phase, !chunks.isAtEnd, !shared.isStopping, connectionShare > 0
        else { return }
        // Who can't send takes no more rows; at the start everybody is about to.
        guard chunks.aheadCount == 0, disabledSince == nil || !shared.anyReady else { return }
        if chunks.isHeld {
            guard shared.canary?.isHolding != true else { return }
            chunks.isHeld = false
        }
        // Large rows are not piled up: each has memory of its own.
        let count =
            chunks.lastIsLarge
            ? ChunkShelf.aheadLeast
            : chunkRows.together(chunkRows: chunks.lastRowCount, now: now.nanoseconds)
        for _ in 0..<count {
            chunks.willAsk()
            submissions.append(.requestChunk(rowLimit: chunkRows.limit))
        }
    }

    mutating func arrived(_ chunk: RowChunk, now: Now) {
        let position = ledger.reserve(
            chunk.reservation, nowMilliseconds: now.wallMilliseconds)
        releaseBeyondLimit(chunk, now)
        chunks.put(chunk, reservedAt: position)
        // In the middle of rows that need no request nobody waits for it.
        if chunks.expectsRequests { ledgerState.wanted = position }
        if !isCountedHungry {
            isCountedHungry = true
            shared.enterHungry()
        }
    }

    /// Says of rows behind the limit that they stay unsent: the reservation of their chunk alone
    /// would leave them in doubt.
    private mutating func releaseBeyondLimit(_ chunk: RowChunk, _ now: Now) {
        let isBeyond = RowDisposition.beyondLimit.rawValue
        guard var dispositions = chunk.dispositions, dispositions.contains(isBeyond) else {
            return
        }
        var place = 0
        while place < dispositions.count {
            let first = place
            let attempts = chunk.attempts?[first] ?? 0
            while place < dispositions.count, dispositions[place] == isBeyond,
                chunk.attempts?[place] ?? 0 == attempts
            {
                dispositions[place] = RowDisposition.settled.rawValue
                place += 1
            }
            guard place > first else {
                place += 1
                continue
            }
            ledger.release(
                row: chunk.start.row + UInt64(first), count: place - first,
                attempts: Int(attempts), nowMilliseconds: now.wallMilliseconds)
        }
        chunk.dispositions = dispositions
    }

    /// The next row to send; nil where none is ready.
    mutating func takeRow(_ now: Now) -> RowTag? {
        if let tag = again.popFirst(in: slab) { return tag }
        if let tag = retryQueue.popDue(now: now.nanoseconds) { return tag }
        return takeExchangedRow() ?? takeListRow(now)
    }
}

/// How much of the list a reactor reserves at once: chunks of about as many rows as it gets through
/// in a thirtieth of a second, and where that is more than a chunk holds so many of them together,
/// so that a kill leaves little in doubt and a slow run still shares its rows out: what a tenth of a
/// second needs, and in a slow run `slowRows` over all reactors at most.
struct ChunkRows {
    /// The most rows of a chunk.
    private(set) var limit: Int
    /// How many rows to be sent may be read ahead of their sync.
    private(set) var aheadLimit: Int
    /// What neither falls below.
    let minimum: Int
    /// Rows gone through since the last look, and how many of them were to be sent.
    var taken = 0
    var sent = 0
    private var perSecond = 0
    private var sentPerSecond = 0
    private var since: UInt64 = 0

    /// A smaller chunk would save nothing: a sync costs as much.
    static let fewest = 16
    static let maximum = 65_536
    /// The most rows that all reactors of a slow run together have reserved and not sent.
    static let slowRows = 1_000
    /// Groups that a second's work makes.
    private static let groupsPerSecond = 32

    /// - Parameters:
    ///   - reactors: Those of the run.
    ///   - perSecond: Rows that all of them may send in a second; nil: any number.
    init(reactors: Int, perSecond: Int?) {
        // Rows are held for one chunk's sync while another is in use and others are on their way.
        let share = max(1, Self.slowRows / (reactors * (2 + ChunkShelf.aheadLeast)))
        minimum = min(Self.fewest, share)
        let known = perSecond.map { $0 / reactors / Self.groupsPerSecond } ?? .max
        limit = max(minimum, min(share, known))
        aheadLimit = limit
    }

    mutating func adapt(now: UInt64) {
        // What was taken within a quarter of a second is no more than that.
        limit = min(max(limit, 4 * taken / Self.groupsPerSecond), Self.maximum)
        aheadLimit = max(aheadLimit, 4 * sent / Self.groupsPerSecond)
        guard now - min(now, since) >= second / 4 else { return }
        let isFirst = since == 0
        since = now
        guard !isFirst else { return }
        // Rows go in waves where all answers take equally long: a lull is not taken for the rate.
        perSecond = max(4 * taken, perSecond - perSecond / 16)
        sentPerSecond = max(4 * sent, sentPerSecond - sentPerSecond / 16)
        limit = min(max(perSecond / Self.groupsPerSecond, minimum), Self.maximum)
        aheadLimit = max(sentPerSecond / Self.groupsPerSecond, minimum)
        taken = 0
        sent = 0
    }

    /// How many chunks of so many rows to ask for together. Only rows that are sent share a sync.
    ///
    /// - Parameter chunkRows: What the last one held; 0: none came yet.
    func together(chunkRows: Int, now: UInt64) -> Int {
        guard chunkRows > 0 else { return ChunkShelf.aheadLeast }
        let elapsed = now - min(now, since)
        let lately = elapsed > second / 64 ? sent * Int(second) / Int(elapsed) : 0
        let chunks = max(sentPerSecond, lately) / (Self.groupsPerSecond * chunkRows)
        return min(max(chunks, ChunkShelf.aheadLeast), ChunkShelf.aheadMost)
    }
}
