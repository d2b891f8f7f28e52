import BroadsideAPNs
import BroadsideHTTP2
import BroadsidePayloads
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Handling of session outcomes: their effects on the row, the connection and the run.
extension ReactorStateMachine where Records: ~Copyable {
    /// Handles a response of 200 with a known arrival time.
    mutating func handleAccepted(_ tag: RowTag, _ index: Int, now: Now) {
        recordAcceptance(tag, index, now: now)
        accept(tag, now: now)
    }

    /// Handles a response of 200 with an apns-unique-id.
    private mutating func handleIdentified(_ tag: RowTag, _ index: Int, now: Now) {
        recordAcceptance(tag, index, now: now)
        acceptIdentified(tag, connection: index, now: now)
    }

    /// Records an accepted request for its connection.
    @inline(__always)
    private mutating func recordAcceptance(_ tag: RowTag, _ index: Int, now: Now) {
        let sent = rows.slab[tag].sentNanoseconds
        connections[index].recordResponse(now, sent: sent)
        connections[index].pace.recordResponse(sent: sent, now: now.nanoseconds)
        if connections[index].isJustProven {
            connections.replacedAtOnce = 0
            connections.addresses.succeeded(
                connections[index].address, slot: index, now: now.nanoseconds)
        }
        rows.endFlight()
    }

    /// Handles any outcome of a session.
    mutating func handle(_ outcome: SessionOutcome, _ index: Int, now: Now) {
        switch outcome {
        case .ready(let streams): becomeReady(index, streams: streams, now: now)
        case .accepted(let tag): handleAccepted(tag, index, now: now)
        case .identified(let tag): handleIdentified(tag, index, now: now)
        case .response(let tag, let status):
            connections[index].recordResponse(
                now, sent: rows.slab[tag].sentNanoseconds)
            rows.endFlight()
            handleRefusal(tag, status: status, connection: index, now: now)
        case .notProcessed(let tag):
            rows.endFlight()
            requeueAfterRefusal(tag, refusedOn: index, now: now)
        case .disownedResponse: recordDisownedResponse(index, now: now)
        case .discarded(let tag):
            rows.endFlight()
            requeueUncounted(tag)
        case .lost(let tag, let end):
            rows.endFlight()
            lose(tag, reason: .connectionLost, now: now)
            if run.resources.streamEndNotices.take(end.number) {
                recordStreamEnd(end, index, now: now)
            }
            if connections[index].trust.recordLoss() {
                replaceUnresponsive(index, end.repeatedText, now: now)
            }
        case .overdue(let tag):
            let sent = rows.slab[tag].sentNanoseconds
            rows.endFlight()
            lose(tag, reason: .timeout, now: now)
            if connections[index].trust.lastResponse <= sent {
                replaceUnresponsive(index, "no response comes in time", now: now)
            }
        case .starved(let tag):
            let sent = rows.slab[tag].sentNanoseconds
            rows.endFlight()
            requeueUncounted(tag)
            if connections[index].trust.lastResponse <= sent {
                replaceUnresponsive(
                    index, "the server's windows leave no room for a payload", now: now)
            }
        case .pong:
            connections[index].liveness.recordReply()
            connections[index].trust.recordSign()
        case .goAway(let code): handleGoAway(index, code: code, now: now)
        case .violation(let error): failViolation(index, error, now: now)
        case .confirmed(let tag): confirm(tag, connection: index, now: now)
        case .refused(let tag, let packet): refuseNamed(tag, packet, connection: index, now: now)
        case .errorPacketBegan: awaitErrorPacket(index, now: now)
        case .errorPacket(let packet, let subject):
            handleErrorPacket(packet, about: subject, index, now: now)
        case .over: endAfterErrorPacket(index, now: now)
        case .unreadable: failUnreadable(index, now: now)
        case .unexplained: receiveEnded(index, errno: 0, now: now)
        }
    }

    /// Marks a connection as ready, so that the first request may be sent.
    private mutating func becomeReady(_ index: Int, streams: Int?, now: Now) {
        let isLossy = connections.addresses.isLossy(connections[index].address)
        connections[index].becomeReady(mustProve: isLossy, now: now.nanoseconds)
        if let streams {
            connections[index].tally.opened += 1
            log(
                .connectionOpen, .info, connection: index,
                "\(connections.peer(index)): open, at most \(streams) stream\(streams == 1 ? "" : "s")",
                now: now)
        }
        connections.addresses.ready(connections[index].address)
        run.markReady()
    }

