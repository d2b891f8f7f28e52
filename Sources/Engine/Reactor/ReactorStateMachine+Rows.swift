import APNs
import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// True where rows are left that this reactor will send or wait for.
    var hasWork: Bool {
        rows.hasWork || run.resources.handoff.hasRows
    }

    /// True where a row could go out now.
    func hasRowReady(_ now: Now) -> Bool {
        if rows.hasRowInHand(synced: recorder.synced, now: now.nanoseconds) { return true }
        if rows.slab.isFull { return false }
        return run.resources.handoff.hasRows || hasListRow
    }

    /// Asks for rows ahead of use: their reservation has to be on disk before the first is sent.
    /// Chunks are asked for together, when the last one has come into use, so that they share a
    /// sync: it costs more than writing their verdicts.
    mutating func requestChunks(_ now: Now) {
        guard case .running = phase, !rows.chunks.isAtEnd, !run.directives.isStopping,
            connections.share > 0
        else { return }
        // Who can't send takes no more rows; at the start everybody is about to.
        guard rows.chunks.aheadCount == 0,
            connections.disabledSince == nil || !run.directives.anyReady
        else { return }
        if rows.chunks.isHeld {
            guard !run.directives.isCanaryHolding else { return }
            rows.chunks.isHeld = false
        }
        // Large rows are not piled up: each has memory of its own.
        let count =
            rows.chunks.lastIsLarge
            ? ChunkQueue.aheadLeast
            : rows.chunkRows.together(chunkRows: rows.chunks.lastRowCount, now: now.nanoseconds)
        for _ in 0..<count {
            rows.chunks.willAsk()
            submissions.append(.requestChunk(rowLimit: rows.chunkRows.limit))
        }
    }

    mutating func arrived(_ chunk: RowChunk, now: Now) {
        let position = recorder.ledger.reserve(
            chunk.reservation, nowMilliseconds: now.wallMilliseconds)
        releaseBeyondLimit(chunk, now)
        rows.chunks.put(chunk, reservedAt: position)
        // In the middle of rows that need no request nobody waits for it.
        if rows.chunks.expectsRequests { recorder.want(position) }
        if admission.join() { run.shareRate(true) }
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
