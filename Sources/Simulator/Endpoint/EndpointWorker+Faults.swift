internal import BroadsideRing
internal import BroadsideSupport

/// Timers, and the faults that scenarios apply to whole connections.
extension EndpointWorker {
    // MARK: Alarms

    /// Schedules the connection's next alarm.
    func watch(_ connection: EndpointConnection) {
        nextAlarm = min(nextAlarm, connection.alarm)
    }

    /// Handles every alarm that is due.
    func handleAlarms() {
        if outageChange <= context.now { changeOutage() }
        guard nextAlarm <= context.now else { return }
        nextAlarm = .max
        for slot in connections.indices {
            guard let connection = connections[slot] else { continue }
            if connection.alarm <= context.now { handleAlarm(connection) }
            watch(connection)
        }
    }

    private func handleAlarm(_ connection: EndpointConnection) {
        if connection.phase == .handshaking {
            context.totals.handshakesFailed += 1
            breakOff(connection)
            return
        }
        if connection.stalledUntil > 0 {
            connection.stalledUntil = 0
            if connection.reading == nil { takeHeld(connection, connection.held.count) }
        } else {
            if connection.readingDue <= context.now, let reading = connection.reading {
                takeHeld(connection, reading.count)
                connection.readingDue = context.now + reading.intervalNanoseconds
            }
            if case .strict(let session) = connection.session { session.tick() }
        }
        touch(connection)
    }

    // MARK: Deferred input

    /// Defers the processing of received bytes.
    func hold(_ bytes: RawSpan, on connection: EndpointConnection) {
        if connection.held.count == 0, let reading = connection.reading {
            connection.readingDue = context.now + reading.intervalNanoseconds
        }
        connection.held.append(bytes)
        if connection.held.count > SimulatorLimits.heldInputCount, !connection.isPaused {
            connection.isPaused = true
            let target = userData(
                .receive, slot: connection.slot, generation: connection.generation)
            ring.cancel(target, userData: userData(.cancel))
        }
        watch(connection)
    }

    /// Processes deferred bytes. Resumes receiving once no bytes are deferred.
    private func takeHeld(_ connection: EndpointConnection, _ count: Int) {
        let count = min(count, connection.held.count)
        if count > 0, connection.phase == .open {
            // A copy, because processing may defer more bytes.
            let portion = Array(connection.held.bytes.extracting(first: count))
            connection.held.removeFirst(count)
            take(portion.span.rawBytes, on: connection)
        }
        guard connection.isPaused, connection.held.count == 0, connection.phase != .broken else {
            return
        }
        // A cancelled receive may still be in flight; the next one is armed after it completes.
        connection.isPaused = false
        if !connection.isReceiving { armReceive(connection) }
    }

    // MARK: Strikes

    /// Applies a scenario's fault to a connection. Returns false if the connection no longer
    /// exists.
    func applyStrike(_ strike: ConnectionStrike, _ connection: EndpointConnection) -> Bool {
        switch strike {
        case .reset:
            reset(connection)
            return false
        case .close:
            connection.phase = .finishing
            return true
        case .stall(let until):
            connection.stalledUntil = until
            return true
        }
    }

    /// Resets a TCP connection, which discards data queued on either side.
    private func reset(_ connection: EndpointConnection) {
        Socket.disconnect(connection.descriptor)
        ring.cancelAll(on: connection.descriptor, userData: userData(.cancel))
        breakOff(connection)
    }

    /// Closes an accepted socket with a reset.
    func resetAndClose(_ descriptor: Int32) {
        Socket.disconnect(descriptor)
        Socket.close(descriptor)
    }

    private func changeOutage() {
        guard let run = context.run else {
            outageChange = .max
            return
        }
        isOutage = run.isOutage(at: context.now)
        outageChange = run.nextOutageChange(after: context.now) ?? .max
        guard isOutage else { return }
        context.totals.countFault(.outage)
        for slot in connections.indices {
            if let connection = connections[slot], connection.phase != .broken { reset(connection) }
        }
    }

    /// Drops all connections, and returns their number.
    func dropAll(_ manner: DropManner) -> Int {
        var count = 0
        for slot in connections.indices {
            guard let connection = connections[slot] else { continue }
            switch (connection.phase, connection.session) {
            case (.finishing, _), (.lingering, _), (.broken, _): continue
            case (.open, .strict(let session)) where manner == .goAway:
                session.shutDown("Shutdown", form: context.run?.scenario.debug ?? .json)
                touch(connection)
            case (.open, _) where manner != .reset:
                connection.phase = .finishing
                touch(connection)
            default: reset(connection)
            }
            count += 1
        }
        return count
    }

    // MARK: Shutdown

    /// Announces the endpoint's shutdown to all clients.
    func writeShutdown() {
        for slot in connections.indices {
            guard let connection = connections[slot] else { continue }
            switch (connection.phase, connection.session) {
            case (.open, .strict(let session)):
                session.shutDown("Shutdown", form: context.run?.scenario.debug ?? .json)
                touch(connection)
            case (.finishing, _), (.lingering, _): break
            default: breakOff(connection)
            }
        }
        flushTouched()
    }

    /// True if no response is pending and no output is in flight.
    var isQuiet: Bool {
        connections.allSatisfy { connection in
            guard let connection else { return true }
            switch connection.phase {
            case .broken: return true
            case .lingering: return !connection.isSending && connection.outgoing.count == 0
            case .handshaking, .open, .finishing: return connection.stalledUntil > 0
            }
        }
    }
}