    /// Records the first request of the run that ended in this way without a response.
    @inline(never)
    private mutating func recordStreamEnd(_ end: StreamEnd, _ index: Int, now: Now) {
        metrics.events.append(
            RunEvent(
                .requestsLost, .warning, "\(connections.peer(index)): \(end.firstText)",
                milliseconds: now.wallMilliseconds))
    }

    /// Records the first response of the run to a request that its server reported as not processed.
    @inline(never)
    private mutating func recordDisownedResponse(_ index: Int, now: Now) {
        guard run.resources.disownedNotice.take() else { return }
        metrics.events.append(
            RunEvent(
                .requestsLost, .warning,
                "\(connections.peer(index)): a response came for a request that the server had "
                    + "refused or excluded by GOAWAY; its row is sent again, so the device may get "
                    + "the notification twice",
                milliseconds: now.wallMilliseconds))
    }

    /// Records the first response of the run with another success status than 200.
    private mutating func recordStrangeSuccess(_ status: UInt16, _ index: Int, now: Now) {
        guard ResponseClass.isStrangeSuccess(status), run.resources.strangeSuccessNotice.take()
        else { return }
        var event = RunEvent(
            .requestsLost, .warning,
            "\(connections.peer(index)): responses have status \(status), which APNs never sends, so "
                + "it is unknown whether the requests were processed",
            milliseconds: now.wallMilliseconds)
        event.fields.status = status
        metrics.events.append(event)
    }

    // MARK: Responses other than 200

    /// Number of consecutive connections that are replaced because the row needs another
    /// connection. After that, another connection would not help, so the connections stay open.
    private static var replacedAtOnceLimit: Int { 8 }

    /// Handles a response other than 200, by the table in `ResponseClass`.
    private mutating func handleRefusal(
        _ tag: RowTag, status: UInt16, connection index: Int, now: Now
    ) {
        run.recordResponse(now)
        metrics.latency.record(now.nanoseconds - rows.slab[tag].sentNanoseconds)
        let body = connections[index].session.responseReason
        // The ledger has the row's refusal as LengthRequired, regardless of the server's text.
        let unknown =
            status == LengthRequired.status ? 0 : unknownReason(in: body, of: index)
        let refusal = Refusal(
            status: status, body: body,
            reason: StatedReason(known: body.reason, unknown: unknown),
            retryAfter: connections[index].session
                .retryAfter(from: now.wallMilliseconds / 1000).map { $0 * second },
            meaning: ResponseClass.classify(status: status, body: body),
            isRepeated: rows.slab[tag].hadServerError)
        rows.slab[tag].lastStatus = status
        rows.slab[tag].lastReason = body.reason?.rawValue ?? 0

        // By the time the topic is reported, the slot may belong to another row.
        let topic = rows.slab[tag].personal.topic
        // Guards count responses in order.
        reportAccepted(now)

        applyToRow(refusal, tag, index, now: now)
        applyToConnection(refusal, index, now: now)
        recordLongWait(
            index, status: status, reason: refusal.reason, retryAfter: refusal.retryAfter, now: now)
        let signal = writer.campaignSignal(for: refusal.meaning.campaign)
        run.append(
            writer.topics == nil
                ? .response(signal, status: status, reason: body.reason, unknownReason: unknown)
                : .topicResponse(
                    signal, status: status, reason: body.reason, unknownReason: unknown,
                    topic: topic))
    }

