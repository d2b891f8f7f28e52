import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// What becomes of a row, in the ledger and in the counters.
extension ReactorStateMachine where Records: ~Copyable {
    /// 200: the hot path's end.
    /// A function of its own, so that tests can look at its machine code.
    @inline(never)
    mutating func accept(_ tag: RowTag, now: Now) {
        let taken = now.nanoseconds - rows.slab[tag].sentNanoseconds
        metrics.latency.record(taken)
        batching.recordResponse(nanoseconds: taken)
        settleAccepted(tag, now: now)
    }

    /// Records an acceptance.
    mutating func settleAccepted(_ tag: RowTag, now: Now) {
        // SAFETY: the place is the row's until it is freed below.
        let token = unsafe RawSpan(_unsafeBytes: rows.slab.tokenBytes(tag))
        recorder.ledger.accepted(
            row: rows.slab[tag].row, fingerprint: TokenText.fingerprint(token),
            attempts: Int(rows.slab[tag].attempts), nowMilliseconds: now.wallMilliseconds)
        metrics.statistics.counts[.accepted] += 1
        metrics.acceptedSinceReport += 1
        rows.slab.free(tag)
    }

    /// The credential was refused, not the row: it stays `remaining`, and is not sent again in this
    /// run.
    mutating func leaveUnsettled(_ tag: RowTag, now: Now) {
        metrics.statistics.refusedByCredential += 1
        release(tag, now: now)
    }

    // MARK: Rows that go on

    /// The server did not process the request: it goes first on whichever connection comes next,
    /// and the attempt does not count.
    mutating func requeueUncounted(_ tag: RowTag) {
        rows.slab[tag].attempts -= 1
        rows.requeue(tag)
    }

    /// The row was refused for now.
    mutating func scheduleRetry(_ tag: RowTag, retryAfter: UInt64?, now: Now) {
        let verdict = settings.retryPolicy.verdict(
            attempts: Int(rows.slab[tag].attempts),
            firstAttempt: rows.slab[tag].firstSentNanoseconds, now: now.nanoseconds,
            retryAfterNanoseconds: retryAfter, random: &random)
        switch verdict {
        case .again(let due):
            rows.retries.insert(dueNanoseconds: due, tag: tag)
        case .failed:
            settleFailed(tag, now: now)
        }
    }

    /// Settles a row whose attempts are used up. One that may have been processed says so by its reason,
    /// whatever its last response was: a run that opens it again must not take it for unsent.
    private mutating func settleFailed(_ tag: RowTag, now: Now) {
        var (status, reason) = (rows.slab[tag].lastStatus, rows.slab[tag].lastReason)
        if rows.slab[tag].mayHaveBeenSent, Reason(rawValue: reason)?.leavesDoubt != true {
            (status, reason) = (0, Reason.connectionLost.rawValue)
        }
        settle(tag, state: .failed, status: status, reasonCode: reason, now: now)
    }

    /// The response will not come: the row may have been sent, or not.
    ///
    /// - Parameter status: What a gateway said that lost it; 0: nothing came.
    mutating func lose(
        _ tag: RowTag, status: UInt16 = 0, reason: Reason, retryAfter: UInt64? = nil, now: Now
    ) {
        rows.slab[tag].lastReason = reason.rawValue
        rows.slab[tag].lastStatus = status
        switch settings.onLost {
        case .record:
            settle(tag, state: .unknown, status: status, reasonCode: reason.rawValue, now: now)
        case .resend:
            rows.slab[tag].mayHaveBeenSent = true
            scheduleRetry(tag, retryAfter: retryAfter, now: now)
        }
    }

    // MARK: Into the ledger

    /// Settles a row as rejected with a reason that is no code of ours.
    mutating func settleRejected(
        _ tag: RowTag, status: UInt16, text: RawSpan, timestamp: UInt64? = nil, now: Now
    ) {
        // SAFETY: the place is the row's until it is freed below; the ledger copies the token.
        unsafe recorder.ledger.settled(
            row: rows.slab[tag].row, state: .rejected, status: status, reason: 0, reasonText: text,
            attempts: Int(rows.slab[tag].attempts), timestamp: timestamp,
            token: RawSpan(_unsafeBytes: rows.slab.tokenBytes(tag)), tokenIsText: false,
            nowMilliseconds: now.wallMilliseconds)
        metrics.statistics.counts.count(.rejected, reasonText: text)
        rows.slab.free(tag)
    }

    mutating func settle(
        _ tag: RowTag, state rowState: RowState, status: UInt16, reasonCode: UInt8,
        timestamp: UInt64? = nil, now: Now
    ) {
        // SAFETY: the place is the row's until it is freed below; the ledger copies the token.
        unsafe recorder.ledger.settled(
            row: rows.slab[tag].row, state: rowState, status: status, reason: reasonCode,
            reasonText: nil, attempts: Int(rows.slab[tag].attempts), timestamp: timestamp,
            token: RawSpan(_unsafeBytes: rows.slab.tokenBytes(tag)), tokenIsText: false,
            nowMilliseconds: now.wallMilliseconds)
        metrics.statistics.counts.count(rowState, reason: reasonCode)
        rows.slab.free(tag)
    }

    /// Records that the row was not sent, or was refused and may be sent again by another run. A row
    /// that may have been sent is not released: it stays in doubt, and the policy of the run that
    /// takes it up decides.
    mutating func release(_ tag: RowTag, now: Now) {
        if !rows.slab[tag].mayHaveBeenSent {
            recorder.ledger.release(
                row: rows.slab[tag].row, count: 1, attempts: Int(rows.slab[tag].attempts),
                nowMilliseconds: now.wallMilliseconds)
        }
        rows.slab.free(tag)
    }
}
