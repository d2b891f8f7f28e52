import BroadsidePolicy
import BroadsideSupport

/// The effects of elapsed time: connections that are silent, get no responses, or do not accept
/// bytes.
extension ReactorStateMachine where Records: ~Copyable {
    /// Maximum time for sending a connection's last bytes.
    static var flushLimit: UInt64 { second }
    /// Maximum time for sending the bytes in a connection's buffer. The buffer has at most 70 KB,
    /// so a slower connection accepts fewer than about three requests per second. Such a connection
    /// delays rows that other connections could send, and keeps provider tokens in its buffer for
    /// too long. Other checks detect a silent peer earlier.
    static var writeLimit: UInt64 { 30 * second }

    /// Maximum time for receiving the server's last bytes after a send failed. They and the end of
    /// the connection usually have arrived by then.
    static var lastBytesLimit: UInt64 { 2 * second }

    /// Checks everything that depends on elapsed time.
    mutating func scan(_ now: Now) {
        run.checkTokenAge()
        var ready = 0
        for index in 0..<connections.count {
            scanConnection(index, now: now)
            if connections[index].phase == .open, connections[index].isReady { ready += 1 }
        }
        batching.readyConnections = ready
        renewPaceBase()
        replaceOutdated(now)
        handOverRows(now)
        checkLookup(now)
        checkSilence(now)
    }

    /// Gives up the run after too long without a response while requests were in flight or could
    /// have been sent. A pause does not count: the operator decides when it ends.
    private mutating func checkSilence(_ now: Now) {
        guard case .running = phase else { return }
        timers.responseWait.count(
            until: now.nanoseconds, lastResponse: run.directives.lastResponse,
            isPossible: !run.directives.isPaused && (rows.inFlight > 0 || couldSend(now)))
        guard timers.responseWait.nanoseconds > settings.giveUpAfter else { return }
        // Without addresses no response can come.
        if let trouble = slowLookup(now) ?? awaitedTrouble(now) { run.record(trouble) }
        run.giveUp(.noResponse(seconds: settings.giveUpAfter / second))
    }

    /// The response that asked for a long wait, if all rows of the reactor wait because of their
    /// responses; nil otherwise. Other rows, which are settled, may have had later trouble.
    private func awaitedTrouble(_ now: Now) -> ConnectionTrouble? {
        guard let longWait, longWait.until > now.nanoseconds, let tag = rows.firstRetry,
            let due = rows.retries.nextDue, due > now.nanoseconds,
            // A request after the last response failed without one.
            rows.slab[tag].sentNanoseconds <= run.directives.lastResponse
        else { return nil }
        return longWait.trouble
    }

    /// Longest delay by the rate limiter that still counts as time in which a response could have
    /// come. If only the time with requests in flight counted, a server that refuses each request
    /// without a response could keep a slow run alive forever. The value is at most a quarter of
    /// `--give-up-after`, so that most of a short limit is left for the response.
    private var countedRateWait: UInt64 { min(second, settings.giveUpAfter / 4) }

    /// Whether rows wait only for the server. False if they also wait for a slow rate, a read of
    /// the list or the renewal of the provider token.
    private func couldSend(_ now: Now) -> Bool {
        guard hasWork, !run.directives.isTokenBlocked else { return false }
        // Other reactors may hand over rows even if the list's disk is slow.
        if rows.waitsForList, !run.resources.handoff.hasRows { return false }
        let soon = now.nanoseconds + countedRateWait
        guard admission.limiter.allowance(now: soon) > 0 else { return false }
        guard settings.milliRatePerConnection != nil, connections.hasReady else { return true }
        return (0..<connections.count).contains {
            connections[$0].isReady
                && connections[$0].rateLimiter.allowance(now: soon) > 0
        }
    }

    private mutating func scanConnection(_ index: Int, now: Now) {
        connections[index].isSaturated = false
        let age = now.nanoseconds - connections[index].phaseSince
        switch connections[index].phase {
        case .idle, .closing:
            return
        case .connecting, .handshaking:
            guard age > Self.connectLimit else { return }
            let problem = Self.openingProblem(
                connections[index].phase,
                awaitsTunnel: connections[index].records?.closedEarly != nil)
            failSilent(index, problem, now: now)
        case .flushing:
            if age > Self.flushLimit { beginClose(index, now: now) }
        case .open where connections[index].outbox.failedAt != nil,
            .draining where connections[index].outbox.failedAt != nil:
            checkEnd(index, now: now)
        case .open where isWriteOverdue(index, now: now),
            .draining where isWriteOverdue(index, now: now):
            failSilent(index, "written data was not sent within 30 s", now: now)
        case .open, .draining:
            if !connections[index].isReady, age > Self.connectLimit {
                failSilent(index, "no HTTP/2 SETTINGS within 15 s", now: now)
                return
            }
            forgetRefusals(index)
            releaseIdleTrial(index, now: now)
            handleExpired(index, now: now)
            checkRoom(index, now: now)
            checkLiveness(index, now: now)
        }
    }

