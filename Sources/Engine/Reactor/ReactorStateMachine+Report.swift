import BroadsideAPNs
import BroadsideHTTP2
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideSupport

/// What a reactor shows of itself: counters, lines for the log, how full everything is, and what always holds.
extension ReactorStateMachine where Records: ~Copyable {
    /// The counters as others may see them now.
    func snapshot() -> RunStatistics {
        var snapshot = metrics.statistics
        snapshot.inFlight = rows.inFlight
        snapshot.pausedAddresses = connections.addresses.troubledCount
        snapshot.openConnections = connections.openCount
        return snapshot
    }

    /// Connection slots that the driver has to provide for.
    var slotCount: Int { connections.capacity }

    /// The segment's length once all is written.
    var ledgerByteCount: UInt64 { recorder.ledger.writtenPosition }

    /// Everything that those who watch the run want to know.
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

    /// Hands over what is worth a line in the log.
    mutating func takeEvents() -> EventBuffer { metrics.events.takeAll() }

    /// The connection slot's number in the run, from 1.
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

    /// A GOAWAY, in words: the error's name, and APNs' reason where there is one.
    mutating func recordGoAway(_ index: Int, code: ErrorCode, reason: String?, now: Now) {
        var text = code.name?.description ?? "error \(code.rawValue)"
        if let reason { text += ", \(reason)" }
        connections[index].tally.goAways += 1
        connections[index].tally.lastGoAway = text
        let isOrderly = code == .noError && connections[index].responses > 0
        log(
            .goAway, isOrderly ? .notice : .warning, connection: index,
            "\(connections.peer(index)): GOAWAY \(text) after \(connections[index].responses) responses",
            reason: reason, now: now)
    }

    /// A response after which its connection carries no more requests. Others in flight may get the
    /// same: the first one is the cause.
    mutating func recordDrain(_ index: Int, status: UInt16, reason: Reason?, now: Now) {
        guard connections[index].phase == .open else { return }
        log(
            .connectionDrained, .notice, connection: index,
            "\(connections.peer(index)): drained after \(connections[index].responses) responses because of "
                + "\(status) \(reason?.text ?? "without a known reason")",
            status: status, reason: reason?.text, now: now)
    }

    /// A connection that is of no use any more.
    mutating func recordFailure(_ index: Int, _ trouble: ConnectionTrouble, now: Now) {
        metrics.statistics.failures += 1
        connections[index].tally.failures += 1
        connections[index].tally.lastFailure = trouble.message
        log(.connectionLost, .warning, connection: index, trouble.message, now: now)
    }

    // MARK: How full

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

    /// The most bytes that wait in a connection's buffer.
    static var outgoingLimit: Int { 4 * Records.sealedCount(recordPlaintextLimit) + 4096 }

    /// Rows in each condition that a row in hand may be in.
    var rowsInHand: (all: Int, inFlight: Int, requeued: Int, waiting: Int) {
        (
            rows.slab.count, rows.inFlight, rows.requeued.count,
            rows.retries.count + rows.awaitingSync.count
        )
    }

    /// Requests that were written to connections and have no response yet.
    var openRequests: Int { connections.openRequests }

    // MARK: What always holds

    /// What does not hold after a turn although it always has to; nil if all is well. Debug builds ask
    /// after each turn, and so does the deterministic simulation.
    var brokenInvariant: String? {
        rows.brokenInvariant
            ?? connections.brokenInvariant(inFlight: rows.inFlight)
            ?? brokenPermits
            ?? recorder.brokenInvariant
            ?? brokenTrial
    }

    /// All other connections wait for the one that tries an address again: it is one that goes there and has
    /// no response yet. A gateway may respond without a word, so that its connections keep theirs to the end.
    private var brokenTrial: String? {
        for (address, owner) in run.resources.addressHealth.trials
        where owner.reactor == run.reactor {
            let slot = owner.slot
            let goesThere =
                connections.addresses.entries[connections[slot].address].address == address
            if goesThere, isTrying(slot) { continue }
            return "\(address) is on trial by connection \(slot), which is "
                + "\(connections[slot].phase) with \(connections[slot].responses) responses"
        }
        return nil
    }

    private func isTrying(_ slot: Int) -> Bool {
        let respondsToEach = connections[slot].session.respondsToEach
        return switch connections[slot].phase {
        case .connecting, .handshaking: true
        // What a response about the token says, the run has to say.
        case .open:
            connections[slot].responses == 0 || !respondsToEach
                || connections.expiredOn.contains { $0.slot == slot }
        case .draining: !respondsToEach
        case .idle, .flushing, .closing: false
        }
    }

    private var brokenPermits: String? {
        (0...settings.abortAfter).contains(run.directives.permits)
            ? nil : "\(run.directives.permits) permits of \(settings.abortAfter)"
    }
}
