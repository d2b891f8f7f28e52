import BroadsideAPNs
import BroadsideHTTP2
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideSupport

/// The reports of a reactor: counters, log events, fill levels and invariants.
extension ReactorStateMachine where Records: ~Copyable {
    /// Current counters for other threads.
    func snapshot() -> RunStatistics {
        var snapshot = metrics.statistics
        snapshot.inFlight = rows.inFlight
        snapshot.pausedAddresses = connections.addresses.troubledCount
        snapshot.openConnections = connections.openCount
        snapshot.shortened = writer.shortenedRows
        return snapshot
    }

    /// Number of connection slots for which the driver needs sockets.
    var slotCount: Int { connections.capacity }

    /// Length that the segment has when everything is written.
    var ledgerByteCount: UInt64 { recorder.ledger.writtenPosition }

    /// Complete report for the supervising thread.
    func report() -> ReactorReport {
        var report = ReactorReport()
        report.statistics = snapshot()
        report.latency = metrics.latency.counts
        let limit = max(1, ConnectionTally.rowsLimit / settings.reactors)
        for index in 0..<connections.count where connections[index].tally != ConnectionTally() {
            if report.connections.count < limit {
                var tally = connections[index].tally
                tally.number = number(of: index)
                report.connections.append(tally)
            } else {
                report.connections[limit - 1].add(connections[index].tally)
            }
        }
        return report
    }

    /// Removes and returns the events for the log.
    mutating func takeEvents() -> EventBuffer { metrics.events.takeAll() }

    /// Number of the connection slot in the run, from 1.
    private func number(of index: Int) -> Int { run.reactor * connections.capacity + index + 1 }

    mutating func log(
        _ kind: RunEvent.Kind, _ level: RunEvent.Level, connection index: Int, _ message: String,
        status: UInt16? = nil, reason: String? = nil, now: Now
    ) {
        var fields = RunEvent.Fields()
        fields.endpoint = "\(connections.addresses.entries[connections[index].address].address)"
        fields.status = status
        fields.reason = reason
        fields.count = connections[index].responses
        metrics.events.append(
            RunEvent(
                kind, level, connection: number(of: index), message,
                milliseconds: now.wallMilliseconds, fields: fields))
    }

    /// Records a GOAWAY with the error's name, and with APNs' reason or any other text of the server.
    ///
    /// - Parameter reason: The reason, known or not, escaped for display; nil if there is none.
    mutating func recordGoAway(_ index: Int, code: ErrorCode, reason: String?, now: Now) {
        var text = "\(code)"
        if let reason {
            text += ", \(reason)"
        } else if let other = connections[index].session.goAwayText {
            text += ", '\(other)'"
        }
        connections[index].tally.goAways += 1
        connections[index].tally.lastGoAway = text
        let isOrderly = code == .noError && connections[index].responses > 0
        log(
            .goAway, isOrderly ? .notice : .warning, connection: index,
            "\(connections.peer(index)): GOAWAY \(text) after \(connections[index].responses) responses",
            reason: reason, now: now)
    }

    /// Records a response after which its connection carries no more requests. Other requests in
    /// flight may get the same response; only the first response is recorded, as the cause.
    mutating func recordDrain(_ index: Int, status: UInt16, reason: StatedReason, now: Now) {
        guard connections[index].phase == .open else { return }
        let text = run.resources.unknownReasons.shown(reason)
        log(
            .connectionDrained, .notice, connection: index,
            "\(connections.peer(index)): drained after \(counted(connections[index].responses, "response")) "
                + "because of \(status) \(text ?? "without a known reason")",
            status: status, reason: text, now: now)
    }

    /// Records a failed connection.
    mutating func recordFailure(_ index: Int, _ trouble: ConnectionTrouble, now: Now) {
        metrics.statistics.failures += 1
        connections[index].tally.failures += 1
        connections[index].tally.lastFailure = trouble.message
        log(.connectionLost, .warning, connection: index, trouble.message, now: now)
    }

    // MARK: Fill levels

