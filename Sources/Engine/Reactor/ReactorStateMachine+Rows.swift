import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// Rows on their way to a connection: from the list, from other reactors, and back to those.
///
/// A row that is never sent needs no reservation that survives a power cut: its verdict comes behind
/// its reservation in the same segment, so that a segment which lost the one has lost the other, and
/// the row is `remaining`. So such rows wait for no sync and for no connection, and stretches of them
/// go by as fast as the list is read.
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

    /// The next row to send; nil where none is ready.
    mutating func takeRow(_ now: Now) -> RowTag? {
        if let tag = rows.takeRequeued(now: now.nanoseconds) { return tag }
        return takeHandedOverRow() ?? takeListRow(now)
    }

    // MARK: Chunks

    /// Asks for rows ahead of use: their reservation has to be on disk before the first is sent.
    /// Chunks are asked for together, when the last one has come into use, so that they share a
    /// sync: it costs more than writing their verdicts. While rows need no request, as many as may wait
    /// are asked for, and before the last one has come into use: the list's thread never waits.
    mutating func requestChunks(_ now: Now) {
        // A reactor that can't send asks for no rows, and ends when the list does all the same.
        if run.directives.isListOver, !rows.chunks.isAtEnd { rows.chunks.markEnded() }
        guard case .running = phase, !rows.chunks.isAtEnd, !run.directives.isStopping,
            connections.share > 0
        else { return }
        // Who can't send takes no more rows; at the start everybody is about to.
        let ahead = rows.chunks.aheadCount
        let settlesUnsent = !rows.chunks.expectsRequests && !rows.chunks.lastIsLarge
        guard ahead <= (settlesUnsent ? ChunkQueue.aheadRefill : 0),
            connections.disabledSince == nil || !run.directives.anyReady
        else { return }
        if rows.chunks.waitsForCanary {
            guard !run.directives.isCanaryHolding else { return }
            rows.chunks.waitsForCanary = false
        }
        let count = settlesUnsent ? ChunkQueue.aheadMax : chunksPerSync(now)
        for _ in ahead..<count {
            rows.chunks.willRequest()
            submissions.append(.requestChunk(rowLimit: rows.chunkRows.limit))
        }
    }

    /// How many chunks share a sync.
    @inline(__always)
    private func chunksPerSync(_ now: Now) -> Int {
        // Large rows are not piled up: each has memory of its own.
        rows.chunks.lastIsLarge
            ? ChunkQueue.aheadMin
            : rows.chunkRows.chunksPerSync(
                requests: rows.chunks.requestsPerChunk, now: now.nanoseconds)
    }

    mutating func arrived(_ chunk: RowChunk, now: Now) {
        guard case .running = phase else { return rows.chunks.refuse(chunk) }
        rows.chunks.put(chunk)
        registerRows()
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
    /// nothing waits for a sync: each chunk is reserved when it comes into use, so that a kill leaves
    /// none of those ahead in doubt.
    mutating func reserveAhead(_ now: Now) {
        guard rows.chunks.firstUnreserved != nil, rows.chunks.expectsRequests,
            !run.directives.isStopping
        else { return }
        let count = chunksPerSync(now)
        while rows.chunks.reservedCount < count, let position = reserveNext(now) {
            recorder.requireSync(upTo: position)
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
        rows.chunks.markReserved(at: position)
        return position
    }

    /// Says of rows behind the limit that they stay unsent: the reservation of their chunk alone
    /// would leave them in doubt.
    private mutating func releaseBeyondLimit(_ chunk: RowChunk, _ now: Now) {
        guard var dispositions = chunk.dispositions, dispositions.contains(.beyondLimit) else {
            return
        }
        var index = 0
        while index < dispositions.count {
            let first = index
            let attempts = chunk.attempts?[first] ?? 0
            while index < dispositions.count, dispositions[index] == .beyondLimit,
                chunk.attempts?[index] ?? 0 == attempts
            {
                dispositions[index] = .settled
                index += 1
            }
            guard index > first else {
                index += 1
                continue
            }
            recorder.ledger.release(
                row: chunk.start.row + UInt64(first), count: index - first,
                attempts: Int(attempts), nowMilliseconds: now.wallMilliseconds)
        }
        chunk.dispositions = dispositions
    }

    // MARK: Rows of the list

    /// True where rows may go by, or be read ahead of their sync, without anything else happening.
    private var maySettleUnsent: Bool {
        guard case .running = phase, !run.directives.isStopping, !run.directives.isPaused else {
            return false
        }
        return !recorder.isBehind(settings.limits.ledgerBacklog)
            && rows.awaitingSync.count < min(rows.chunkRows.aheadLimit, RowsAwaitingSync.limit)
    }

    /// Goes on with the list where its next rows wait for a sync: those that need no request are
    /// settled, the others are held. A row that may be sent now is left to the connections.
    mutating func settleUnsentRows(_ now: Now) {
        while maySettleUnsent, rows.settledUnsent < RowSupply.unsentLimit, !hasListRow,
            let tag = readListRow(now)
        {
            awaitSync(tag)
        }
        if rows.settledUnsent >= RowSupply.unsentLimit { rows.hasMoreUnsent = true }
    }

    /// True where a row of the list may be sent now, or may turn out to need no request.
    @inline(__always)
    var hasListRow: Bool { rows.hasListRow(synced: recorder.synced) }

    /// The next row of the list; nil where none may be sent.
    mutating func takeListRow(_ now: Now) -> RowTag? {
        guard hasListRow else { return nil }
        if rows.awaitingSync.count > 0 { return rows.takeSyncedRow() }
        guard let tag = readListRow(now) else { return nil }
        // Rows that went by may have ended a chunk that was synced.
        guard rows.chunks.reservedAt > recorder.ledger.syncedPosition else { return tag }
        awaitSync(tag)
        return nil
    }

    /// Keeps a row until its reservation is synced.
    @inline(never)
    private mutating func awaitSync(_ tag: RowTag) {
        recorder.requireSync(upTo: rows.awaitSync(tag))
    }

    /// Reads on to the next row that is to be sent, whether its reservation is synced or not; settles
    /// those before it.
    private mutating func readListRow(_ now: Now) -> RowTag? {
        while !rows.slab.isFull, rows.settledUnsent < RowSupply.unsentLimit,
            !rows.rowsRead.isStopping
        {
            guard let row = rows.chunks.nextRow() else {
                rows.settledUnsent += rows.chunks.takeSettledBefore()
                // The next chunk comes into use; if some of its rows are sent, they wait for this.
                guard reserveNext(now) != nil else { return nil }
                continue
            }
            let tag = rows.slab.take()
            rows.slab[tag].row = row.number
            rows.slab[tag].attempts = row.attempts
            rows.chunkRows.taken += 1
            let isToSend = isToSend(row, tag, now: now)
            if isToSend {
                rows.slab[tag].mayHaveBeenSent = row.disposition == .sendAgain
                rows.chunkRows.sent += 1
                rows.chunks.countRequest()
                return tag
            }
            rows.settledUnsent += 1 + rows.chunks.takeSettledBefore()
        }
        return nil
    }

    /// Makes a row ready to be sent, or settles it.
    private mutating func isToSend(_ row: ListRow, _ tag: RowTag, now: Now) -> Bool {
        if let reason = readToken(of: row, into: tag) {
            recordInvalid(row, reason, tag, now: now)
            rows.slab.free(tag)
            countRead(isInvalid: true)
            return false
        }
        var invalid: Reason?
        switch row.disposition {
        case .becomesUnknown:
            // An earlier run may have sent it and ended before its response came.
            metrics.canaryReport.lostBefore += 1
            settle(
                tag, state: .unknown, status: 0,
                reasonCode: Reason.connectionLost.rawValue, now: now)
        case .skipped(let skip):
            settle(
                tag, state: .skipped, status: 0, reasonCode: skip.reason.rawValue, now: now)
        case .send, .sendAgain, .settled, .beyondLimit:
            invalid = writer.keepValues(from: rows.chunks.reader, of: tag, in: &rows.slab)
            guard let invalid else {
                countRead(isInvalid: false)
                return true
            }
            settle(tag, state: .invalid, status: 0, reasonCode: invalid.rawValue, now: now)
        }
        countRead(isInvalid: invalid != nil)
        return false
    }

    private mutating func readToken(of row: ListRow, into tag: RowTag) -> Reason? {
        // SAFETY: the tag was taken for this row, and a place has so many bytes for the token; the
        // output checks what is written there.
        let room = unsafe UnsafeMutableRawBufferPointer(
            start: rows.slab.token(tag), count: RowSlab.tokenDigitsLimit)
        var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        let reason = rows.chunks.readToken(row.token, into: &digits)
        let count = unsafe digits.finalize(for: room)
        rows.slab[tag].tokenCount = UInt8(count)
        return reason
    }

    /// What is not a token is never sent; as much of it as `TextExcerpt` says goes into the ledger.
    private mutating func recordInvalid(
        _ row: ListRow, _ reason: Reason, _ tag: RowTag, now: Now
    ) {
        // SAFETY: the tag was taken for this row, and a place has so many bytes for the token;
        // `copyText` sets the first `count`, which the ledger copies.
        let room = unsafe UnsafeMutableRawBufferPointer(
            start: rows.slab.token(tag), count: RowSlab.tokenDigitsLimit)
        let count = unsafe rows.chunks.copyText(row.token, into: room)
        unsafe recorder.ledger.settled(
            row: row.number, state: .invalid, status: 0, reason: reason.rawValue,
            reasonText: nil, attempts: 0,
            token: RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: room[..<count])),
            tokenIsText: true, nowMilliseconds: now.wallMilliseconds)
        metrics.statistics.counts.count(.invalid, reason: reason.rawValue)
    }

    /// Counts a row for `--max-invalid`; where a judgement is due it is made before the next row.
    @inline(__always)
    private mutating func countRead(isInvalid: Bool) {
        rows.rowsRead.rows += 1
        if isInvalid { rows.rowsRead.invalid += 1 }
        if rows.rowsRead.rows >= rows.rowsRead.lease { reportRowsRead(isIdle: false) }
    }

    /// Tells the run which rows were read since the last time.
    ///
    /// - Parameter isIdle: No more are read for now: others may have what is left until the judgement.
    @inline(never)
    mutating func reportRowsRead(isIdle: Bool) {
        let (lease, stop) = run.resources.rowsRead.count(
            rows: rows.rowsRead.rows, invalid: rows.rowsRead.invalid, lease: rows.rowsRead.lease,
            reactors: isIdle ? 0 : settings.reactors)
        if let stop { run.stop(stop) }
        rows.rowsRead.lease = lease
        rows.rowsRead.rows = 0
        rows.rowsRead.invalid = 0
        rows.rowsRead.isStopping = run.directives.isStopping
    }

    // MARK: Rows of other reactors

    /// A reactor whose connections have all been gone for so long gives its rows to others.
    private static var handoffDelay: UInt64 { second }
    /// So many rows are given away at a time: those who take them over look every few milliseconds.
    private static var rowsAtOnce: Int { 4096 }

    /// Watches whether this reactor can send; where it can't for long and others can, its rows go to
    /// them.
    mutating func handOverRows(_ now: Now) {
        if let isReady = connections.updateReadiness(now: now.nanoseconds) {
            run.resources.handoff.setReadiness(run.reactor, isReady: isReady)
        }
        guard case .running = phase, settings.reactors > 1, let since = connections.disabledSince,
            now.nanoseconds - min(now.nanoseconds, since) >= Self.handoffDelay
        else { return }
        var room = min(run.resources.handoff.room(for: run.reactor), Self.rowsAtOnce)
        while room > 0 {
            guard let tag = takeOwnRow(now) else {
                leaveRate()
                return
            }
            guard giveAway(tag) else {
                rows.requeue(tag)
                return
            }
            room -= 1
        }
    }

    /// This reactor has rows: others stay until it has none, as they may have to send them.
    mutating func registerRows() {
        guard settings.reactors > 1, !rows.hasRegisteredRows else { return }
        rows.hasRegisteredRows = true
        run.resources.handoff.registerRows(of: run.reactor)
    }

    /// This reactor has no rows.
    ///
    /// - Returns: False if it has to stay, as others have some.
    mutating func leaveHandoff() -> Bool {
        rows.hasRegisteredRows = false
        return run.resources.handoff.leave(run.reactor)
    }

    /// The next row that this reactor would send, were it able to.
    private mutating func takeOwnRow(_ now: Now) -> RowTag? {
        rows.takeRequeued(now: now.nanoseconds) ?? takeListRow(now)
    }

    private mutating func giveAway(_ tag: RowTag) -> Bool {
        // SAFETY: the row is ours until it is given away; its token is copied.
        let row = unsafe RowHandoff.Row(
            state: rows.slab[tag], token: Array(rows.slab.tokenBytes(tag)),
            fieldValues: writer.values(of: tag, in: rows.slab))
        guard run.resources.handoff.put(row, from: run.reactor) else { return false }
        rows.slab.free(tag)
        return true
    }

    /// A row that another reactor could not send.
    mutating func takeHandedOverRow() -> RowTag? {
        guard run.resources.handoff.hasRows, !rows.slab.isFull else { return nil }
        return takeRowOfOthers()
    }

    /// Apart from the check, which is made for each row.
    @inline(never)
    private mutating func takeRowOfOthers() -> RowTag? {
        // Before it is taken: at every instant some reactor has it.
        registerRows()
        guard let row = run.resources.handoff.take() else { return nil }
        let tag = rows.slab.take()
        rows.slab[tag] = row.state
        rows.slab[tag].firstBlock = .max
        // SAFETY: the tag was just taken, and the token is what `tokenBytes` had of another
        // reactor's row: no more than a place has room for.
        unsafe rows.slab.token(tag).copyMemory(from: row.token, byteCount: row.token.count)
        writer.keep(row.state, values: row.fieldValues, of: tag, in: &rows.slab)
        return tag
    }
}