    /// Settles the row of a response other than 200, or sends it again.
    private mutating func applyToRow(_ refusal: Refusal, _ tag: RowTag, _ index: Int, now: Now) {
        let meaning = refusal.meaning
        if meaning.row != .rejected { metrics.statistics.pushbacks += 1 }
        switch meaning.row {
        case .accepted:
            preconditionFailure("200 is handled before")
        case .rejected:
            // A dead token is no evidence about the campaign. A missing token has the same signal,
            // but each request has a token.
            if meaning.campaign != .deadToken || refusal.body.reason == .missingDeviceToken {
                metrics.canaryReport.refused += 1
            }
            settleRejected(
                tag, status: refusal.status, body: refusal.body, connection: index, now: now)
        case .remainUnsettled:
            leaveUnsettled(tag, now: now)
        case .retryOnceThenRemain:
            if rows.slab[tag].hadInvalidToken {
                leaveUnsettled(tag, now: now)
            } else {
                rows.slab[tag].hadInvalidToken = true
                rows.requeue(tag)
            }
        case .retryNotCounted:
            requeueUncounted(tag)
        case .retryAfterDelay:
            scheduleRetry(
                tag, unknownReason: refusal.reason.unknown, retryAfter: refusal.retryAfter,
                now: now)
        case .responseLost:
            lose(
                tag, status: refusal.status, reason: .connectionLost,
                retryAfter: refusal.retryAfter, now: now)
            recordStrangeSuccess(refusal.status, index, now: now)
        case .retryWithRenewedToken:
            recordExpiredToken(
                index, usedVersion: rows.slab[tag].authorizationVersion,
                isFirst: connections[index].isJustProven)
            requeueUncounted(tag)
        case .retryWithPreviousToken:
            run.append(
                .updatesRefused(
                    usedVersion: rows.slab[tag].authorizationVersion,
                    giveUpAfter: settings.giveUpAfter))
            rows.slab[tag].attempts -= 1
            rows.retries.insert(
                dueNanoseconds: now.nanoseconds + max(refusal.retryAfter ?? 0, second), tag: tag)
        }
    }

    /// Keeps, closes or replaces the connection of a response other than 200.
    private mutating func applyToConnection(_ refusal: Refusal, _ index: Int, now: Now) {
        let meaning = refusal.meaning
        // If the response is about the token, the run decides what it means for the address.
        if meaning.connection != .drainAndReplace, meaning.row != .retryWithRenewedToken,
            connections[index].isJustProven
        {
            if meaning.connection == .none { connections.replacedAtOnce = 0 }
            connections.addresses.succeeded(
                connections[index].address, slot: index, now: now.nanoseconds)
        }
        switch meaning.connection {
        case .none:
            break
        case .close:
            recordDrain(index, status: refusal.status, reason: refusal.reason, now: now)
            drain(index, now: now)
        case .drainAndReplace:
            handleServerTrouble(
                index, status: refusal.status, reason: refusal.reason,
                retryAfter: refusal.retryAfter, isRepeated: refusal.isRepeated, now: now)
        case .replaceAtOnce:
            guard connections.replacedAtOnce < Self.replacedAtOnceLimit,
                connections[index].phase == .open
            else { break }
            connections.replacedAtOnce += 1
            recordDrain(index, status: refusal.status, reason: refusal.reason, now: now)
            drain(index, now: now)
        }
    }

    /// Returns the number of the reason in a response if this version does not know it; otherwise
    /// 0.
    private mutating func unknownReason(in body: ReasonBody, of index: Int) -> UInt8 {
        guard body.reason == nil, let range = body.textRange, !range.isEmpty else { return 0 }
        // SAFETY: only this call uses the temporary storage, of which `copyResponse` sets `count`
        // bytes; the table copies them.
        return unsafe withUnsafeTemporaryAllocation(
            byteCount: UnknownReasons.textByteCountMax, alignment: 1
        ) { room in
            let count = unsafe connections[index].session.copyResponse(range, into: room)
            return unsafe run.resources.unknownReasons.number(
                of: RawSpan(_unsafeBytes: UnsafeRawBufferPointer(rebasing: room[..<count])))
        }
    }

