import BroadsideHPACK
import BroadsideHTTP2
import BroadsideLedgerFormat
import BroadsidePayloads
import BroadsidePolicy
import BroadsideRing
import BroadsideRows
import BroadsideSupport
import BroadsideTLS

/// Core of the engine: the state machine for one thread's share of a run. Completions and the time
/// go in, and submissions come out. The state machine does no I/O, reads no clock and starts no
/// thread. The seed of its random numbers is a parameter.
///
///                 chunk           row             request
///     list --> ChunkQueue --> RowSlab --> Connection --> record --> send
///                 |              ^  |                                 |
///              reserve           |  '-- retry queue, line of rows     |
///                 v              |      to be sent elsewhere          v
///              LedgerWriter <-- verdict <-- ResponseClass <-- event <-- received
///
///     running --- stop request --> draining --- responses in, or time limit ---.
///        '---------- list at its end and every row settled ----------------> closing --> finished
///
/// In one iteration, the driver passes all available completions, calls `runIteration(_:)` once,
/// performs all submissions, and waits for the next completion or for `nextDeadline`.
///
/// Read-only functions that run in each iteration are inlined. Otherwise, for each call that
/// borrows the value, Swift (6.3) copies all of it, almost 4 KiB, to the stack.
@safe struct ReactorStateMachine<Records: RecordLayer & ~Copyable>: ~Copyable {
    enum Phase {
        case running
        case draining(since: UInt64)
        /// Nothing more is sent; the ledger's last bytes go to disk and connections close.
        case closing(since: UInt64)
        case finished
    }

    /// A wait of `--give-up-after` or longer that a server asked for.
    struct LongWait {
        /// End of the wait, monotonic nanoseconds.
        var until: UInt64
        var trouble: ConnectionTrouble
    }

    let settings: ReactorSettings
    /// Directives from the run, and effects for it.
    var run: RunChannel

    var phase = Phase.running
    var connections: ConnectionPool<Records>
    var rows: RowSupply
    var admission: Admission
    var writer: RequestWriter
    var recorder: SegmentRecorder
    var metrics: ReactorMetrics
    var timers: ReactorTimers
    var batching = CompletionBatching()
    /// The latest wait of `--give-up-after` or longer that a server asked for; nil if none did.
    var longWait: LongWait?
    var random: SplitMix64
    var submissions: SubmissionQueue
    /// Plaintext of one received record.
    // SAFETY: owned by this value and freed in `deinit`; used by one call of `received` at a time.
    let received: UnsafeMutableRawBufferPointer

    init(
        settings: ReactorSettings, coordinator: RunCoordinator, reactor: Int,
        recordConfiguration: Records.Configuration,
        ledger: consuming LedgerWriter, chunkPool: ChunkPool, layout: RowLayout, seed: UInt64,
        now: Now
    ) {
        self.settings = settings
        run = RunChannel(coordinator, reactor: reactor)
        connections = ConnectionPool(
            settings: settings, recordConfiguration: recordConfiguration,
            addresses: AddressBook(
                health: run.resources.addressHealth, lossy: run.resources.lossyAddresses,
                reactor: reactor, giveUpAfter: settings.giveUpAfter),
            initialCount: coordinator.connectionTarget?.first[reactor] ?? settings.connections,
            now: now)
        connections.keyVersion = run.directives.keyVersion
        rows = RowSupply(
            settings: settings, perSecond: run.directives.milliRate.map { Int($0 / 1_000) },
            pool: chunkPool, layout: layout, fieldLimit: RequestWriter.fieldLimit(settings))
        admission = Admission(
            milliRate: run.directives.milliRate.map { $0 / UInt64(settings.reactors) }, now: now)
        writer = RequestWriter(settings: settings, layout: layout)
        metrics = ReactorMetrics(topics: writer.topics == nil ? 0 : RowTopics.limit)
        metrics.canaryReport.countsInvalid = settings.canaryCountsInvalid
        recorder = SegmentRecorder(ledger)
        timers = ReactorTimers(now: now)
        random = SplitMix64(seed: seed)
        submissions = SubmissionQueue(capacity: connections.capacity * 4 + 16)
        // SAFETY: no byte is read before a record layer has set it.
        unsafe received = .allocate(byteCount: recordPlaintextLimit + 1024, alignment: 64)
        makeSlots(now)
    }

    // SAFETY: allocated in `init`, and no span of it outlives `received(connection:bytes:now:)`.
    deinit {
        unsafe received.deallocate()
    }

    /// Whether nothing is left to do or to await.
    var isFinished: Bool {
        if case .finished = phase { return true }
        return false
    }

    /// Time at which the driver must call again at the latest, monotonic nanoseconds.
    var nextDeadline: UInt64 { timers.nextDeadline }

    var statistics: RunStatistics { metrics.statistics }

    /// How many completions to wait for before the next iteration, and for how long at most; nil if
    /// the next completion starts it.
    var batchWait: CompletionBatching.Wait? { batching.wait(inFlight: rows.inFlight) }

    /// Whether a ledger write is in flight and nothing waits for it. If so, its completion does not
    /// have to start an iteration.
    var writeIsQuiet: Bool {
        recorder.ledger.writeIsInFlight && rows.hasListRow(synced: recorder.synced)
            && !isBacklogHigh
    }

    /// Removes and returns the next submission; nil if there is none.
    mutating func nextSubmission() -> ReactorSubmission? {
        submissions.popFirst()
    }

