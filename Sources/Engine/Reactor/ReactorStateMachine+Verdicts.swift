import APNs
import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// 200: the hot path's end.
    /// A function of its own, so that tests can look at its machine code.
    @inline(never)
    mutating func accept(_ tag: RowTag, now: Now) {
        let taken = now.nanoseconds - rows.slab[tag].sentNanoseconds
        metrics.latency.record(taken)
        batching.noteAnswer(nanoseconds: taken)
        settleAccepted(tag, now: now)
    }

    /// Records an acceptance.
    mutating func settleAccepted(_ tag: RowTag, now: Now) {
        // SAFETY: the place is the row's until it is freed below.
        let token = unsafe RawSpan(_unsafeBytes: rows.slab.tokenBytes(tag))
        recorder.ledger.accepted(
            row: rows.slab[tag].row, fingerprint: TokenText.fingerprint(token),
            attempts: Int(rows.slab[tag].attempts), nowMilliseconds: now.wallMilliseconds)
        metrics.statistics.accepted += 1
        metrics.acceptedSinceReport += 1
        rows.slab.free(tag)
    }

    /// Any other status: what it means stands in one table, `ResponseClass`.
    mutating func refuse(_ tag: RowTag, status: UInt16, connection index: Int, now: Now) {
        run.noteResponse(now)
        metrics.latency.record(now.nanoseconds - rows.slab[tag].sentNanoseconds)
        let body = connections[index].session.responseReason
        let reason = body.reason
        let retryAfter = connections[index].session
            .retryAfter(from: now.wallMilliseconds / 1000).map { $0 * second }
        let answer = ResponseClass.classify(status: status, reason: reason)
        rows.slab[tag].lastStatus = status
        rows.slab[tag].lastReason = reason?.rawValue ?? 0

        // Guards count answers in their order.
        reportAccepted(now)

        if answer.row != .rejected { metrics.statistics.pushbacks += 1 }
        switch answer.row {
        case .accepted:
            preconditionFailure("200 is handled before")
        case .rejected:
            // A device that is gone says nothing about the campaign.
            if status != 410 { metrics.canaryReport.refused += 1 }
            settleRejected(tag, status: status, body: body, connection: index, now: now)
        case .remainUnsettled:
            holdBack(tag, now: now)
        case .retryOnceThenRemain:
            if rows.slab[tag].hadInvalidToken {
                holdBack(tag, now: now)
            } else {
                rows.slab[tag].hadInvalidToken = true
                rows.requeue(tag)
            }
        case .retryNotCounted:
            sendElsewhere(tag)
        case .retryAfterDelay:
            retryLater(tag, retryAfter: retryAfter, now: now)
        case .responseLost:
            lose(
                tag, status: status, reason: .connectionLost, retryAfter: retryAfter, now: now)
        case .retryWithRenewedToken:
            noteExpired(
                index, usedVersion: rows.slab[tag].authorizationVersion,
                isFirst: connections[index].responses == 1)
            sendElsewhere(tag)
        case .retryWithPreviousToken:
            run.append(
                .updatesRefused(
                    usedVersion: rows.slab[tag].authorizationVersion,
                    giveUpAfter: settings.giveUpAfter))
            rows.slab[tag].attempts -= 1
            rows.retries.insert(
                dueNanoseconds: now.nanoseconds + max(retryAfter ?? 0, second), tag: tag)
        }
        // What a response about the token says of the address, the run has to say.
        if answer.connection != .drainAndReplace, answer.row != .retryWithRenewedToken,
            connections[index].responses == 1
        {
            connections.addresses.succeeded(
                connections[index].address, slot: index, now: now.nanoseconds)
        }
        if answer.connection != .none { noteDrain(index, status: status, reason: reason, now: now) }
        switch answer.connection {
        case .none:
            break
        case .close:
            drain(index, now: now)
        case .drainAndReplace:
            connections.addresses.failed(
                connections[index].address, now: now.nanoseconds, retryAfter: retryAfter,
                lasting: nil, isOutage: true, random: &random)
            drain(index, now: now)
        }
        noteWait(index, status: status, reason: reason, retryAfter: retryAfter)
        run.append(.response(writer.heard(answer.campaign), status: status, reason: reason))
    }

    /// Remembers, for the message of a run that gives up, that a server wants to be left alone for
    /// longer than a run goes without an answer.
    private mutating func noteWait(
        _ index: Int, status: UInt16, reason: Reason?, retryAfter: UInt64?
    ) {
        guard let retryAfter, retryAfter >= settings.giveUpAfter else { return }
        let words = reason.map { " \($0.text)" } ?? ""
        run.note(
            connections.trouble(
                index, "\(status)\(words) with Retry-After: \(retryAfter / second) s",
                step: .longWait))
    }

    /// The credential was refused, not the row: it stays `remaining`, and is not sent again in this
    /// run.
    mutating func holdBack(_ tag: RowTag, now: Now) {
        metrics.statistics.heldBack += 1
        release(tag, now: now)
    }

    // MARK: Rows that go on

    /// The server did not process the request: it goes first on whichever connection comes next,
    /// and the attempt does not count.
    mutating func sendElsewhere(_ tag: RowTag) {
        rows.slab[tag].attempts -= 1
        rows.requeue(tag)
    }

    /// The server did not process the request, and may not process the next either: the row waits,
    /// and so does the connection. The attempt does not count.
    mutating func sendLater(_ tag: RowTag, refusedOn index: Int, now: Now) {
        forgetRefusals(index)
        let due = connections[index].trust.noteRefusal(now: now.nanoseconds)
        // Successors of the connection take the pause up.
        connections.addresses.note(connections[index].trust.refusals, connections[index].address)
        rows.slab[tag].attempts -= 1
        rows.retries.insert(dueNanoseconds: due, tag: tag)
    }

    /// After a response the connection is no longer left alone for the refusals before it.
    mutating func forgetRefusals(_ index: Int) {
        // This may come late: of one that drains, its successor knows better.
        guard connections[index].trust.forgetRefusals(), connections[index].phase == .open else {
            return
        }
        connections.addresses.note(RefusalBackoff(), connections[index].address)
    }

    /// The row was refused for now.
    mutating func retryLater(_ tag: RowTag, retryAfter: UInt64?, now: Now) {
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

    /// The answer will not come: the row may have been sent, or not.
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
            retryLater(tag, retryAfter: retryAfter, now: now)
        }
    }

    // MARK: Into the ledger

    private mutating func settleRejected(
        _ tag: RowTag, status: UInt16, body: ReasonBody, connection index: Int, now: Now
    ) {
        let timestamp = body.timestampMilliseconds
        if status == LengthRequired.status, body.reason == nil {
            // SAFETY: a static string has as many bytes as it says, for ever.
            let text = unsafe RawSpan(
                _unsafeStart: LengthRequired.reason.utf8Start,
                byteCount: LengthRequired.reason.utf8CodeUnitCount)
            settleRejected(tag, status: status, text: text, now: now)
            return
        }
        guard body.reason == nil, let range = body.textRange else {
            settle(
                tag, state: .rejected, status: status,
                reasonCode: (body.reason ?? .unparsable).rawValue, timestamp: timestamp, now: now)
            return
        }
        // A reason that this version does not know: its own words are kept.
        // SAFETY: the record that is being made next has not begun: its memory serves for the
        // words, of which `copyResponse` sets `count` bytes; the ledger and the counters copy them.
        let count = unsafe connections[index].session.copyResponse(range, into: writer.staging)
        let text = unsafe RawSpan(
            _unsafeBytes: UnsafeRawBufferPointer(rebasing: writer.staging[..<count]))
        settleRejected(tag, status: status, text: text, timestamp: timestamp, now: now)
    }

    /// Settles a row as rejected with a reason that is no code of ours.
    private mutating func settleRejected(
        _ tag: RowTag, status: UInt16, text: RawSpan, timestamp: UInt64? = nil, now: Now
    ) {
        // SAFETY: the place is the row's until it is freed below; the ledger copies the token.
        unsafe recorder.ledger.settled(
            row: rows.slab[tag].row, state: .rejected, status: status, reason: 0, reasonText: text,
            attempts: Int(rows.slab[tag].attempts), timestamp: timestamp,
            token: RawSpan(_unsafeBytes: rows.slab.tokenBytes(tag)), tokenIsText: false,
            nowMilliseconds: now.wallMilliseconds)
        metrics.statistics.count(.rejected, reasonText: text)
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
        metrics.statistics.count(rowState, reason: reasonCode)
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
