import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsidePayloads
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Rows before they reach a connection: rows of the list, and rows that move between reactors.
///
/// A row that is never sent needs no durable reservation. Its verdict follows its reservation in
/// the same segment: if the reservation is lost, the verdict is lost as well, and the row is
/// `remaining`. Such rows wait for neither a sync nor a connection. They are settled as fast as the
/// list is read.
extension ReactorStateMachine where Records: ~Copyable {
    /// Whether rows are left that this reactor may send. Rows in flight do not count.
    @inline(__always)
    var hasWork: Bool {
        rows.hasWork || run.resources.handoff.hasRows
    }

    /// Whether a row could be sent now.
    @inline(__always)
    func hasRowReady(_ now: Now) -> Bool {
        if rows.hasRowInHand(synced: recorder.synced, now: now.nanoseconds) { return true }
        if rows.slab.isFull { return false }
        return run.resources.handoff.hasRows || hasListRow
    }

    /// Takes the next row to send; nil if none is ready.
    ///
    /// - Parameter isTest: Whether the response to the row shows if a server in trouble has
    ///   recovered.
    @inline(__always)
    mutating func takeRow(isTest: Bool, _ now: Now) -> RowTag? {
        if isTest { return takeTestRow(now) }
        if let tag = rows.takeRequeued(now: now.nanoseconds) { return tag }
        return takeHandedOverRow() ?? takeListRow(now)
    }

    /// Takes a row that tests whether a server in trouble has recovered: a row of the list rather
    /// than one that was sent before. If the server fails because of a certain row, that row would
    /// fail each test, and all others would wait for it.
    @inline(never)
    private mutating func takeTestRow(_ now: Now) -> RowTag? {
        if let tag = takeListRow(now) ?? takeHandedOverRow() {
            rows.endWaitForTestRow()
            return tag
        }
        requestChunks(now, isTest: true)
        // The read or the sync of the list's next rows ends soon, unless its disk is slow.
        if rows.awaitingSync.count > 0 || rows.chunks.waitsForList,
            rows.mayAwaitTestRow(now: now.nanoseconds)
        {
            return nil
        }
        guard let tag = rows.takeRequeued(now: now.nanoseconds) else { return nil }
        rows.endWaitForTestRow()
        return tag
    }

    // MARK: Chunks

