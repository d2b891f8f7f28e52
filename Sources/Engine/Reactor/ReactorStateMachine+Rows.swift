import APNs
import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// True where rows are left that this reactor will send or wait for.
    @inline(__always)
    var hasWork: Bool {
        rows.hasWork || run.resources.handoff.hasRows
    }

    /// True where a row could go out now.
    @inline(__always)
    func hasRowReady(_ now: Now) -> Bool {
        if rows.hasRowInHand(synced: recorder.synced, now: now.nanoseconds) { return true }
        if rows.slab.isFull { return false }
        return run.resources.handoff.hasRows || hasListRow
    }

    /// Asks for rows ahead of use: their reservation has to be on disk before the first is sent.
    /// Chunks are asked for together, when the last one has come into use, so that they share a
    /// sync: it costs more than writing their verdicts. While rows need no request, as many as may wait
    /// are asked for, and before the last one has come into use: the list's thread never waits.
    mutating func requestChunks(_ now: Now) {
        // A reactor that can't send asks for no rows, and ends when the list does all the same.
        if run.directives.isListOver, !rows.chunks.isAtEnd { rows.chunks.noteEnd() }
        guard case .running = phase, !rows.chunks.isAtEnd, !run.directives.isStopping,
            connections.share > 0
        else { return }
        // Who can't send takes no more rows; at the start everybody is about to.
        let ahead = rows.chunks.aheadCount
        let isPassing = !rows.chunks.expectsRequests && !rows.chunks.lastIsLarge
        guard ahead <= (isPassing ? ChunkQueue.aheadRefill : 0),
            connections.disabledSince == nil || !run.directives.anyReady
        else { return }
        if rows.chunks.isHeld {
            guard !run.directives.isCanaryHolding else { return }
            rows.chunks.isHeld = false
        }
        let count = isPassing ? ChunkQueue.aheadMost : chunksTogether(now)
        for _ in ahead..<count {
            rows.chunks.willAsk()
            submissions.append(.requestChunk(rowLimit: rows.chunkRows.limit))
        }
    }

    /// How many chunks share a sync.
    @inline(__always)
    private func chunksTogether(_ now: Now) -> Int {
        // Large rows are not piled up: each has memory of its own.
        rows.chunks.lastIsLarge
            ? ChunkQueue.aheadLeast
            : rows.chunkRows.together(
                requests: rows.chunks.requestsPerChunk, now: now.nanoseconds)
    }

    mutating func arrived(_ chunk: RowChunk, now: Now) {
        guard case .running = phase else { return rows.chunks.refuse(chunk) }
        rows.chunks.put(chunk)
        noteRows()
        reserveAhead(now)
        joinRate()
    }

    /// This reactor sends, or is about to: it takes a share of the run's rate.
    mutating func joinRate() {
        if admission.join() { run.shareRate(true) }
    }

    /// This reactor's share of the rate goes to the others until it sends again.
    mutating func leaveRate() {
        if admission.leave() { run.shareRate(false) }
    }

    /// Reserves chunks ahead of use, as many as share a sync. In the middle of rows that need no request
    /// nobody waits for a sync: each chunk is reserved when it comes into use, so that a kill leaves
    /// none of those ahead in doubt.
    mutating func reserveAhead(_ now: Now) {
        guard rows.chunks.firstUnreserved != nil, rows.chunks.expectsRequests,
            !run.directives.isStopping
        else { return }
        let count = chunksTogether(now)
        while rows.chunks.reservedCount < count, let position = reserveNext(now) {
            recorder.want(position)
        }
    }

    /// Reserves the first chunk that is not.
    ///
    /// - Returns: The ledger's position to wait for; nil where all are reserved.
    @inline(never)
    mutating func reserveNext(_ now: Now) -> UInt64? {
        guard let chunk = rows.chunks.firstUnreserved else { return nil }
        let position = recorder.ledger.reserve(
            chunk.reservation, nowMilliseconds: now.wallMilliseconds)
        releaseBeyondLimit(chunk, now)
        rows.chunks.noteReserved(at: position)
        return position
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
            recorder.ledger.release(
                row: chunk.start.row + UInt64(first), count: place - first,
                attempts: Int(attempts), nowMilliseconds: now.wallMilliseconds)
        }
        chunk.dispositions = dispositions
    }

    /// The next row to send; nil where none is ready.
    mutating func takeRow(_ now: Now) -> RowTag? {
        if let tag = rows.takeAgain(now: now.nanoseconds) { return tag }
        return takeHandedOverRow() ?? takeListRow(now)
    }
}