    /// Handles a response that reports trouble of the server: pauses its address and replaces the
    /// connection. If the row may be the cause, and the server processes other rows, only the row
    /// waits.
    private mutating func handleServerTrouble(
        _ index: Int, status: UInt16, reason: StatedReason, retryAfter: UInt64?, isRepeated: Bool,
        now: Now
    ) {
        let text = run.resources.unknownReasons.shown(reason).map { " \($0)" } ?? ""
        run.record(
            connections.trouble(index, "the last response is \(status)\(text)", step: .refused))
        forgetRefusals(index)
        let mayConcernRow = isRepeated && status >= 500 && reason.known != .shutdown
        guard
            connections[index].trust.recordServerError(
                isRepeated: mayConcernRow, awaitsOthers: connections[index].openCount > 0)
        else { return }
        recordDrain(index, status: status, reason: reason, now: now)
        var pause = retryAfter
        if connections[index].trust.isProven, let asked = pause, asked >= settings.giveUpAfter {
            // The server has processed other rows, so it is tested before the run gives up.
            pause = settings.giveUpAfter / 2
        }
        pauseAddress(of: index, retryAfter: pause, isRepeated: isRepeated, now: now)
    }

    /// Pauses the address of a server in trouble, and replaces the connection.
    private mutating func pauseAddress(
        of index: Int, retryAfter: UInt64?, isRepeated: Bool, now: Now
    ) {
        connections.addresses.failed(
            connections[index].address, now: now.nanoseconds, retryAfter: retryAfter,
            lasting: nil, isOutage: true, isRepeated: isRepeated, random: &random)
        drain(index, now: now)
    }

    /// Pauses the address of a connection that is in doubt, because its last request in flight got
    /// no response.
    mutating func endDoubt(_ index: Int, now: Now) {
        assert(connections[index].trust.isInDoubt && connections[index].openCount == 0)
        pauseAddress(of: index, retryAfter: nil, isRepeated: true, now: now)
    }

    /// Records that a server asked for a pause of `--give-up-after` or longer. If the run gives up,
    /// its message mentions this.
    private mutating func recordLongWait(
        _ index: Int, status: UInt16, reason: StatedReason, retryAfter: UInt64?, now: Now
    ) {
        guard let retryAfter, retryAfter >= settings.giveUpAfter else { return }
        let reasonText = run.resources.unknownReasons.shown(reason).map { " \($0)" } ?? ""
        let trouble = connections.trouble(
            index, "\(status)\(reasonText) with Retry-After: \(retryAfter / second) s",
            step: .longWait)
        run.record(trouble)
        let (end, isFar) = now.nanoseconds.addingReportingOverflow(retryAfter)
        let until = isFar ? .max : end
        if until >= longWait?.until ?? 0 { longWait = LongWait(until: until, trouble: trouble) }
    }

    private mutating func settleRejected(
        _ tag: RowTag, status: UInt16, body: ReasonBody, connection index: Int, now: Now
    ) {
        let timestamp = body.timestampMilliseconds
        if status == LengthRequired.status, body.reason == nil {
            // SAFETY: a static string has the stated number of bytes, for the life of the process.
            let text = unsafe RawSpan(
                _unsafeStart: LengthRequired.reason.utf8Start,
                byteCount: LengthRequired.reason.utf8CodeUnitCount)
            settle(tag, state: .rejected, status: status, text: text, now: now)
            return
        }
        guard body.reason == nil, let range = body.textRange else {
            settle(
                tag, state: .rejected, status: status,
                reasonCode: (body.reason ?? .unparsable).rawValue, timestamp: timestamp, now: now)
            return
        }
        // A reason unknown to this version: its text is kept. SAFETY: no record is in progress, so
        // its memory may hold the text, of which `copyResponse` sets `count` bytes; the ledger and
        // the counters copy them.
        let count = unsafe connections[index].session.copyResponse(range, into: writer.staging)
        let text = unsafe RawSpan(
            _unsafeBytes: UnsafeRawBufferPointer(rebasing: writer.staging[..<count]))
        settle(
            tag, state: .rejected, status: status, text: text, timestamp: timestamp, now: now)
    }

    /// Delays a row that the server did not process. Also delays the row's connection, because the
    /// server may not process the next request either. The attempt does not count for
    /// `--max-attempts`.
    mutating func requeueAfterRefusal(_ tag: RowTag, refusedOn index: Int, now: Now) {
        forgetRefusals(index)
        let rounds = connections[index].trust.refusals.rounds
        let due = connections[index].trust.recordRefusal(now: now.nanoseconds)
        // After a GOAWAY, its reason is the trouble.
        if connections[index].trust.refusals.rounds > rounds, connections[index].phase == .open {
            run.record(
                connections.trouble(
                    index, "the server refuses requests with RST_STREAM", step: .refused))
        }
        // Successors of the connection inherit the pause.
        connections.addresses.record(connections[index].trust.refusals, connections[index].address)
        rows.slab[tag].attempts -= 1
        rows.retries.insert(dueNanoseconds: due, tag: tag)
    }

