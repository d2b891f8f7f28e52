import Campaign

/// How full something is that a reactor owns.
package struct OccupancyGauge {
    package enum Kind: String {
        case rows = "rows in hand"
        case waiting = "rows waiting for another try"
        case inFlight = "rows in flight"
        case held = "rows ahead of their sync"
        case slots = "connection slots"
        case submissions
        case chunks = "chunks ahead"
        case templates
        case personalTemplates = "personal templates"
        case events
        case addresses
        case reasons = "unknown reasons"
        case handoffRows = "rows between reactors"
        case handoffPieces = "pieces between reactors"
        case outgoing = "bytes to go out"
        case streams
        case control = "control bytes"
        case parts = "requests in parts"
        case bodies = "response bodies"
    }

    package let kind: Kind
    package let count: Int
    /// The most that there may ever be.
    package let limit: Int
}

/// What a reactor owns that could grow, each with its limit: for whoever looks whether it is kept.
extension ReactorStateMachine where Records: ~Copyable {
    func forEachOccupancyGauge(_ body: (OccupancyGauge) -> Void) {
        func tell(_ kind: OccupancyGauge.Kind, _ count: Int, _ limit: Int) {
            body(OccupancyGauge(kind: kind, count: count, limit: limit))
        }
        tell(.rows, rows.slab.count, rows.slab.capacity)
        tell(.waiting, rows.retries.count, rows.slab.capacity)
        tell(.inFlight, rows.inFlight, rows.slab.capacity)
        tell(.held, rows.held.count, HeldRows.limit + 1)
        tell(.slots, connections.count, connections.capacity)
        tell(.submissions, submissions.count, connections.capacity * 4 + 16)
        tell(.chunks, rows.chunks.aheadCount, ChunkQueue.aheadMost)
        tell(.templates, writer.templates.count, TemplateCache<RequestTemplate>.limit)
        tell(
            .personalTemplates, writer.personalTemplates.count,
            TemplateCache<PersonalTemplate>.limit)
        tell(.events, metrics.events.events.count, EventBuffer.limit)
        tell(
            .addresses, connections.addresses.entries.count,
            AddressBook.entriesLimit + connections.count)
        tell(.reasons, metrics.statistics.reasons.texts.count, ReasonCounts.textsLimit + 1)
        let exchanged = run.resources.handoff.counts
        tell(.handoffRows, exchanged.rows, run.resources.handoff.limit)
        tell(.handoffPieces, exchanged.pieces, RowHandoff.piecesLimit)
        for index in 0..<connections.count {
            tell(.outgoing, connections[index].outbox.sealedCount, Self.outgoingLimit)
            tell(.streams, connections[index].openCount, settings.streamsPerConnection)
            let session = connections[index].session.measures
            tell(.control, session.controlBytes, session.controlLimit)
            tell(.parts, session.parts, session.partsLimit)
            tell(.bodies, session.bodies, session.bodiesLimit)
        }
    }

    /// The most bytes that wait in a connection's buffer.
    static var outgoingLimit: Int { 4 * Records.sealedCount(recordPlaintextLimit) + 4096 }

    /// Rows in each condition that a row in hand may be in.
    var rowsInHand: (all: Int, inFlight: Int, again: Int, waiting: Int) {
        (rows.slab.count, rows.inFlight, rows.requeued.count, rows.retries.count + rows.held.count)
    }

    /// Requests that were written to connections and are not answered.
    var openRequests: Int {
        (0..<connections.count).reduce(0) { $0 + connections[$1].openCount }
    }

    /// True where what waits for the disk keeps requests from being made.
    var isBacklogHigh: Bool {
        recorder.ledger.pendingByteCount >= settings.limits.ledgerBacklog
    }
}
