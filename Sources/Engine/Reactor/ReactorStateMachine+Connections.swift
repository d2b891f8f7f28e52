import BroadsideAPNs
import BroadsidePolicy
import BroadsideRing
import BroadsideSupport

/// Opening, ending and replacing connections.
extension ReactorStateMachine where Records: ~Copyable {
    /// Time limit from the start of a connection attempt to the server's SETTINGS.
    static var connectLimit: UInt64 { 15 * second }
    /// Attempts per address before the run gives up, if nothing was ever reachable and the user
    /// gave no `--give-up-after`.
    static var attemptsBeforeGivingUp: Int { 3 }

    /// Limit on concurrent handshakes of a reactor: each costs CPU time, and few servers accept two
    /// hundred at once.
    static var handshakesLimit: Int { 64 }
    /// Limit on concurrent handshakes until the first connection is open. Its session ticket then
    /// spares later connections a full handshake.
    static var firstHandshakesLimit: Int { 16 }

    /// Opens connections up to the planned number while rows are left to be sent. If all rows are
    /// in flight, no connection is opened unless a row has to be resent.
    ///
    /// The initial connections open together. Every later one counts against the run's limit of ten
    /// per second (docs/decisions/0007).
    mutating func openConnections(_ now: Now) {
        guard case .running = phase, !run.directives.isStopping, hasWork else {
            connections.addresses.stopWaiting()
            return
        }
        var active = 0
        var idle = 0
        var pendingHandshakes = 0
        for index in 0..<connections.count {
            if connections[index].isActive { active += 1 }
            switch connections[index].phase {
            case .idle: idle += 1
            case .connecting, .handshaking: pendingHandshakes += 1
            case .open, .draining, .flushing, .closing: break
            }
        }
        guard active < connections.share, idle > 0 else {
            connections.addresses.stopWaiting()
            return
        }
        switch connections.addresses.resolution {
        case .pending:
            // The lookup's reply comes as a completion, so no timer is needed.
            connections.addresses.stopWaiting()
            return
        case .fresh(let until) where now.nanoseconds < until:
            break
        case .none, .fresh:
            if let due = connections.addresses.nextAttempt, due > now.nanoseconds { return }
            resolveName(now)
            return
        }
        let limit =
            connections.hasReady ? Self.handshakesLimit : Self.firstHandshakesLimit
        for index in 0..<connections.count where connections[index].phase == .idle {
            guard active < connections.share, pendingHandshakes < limit else { return }
            active += 1
            pendingHandshakes += 1
            let isFirst = connections.begun < connections.initialCount
            if !isFirst, let due = run.resources.connectRate.reserve(now: now.nanoseconds) {
                connections.addresses.wait(until: due)
                return
            }
            guard let address = connections.addresses.pick(for: index, now: now.nanoseconds) else {
                if !isFirst { run.resources.connectRate.cancelReservation(now: now.nanoseconds) }
                return
            }
            connections.begun += 1
            connections[index].begin(
                address: address, number: UInt64(run.reactor) << 32 | UInt64(connections.begun),
                refusals: connections.addresses.entries[address].refusals,
                sessionVersion: run.directives.sessionVersion,
                configuration: connections.sessionConfiguration, now: now.nanoseconds)
            submissions.append(
                .connect(connection: index, address: connections.addresses.entries[address].address)
            )
        }
    }

    mutating func receiveEnded(_ index: Int, errno: Int32, now: Now) {
        guard connections[index].isListening else { return }
        if endsInOrder(index) {
            beginClose(index, now: now)
            return
        }
        fail(index, connections.troubleAtEnd(index, errno: errno), isLasting: false, now: now)
    }

    /// Whether the connection may end now without counting as failed. This is the case if one side
    /// has announced the end and no request is in flight (RFC 9113, section 6.8). A legacy gateway
    /// announces an end only by its error packet.
    func endsInOrder(_ index: Int) -> Bool {
        guard connections[index].openCount == 0 else { return false }
        switch connections[index].phase {
        case .flushing: return true
        case .draining: return connections[index].session.respondsToEach
        default: return false
        }
    }

    /// Ends a failed connection. Its requests in flight are in doubt, and its address is paused.
    ///
    /// - Parameter precedesData: Whether the record layer proves that the server processed no data
    ///   of the connection, so that no request is in doubt.
    @inline(never)
    mutating func fail(
        _ index: Int, _ trouble: ConnectionTrouble, isLasting: Bool, retryAfter: UInt64? = nil,
        precedesData: Bool = false, now: Now
    ) {
        run.record(trouble)
        recordFailure(index, trouble, now: now)
        let servedWell =
            !connections[index].isUnproven && connections[index].phase != .connecting
        if isLasting || !servedWell || !connections[index].session.isDraining {
            connections.addresses.failed(
                connections[index].address, now: now.nanoseconds, retryAfter: retryAfter,
                lasting: isLasting ? trouble : nil,
                isUnreached: connections[index].phase == .connecting, random: &random)
        }
        loseStreams(index, precedesData: precedesData, now: now)
        beginClose(index, now: now)
        stopIfUnreachable()
    }

