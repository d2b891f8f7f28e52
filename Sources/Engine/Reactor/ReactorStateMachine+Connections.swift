import BroadsideAPNs
import BroadsidePolicy
import BroadsideRing
import BroadsideSupport

/// A connection's life: begun, ended, given up; which addresses there are, and how many connections.
extension ReactorStateMachine where Records: ~Copyable {
    /// From the start of an attempt to the server's SETTINGS.
    static var connectLimit: UInt64 { 15 * second }
    /// Where nothing was ever reachable and the user named no `--give-up-after`: so many attempts
    /// at each address.
    static var attemptsBeforeGivingUp: Int { 3 }

    /// So many connections of a reactor are on their way at a time: each costs a handshake, and a
    /// server that opens its door for two hundred at once is rare.
    static var handshakesLimit: Int { 64 }
    /// And so many before the first one stands, whose ticket spares the others a complete handshake.
    static var firstHandshakesLimit: Int { 16 }

    /// Opens connections until as many are up as the plan says, while rows are left to be sent. For
    /// responses that are awaited on others none is needed: should a row come back, it is opened then.
    ///
    /// The first ones are opened together; all that come after them, in whomever's place, are held
    /// to the run's ten a second (docs/decisions/0007).
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
            // Nothing but the reply is waited for.
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

    /// Either side has said goodbye and nothing is awaited: that the server closes is no failure
    /// (RFC 9113, section 6.8). Of a gateway's end only its error packet says what it means.
    func endsInOrder(_ index: Int) -> Bool {
        guard connections[index].openCount == 0 else { return false }
        switch connections[index].phase {
        case .flushing: return true
        case .draining: return connections[index].session.respondsToEach
        default: return false
        }
    }

    /// The connection is of no use any more: its streams are in doubt, its address is left alone
    /// for a while.
    @inline(never)
    mutating func fail(
        _ index: Int, _ trouble: ConnectionTrouble, isLasting: Bool, retryAfter: UInt64? = nil,
        now: Now
    ) {
        run.record(trouble)
        recordFailure(index, trouble, now: now)
        let servedWell =
            connections[index].responses > 0 && connections[index].phase != .connecting
        if isLasting || !servedWell || !connections[index].session.isDraining {
            connections.addresses.failed(
                connections[index].address, now: now.nanoseconds, retryAfter: retryAfter,
                lasting: isLasting ? trouble : nil, random: &random)
        }
        loseStreams(index, now: now)
        beginClose(index, now: now)
        stopIfUnreachable()
    }

    /// Every request that is still out is in doubt, but for those that never left our buffer: nothing
    /// of the connection is given to the driver any more, so the server will never have seen them.
    mutating func loseStreams(_ index: Int, now: Now) {
        var lost = 0
        while let tag = connections[index].session.takeInFlight() {
            if lose(tag, with: index, now: now) { lost += 1 }
        }
        // A gateway that says nothing leaves all in doubt: its address has lost none for certain.
        if lost > 0, connections[index].session.respondsToEach {
            connections.addresses.connectionEnded(
                connections[index].address, lost: lost, responses: connections[index].responses)
        }
    }

    /// - Returns: Whether the request may have been seen.
    private mutating func lose(_ tag: RowTag, with index: Int, now: Now) -> Bool {
        rows.inFlight -= 1
        // Written at the same instant may have been before: in doubt.
        if rows.slab[tag].sentNanoseconds > connections[index].outbox.handedOver {
            requeueUncounted(tag)
            return false
        }
        lose(tag, reason: .connectionLost, now: now)
        return true
    }

    mutating func beginClose(_ index: Int, now: Now) {
        connections.addresses.releaseTrial(index)
        connections[index].enter(.closing, now: now.nanoseconds)
        submissions.append(.close(connection: index))
    }

    /// No requests go out on the connection any more; it closes when its responses are in.
    mutating func drain(_ index: Int, now: Now) {
        guard connections[index].phase == .open else { return }
        connections.addresses.releaseTrial(index)
        connections[index].enter(.draining, now: now.nanoseconds)
    }

    /// The connection lives, but gets no responses: another one takes its place, after a while.
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

    /// Says goodbye and closes once the bytes are out.
    mutating func flush(_ index: Int, now: Now) {
        log(
            .connectionClosed, .info, connection: index,
            "\(connections.peer(index)): closed after \(connections[index].responses) responses",
            now: now)
        connections[index].session.shutDown()
        connections.addresses.releaseTrial(index)
        connections[index].enter(.flushing, now: now.nanoseconds)
    }

    /// Ends the run where no address will ever do.
    mutating func stopIfUnreachable() {
        // What stands already may carry the run to its end.
        guard !connections.hasReady else { return }
        if let trouble = connections.addresses.lastingFailure {
            run.stop(.gaveUp(trouble))
        } else if !settings.giveUpAfterIsExplicit, !run.directives.anyReady,
            connections.addresses.areAllUnreachable(after: Self.attemptsBeforeGivingUp)
        {
            run.giveUp(.unreachable)
        }
    }

    // MARK: How many

    /// Takes over what the run's target gives this reactor. One without connections takes no rows.
    mutating func applyConnectionTarget(_ now: Now) {
        guard let target = run.directives.connectionShare else { return }
        let share = min(target, settings.connections)
        if share != connections.share {
            connections.share = share
            makeSlots(now)
        }
    }

    /// Makes the slots that the reactor's share needs.
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

    /// Connections that the kernel made and that carry requests or soon will.
    var establishedConnections: Int { connections.establishedCount }

    /// Connections that count towards the share.
    var activeConnections: Int { connections.activeCount }

    /// Replaces connections that were made from what has changed since, one after the other: one
    /// drains, its successor opens, and only when that is ready comes the next one's turn.
    /// Requests in flight get their responses on the connection that they went out on.
    mutating func replaceOutdated(_ now: Now) {
        guard case .running = phase, !run.directives.isStopping else { return }
        let version = run.directives.sessionVersion
        var outdated: Int?
        var active = 0
        for index in 0..<connections.count where connections[index].isActive {
            active += 1
            guard connections[index].phase == .open, connections[index].isReady else {
                // One of the new kind is on its way: the others carry the rows meanwhile. One of
                // the old kind that does not stand yet need not be waited for.
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
        // A successor that could not be opened yet leaves a gap: it is filled first, so that a
        // changed credential that does not work leaves all but one connection in place.
        guard active >= connections.share || !hasWork else { return }
        drain(outdated, now: now)
    }

    // MARK: The endpoint's name, or its proxy's

    /// Without a reply for so long, or for half of `--give-up-after`, a look-up is a trouble that is told.
    static var slowLookupThreshold: UInt64 { 5 * second }

    /// Asks for the addresses; no connection is opened before they are there.
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
                connections.addresses.entries.isEmpty,
                !settings.giveUpAfterIsExplicit
            {
                run.stop(.gaveUp(trouble))
            }
        }
    }

    /// Tells once of a look-up that takes long: meanwhile nothing else says why no connection is opened.
    mutating func checkLookup(_ now: Now) {
        guard !connections.didReportSlowLookup, let trouble = slowLookup(now) else { return }
        connections.didReportSlowLookup = true
        run.record(trouble)
        logLookup(trouble, now: now)
    }

    /// What is wrong with the look-up that is out; nil where none is, or not for long.
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