    /// Requests chunks from the list thread before they are needed, because the reservation of a
    /// chunk must be durable before its first row is sent. When the reactor begins to use its last
    /// chunk, it requests several chunks together. They then share one sync, which costs more than
    /// writing their verdicts. While rows are settled without being sent, the reactor requests
    /// chunks earlier, and requests the maximum number of chunks, so that the list thread never
    /// waits.
    ///
    /// - Parameter isTest: Whether a row is needed to test a server in trouble.
    mutating func requestChunks(_ now: Now, isTest: Bool = false) {
        // A reactor without connections requests no rows, but must still notice the end of the
        // list.
        if run.directives.isListOver, !rows.chunks.isAtEnd { rows.chunks.markEnded() }
        guard case .running = phase, !rows.chunks.isAtEnd, !run.directives.isStopping,
            connections.share > 0
        else { return }
        // A reactor that cannot send takes no more rows, except at the start of the run, when every
        // reactor is about to connect.
        let ahead = rows.chunks.aheadCount
        let settlesUnsent = !rows.chunks.expectsRequests && !rows.chunks.lastIsLarge
        guard ahead <= (settlesUnsent ? ChunkQueue.aheadRefill : 0),
            isTest || connections.disabledSince == nil || !run.directives.anyReady
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

    /// Number of chunks that share a sync.
    @inline(__always)
    private func chunksPerSync(_ now: Now) -> Int {
        // Large rows are not accumulated, because each has memory of its own.
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

    /// Takes a share of the run's rate, because this reactor sends or is about to.
    mutating func joinRate() {
        if admission.join() { run.shareRate(true) }
    }

    /// Gives up the share of the rate until this reactor sends again.
    mutating func leaveRate() {
        if admission.leave() { run.shareRate(false) }
    }

    /// Reserves several chunks in advance, so that they share one sync. If the next rows probably
    /// need no requests, no chunk is reserved in advance, because such rows don't wait for a sync.
    /// Instead, each chunk is reserved when its first row is reached, so that a kill leaves no
    /// later chunk in doubt.
    mutating func reserveAhead(_ now: Now) {
        guard rows.chunks.firstUnreserved != nil, rows.chunks.expectsRequests,
            !run.directives.isStopping
        else { return }
        let count = chunksPerSync(now)
        while rows.chunks.reservedCount < count, let position = reserveNext(now) {
            recorder.requireSync(upTo: position)
        }
    }

    /// Reserves the first unreserved chunk.
    ///
    /// - Returns: The ledger position to wait for; nil if all chunks are reserved.
    @inline(never)
    mutating func reserveNext(_ now: Now) -> UInt64? {
        guard let chunk = rows.chunks.firstUnreserved else { return nil }
        var position: UInt64
        if let released = chunk.takeRowsNotDue() {
            position = recorder.ledger.reserve(
                chunk.reservation, releasing: released, nowMilliseconds: now.wallMilliseconds)
        } else {
            position = recorder.ledger.reserve(
                chunk.reservation, nowMilliseconds: now.wallMilliseconds)
        }
        assert(
            position > recorder.ledger.syncedPosition,
            "a new reservation is not durable yet")
        releaseBeyondLimit(chunk, now)
        if !chunk.kept.isEmpty { position = keepVerdicts(of: chunk) }
        rows.chunks.markReserved(at: position)
        return position
    }

    /// Records that the chunk's rows beyond the limit are not sent. The chunk's reservation alone
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

    /// Records the verdicts of reopened rows that are not sent. The chunk's reservation alone would
    /// leave them in doubt.
    ///
    /// - Returns: The ledger position to wait for.
    private mutating func keepVerdicts(of chunk: RowChunk) -> UInt64 {
        recorder.ledger.keep(chunk.kept)
        chunk.kept = []
        return recorder.ledger.appendedPosition
    }

    // MARK: Rows of the list

    /// Whether the reactor may now settle rows without a request, or read rows before their
    /// reservation is synced.
    private var maySettleUnsent: Bool {
        guard case .running = phase, !run.directives.isStopping, !run.directives.isPaused else {
            return false
        }
        return !recorder.isBehind(settings.limits.ledgerBacklog)
            && rows.awaitingSync.count < min(rows.chunkRows.aheadLimit, RowsAwaitingSync.limit)
    }

    /// Reads further rows of the list while the next rows wait for a sync. Rows that need no
    /// request are settled, all others are kept. A row that may be sent now is left to the
    /// connections. If most rows need a request, none is read ahead: thousands of waiting rows
    /// would not stay in the processor's cache.
    mutating func settleUnsentRows(_ now: Now) {
        while !rows.chunks.mostNeedRequests, maySettleUnsent,
            rows.settledUnsent < RowSupply.unsentLimit, !hasListRow, let tag = readListRow(now)
        {
            awaitSync(tag)
        }
        if rows.settledUnsent >= RowSupply.unsentLimit { rows.hasMoreUnsent = true }
    }

    /// Whether a row of the list may be sent now, or may be settled without a request.
    @inline(__always)
    var hasListRow: Bool { rows.hasListRow(synced: recorder.synced) }

    /// Takes the next row of the list; nil if none may be sent.
    mutating func takeListRow(_ now: Now) -> RowTag? {
        guard hasListRow else { return nil }
        if rows.awaitingSync.count > 0 { return rows.takeSyncedRow() }
        guard let tag = readListRow(now) else { return nil }
        // The row may be in the next chunk, which is not synced: settled rows may have ended the
        // current one.
        guard rows.chunks.reservedAt > recorder.ledger.syncedPosition else { return tag }
        awaitSync(tag)
        return nil
    }

    /// Keeps a row until its reservation is synced.
    @inline(never)
    private mutating func awaitSync(_ tag: RowTag) {
        recorder.requireSync(upTo: rows.awaitSync(tag))
    }

    /// Reads the list up to the next row to send, and settles the rows before that row. The row's
    /// reservation may not be synced yet.
    private mutating func readListRow(_ now: Now) -> RowTag? {
        while !rows.slab.isFull, rows.settledUnsent < RowSupply.unsentLimit,
            !rows.rowsRead.isStopping
        {
            guard let row = rows.chunks.nextRow() else {
                rows.settledUnsent += rows.chunks.takeSettledBefore()
                // The next chunk is now in use. Its rows are not sent before this reservation is
                // synced.
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
                if row.wasSent { keepPast(of: row, tag) }
                rows.chunkRows.sent += 1
                rows.chunks.countRequest()
                return tag
            }
            rows.settledUnsent += 1 + rows.chunks.takeSettledBefore()
        }
        return nil
    }

    /// Prepares a row for sending, or settles it.
    private mutating func isToSend(_ row: ListRow, _ tag: RowTag, now: Now) -> Bool {
        if let reason = readToken(of: row, into: tag) {
            recordTokenless(row, reason, tag, now: now)
            return false
        }
        var invalid: Reason?
        switch row.disposition {
        case .becomesUnknown:
            // An earlier run may have sent the row and ended before the response came.
            metrics.canaryReport.lostBefore += 1
            writer.keepArm(from: rows.chunks.reader, of: tag, in: &rows.slab)
            settle(
                tag, state: .unknown, status: 0,
                reasonCode: Reason.connectionLost.rawValue, now: now)
        case .skipped(let skip):
            writer.keepArm(from: rows.chunks.reader, of: tag, in: &rows.slab)
            settleUnsent(tag, .skipped, skip.reason, now: now)
        case .invalid(let reason):
            writer.keepArm(from: rows.chunks.reader, of: tag, in: &rows.slab)
            settleUnsent(tag, .invalid, reason, now: now)
            countRead(isInvalid: true)
            return false
        case .erased(let mayHaveBeenSent):
            recordErased(tag, mayHaveBeenSent: mayHaveBeenSent, now: now)
        case .send, .sendAgain, .settled, .beyondLimit, .notDue:
            assert(
                row.disposition == .send || row.disposition == .sendAgain,
                "a row that is settled, or not due, is not sent")
            invalid = writer.keepValues(from: rows.chunks.reader, of: tag, in: &rows.slab)
            guard let invalid else {
                countRead(isInvalid: false)
                guard !run.directives.stoppedTopics.isEmpty, isOfStoppedTopic(tag) else {
                    return true
                }
                rows.slab[tag].mayHaveBeenSent = row.disposition == .sendAgain
                leaveUnsettled(tag, now: now)
                return false
            }
            settleUnsent(tag, .invalid, invalid, now: now)
        }
        countRead(isInvalid: invalid != nil)
        return false
    }

    /// Whether a guard has stopped the row's topic, so that nothing more is sent to it.
    @inline(__always)
    func isOfStoppedTopic(_ tag: RowTag) -> Bool {
        run.directives.stoppedTopics.contains(rows.slab[tag].personal.topic)
    }

    private mutating func readToken(of row: ListRow, into tag: RowTag) -> Reason? {
        // SAFETY: the tag was taken for this row, and a slot has that many bytes for the token; the
        // output checks its bounds.
        let room = unsafe UnsafeMutableRawBufferPointer(
            start: rows.slab.token(tag), count: RowSlab.tokenDigitsLimit)
        var digits = unsafe OutputRawSpan(buffer: room, initializedCount: 0)
        let reason = rows.chunks.readToken(row.token, into: &digits)
        let count = unsafe digits.finalize(for: room)
        rows.slab[tag].tokenCount = UInt8(count)
        return reason
    }

    /// Settles a row that has no valid token. The ledger keeps an excerpt (`TextExcerpt`) of the
    /// text in the token's field.
    private mutating func recordTokenless(
        _ row: ListRow, _ refusal: Reason, _ tag: RowTag, now: Now
    ) {
        noteHeader(at: row.number, now: now)
        noteOverwritten(at: row.number, now: now)
        var (state, reason) = (RowState.invalid, refusal)
        // A filter skips a row even if its token is invalid.
        if case .skipped(let skip) = row.disposition { (state, reason) = (.skipped, skip.reason) }
        // SAFETY: the tag was taken for this row, and a slot has that many bytes for the token;
        // `copyText` sets the first `count`, which the ledger copies.
        let room = unsafe UnsafeMutableRawBufferPointer(
            start: rows.slab.token(tag), count: RowSlab.tokenDigitsLimit)
        var count = unsafe rows.chunks.copyText(row.token, into: room)
        let isMasked =
            settings.mayHaveMaskedRows && state == .invalid && rows.chunks.isMasked(row.token)
        if isMasked {
            // A resume recognizes the row by this text.
            unsafe room[0] = DeviceSet.mask
            count = 1
        }
        unsafe recorder.ledger.settled(
            row: row.number, state: state, status: 0, reason: reason.rawValue,
            reasonText: nil, attempts: 0,
            token: RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: room[..<count])),
            tokenIsText: true, nowMilliseconds: now.wallMilliseconds)
        metrics.statistics.counts.count(state, reason: reason.rawValue)
        rows.slab.free(tag)
        countRead(isInvalid: state == .invalid && !isMasked)
    }