    func forEachOccupancyGauge(_ body: (OccupancyGauge) -> Void) {
        func report(_ kind: OccupancyGauge.Kind, _ count: Int, _ limit: Int) {
            body(OccupancyGauge(kind: kind, count: count, limit: limit))
        }
        report(.rows, rows.slab.count, rows.slab.capacity)
        report(.waiting, rows.retries.count, rows.slab.capacity)
        report(.inFlight, rows.inFlight, rows.slab.capacity)
        report(.awaitingSync, rows.awaitingSync.count, RowsAwaitingSync.limit + 1)
        report(.slots, connections.count, connections.capacity)
        report(.submissions, submissions.count, connections.capacity * 4 + 16)
        report(.chunks, rows.chunks.aheadCount, ChunkQueue.aheadMax)
        report(.templates, writer.templates.count, TemplateCache<RequestTemplate>.limit)
        report(
            .personalTemplates, writer.personalTemplates.count,
            TemplateCache<PersonalTemplate>.limit)
        report(.events, metrics.events.events.count, EventBuffer.limit)
        report(
            .addresses, connections.addresses.entries.count,
            AddressBook.entriesLimit + connections.count)
        report(.reasons, metrics.statistics.counts.reasons.texts.count, ReasonCounts.textsLimit + 1)
        report(.reasonNumbers, run.resources.unknownReasons.count, UnknownReasons.limit)
        let exchanged = run.resources.handoff.counts
        report(.handoffRows, exchanged.rows, run.resources.handoff.limit)
        report(.handoffFieldValues, exchanged.fieldValues, RowHandoff.fieldValueByteCountMax)
        for index in 0..<connections.count {
            report(.outgoing, connections[index].outbox.sealedCount, Self.outgoingLimit)
            report(.streams, connections[index].openCount, settings.streamsPerConnection)
            let session = connections[index].session.occupancy
            report(.control, session.controlBytes, session.controlLimit)
            report(.parts, session.parts, session.partsLimit)
            report(.bodies, session.bodies, session.bodiesLimit)
        }
    }

    /// Limit on bytes in a connection's buffer.
    static var outgoingLimit: Int { 4 * Records.sealedCount(recordPlaintextLimit) + 4096 }

    /// Number of unsettled rows that the reactor works on, in total and by state.
    var rowsInHand: (all: Int, inFlight: Int, requeued: Int, waiting: Int) {
        (
            rows.slab.count, rows.inFlight, rows.requeued.count,
            rows.retries.count + rows.awaitingSync.count
        )
    }

    /// Number of requests in flight.
    var openRequests: Int { connections.openRequests }

    // MARK: Invariants

    /// Description of an invariant that is violated after an iteration; nil if there is none.
    /// Checked after each iteration in debug builds and in the deterministic simulation.
    var brokenInvariant: String? {
        rows.brokenInvariant
            ?? connections.brokenInvariant(inFlight: rows.inFlight)
            ?? brokenPermits
            ?? recorder.brokenInvariant
            ?? brokenTrial
    }

    /// Description of a stale trial of an address; nil if there is none. A trial is stale if the
    /// connection that owns it does not use the address, or already has a response. A stale trial
    /// blocks all other connections without need. A legacy gateway does not report acceptances, so
    /// its connections keep their trials to the end.
    private var brokenTrial: String? {
        for (address, owner) in run.resources.addressHealth.trials
        where owner.reactor == run.reactor {
            let slot = owner.slot
            let goesThere =
                connections.addresses.entries[connections[slot].address].address == address
            if goesThere, isTrying(slot) { continue }
            return "\(address) is being tested by connection \(slot), which is "
                + "\(connections[slot].phase) with \(connections[slot].responses) responses"
        }
        return nil
    }

    private func isTrying(_ slot: Int) -> Bool {
        let respondsToEach = connections[slot].session.respondsToEach
        return switch connections[slot].phase {
        case .connecting, .handshaking: true
        // After a response about the token, the trial continues until the run decides.
        case .open:
            connections[slot].isUnproven || !respondsToEach
                || connections.expiryReports.contains { $0.slot == slot }
        case .draining: !respondsToEach
        case .idle, .flushing, .closing: false
        }
    }

    private var brokenPermits: String? {
        (0...settings.abortAfter).contains(run.directives.permits)
            ? nil : "\(run.directives.permits) permits of \(settings.abortAfter)"
    }
}