    /// Text about a connection that is not open within `connectLimit`.
    ///
    /// - Parameter awaitsTunnel: Whether the peer is a proxy that has not opened its tunnel.
    static func openingProblem(_ phase: Connection<Records>.Phase, awaitsTunnel: Bool) -> String {
        if phase == .connecting { return "no connection within 15 s" }
        return awaitsTunnel ? "no tunnel within 15 s" : "no TLS handshake within 15 s"
    }

    mutating func failSilent(_ index: Int, _ what: String, now: Now) {
        let step = connections.step(index)
        let trouble = connections.trouble(index, what, step: step == .lost ? .silent : step)
        fail(index, trouble, isLasting: false, now: now)
    }

    private func isWriteOverdue(_ index: Int, now: Now) -> Bool {
        guard let since = connections[index].outbox.waitingSince else { return false }
        return now.nanoseconds > since && now.nanoseconds - since > Self.writeLimit
    }

    /// Fails a connection on which a send failed if its end does not arrive in time. Until then,
    /// requests do not expire, because their responses may be among the last bytes.
    private mutating func checkEnd(_ index: Int, now: Now) {
        guard let failed = connections[index].outbox.failedAt,
            now.nanoseconds - failed > Self.lastBytesLimit
        else { return }
        failSilent(index, "it accepts no more data", now: now)
    }

    /// Processes the outcomes that follow from elapsed time alone: a request got no response in
    /// time, or a legacy gateway reported no error for a notification in time.
    private mutating func handleExpired(_ index: Int, now: Now) {
        let times = SessionTimes(
            now: now.nanoseconds, phaseSince: connections[index].phaseSince,
            waitingSince: connections[index].outbox.waitingSince,
            isFlushed: connections[index].outbox.isEmpty,
            requestTimeout: settings.requestTimeout)
        while let outcome = connections[index].session.nextExpired(times, of: rows.slab) {
            handle(outcome, index, now: now)
            guard connections[index].isListening else { return }
        }
    }

    private mutating func checkRoom(_ index: Int, now: Now) {
        // The connection has no stream IDs left.
        if connections[index].session.isDraining { return drain(index, now: now) }
        let isStarved =
            connections[index].phase == .open && connections[index].isReady
            && connections[index].openCount == 0
            && !connections[index].session.mayStart(writer) && hasRowReady(now)
        if connections[index].liveness.updateStarvation(isStarved, now: now.nanoseconds) {
            replaceUnresponsive(index, "the server's limits allow no request", now: now)
        }
    }

    private mutating func checkLiveness(_ index: Int, now: Now) {
        let isAwaited = connections[index].openCount > 0
        switch connections[index].liveness.verdict(isAwaited: isAwaited, now: now.nanoseconds) {
        case .alive: break
        case .silent: askForSign(index, now: now)
        case .dead:
            failSilent(index, "no response to PING within 10 s", now: now)
            return
        }
        if connections[index].isReady, connections[index].session.respondsToEach,
            connections[index].liveness.isSilent(now: now.nanoseconds)
        {
            connections[index].trust.awaitSign()
        }
    }

    /// Sends a PING on each connection after a long stall of the process, and no requests before the
    /// reply. The network, or the server, may have forgotten the connections meanwhile.
    @inline(never)
    mutating func askAfterStall(_ now: Now) {
        for index in 0..<connections.count {
            switch connections[index].phase {
            case .idle, .connecting, .handshaking, .flushing, .closing: continue
            case .open, .draining: break
            }
            guard connections[index].isReady, connections[index].session.respondsToEach,
                connections[index].liveness.recordStall()
            else { continue }
            connections[index].trust.awaitSign()
            connections[index].isSaturated = false
            askForSign(index, now: now)
        }
    }

    /// Recomputes the shortest base latency, so that it ignores closed connections.
    mutating func renewPaceBase() {
        connections.latencyMonitor.base = .max
        for index in 0..<connections.count where connections[index].isReady {
            connections.latencyMonitor.base = min(
                connections.latencyMonitor.base, connections[index].pace.base)
        }
    }
}
