package import BroadsideLedgerFormat
package import BroadsideRows
package import BroadsideSupport

/// A reactor without a record layer, as one concrete type. A generic type is not specialized in
/// another module, and without specialization the deterministic simulation would be much slower.
package struct TransparentReactor: ~Copyable {
    private var machine: ReactorStateMachine<TransparentRecords>

    package init(
        settings: ReactorSettings, coordinator: RunCoordinator, reactor: Int,
        ledger: consuming LedgerWriter,
        chunkPool: ChunkPool, layout: RowLayout, seed: UInt64, now: Now
    ) {
        machine = ReactorStateMachine(
            settings: settings, coordinator: coordinator, reactor: reactor, recordConfiguration: (),
            ledger: ledger,
            chunkPool: chunkPool, layout: layout, seed: seed, now: now)
    }

    package var isFinished: Bool { machine.isFinished }
    package var nextDeadline: UInt64 { machine.nextDeadline }
    package var isBacklogHigh: Bool { machine.isBacklogHigh }
    package var activeConnections: Int { machine.activeConnections }
    package var establishedConnections: Int { machine.establishedConnections }
    package var openRequests: Int { machine.openRequests }
    package var rowsInHand: (all: Int, inFlight: Int, requeued: Int, waiting: Int) {
        machine.rowsInHand
    }
    /// Whether the reactor, its chunks and the handoff have no rows.
    package var hasNoRows: Bool {
        machine.rowsInHand.all == 0 && machine.rows.chunks.isEmpty
            && !machine.run.resources.handoff.hasRows
    }
    /// How many completions to wait for before the next iteration, and for how long at most; nil if
    /// the next completion starts it.
    package var batchWait: (completions: Int, nanoseconds: UInt64)? {
        machine.batchWait.map { (Int($0.completions), $0.nanoseconds) }
    }
    package var brokenInvariant: String? { machine.brokenInvariant }
    /// The counters, without the values that only `snapshot` adds.
    package var statistics: RunStatistics { machine.statistics }

    package mutating func nextSubmission() -> ReactorSubmission? { machine.nextSubmission() }

    package mutating func completed(_ completion: ReactorCompletion, now: Now) {
        machine.completed(completion, now: now)
    }

    package mutating func received(connection: Int, bytes: RawSpan, now: Now) {
        machine.received(connection: connection, bytes: bytes, now: now)
    }

    package mutating func exchangeWithRun(_ now: Now) { machine.exchangeWithRun(now) }

    package mutating func runIteration(_ now: Now) { machine.runIteration(now) }

    package mutating func finishIteration(_ now: Now) { machine.finishIteration(now) }

    package func snapshot() -> RunStatistics { machine.snapshot() }

    package func report() -> ReactorReport { machine.report() }

    package mutating func takeEvents() -> EventBuffer { machine.takeEvents() }

    package func hasRowReady(_ now: Now) -> Bool { machine.hasRowReady(now) }

    package func forEachOccupancyGauge(_ body: (OccupancyGauge) -> Void) {
        machine.forEachOccupancyGauge(body)
    }
}
