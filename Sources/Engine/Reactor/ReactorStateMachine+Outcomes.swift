import APNs
import Campaign
import HTTP2
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// Takes received bytes in; they are looked at during this call only.
    mutating func received(connection index: Int, bytes: RawSpan, now: Now) {
        guard connections[index].isListening else { return }
        connections[index].liveness.noteReceived(now: now.nanoseconds)
        connections[index].isSaturated = false
        noteAbsence(now)
        var offset = 0
        while true {
            // SAFETY: the plaintext goes to memory that is used in this call only, what TLS replies to
            // the tail of the outbox, which nothing else changes meanwhile; both outputs
            // check their counts. Of the plaintext as many bytes are read as the output says are
            // set, before the next piece takes their place.
            var plaintext = unsafe OutputRawSpan(buffer: received, initializedCount: 0)
            let target = unsafe connections[index].outbox.tail
            var replies = unsafe OutputRawSpan(buffer: target, initializedCount: 0)
            guard
                let result = connections[index].records?.receive(
                    bytes, at: &offset, plaintext: &plaintext, ciphertext: &replies)
            else { return }
            let count = unsafe plaintext.finalize(for: received)
            connections[index].outbox.append(unsafe replies.finalize(for: target))

            if connections[index].phase == .handshaking,
                connections[index].records?.isEstablished == true
            {
                connections[index].enter(.open, now: connections[index].phaseSince)
                if let outcome = connections[index].session.start() {
                    follow(outcome, index, now: now)
                }
            }
            if count > 0 {
                let span = unsafe RawSpan(
                    _unsafeBytes: UnsafeRawBufferPointer(rebasing: received[..<count]))
                takeOutcomes(index, of: span, now: now)
                guard connections[index].isListening else { return }
            }
            switch result {
            case .more:
                return
            case .plaintextFull:
                continue
            case .closed:
                receiveEnded(index, errno: 0, now: now)
                return
            case .failed(let error):
                fail(index, connections.trouble(index, error), isLasting: error.isLasting, now: now)
                return
            }
        }
    }

    /// Takes what received bytes mean.
    private mutating func takeOutcomes(_ index: Int, of bytes: RawSpan, now: Now) {
        var offset = 0
        while let outcome = connections[index].session.nextOutcome(
            in: bytes, at: &offset, of: rows.slab, handedOver: connections[index].outbox.handedOver)
        {
            if case .accepted(let tag) = outcome {
                noteAccepted(tag, index, now: now)
            } else {
                follow(outcome, index, now: now)
                guard connections[index].isListening else { return }
            }
        }
        if run.isFull { exchangeWithRun(now) }
    }

    /// 200, and when it came is known.
    private mutating func noteAccepted(_ tag: RowTag, _ index: Int, now: Now) {
        let sent = rows.slab[tag].sentNanoseconds
        connections[index].noteResponse(now, sent: sent)
        connections[index].pace.noteAnswer(sent: sent, now: now.nanoseconds)
        if connections[index].responses == 1 {
            connections.addresses.succeeded(
                connections[index].address, slot: index, now: now.nanoseconds)
        }
        rows.inFlight -= 1
        accept(tag, now: now)
    }

    /// Takes anything that a session says.
    mutating func follow(_ outcome: SessionOutcome, _ index: Int, now: Now) {
        switch outcome {
        case .ready(let streams): becomeReady(index, streams: streams, now: now)
        case .accepted(let tag): noteAccepted(tag, index, now: now)
        case .response(let tag, let status):
            connections[index].noteResponse(
                now, sent: rows.slab[tag].sentNanoseconds)
            rows.inFlight -= 1
            refuse(tag, status: status, connection: index, now: now)
        case .notProcessed(let tag):
            rows.inFlight -= 1
            sendLater(tag, refusedOn: index, now: now)
        case .discarded(let tag):
            rows.inFlight -= 1
            sendElsewhere(tag)
        case .lost(let tag):
            rows.inFlight -= 1
            lose(tag, reason: .connectionLost, now: now)
            if connections[index].trust.noteLoss() {
                replaceUnresponsive(index, "requests are reset one after the other", now: now)
            }
        case .overdue(let tag):
            let sent = rows.slab[tag].sentNanoseconds
            rows.inFlight -= 1
            lose(tag, reason: .timeout, now: now)
            if connections[index].trust.lastResponse <= sent {
                replaceUnresponsive(index, "no response comes in time", now: now)
            }
        case .goAway(let code): followGoAway(index, code: code, now: now)
        case .violation(let error): failViolation(index, error, now: now)
        case .confirmed(let tag): confirm(tag, connection: index, now: now)
        case .refused(let tag, let packet): refuse(tag, packet, connection: index, now: now)
        case .lastWordBegan: awaitLastWord(index, now: now)
        case .lastWord(let packet, let subject): follow(packet, about: subject, index, now: now)
        case .over: endAfterLastWord(index, now: now)
        case .unreadable: failUnreadable(index, now: now)
        case .unexplained: receiveEnded(index, errno: 0, now: now)
        }
    }

    /// The first request may go out.
    private mutating func becomeReady(_ index: Int, streams: Int?, now: Now) {
        let isLossy = connections.addresses.isLossy(connections[index].address)
        connections[index].becomeReady(mustProve: isLossy, now: now.nanoseconds)
        if let streams {
            connections[index].tally.opened += 1
            tell(
                .connectionOpen, .info, connection: index,
                "\(connections.peer(index)): open, at most \(streams) stream\(streams == 1 ? "" : "s")",
                now: now)
        }
        connections.addresses.ready(connections[index].address)
        run.noteReady()
    }

    /// The server broke the protocol: the GOAWAY that names the error is the last thing it gets. Where
    /// requests wait before it, it gets none: they would go out although their rows were given up here,
    /// and may be on their way over another connection.
    private mutating func failViolation(
        _ index: Int, _ error: ConnectionError, now: Now
    ) {
        let trouble = connections.trouble(
            index, "the server broke HTTP/2: \(error.message)", step: .protocol)
        run.note(trouble)
        noteBroken(index, trouble, now: now)
        noteFailure(index, trouble, now: now)
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

    /// Counts a connection that ends by the server's protocol error; so many end the run.
    mutating func noteBroken(
        _ index: Int, _ trouble: ConnectionTrouble, now: Now
    ) {
        guard connections[index].noteBroken() else { return }
        // Responses and errors count in their order.
        reportAccepted(now)
        run.append(.broken(trouble))
    }

    private mutating func followGoAway(_ index: Int, code: ErrorCode, now: Now) {
        metrics.statistics.goAways += 1
        let answer = connections[index].session.goAwayReason.reason
        noteGoAway(index, code: code, reason: answer?.text, now: now)
        if let answer {
            run.note(
                connections.trouble(index, "GOAWAY with reason \(answer.text)", step: .refused))
        } else if code != .noError {
            var trouble = connections.trouble(index, "GOAWAY with error \(code)", step: .refused)
            run.note(trouble)
            trouble.kind = .protocol
            if code.isProtocolError { noteBroken(index, trouble, now: now) }
        }
        switch ResponseClass.classify(goAwayReason: answer) {
        case .refusesCredential:
            run.stop(.refused(.init(status: 0, reason: answer, isCredential: true)))
        case .renewProviderToken:
            noteExpired(index, usedVersion: writer.authorizationVersion, isFirst: false)
        default:
            break
        }
        // Ended in order after at least one answer: replaced at once. Anything else waits.
        if code != .noError || connections[index].responses == 0 {
            connections.addresses.failed(
                connections[index].address, now: now.nanoseconds, retryAfter: nil, lasting: nil,
                random: &random)
        }
        drain(index, now: now)
    }
}
