import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsidePayloads
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Verdicts of rows, in the ledger and in the counters.
extension ReactorStateMachine where Records: ~Copyable {
    /// Settles a row after a 200: the end of the hot path. A separate function, so that tests can
    /// inspect its machine code.
    @inline(never)
    mutating func accept(_ tag: RowTag, now: Now) {
        let taken = now.nanoseconds - rows.slab[tag].sentNanoseconds
        metrics.latency.record(taken)
        batching.recordResponse(nanoseconds: taken)
        settleAccepted(tag, now: now)
    }

    /// Settles a row after a 200 with an apns-unique-id.
    @inline(never)
    mutating func acceptIdentified(_ tag: RowTag, connection index: Int, now: Now) {
        let taken = now.nanoseconds - rows.slab[tag].sentNanoseconds
        metrics.latency.record(taken)
        batching.recordResponse(nanoseconds: taken)
        // SAFETY: the slot belongs to the row until it is freed.
        let token = unsafe RawSpan(_unsafeBytes: rows.slab.tokenBytes(tag))
        let fingerprint = TokenText.fingerprint(token)
        // SAFETY: only this call uses the temporary storage, of which `copyResponse` sets `count`
        // bytes; the ledger copies them.
        unsafe withUnsafeTemporaryAllocation(
            byteCount: NotificationID.textCount, alignment: 1
        ) { room in
            let count = unsafe connections[index].session.copyResponse(
                0..<NotificationID.textCount, into: room)
            let uniqueID = unsafe RawSpan(
                _unsafeBytes: UnsafeRawBufferPointer(rebasing: room[..<count]))
            acceptDescribed(tag, fingerprint, uniqueID: uniqueID, now: now)
        }
    }

    /// Records an acceptance.
    mutating func settleAccepted(_ tag: RowTag, now: Now) {
        // SAFETY: the slot belongs to the row until it is freed below.
        let token = unsafe RawSpan(_unsafeBytes: rows.slab.tokenBytes(tag))
        let fingerprint = TokenText.fingerprint(token)
        guard !writer.isTemplated else {
            return acceptDescribed(tag, fingerprint, uniqueID: nil, now: now)
        }
        recorder.ledger.accepted(
            row: rows.slab[tag].row, fingerprint: fingerprint,
            attempts: Int(rows.slab[tag].attempts), nowMilliseconds: now.wallMilliseconds)
        metrics.statistics.counts[.accepted] += 1
        metrics.acceptedSinceReport += 1
        rows.slab.free(tag)
    }

    /// Records an acceptance with details besides the token: the row may have its own topic, be in
    /// an arm, or have an apns-unique-id.
    @inline(never)
    private mutating func acceptDescribed(
        _ tag: RowTag, _ fingerprint: UInt64, uniqueID: RawSpan?, now: Now
    ) {
        let (row, attempts) = (rows.slab[tag].row, Int(rows.slab[tag].attempts))
        let arm = rows.slab[tag].personal.arm
        let topic = ledgerTopic(of: tag)
        if arm == 0, uniqueID == nil {
            recorder.ledger.accepted(
                row: row, fingerprint: fingerprint, attempts: attempts, topic: topic,
                nowMilliseconds: now.wallMilliseconds)
        } else {
            recorder.ledger.accepted(
                row: row, fingerprint: fingerprint, attempts: attempts, arm: arm,
                uniqueID: uniqueID, topic: topic, nowMilliseconds: now.wallMilliseconds)
            metrics.statistics.counts.arms.count(arm, .accepted)
        }
        metrics.statistics.counts[.accepted] += 1
        metrics.acceptedSinceReport += 1
        if writer.topics != nil { metrics.topicsAccepted[Int(rows.slab[tag].personal.topic)] += 1 }
        rows.slab.free(tag)
    }

    /// Leaves a row `remaining` because the credential was refused or the server is not APNs. The
    /// row is not sent again in this run.
    mutating func leaveUnsettled(_ tag: RowTag, now: Now) {
        metrics.statistics.refusedByCredential += 1
        release(tag, now: now)
    }

    // MARK: Rows to resend

    /// Adds a row that the server did not process to the rows that are sent before all others. The
    /// attempt does not count for `--max-attempts`.
    mutating func requeueUncounted(_ tag: RowTag) {
        assert(rows.slab[tag].attempts > 0, "a request that was not counted")
        rows.slab[tag].attempts -= 1
        rows.requeue(tag)
    }

