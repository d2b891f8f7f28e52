import APNs
import Campaign
import Support

/// Rows of the list on their way into the slab: which are sent, and which are settled without a
/// request.
///
/// A row that is never sent needs no reservation that survives a power cut: its verdict comes behind
/// its reservation in the same segment, so that a segment which lost the one has lost the other, and
/// the row is `remaining`. So such rows wait for no sync and for no connection, and stretches of them
/// go by as fast as the list is read.
extension ReactorStateMachine where Records: ~Copyable {
    /// True where rows may go by, or be read ahead of their sync, without anything else happening.
    private var mayPass: Bool {
        guard case .running = phase, !run.directives.isStopping, !run.directives.isPaused else {
            return false
        }
        return recorder.ledger.pendingByteCount < settings.limits.ledgerBacklog
            && rows.held.count < min(rows.chunkRows.aheadLimit, HeldRows.limit)
    }

    /// Goes on with the list where its next rows wait for a sync: those that need no request are
    /// settled, the others are held. A row that may be sent now is left to the connections.
    mutating func passRows(_ now: Now) {
        while mayPass, rows.passed < RowSupply.passLimit, !hasListRow, let tag = readListRow(now) {
            hold(tag)
        }
        if rows.passed >= RowSupply.passLimit { rows.passAgain = true }
    }

    /// True where a row of the list may be sent now, or may turn out to need no request.
    @inline(__always)
    var hasListRow: Bool { rows.hasListRow(synced: recorder.synced) }

    /// The next row of the list; nil where none may be sent.
    mutating func takeListRow(_ now: Now) -> RowTag? {
        guard hasListRow else { return nil }
        if rows.held.count > 0 { return rows.takeHeldRow() }
        guard let tag = readListRow(now) else { return nil }
        // Rows that went by may have ended a chunk that was synced.
        guard rows.chunks.reservedAt > recorder.ledger.syncedPosition else { return tag }
        hold(tag)
        return nil
    }

    /// Keeps a row until its reservation is synced.
    @inline(never)
    private mutating func hold(_ tag: RowTag) {
        recorder.want(rows.hold(tag))
    }

    /// Reads on to the next row that is to be sent, whether its reservation is synced or not; settles
    /// those before it.
    private mutating func readListRow(_ now: Now) -> RowTag? {
        while !rows.slab.isFull, rows.passed < RowSupply.passLimit, !rows.rowsRead.isOver {
            guard let row = rows.chunks.nextRow() else {
                rows.passed += rows.chunks.takePassedOver()
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
                rows.chunks.noteRequest()
                return tag
            }
            rows.passed += 1 + rows.chunks.takePassedOver()
        }
        return nil
    }

    /// Makes a row ready to be sent, or settles it.
    private mutating func isToSend(_ row: ListRow, _ tag: RowTag, now: Now) -> Bool {
        if let reason = readToken(of: row, into: tag) {
            recordInvalid(row, reason, tag, now: now)
            rows.slab.free(tag)
            noteRead(isInvalid: true)
            return false
        }
        var invalid: Reason?
        switch row.disposition {
        case .becomesUnknown:
            // An earlier run may have sent it and did not live to hear the answer.
            metrics.canaryReport.lostBefore += 1
            settle(
                tag, state: .unknown, status: 0,
                reasonCode: Reason.connectionLost.rawValue, now: now)
        case .suppressed, .duplicate:
            let reason: Reason = row.disposition == .duplicate ? .duplicate : .suppressed
            settle(tag, state: .skipped, status: 0, reasonCode: reason.rawValue, now: now)
        case .send, .sendAgain, .settled, .beyondLimit:
            invalid = writer.keepValues(from: rows.chunks.reader, of: tag, in: &rows.slab)
            guard let invalid else {
                noteRead(isInvalid: false)
                return true
            }
            settle(tag, state: .invalid, status: 0, reasonCode: invalid.rawValue, now: now)
        }
        noteRead(isInvalid: invalid != nil)
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
        metrics.statistics.count(.invalid, reason: reason.rawValue)
    }

    /// Counts a row for `--max-invalid`; where a judgement is due it is made before the next row.
    @inline(__always)
    private mutating func noteRead(isInvalid: Bool) {
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
        rows.rowsRead.isOver = run.directives.isStopping
    }
}