    /// Treats the requests in flight as lost: they are in doubt, except requests that are still in
    /// the buffer or wait for room in a flow-control window. The server never sees the end of these
    /// requests, because the driver is given no more bytes to send on the connection.
    ///
    /// - Parameter precedesData: As in `fail`. It does not count if a request was settled.
    mutating func loseStreams(_ index: Int, precedesData: Bool = false, now: Now) {
        let isUnread = precedesData && connections[index].responses == 0
        var lost = 0
        while let request = connections[index].session.takeInFlight() {
            let isSent = !isUnread && request.number < connections[index].outbox.firstUnsent
            if isSent { lost += 1 }
            lose(request.tag, isInDoubt: isSent && request.isComplete, now: now)
        }
        assert(connections[index].openCount == 0, "each request of the connection is lost")
        // A silent gateway may have accepted all its notifications. They are in doubt, but do not
        // make its address lossy.
        if lost > 0, connections[index].session.respondsToEach {
            connections.addresses.connectionEnded(
                connections[index].address, lost: lost, responses: connections[index].responses)
        }
    }

    /// - Parameter isInDoubt: Whether the server may have acted on the request.
    private mutating func lose(_ tag: RowTag, isInDoubt: Bool, now: Now) {
        rows.endFlight()
        if isInDoubt {
            lose(tag, reason: .connectionLost, now: now)
        } else {
            requeueUncounted(tag)
        }
    }

    mutating func beginClose(_ index: Int, now: Now) {
        assert(connections[index].openCount == 0, "no request stays on a closed connection")
        connections.addresses.releaseTrial(index)
        connections[index].enter(.closing, now: now.nanoseconds)
        submissions.append(.close(connection: index))
    }

    /// Stops sending requests on a connection; it closes after its last response.
    mutating func drain(_ index: Int, now: Now) {
        guard connections[index].phase == .open else { return }
        connections.addresses.releaseTrial(index)
        connections[index].enter(.draining, now: now.nanoseconds)
    }

    /// Replaces a connection that is alive but gets no responses. Its address is paused first.
    mutating func replaceUnresponsive(_ index: Int, _ what: String, now: Now) {
        guard connections[index].phase == .open else { return }
        let trouble = connections.trouble(index, what, step: .silent)
        run.record(trouble)
        recordFailure(index, trouble, now: now)
        connections.addresses.failed(
            connections[index].address, now: now.nanoseconds, retryAfter: nil, lasting: nil,
            random: &random)
        drain(index, now: now)
    }

    /// Announces the end of a connection and closes it when its bytes are sent.
    mutating func flush(_ index: Int, now: Now) {
        log(
            .connectionClosed, .info, connection: index,
            "\(connections.peer(index)): closed after \(counted(connections[index].responses, "response"))",
            now: now)
        connections[index].session.shutDown()
        connections[index].closure = .due
        connections.addresses.releaseTrial(index)
        connections[index].enter(.flushing, now: now.nanoseconds)
    }

    /// Ends the run if no address can be reached.
    mutating func stopIfUnreachable() {
        // Open connections may complete the run.
        guard !connections.hasReady else { return }
        if let trouble = connections.addresses.lastingFailure {
            run.stop(.gaveUp(trouble))
        } else if !settings.giveUpAfterIsExplicit, !run.directives.wasReached,
            connections.addresses.areAllUnreachable(after: Self.attemptsBeforeGivingUp)
        {
            run.giveUp(.unreachable)
        }
    }

    // MARK: Number of connections

    /// Applies the reactor's share of the run's connection target. A reactor without connections
    /// takes no rows.
    mutating func applyConnectionTarget(_ now: Now) {
        guard let target = run.directives.connectionShare else { return }
        let share = min(target, settings.connections)
        if share != connections.share {
            connections.share = share
            makeSlots(now)
        }
    }

    /// Creates the slots for the reactor's share.
    mutating func makeSlots(_ now: Now) {
        let records = run.directives.connectionShare != nil || settings.connections <= 32 ? 4 : 2
        let capacity = records * Records.sealedCount(recordPlaintextLimit) + 4096
        let rate = settings.milliRatePerConnection
        connections.grow {
            Connection(
                rateLimiter: RateLimiter(milliRate: rate, now: now.nanoseconds),
                outgoingCapacity: capacity)
        }
    }