    /// Schedules a retry of a row that was refused temporarily, or settles the row if no retry is
    /// left.
    ///
    /// - Parameter unknownReason: Number of the last response's reason in `UnknownReasons`; 0: none.
    mutating func scheduleRetry(
        _ tag: RowTag, unknownReason: UInt8 = 0, retryAfter: UInt64?, now: Now
    ) {
        let verdict = settings.retryPolicy.verdict(
            attempts: Int(rows.slab[tag].attempts) - Int(rows.slab[tag].attemptsBefore),
            firstAttempt: rows.slab[tag].firstSentNanoseconds, now: now.nanoseconds,
            retryAfterNanoseconds: retryAfter, random: &random)
        switch verdict {
        case .again(let due):
            rows.retries.insert(dueNanoseconds: due, tag: tag)
        case .failed:
            settleFailed(tag, unknownReason: unknownReason, now: now)
        }
    }

    /// Settles a row whose attempts are exhausted. If the row may have been processed, the reason
    /// records that, regardless of the last response. A run that reopens the row then does not
    /// treat it as unsent.
    private mutating func settleFailed(_ tag: RowTag, unknownReason: UInt8, now: Now) {
        var (status, reason) = (rows.slab[tag].lastStatus, rows.slab[tag].lastReason)
        if rows.slab[tag].mayHaveBeenSent, Reason(rawValue: reason)?.leavesDoubt != true {
            (status, reason) = (0, Reason.connectionLost.rawValue)
        }
        if reason == 0, let text = run.resources.unknownReasons.text(unknownReason) {
            return settle(
                tag, state: .failed, status: status, text: Array(text.utf8).rawSpan, now: now)
        }
        settle(tag, state: .failed, status: status, reasonCode: reason, now: now)
    }

    /// Handles a row whose response will not come. The server may have processed the row.
    ///
    /// - Parameter status: Status from a gateway that lost the response; 0: none.
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

    /// Number of a row's topic for the ledger; 0 for a row without a request, or if all rows have
    /// the same topic. At the first use of a topic, its name is written to the ledger.
    private mutating func ledgerTopic(of tag: RowTag) -> UInt16 {
        guard let topics = writer.topics, rows.slab[tag].firstSentNanoseconds != 0 else {
            return 0
        }
        let number = rows.slab[tag].personal.topic
        let topic = UInt16(number) + 1
        if !recorder.ledger.knows(topic: topic) {
            recorder.ledger.name(topic: topic, topics.text(number))
        }
        return topic
    }

    /// Settles a row for a reason that has no code. The reason's text is recorded instead.
    mutating func settle(
        _ tag: RowTag, state rowState: RowState, status: UInt16, text: RawSpan,
        timestamp: UInt64? = nil, now: Now
    ) {
        assert(rowState == .rejected || rowState == .failed)
        let topic = ledgerTopic(of: tag)
        // SAFETY: the slot belongs to the row until it is freed below; the ledger copies the token.
        unsafe recorder.ledger.settled(
            row: rows.slab[tag].row, state: rowState, status: status, reason: 0, reasonText: text,
            attempts: Int(rows.slab[tag].attempts), timestamp: timestamp,
            token: RawSpan(_unsafeBytes: rows.slab.tokenBytes(tag)), tokenIsText: false,
            arm: rows.slab[tag].personal.arm, topic: topic,
            nowMilliseconds: now.wallMilliseconds)
        metrics.statistics.counts.count(rowState, reasonText: text)
        metrics.statistics.counts.arms.count(rows.slab[tag].personal.arm, rowState)
        rows.slab.free(tag)
    }

    mutating func settle(
        _ tag: RowTag, state rowState: RowState, status: UInt16, reasonCode: UInt8,
        timestamp: UInt64? = nil, now: Now
    ) {
        assert(rowState.isSettled && rowState != .accepted)
        let topic = ledgerTopic(of: tag)
        // SAFETY: the slot belongs to the row until it is freed below; the ledger copies the token.
        unsafe recorder.ledger.settled(
            row: rows.slab[tag].row, state: rowState, status: status, reason: reasonCode,
            reasonText: nil, attempts: Int(rows.slab[tag].attempts), timestamp: timestamp,
            token: RawSpan(_unsafeBytes: rows.slab.tokenBytes(tag)), tokenIsText: false,
            arm: rows.slab[tag].personal.arm, topic: topic,
            nowMilliseconds: now.wallMilliseconds)
        metrics.statistics.counts.count(rowState, reason: reasonCode)
        metrics.statistics.counts.arms.count(rows.slab[tag].personal.arm, rowState)
        rows.slab.free(tag)
    }

    /// Records that a row was not sent, or that it was refused and another run may send it. A row
    /// that may have been sent is not released: it stays in doubt, and the next run applies its own
    /// `--on-lost`.
    mutating func release(_ tag: RowTag, now: Now) {
        if !rows.slab[tag].mayHaveBeenSent {
            recorder.ledger.release(
                row: rows.slab[tag].row, count: 1, attempts: Int(rows.slab[tag].attempts),
                nowMilliseconds: now.wallMilliseconds)
        }
        rows.slab.free(tag)
    }
}
