import Campaign
import Support

extension ReactorStateMachine where Records: ~Copyable {
    /// Room that is kept for what TLS itself has to tell the server.
    private static var replyReserve: Int { 2048 }
    /// Records shorter than this are not begun for requests while more than that waits to go out.
    private static var recordMinimum: Int { 1024 }

    /// Gives a connection what it can carry now: control frames, bodies that windows had cut,
    /// requests; sealed in records as full as they get.
    mutating func fill(_ index: Int, now: Now) {
        switch connections[index].phase {
        case .idle, .connecting, .closing:
            return
        case .handshaking:
            break
        case .open, .draining, .flushing:
            while stageRecord(index, now: now) {}
            if connections[index].phase == .draining,
                connections[index].openCount == 0
            {
                flush(index, now: now)
                _ = stageRecord(index, now: now)
            }
        }
        if connections[index].isListening { send(index, now: now) }
        connections[index].isSaturated =
            connections[index].phase == .open && connections[index].isReady
            && connections[index].outbox.isDrained
            && connections[index].session.isFull(within: connections[index].pace.limit)
    }

    private mutating func send(_ index: Int, now: Now) {
        if connections[index].outbox.isDrained {
            if connections[index].phase == .flushing, !connections[index].outbox.isSending {
                beginClose(index, now: now)
            }
            return
        }
        if let bytes = unsafe connections[index].outbox.takeWaiting(now: now.nanoseconds) {
            unsafe submissions.append(.send(connection: index, bytes: bytes))
        }
    }

    /// Makes one record.
    ///
    /// - Returns: True where there may be more to send.
    private mutating func stageRecord(_ index: Int, now: Now) -> Bool {
        guard connections[index].records?.isEstablished == true else { return false }
        let overhead = Records.sealedCount(0) + Self.replyReserve
        let limit = min(recordPlaintextLimit, connections[index].outbox.room - overhead)
        guard limit >= Self.recordMinimum else {
            connections[index].limitedBy = .socket
            return false
        }
        writer.beginRecord(limit: limit)
        connections[index].session.writeControl(with: &writer)
        connections[index].session.writeContinuations(of: rows.slab, with: &writer)
        if connections[index].phase == .open, connections[index].isReady {
            stageRequests(index, now: now)
        }
        guard writer.recordCount > 0 else { return false }

        // SAFETY: nothing is written to the record while it is sealed, nor to the outbox, whose tail the
        // record layer fills; it checks the tail's count.
        let plaintext = unsafe RawSpan(_unsafeBytes: writer.record)
        let target = unsafe connections[index].outbox.tail
        var sealed = unsafe OutputRawSpan(buffer: target, initializedCount: 0)
        let isAlive = connections[index].records?.seal(plaintext, ciphertext: &sealed) ?? false
        connections[index].outbox.append(unsafe sealed.finalize(for: target))
        if !isAlive { failToSeal(index, now: now) }
        return isAlive
    }

    /// TLS takes no more. Apart from the hot path, which makes no text.
    @inline(never)
    private mutating func failToSeal(_ index: Int, now: Now) {
        fail(
            index, connections.trouble(index, "TLS can't continue to send"), isLasting: false,
            now: now
        )
    }

    /// Fills the record with as many requests as streams, windows, pace and rows allow.
    private mutating func stageRequests(_ index: Int, now: Now) {
        guard case .running = phase else { return }
        guard recorder.ledger.pendingByteCount < settings.limits.ledgerBacklog else {
            connections[index].limitedBy = .socket
            return
        }
        guard !run.directives.isTokenStale else {
            connections[index].limitedBy = .retry
            return
        }
        let tryable = tryBudget(index, now: now)
        guard tryable > 0 else {
            connections[index].limitedBy = .retry
            return
        }
        guard hasRowReady(now) else {
            // At the list's end a legacy gateway's silence is all that is waited for.
            let isSilence =
                !connections[index].session.respondsToEach && rows.inFlight > 0
                && rows.chunks.isExhausted
            connections[index].limitedBy =
                rows.retries.count > 0 ? .retry : isSilence ? .streams : .input
            return
        }
        let room = paceRoom(index, now: now)
        guard room > 0 else {
            connections[index].limitedBy = .streams
            return
        }
        let capacity = connections[index].session.room(for: writer)
        guard capacity > 0 else {
            connections[index].limitedBy =
                connections[index].openCount >= connections[index].session.requestLimit
                ? .streams : .window
            stageFirstPart(index, now: now)
            return
        }
        var budget = min(capacity, room, initialAllowance, tryable)
        guard budget > 0 else {
            connections[index].limitedBy = .streams
            return
        }
        let paced = min(
            admission.limiter.allowance(now: now.nanoseconds),
            connections[index].rateLimiter.allowance(now: now.nanoseconds))
        guard paced >= min(admission.limiter.quantum, connections[index].rateLimiter.quantum) else {
            connections[index].limitedBy = .rate
            admission.waitForRate(of: connections[index].rateLimiter, now: now.nanoseconds)
            return
        }
        budget = min(budget, paced)
        connections[index].limitedBy = .cpu
        let written = writeRequests(index, budget: budget, now: now)
        if written > 0 { joinRate() }
        admission.limiter.take(written, now: now.nanoseconds)
        connections[index].rateLimiter.take(written, now: now.nanoseconds)
        if written == min(capacity, room) { connections[index].limitedBy = .streams }
        if written == paced {
            admission.waitForRate(of: connections[index].rateLimiter, now: now.nanoseconds)
        }
    }
}
