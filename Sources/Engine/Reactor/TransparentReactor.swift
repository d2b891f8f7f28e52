package import BroadsideLedgerFormat
package import BroadsideRows
package import BroadsideSupport

/// A reactor without a record layer, as one concrete type. A generic type is not specialized in
/// another module, and without specialization the deterministic simulation and the unit
/// tests would be much slower.
package struct TransparentReactor: ~Copyable {
    /// Internal, because unit tests also look at its parts.
    var stateMachine: ReactorStateMachine<TransparentRecords>

    package init(
        settings: ReactorSettings, coordinator: RunCoordinator, reactor: Int,
        ledger: consuming LedgerWriter,
        chunkPool: ChunkPool, layout: RowLayout, seed: UInt64, now: Now
    ) {
        stateMachine = ReactorStateMachine(
            settings: settings, coordinator: coordinator, reactor: reactor, recordConfiguration: (),
            ledger: ledger,
            chunkPool: chunkPool, layout: layout, seed: seed, now: now)
    }

    package var isFinished: Bool { stateMachine.isFinished }
    package var nextDeadline: UInt64 { stateMachine.nextDeadline }
    package var isBacklogHigh: Bool { stateMachine.isBacklogHigh }
    package var activeConnections: Int { stateMachine.activeConnections }
    package var establishedConnections: Int { stateMachine.establishedConnections }
    package var openRequests: Int { stateMachine.openRequests }
    package var rowsInHand: (all: Int, inFlight: Int, requeued: Int, waiting: Int) {
        stateMachine.rowsInHand
    }
    /// Whether the reactor, its chunks and the handoff have no rows.
    package var hasNoRows: Bool {
        stateMachine.rowsInHand.all == 0 && stateMachine.rows.chunks.isEmpty
            && !stateMachine.run.resources.handoff.hasRows
    }
    /// How many completions to wait for before the next iteration, and for how long at most; nil if
    /// the next completion starts it.
    package var batchWait: (completions: Int, nanoseconds: UInt64)? {
        stateMachine.batchWait.map { (Int($0.completions), $0.nanoseconds) }
    }
    package var brokenInvariant: String? { stateMachine.brokenInvariant }
    /// The counters, without the values that only `snapshot` adds.
    package var statistics: RunStatistics { stateMachine.statistics }

    package mutating func nextSubmission() -> ReactorSubmission? { stateMachine.nextSubmission() }

    package mutating func completed(_ completion: ReactorCompletion, now: Now) {
        stateMachine.completed(completion, now: now)
    }

    package mutating func received(connection: Int, bytes: RawSpan, now: Now) {
        stateMachine.received(connection: connection, bytes: bytes, now: now)
    }

    package mutating func exchangeWithRun(_ now: Now) { stateMachine.exchangeWithRun(now) }

    package mutating func runIteration(_ now: Now) { stateMachine.runIteration(now) }

    package mutating func finishIteration(_ now: Now) { stateMachine.finishIteration(now) }

    package func snapshot() -> RunStatistics { stateMachine.snapshot() }

    package func report() -> ReactorReport { stateMachine.report() }

    package mutating func takeEvents() -> EventBuffer { stateMachine.takeEvents() }

    package func hasRowReady(_ now: Now) -> Bool { stateMachine.hasRowReady(now) }

    package func forEachOccupancyGauge(_ body: (OccupancyGauge) -> Void) {
        stateMachine.forEachOccupancyGauge(body)
    }
}