    /// Number of connections that carry requests now or as soon as their handshake is complete.
    var establishedConnections: Int { connections.establishedCount }

    /// Number of connections that count towards the reactor's share.
    var activeConnections: Int { connections.activeCount }

    /// Replaces, one after the other, connections whose configuration is outdated. One drains and
    /// its successor opens; the next one follows only when the successor is ready. Requests in
    /// flight get their responses on their own connection.
    mutating func replaceOutdated(_ now: Now) {
        guard case .running = phase, !run.directives.isStopping else { return }
        let version = run.directives.sessionVersion
        var outdated: Int?
        var active = 0
        for index in 0..<connections.count where connections[index].isActive {
            active += 1
            guard connections[index].phase == .open, connections[index].isReady else {
                // A connection with the current configuration is being opened. Until it is ready,
                // the other connections carry the rows. A connection that is not open yet and has
                // the old configuration is not awaited.
                if connections[index].sessionVersion == version { return }
                outdated = index
                continue
            }
            if connections[index].sessionVersion != version, outdated == nil { outdated = index }
        }
        guard let outdated else { return }
        guard connections[outdated].phase == .open else {
            beginClose(outdated, now: now)
            return
        }
        // If a successor could not be opened, its gap is filled first. A changed credential that
        // does not work then costs only one connection.
        guard active >= connections.share || !hasWork else { return }
        drain(outdated, now: now)
    }

    /// Drains all connections that have carried requests, because the provider token is of another
    /// key now. APNs responds with UnrelatedKeyIdInToken to such a token on these connections.
    @inline(never)
    mutating func drainForNewKey(_ now: Now) {
        connections.keyVersion = run.directives.keyVersion
        for index in 0..<connections.count
        where connections[index].phase == .open && connections[index].session.nextRequest > 1 {
            log(
                .connectionDrained, .notice, connection: index,
                "\(connections.peer(index)): drained after "
                    + "\(counted(connections[index].responses, "response")) because the provider token is of another key",
                now: now)
            drain(index, now: now)
        }
    }

    // MARK: Name of the endpoint or its proxy

    /// Time after which a lookup without a reply is reported as slow. If half of `--give-up-after`
    /// is less, that time applies instead.
    static var slowLookupThreshold: UInt64 { 5 * second }

    /// Resolves the name; no connection is opened before the addresses arrive.
    mutating func resolveName(_ now: Now) {
        connections.addresses.resolution = .pending(since: now.nanoseconds)
        connections.didReportSlowLookup = false
        submissions.append(.resolve)
    }

    mutating func resolved(_ result: Result<[SocketAddress], ResolutionFailure>, now: Now) {
        switch result {
        case .success(let found):
            var used = Set<Int>()
            for index in 0..<connections.count where connections[index].phase != .idle {
                used.insert(connections[index].address)
            }
            connections.addresses.update(found, now: now.nanoseconds, isInUse: used.contains)
        case .failure(let failure):
            let trouble = ConnectionTrouble(.resolve, failure.message)
            run.record(trouble)
            if connections.resolutionFailures == 0 { logLookup(trouble, now: now) }
            connections.addresses.resolution = .none
            connections.addresses.wait(until: now.nanoseconds + second)
            connections.resolutionFailures += 1
            if connections.resolutionFailures >= Self.attemptsBeforeGivingUp,
                connections.addresses.entries.isEmpty, !run.directives.wasReached,
                !settings.giveUpAfterIsExplicit
            {
                run.stop(.gaveUp(trouble))
            }
        }
    }

    /// Reports a slow lookup once, because nothing else explains why no connection is opened.
    mutating func checkLookup(_ now: Now) {
        guard !connections.didReportSlowLookup, let trouble = slowLookup(now) else { return }
        connections.didReportSlowLookup = true
        run.record(trouble)
        logLookup(trouble, now: now)
    }

    /// Trouble with the current lookup; nil if there is no lookup or it is not slow.
    func slowLookup(_ now: Now) -> ConnectionTrouble? {
        guard case .pending(let since) = connections.addresses.resolution else { return nil }
        let waited = now.nanoseconds - min(now.nanoseconds, since)
        guard waited >= min(Self.slowLookupThreshold, settings.giveUpAfter / 2) else { return nil }
        return ConnectionTrouble(
            .resolve,
            "no name server has replied for \(waited / second) s to the look-up of "
                + settings.nameToResolve)
    }

    private mutating func logLookup(_ trouble: ConnectionTrouble, now: Now) {
        metrics.events.append(
            RunEvent(.lookup, .warning, trouble.message, milliseconds: now.wallMilliseconds))
    }
}