    /// Processes a completion. Received bytes come through `received(connection:bytes:now:)`.
    mutating func completed(_ completion: ReactorCompletion, now: Now) {
        switch completion {
        case .resolved(let result): resolved(result, now: now)
        case .connected(let connection, let errno): connected(connection, errno: errno, now: now)
        case .receiveEnded(let connection, let errno):
            receiveEnded(connection, errno: errno, now: now)
        case .sent(let connection, let result): sent(connection, result: result, now: now)
        case .closed(let connection): closed(connection)
        case .wrote(let result): handleDiskResult(recorder.wrote(result))
        case .synced(let result): handleDiskResult(recorder.synced(result))
        case .superseded:
            recorder.abandon()
            run.stop(.superseded)
        case .chunk(let chunk): arrived(chunk, now: now)
        case .listEnded:
            rows.chunks.listEnded()
            run.markListEnd()
        case .listHeldByCanary: rows.chunks.listHeldByCanary()
        case .listFailed(let cause):
            rows.chunks.listEnded()
            run.stop(cause)
        }
    }

    /// Makes all decisions that are due. Called once after a batch of completions, between
    /// `exchangeWithRun` and `finishIteration`.
    mutating func runIteration(_ now: Now) {
        if case .finished = phase { return }
        if timers.recordStall(now: now.nanoseconds) { askAfterStall(now) }
        accountForTime(now)
        connections.latencyMonitor.recordIteration(now)
        batching.recordIteration()
        if timers.takeScan(now: now.nanoseconds) { scan(now) }
        admission.shareRate(of: run.directives, now: now.nanoseconds)
        handleStopRequest(now)
        admission.beginIteration()
        rows.beginIteration(now: now.nanoseconds)
        applyConnectionTarget(now)
        openConnections(now)
        settleUnsentRows(now)
        reserveAhead(now)
        requestChunks(now)
        for step in 0..<connections.count {
            let index = connections.slot(step)
            if !connections[index].isSaturated { fill(index, now: now) }
        }
        connections.rotate()
        if metrics.acceptedSinceReport > 0 { reportAccepted(now) }
        if rows.rowsRead.lease > 0 { reportRowsRead(isIdle: true) }
        endIfDone(now)
        recorder.flush(ledgerDemand, now: now.nanoseconds, into: &submissions)
        timers.nextDeadline = deadline(now)
    }

    /// Adds the time since the last call to the bottleneck of each connection. A pause is not a
    /// bottleneck, so its time is not counted.
    private mutating func accountForTime(_ now: Now) {
        guard let elapsed = timers.takeElapsed(now: now.nanoseconds) else { return }
        guard case .running = phase, !run.directives.isPaused else { return }
        // The time before the iteration that sees the end of a pause belongs to the pause.
        if admission.limiter.milliRate == 0 { return }
        var active = 0
        for index in 0..<connections.count where connections[index].isActive {
            active += 1
            if !connections[index].isReady {
                connections[index].limitedBy = hasWork ? .connecting : .input
            }
            let limit = connections[index].limitedBy
            let late = limit == .rate ? lateness(index, within: elapsed, now: now) : 0
            metrics.statistics.limited[limit.rawValue] += elapsed - late
            metrics.statistics.limited[Bottleneck.cpu.rawValue] += late
        }
        guard active == 0 else { return }
        metrics.statistics.limited[limitWithoutConnections.rawValue] +=
            elapsed * UInt64(max(1, connections.share))
    }

    /// Bottleneck if no connection exists.
    @inline(__always)
    private var limitWithoutConnections: Bottleneck {
        if !hasWork { return .input }
        return connections.addresses.troubledCount > 0 || connections.resolutionFailures > 0
            ? .retry : .connecting
    }

    /// Part of the elapsed time in which the reactor was late: the rate limits of the run and of
    /// the connection allowed a request, but the reactor had not sent one. A delay that the rate
    /// limiter makes up for does not count.
    private func lateness(_ index: Int, within elapsed: UInt64, now: Now) -> UInt64 {
        let held = max(admission.limiter.holdsUntil, connections[index].rateLimiter.holdsUntil)
        return now.nanoseconds > held ? min(now.nanoseconds - held, elapsed) : 0
    }

    @inline(__always)
    private func deadline(_ now: Now) -> UInt64 {
        if rows.hasMoreUnsent, !isBacklogHigh { return now.nanoseconds }
        var deadline = timers.scanDue
        // A row that is already due waits for a connection or the rate, not for the clock.
        if let due = rows.retries.nextDue, due > now.nanoseconds { deadline = min(deadline, due) }
        if let due = connections.addresses.nextAttempt {
            deadline = min(deadline, max(due, now.nanoseconds + millisecond))
        }
        if let due = recorder.nextWriteDue { deadline = min(deadline, due) }
        deadline = min(deadline, admission.nextPaced)
        return deadline
    }

    // MARK: The ledger

    var isClosing: Bool {
        if case .closing = phase { return true }
        return false
    }

    /// Whether so many verdicts wait for the disk that no new request is sent.
    var isBacklogHigh: Bool {
        recorder.isBehind(settings.limits.ledgerBacklog)
    }

    /// What the reactor's rows currently require of the ledger segment.
    @inline(__always)
    var ledgerDemand: SegmentRecorder.Demand {
        SegmentRecorder.Demand(
            isClosing: isClosing,
            isComplete: rows.chunks.requestedCount == 0
                || !rows.hasListRow(synced: recorder.synced),
            waitsForWritten: rows.waitsForSync(
                synced: recorder.synced, written: recorder.ledger.writtenPosition))
    }

    /// Stops the run if the disk failed, because what can't be recorded must not be sent.
    ///
    /// - Parameter errno: Error of the disk; nil if there is none.
    mutating func handleDiskResult(_ errno: Int32?) {
        guard let errno else { return }
        run.stop(.ledgerFailed(detail: describe(errno: errno)))
    }
}