    /// Counts a row for `--max-invalid`. A check that is due is made before the next row.
    @inline(__always)
    private mutating func countRead(isInvalid: Bool) {
        rows.rowsRead.rows += 1
        if isInvalid { rows.rowsRead.invalid += 1 }
        if rows.rowsRead.rows >= rows.rowsRead.lease { reportRowsRead(isIdle: false) }
    }

    /// Reports the rows read since the last call.
    ///
    /// - Parameter isIdle: Whether no more rows are read for now, so that other reactors may use
    ///   the rest of the lease.
    @inline(never)
    mutating func reportRowsRead(isIdle: Bool) {
        assert(rows.rowsRead.invalid <= rows.rowsRead.rows, "an invalid row is a row")
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

    /// Time without a connection after which a reactor hands its rows to other reactors.
    private static var handoffDelay: UInt64 { second }
    /// Number of rows that are handed over at a time. Other reactors check for such rows every few
    /// milliseconds.
    private static var rowsAtOnce: Int { 4096 }

    /// Hands rows to other reactors if this reactor has been unable to send for a while and other
    /// reactors can send.
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

    /// Reports to the other reactors that this reactor has rows. The other reactors then do not
    /// leave, because they may have to send these rows.
    mutating func registerRows() {
        guard settings.reactors > 1, !rows.hasRegisteredRows else { return }
        rows.hasRegisteredRows = true
        run.resources.handoff.registerRows(of: run.reactor)
    }

    /// Deregisters this reactor, which has no rows left.
    ///
    /// - Returns: False if it has to stay because other reactors have rows.
    mutating func leaveHandoff() -> Bool {
        rows.hasRegisteredRows = false
        return run.resources.handoff.leave(run.reactor)
    }

    /// Takes the next row to send from this reactor's own rows.
    private mutating func takeOwnRow(_ now: Now) -> RowTag? {
        rows.takeRequeued(now: now.nanoseconds) ?? takeListRow(now)
    }

    private mutating func giveAway(_ tag: RowTag) -> Bool {
        // SAFETY: this reactor owns the row until it is handed over; its token is copied.
        let row = unsafe RowHandoff.Row(
            state: rows.slab[tag], token: Array(rows.slab.tokenBytes(tag)),
            fieldValues: writer.values(of: tag, in: rows.slab))
        guard run.resources.handoff.put(row, from: run.reactor) else { return false }
        rows.slab.free(tag)
        return true
    }

    /// Takes a row that another reactor could not send.
    mutating func takeHandedOverRow() -> RowTag? {
        guard run.resources.handoff.hasRows, !rows.slab.isFull else { return nil }
        return takeRowOfOthers()
    }

    /// Takes a row from the handoff. A separate function, because its caller runs for each row.
    @inline(never)
    private mutating func takeRowOfOthers() -> RowTag? {
        // This reactor registers before it takes the row, so that at every instant the row belongs
        // to a registered reactor.
        registerRows()
        guard let row = run.resources.handoff.take() else { return nil }
        assert(row.token.count <= RowSlab.tokenDigitsLimit, "a token fits in its place")
        let tag = rows.slab.take()
        rows.slab[tag] = row.state
        rows.slab[tag].firstBlock = .max
        // SAFETY: the tag was just taken, and the token comes from `tokenBytes` of another
        // reactor's row, so a slot has room for it.
        unsafe rows.slab.token(tag).copyMemory(from: row.token, byteCount: row.token.count)
        writer.keep(row.state, values: row.fieldValues, of: tag, in: &rows.slab)
        return tag
    }
}