    /// Resets the backoff of a connection after a response.
    mutating func forgetRefusals(_ index: Int) {
        // The response may be late. If the connection is draining, its successor may have set a
        // newer backoff.
        guard connections[index].trust.forgetRefusals(), connections[index].phase == .open else {
            return
        }
        connections.addresses.record(RefusalBackoff(), connections[index].address)
    }

    // MARK: End by the server

    private mutating func handleGoAway(_ index: Int, code: ErrorCode, now: Now) {
        metrics.statistics.goAways += 1
        let reason = connections[index].session.goAwayReason.reason
        let stated = reason?.text ?? connections[index].session.unknownGoAwayReason
        recordGoAway(index, code: code, reason: stated, now: now)
        if let stated, reason != nil || code == .noError {
            run.record(
                connections.trouble(index, "GOAWAY with reason \(stated)", step: .refused))
        } else if code != .noError {
            let words = stated.map { " with reason \($0)" } ?? ""
            var trouble = connections.trouble(index, "GOAWAY \(code)\(words)", step: .refused)
            run.record(trouble)
            trouble.kind = .protocol
            if code.isProtocolError { recordProtocolError(index, trouble, now: now) }
        } else if connections[index].isUnproven {
            run.record(
                connections.trouble(index, "GOAWAY \(code) before any response", step: .refused))
        }
        if ResponseClass.refusesCertificate(goAwayReason: reason) {
            run.stop(.refused(.init(status: 0, reason: reason, isCredential: true)))
        } else if ResponseClass.classify(goAwayReason: reason) == .renewProviderToken {
            recordExpiredToken(index, usedVersion: writer.authorizationVersion, isFirst: false)
        }
        // After an orderly end and at least one response, the connection is replaced at once. Any
        // other end causes a pause.
        if code != .noError || connections[index].isUnproven {
            connections.addresses.failed(
                connections[index].address, now: now.nanoseconds, retryAfter: nil, lasting: nil,
                random: &random)
        }
        drain(index, now: now)
    }

    /// Fails a connection on which the server violated the protocol. The last output is the GOAWAY
    /// with the error. If requests wait in the buffer, no GOAWAY is sent: these requests would be
    /// sent before the GOAWAY. Their rows may already be on another connection.
    private mutating func failViolation(
        _ index: Int, _ error: ConnectionError, now: Now
    ) {
        let trouble = connections.trouble(index, error.sentence, step: .protocol)
        run.record(trouble)
        recordProtocolError(index, trouble, now: now)
        recordFailure(index, trouble, now: now)
        connections.addresses.failed(
            connections[index].address, now: now.nanoseconds, retryAfter: nil, lasting: nil,
            random: &random)
        loseStreams(index, now: now)
        guard connections[index].outbox.isEmpty else {
            beginClose(index, now: now)
            return
        }
        connections.addresses.releaseTrial(index)
        connections[index].enter(.flushing, now: now.nanoseconds)
    }
}

/// A response other than 200.
private struct Refusal {
    let status: UInt16
    let body: ReasonBody
    let reason: StatedReason
    /// Wait that the server asks for, nanoseconds; nil if it asks for none.
    let retryAfter: UInt64?
    let meaning: ResponseClass
    /// Whether the row's previous response was a 5xx.
    let isRepeated: Bool
}

extension StreamEnd {
    /// Text about the first request of a run that ends in this way.
    fileprivate var firstText: String {
        switch self {
        case .reset(let code):
            "requests are reset with \(code), so it is unknown whether they were processed"
        case .violation(let error):
            "\(error); it is unknown whether the request was processed"
        }
    }

    /// Text about a connection whose requests all end in this way.
    fileprivate var repeatedText: String {
        switch self {
        case .reset(let code): "requests are reset one after the other (\(code))"
        case .violation(let error): "requests fail one after the other: \(error)"
        }
    }
}
