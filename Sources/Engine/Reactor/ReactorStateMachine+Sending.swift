import BroadsidePolicy
import BroadsideSupport

/// Filling of connections with requests. The number of requests depends on the server's limits,
/// trust, pace and rate. Each record is filled as far as possible.
extension ReactorStateMachine where Records: ~Copyable {
    /// Bytes reserved for output of TLS itself, such as alerts.
    private static var replyReserve: Int { 2048 }
    /// Minimum number of free bytes for a record with requests.
    private static var recordMinimum: Int { 1024 }

    /// Gives a connection everything that it can send now: control frames, interrupted payloads and
    /// requests, encrypted in records that are as full as possible.
    mutating func fill(_ index: Int, now: Now) {
        switch connections[index].phase {
        case .idle, .connecting, .closing:
            return
        case .handshaking:
            break
        case .open, .draining, .flushing:
            guard connections[index].outbox.failedAt == nil else {
                if endsInOrder(index) { beginClose(index, now: now) }
                return
            }
            while stageRecord(index, now: now) {}
            if connections[index].phase == .draining,
                connections[index].openCount == 0
            {
                flush(index, now: now)
                _ = stageRecord(index, now: now)
            }
            if connections[index].phase == .flushing { closeRecords(index) }
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
        // SAFETY: the bytes do not change until the driver has sent them, see `Outbox`.
        if let bytes = unsafe connections[index].outbox.takeWaiting(
            now: now.nanoseconds, nextRequest: connections[index].session.nextRequest)
        {
            unsafe submissions.append(.send(connection: index, bytes: bytes))
        }
    }

    /// Fills and encrypts one record.
    ///
    /// - Returns: Whether there may be more to send.
    private mutating func stageRecord(_ index: Int, now: Now) -> Bool {
        guard connections[index].records?.isEstablished == true,
            connections[index].closure != .written
        else { return false }
        let overhead = Records.sealedCount(0) + Self.replyReserve
        let limit = min(recordPlaintextLimit, connections[index].outbox.room - overhead)
        guard limit >= Self.recordMinimum else {
            connections[index].limitedBy = .socket
            return false
        }
        writer.beginRecord(limit: limit)
        connections[index].session.writeControl(with: &writer)
        connections[index].session.writeContinuations(
            of: &rows.slab, with: &writer, now: now.nanoseconds)
        if connections[index].phase == .open, connections[index].isReady {
            stageRequests(index, now: now)
        }
        assert(writer.recordCount <= limit, "a record fits into the room of its connection")
        guard writer.recordCount > 0 else { return false }

        // SAFETY: nothing is written to the record while it is sealed, nor to the outbox except its
        // tail, which the record layer fills within its bounds.
        let plaintext = unsafe RawSpan(_unsafeBytes: writer.record)
        let target = unsafe connections[index].outbox.tail
        var sealed = unsafe OutputRawSpan(buffer: target, initializedCount: 0)
        let isAlive = connections[index].records?.seal(plaintext, ciphertext: &sealed) ?? false
        connections[index].outbox.append(unsafe sealed.finalize(for: target))
        if !isAlive { failToSeal(index, now: now) }
        return isAlive
    }

    /// Writes the message that closes the record layer, once the session's last output is encrypted
    /// and the buffer has room.
    @inline(never)
    private mutating func closeRecords(_ index: Int) {
        guard connections[index].closure == .due,
            connections[index].session.occupancy.controlBytes == 0,
            connections[index].outbox.room >= Self.replyReserve
        else { return }
        connections[index].closure = .written
        // SAFETY: nothing is written to the outbox meanwhile except its tail, which the record layer
        // fills within its bounds.
        let target = unsafe connections[index].outbox.tail
        var message = unsafe OutputRawSpan(buffer: target, initializedCount: 0)
        connections[index].records?.close(ciphertext: &message)
        connections[index].outbox.append(unsafe message.finalize(for: target))
    }

    /// Fails a connection whose TLS session accepts no more data. A separate function, because the
    /// hot path creates no strings.
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
        guard !recorder.isBehind(settings.limits.ledgerBacklog) else {
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
            // If the list is used up, the reactor may only be waiting for a legacy gateway's
            // silence.
            let isSilence =
                !connections[index].session.respondsToEach && rows.inFlight > 0
                && rows.chunks.isExhausted
            connections[index].limitedBy =
                rows.retries.count > 0 ? .retry : isSilence ? .streams : .input
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
        if connections[index].trust.awaitsSign { return requestSign(index, now: now) }
        budget = min(budget, paced)
        connections[index].limitedBy = .cpu
        let written = writeRequests(index, budget: budget, now: now)
        if written > 0 {
            joinRate()
            run.recordSent(at: now.nanoseconds)
        }
        admission.limiter.take(written, now: now.nanoseconds)
        connections[index].rateLimiter.take(written, now: now.nanoseconds)
        if written == paced {
            connections[index].limitedBy = .rate
            admission.waitForRate(of: connections[index].rateLimiter, now: now.nanoseconds)
        } else if written == min(capacity, room) {
            connections[index].limitedBy = .streams
        }
    }

    /// Sends a PING instead of requests to a server that has been silent for long.
    @inline(never)
    private mutating func requestSign(_ index: Int, now: Now) {
        connections[index].limitedBy = .retry
        askForSign(index, now: now)
        connections[index].session.writeControl(with: &writer)
    }

    /// Sends a PING, unless the reply to one is awaited.
    mutating func askForSign(_ index: Int, now: Now) {
        guard !connections[index].liveness.isAsked, connections[index].isReady,
            connections[index].session.ping(now.nanoseconds)
        else { return }
        connections[index].liveness.recordPing(now: now.nanoseconds)
    }

    // MARK: Requests

    /// Writes requests of rows into the record.
    ///
    /// - Returns: The number of requests.
    mutating func writeRequests(_ index: Int, budget: Int, now: Now) -> Int {
        updateAuthorization()
        let most = min(budget, connections[index].session.prepare(&writer))
        let hasStoppedTopics = !run.directives.stoppedTopics.isEmpty
        let isTest = testsServer(index)
        var written = 0
        while written < most, writer.hasRoom, let tag = takeRow(isTest: isTest, now) {
            if hasStoppedTopics, isOfStoppedTopic(tag) {
                leaveUnsettled(tag, now: now)
                continue
            }
            let outcome = connections[index].session.write(tag, of: rows.slab, with: &writer)
            guard outcome == .written else {
                if outcome == .windowFull { connections[index].limitedBy = .window }
                rows.putBack(tag)
                break
            }
            recordSent(tag, now: now)
            written += 1
        }
        writer.finish()
        assert(written <= budget, "what rate, pace and trust allow is a limit")
        return written
    }

    /// Writes a request in parts, for a server whose flow-control windows are smaller than the
    /// payload.
    mutating func stageFirstPart(_ index: Int, now: Now) {
        guard connections[index].session.mustSplit(writer), initialAllowance > 0,
            admission.limiter.allowance(now: now.nanoseconds) > 0,
            connections[index].rateLimiter.allowance(now: now.nanoseconds) > 0
        else { return }
        if connections[index].trust.awaitsSign { return requestSign(index, now: now) }
        updateAuthorization()
        connections[index].session.prepareParts(&writer)
        defer { writer.finish() }
        guard writer.hasRoom, let tag = takeRow(isTest: testsServer(index), now) else {
            return
        }
        guard connections[index].session.writeFirstPart(tag, of: rows.slab, with: &writer) else {
            rows.requeue(tag)
            return
        }
        recordSent(tag, now: now)
        joinRate()
        run.recordSent(at: now.nanoseconds)
        admission.limiter.take(1, now: now.nanoseconds)
        connections[index].rateLimiter.take(1, now: now.nanoseconds)
    }

    /// Makes requests carry the run's current provider token.
    private mutating func updateAuthorization() {
        if writer.isOutdated(run.directives.authorization.version) { renewAuthorization() }
    }

    /// Switches to the current token. A separate function, because its caller runs for each record.
    @inline(never)
    private mutating func renewAuthorization() { writer.use(run.directives.authorization) }

    private mutating func recordSent(_ tag: RowTag, now: Now) {
        assert(
            rows.slab[tag].firstSentNanoseconds <= now.nanoseconds,
            "a row is not sent before its first attempt")
        rows.slab[tag].sentNanoseconds = now.nanoseconds
        rows.slab[tag].authorizationVersion = writer.authorizationVersion
        let firstSent = rows.slab[tag].firstSentNanoseconds
        if firstSent <= PendingRow.sentByEarlierRun {
            rows.slab[tag].firstSentNanoseconds = now.nanoseconds
        }
        rows.slab[tag].attempts += 1
        metrics.countRequest(firstSent: firstSent)
        rows.beginFlight()
    }

    // MARK: Unproven connections

    /// Number of requests that a connection may send, based on its earlier responses.
    ///
    /// In the usual case, this takes two comparisons. More work is needed only for connections
    /// without a response since their start or since a refusal, and for connections to an address
    /// in `LossyAddresses`.
    @inline(__always)
    mutating func tryBudget(_ index: Int, now: Now) -> Int {
        connections[index].trust.isComplete ? .max : limitedBudget(index, now: now)
    }

    @inline(never)
    private mutating func limitedBudget(_ index: Int, now: Now) -> Int {
        let budget =
            connections[index].trust.hasResponded ? .max : unprovenBudget(index, now: now)
        return connections[index].trust.mustProve ? min(budget, provingBudget(index)) : budget
    }

    /// Number of further requests that a connection may send, based on its number of responses.
    private mutating func provingBudget(_ index: Int) -> Int {
        let limit = connections[index].session.requestLimit
        if connections[index].trust.endProof(requestLimit: limit) {
            connections.addresses.proved(connections[index].address)
        }
        return max(0, connections[index].trust.worth - connections[index].openCount)
    }

    private mutating func unprovenBudget(_ index: Int, now: Now) -> Int {
        if connections[index].trust.isInDoubt {
            if connections[index].openCount == 0 { endDoubt(index, now: now) }
            return 0
        }
        let until = connections[index].trust.refusals.until
        if until > now.nanoseconds {
            admission.wake(at: until)
            // A refusal is no evidence about the address. Another connection may test the address
            // meanwhile.
            if connections[index].openCount == 0 { connections.addresses.releaseTrial(index) }
            return 0
        }
        guard connections[index].session.respondsToEach, connections[index].isUnproven else {
            return .max
        }
        // Without a row to send, the permission to test the address is left to other connections.
        guard hasRowReady(now) else { return .max }
        switch connections.addresses.permission(
            connections[index].address, slot: index, now: now.nanoseconds)
        {
        case .free: return .max
        // A few requests are allowed. Their responses decide whether more follow.
        case .trial:
            let limit = connections.addresses.state(connections[index].address).trialLimit
            return max(0, limit - connections[index].openCount)
        case .none(let until):
            if let until { admission.wake(at: until) }
            return 0
        }
    }

    /// Whether the next response on the connection shows if a server in trouble has recovered.
    @inline(__always)
    private func testsServer(_ index: Int) -> Bool {
        connections[index].isUnproven && run.resources.addressHealth.hasTrouble
    }

    /// Releases the trial of an address if its connection has no row to send.
    mutating func releaseIdleTrial(_ index: Int, now: Now) {
        guard connections[index].phase == .open, connections[index].isReady,
            connections[index].session.respondsToEach, connections[index].isUnproven,
            connections[index].openCount == 0, run.resources.addressHealth.hasTrouble,
            !hasRowReady(now)
        else { return }
        connections.addresses.releaseTrial(index)
    }

    // MARK: Pace

    /// Number of further requests that the connection's concurrency limit allows. If the measuring
    /// window of the limit is due, this call ends the window.
    @inline(__always)
    mutating func paceRoom(_ index: Int, now: Now) -> Int {
        guard settings.pace == .adaptive, connections[index].session.respondsToEach
        else { return .max }
        let open = connections[index].openCount
        if open >= min(connections[index].pace.limit, connections[index].session.requestLimit) {
            connections[index].pace.recordFullWindow()
        }
        if connections[index].pace.isDue(now: now.nanoseconds) { endPaceWindow(index, now: now) }
        return connections[index].pace.limit - open
    }

    @inline(never)
    private mutating func endPaceWindow(_ index: Int, now: Now) {
        let finding = connections[index].pace.endWindow(
            now: now.nanoseconds, allowed: connections[index].session.requestLimit,
            hint: connections.latencyMonitor.base, lag: connections.latencyMonitor.lag)
        connections.latencyMonitor.base = min(
            connections.latencyMonitor.base, connections[index].pace.base)
        guard let finding else { return }
        metrics.statistics.pace.record(finding)
        guard now.nanoseconds >= connections[index].nextPaceEventTime else { return }
        connections[index].nextPaceEventTime = now.nanoseconds + LatencyMonitor.eventInterval
        log(
            .pace, .info, connection: index,
            "\(connections.peer(index)): responses slow down under load, \(finding.summary)",
            now: now
        )
    }
}
