import APNs
package import Campaign
import HPACK
import HTTP2
import Ring
package import Support
import TLS

/// The engine's heart: one thread's share of a run, as a machine. Completions and the time go in,
/// submissions come out; it does no I/O, asks no clock, starts no thread.
///
///                 chunk           row             request
///     list --> ChunkShelf --> RowSlab --> Connection --> record --> send
///                 |              ^  |                                 |
///              reserve           |  '-- retry queue, line of rows     |
///                 v              |      to be sent elsewhere          v
///              LedgerWriter <-- verdict <-- AnswerClass <-- event <-- received
///
/// One turn: the driver hands in all completions it has, calls `turn(_:)` once, performs all
/// submissions, and waits for the next completion or for `nextDeadline`.
///
///     running ---- word to stop ----> draining ---- answers in, or awaited long enough ----.
///        '---------- list at its end and every row settled -------------------------------> closing --> finished
@safe package struct ReactorStateMachine<Records: RecordLayer & ~Copyable>: ~Copyable {
    enum Phase {
        case running
        case draining(since: UInt64)
        /// Nothing more is sent; the ledger's last bytes go to disk and connections close.
        case closing(since: UInt64)
        case finished
    }

    let settings: ReactorSettings
    let shared: SharedRun
    /// The reactor's number in the run.
    let reactor: Int
    let recipe: Records.Recipe
    let configuration: ClientConnectionStateMachine.Configuration

    var phase = Phase.running
    var connections: ConnectionTable<Records>
    /// Where the round over the connections starts, so that none is always first.
    var rotation = 0
    var addresses: AddressBook
    var slab: RowSlab
    /// Rows that a server did not process or that a renewed token lets go: first in line.
    var again = RowLine()
    var retryQueue: RetryQueue
    var chunks: ChunkShelf
    var chunkRows: ChunkRows
    /// Rows that wait for the sync of their reservation.
    var held = HeldRows()
    /// Rows that went by in this turn without being sent, and whether that ended before they did.
    var passed = 0
    var passAgain = false
    /// For `--max-invalid`.
    var rowsRead = RowsRead()
    var templates = TemplateCache<RequestTemplate>()
    /// True where rows have more of their own than their token.
    let isPersonal: Bool
    var personalizer: RowPersonalizer
    var personalTemplates = TemplateCache<PersonalTemplate>()
    var pacer: Pacer
    var paceWatch: PaceWatch
    var patience = TurnPatience()
    /// When the pace lets a request through for which all else is there; `.max`: not waited for.
    var nextPaced = UInt64.max
    /// True while this reactor counts among those that share the rate.
    var isCountedHungry = false
    var resolutionFailures = 0
    /// Attempts at a connection so far.
    var connectionsBegun = 0
    /// Connections that this reactor keeps up, and those that it opens at its start.
    var connectionShare: Int
    let firstConnections: Int
    /// The run's target that the share is of.
    var targetVersion: UInt32 = 0
    var ledger: LedgerWriter
    var ledgerState = LedgerProgress()
    var random: SplitMix64
    package var statistics = RunStatistics()
    package var latency = LatencyHistogram()
    /// What is worth a line in the log; handed over with the next report.
    var events = EventBuffer()
    var submissions: SubmissionQueue

    /// Since when no connection is ready, monotonic nanoseconds; nil while one is.
    var disabledSince: UInt64?
    var inFlight = 0
    /// Requests that this reactor may have in flight although none was accepted yet.
    var earlyLeaves = 0
    var canaryReport = CanaryReport()
    var acceptedSinceReport = 0
    var authorizationVersion: UInt32 = 0
    var lastTurn: UInt64
    var startedAt: UInt64
    var nextScan: UInt64 = 0
    /// The process was stopped, and no scan has been made since.
    var hasStalled = false
    /// When the driver has to call again at the latest, monotonic nanoseconds.
    package private(set) var nextDeadline: UInt64 = 0

    /// Plaintext of one received record, and of the record being made.
    let received: UnsafeMutableRawBufferPointer
    let staging: UnsafeMutableRawBufferPointer
    /// A row's pieces put together, and its payload where it goes in parts.
    let piecesScratch: UnsafeMutableRawBufferPointer
    let payloadScratch: UnsafeMutableRawBufferPointer

    /// Timers that need no precision are looked at this often.
    static var scanInterval: UInt64 { 50 * millisecond }
    /// After so long without a turn the process was stopped: turns are a scan apart at most.
    static var stallLimit: UInt64 { second }
    /// So long after a stall what came meanwhile has been taken in.
    static var stallGrace: UInt64 { second }

    package init(
        settings: ReactorSettings, shared: SharedRun, reactor: Int, recipe: Records.Recipe,
        ledger: consuming LedgerWriter, chunkPool: ChunkPool, layout: RowLayout, seed: UInt64,
        now: Now
    ) {
        self.settings = settings
        self.shared = shared
        self.reactor = reactor
        self.recipe = recipe
        addresses = AddressBook(health: shared.addressHealth, reactor: reactor)
        disabledSince = now.nanoseconds
        self.ledger = ledger
        isPersonal = settings.personal != nil
        let payloads = settings.personal ?? PayloadSet(constant: settings.payload)
        personalizer = RowPersonalizer(payloads, layout: layout)
        chunks = ChunkShelf(pool: chunkPool, layout: layout)
        chunkRows = ChunkRows(
            reactors: settings.reactors, perSecond: shared.milliRate.map { Int($0 / 1_000) })
        random = SplitMix64(seed: seed)
        configuration = ClientConnectionStateMachine.Configuration(
            maxStreams: settings.streamsPerConnection,
            gateUntilFirstAnswer: settings.usesProviderToken)
        firstConnections = shared.connectionTarget?.first[reactor] ?? settings.connections
        connectionShare = firstConnections
        connections = ConnectionTable(
            capacity: settings.connections * Self.slotsEachConnection)
        let flights = min(
            settings.connections * settings.streamsPerConnection, settings.limits.flightRows)
        // Half a block for each row in flight, and what all may share: rows with much of their own
        // are fewer at a time.
        let piecesLimit = isPersonal ? RowPersonalizer.piecesLimit(payloads.limit) : 0
        let blockCount = flights / 2 + RowSlab.sharedBlocks / settings.reactors + 64
        slab = RowSlab(
            capacity: flights + settings.limits.retryRows, piecesLimit: piecesLimit,
            blockCount: isPersonal ? blockCount : 0)
        retryQueue = RetryQueue(capacity: flights + settings.limits.retryRows)
        pacer = Pacer(
            milliRate: shared.milliRate.map { $0 / UInt64(settings.reactors) }, now: now.nanoseconds
        )
        paceWatch = PaceWatch(now: now)
        submissions = SubmissionQueue(capacity: connections.capacity * 4 + 16)
        lastTurn = now.nanoseconds
        startedAt = now.nanoseconds
        nextDeadline = now.nanoseconds
        unsafe received = .allocate(byteCount: recordPlaintextLimit + 1024, alignment: 64)
        unsafe staging = .allocate(byteCount: recordPlaintextLimit, alignment: 64)
        unsafe piecesScratch = .allocate(byteCount: piecesLimit, alignment: 8)
        unsafe payloadScratch = .allocate(byteCount: isPersonal ? payloads.limit : 0, alignment: 8)
        makeSlots(now)
    }

    deinit {
        templates.deallocate()
        personalTemplates.deallocate()
        unsafe piecesScratch.deallocate()
        unsafe payloadScratch.deallocate()
        unsafe received.deallocate()
        unsafe cleanse(staging)
        unsafe staging.deallocate()
    }

    /// True when nothing is left to do or to wait for.
    package var isFinished: Bool {
        if case .finished = phase { return true }
        return false
    }

    /// What is worth waiting for together after this turn; nil: the next completion.
    var company: TurnPatience.Wait? { patience.wait(inFlight: inFlight) }

    /// The ledger's write is under way and nothing waits for it: its completion is not worth a turn.
    var writeIsQuiet: Bool {
        ledger.writeIsInFlight && hasListRow && !isBacklogHigh
    }

    /// The next thing to do in the outside world; nil when all was handed out.
    package mutating func nextSubmission() -> ReactorSubmission? {
        submissions.popFirst()
    }

    /// Takes one completion in. Received bytes come by `received(connection:bytes:now:)`.
    package mutating func completed(_ completion: ReactorCompletion, now: Now) {
        switch completion {
        case .resolved(let result): resolved(result, now: now)
        case .connected(let connection, let errno): connected(connection, errno: errno, now: now)
        case .receiveEnded(let connection, let errno):
            receiveEnded(connection, errno: errno, now: now)
        case .sent(let connection, let result): sent(connection, result: result, now: now)
        case .closed(let connection): closed(connection)
        case .wrote(let result): wrote(result)
        case .synced(let result): synced(result)
        case .chunk(let chunk): arrived(chunk, now: now)
        case .listEnded:
            chunks.listEnded()
            shared.noteListEnd()
        case .listHeld: chunks.listHeld()
        case .listFailed(let cause):
            chunks.listEnded()
            shared.stop(cause)
        }
    }

    /// Decides what to do now. Called once after a batch of completions.
    package mutating func turn(_ now: Now) {
        if case .finished = phase { return }
        noteStall(now)
        accountForTime(now)
        paceWatch.noteTurn(now)
        patience.noteTurn()
        if now.nanoseconds >= nextScan {
            nextScan = now.nanoseconds + Self.scanInterval
            hasStalled = false
            scan(now)
        }
        shareRate(now)
        followStopWord(now)
        nextPaced = .max
        chunkRows.adapt(now: now.nanoseconds)
        followTarget(now)
        openConnections(now)
        passed = 0
        passAgain = false
        passRows(now)
        requestChunks(now)
        // Leave for a request that was refused since is not used again.
        giveBackEarlyLeaves()
        for step in 0..<connections.count {
            let index = (rotation + step) % connections.count
            if !connections[index].isSaturated { fill(index, now: now) }
        }
        rotation = (rotation + 1) % connections.count
        if acceptedSinceReport > 0 {
            shared.count(accepted: acceptedSinceReport)
            acceptedSinceReport = 0
        }
        if rowsRead.lease > 0 { reportRowsRead(isIdle: true) }
        if let canary = shared.canary, canary.isPending { report(to: canary) }
        giveBackEarlyLeaves()
        endIfDone(now)
        flushLedger(now)
        nextDeadline = deadline(now)
    }

    /// A process that was stopped (SIGSTOP, a debugger, a frozen container) takes in first what came
    /// meanwhile: only then the scan may call a response, or a sign of life, missing.
    private mutating func noteStall(_ now: Now) {
        guard now.nanoseconds > lastTurn, now.nanoseconds - lastTurn > Self.stallLimit, !hasStalled
        else { return }
        hasStalled = true
        nextScan = now.nanoseconds + Self.stallGrace
    }

    /// What each connection's time since the last look went to.
    private mutating func accountForTime(_ now: Now) {
        let elapsed = now.nanoseconds - lastTurn
        // Turns come faster than that under load, and a sample of each would cost more than it tells.
        guard elapsed >= millisecond else { return }
        lastTurn = now.nanoseconds
        guard case .running = phase else { return }
        var active = 0
        for index in 0..<connections.count where connections[index].isActive {
            active += 1
            if shared.isPaused {
                connections[index].limitedBy = .rate
            } else if !connections[index].isReady {
                connections[index].limitedBy = hasWork ? .connecting : .input
            }
            let limit = connections[index].limitedBy
            let late = limit == .rate ? lateness(index, within: elapsed, now: now) : 0
            statistics.limited[limit.rawValue] += elapsed - late
            statistics.limited[LimitedBy.cpu.rawValue] += late
        }
        guard active == 0 else { return }
        statistics.limited[limitWithoutConnections.rawValue] +=
            elapsed * UInt64(max(1, connectionShare))
    }

    /// What those connections wait for that are not even begun.
    private var limitWithoutConnections: LimitedBy {
        if !hasWork { return .input }
        if shared.isPaused { return .rate }
        return addresses.troubledCount > 0 || resolutionFailures > 0 ? .retry : .connecting
    }

    /// For how much of the time a connection that waited for its pace was not held back by it any
    /// more: the reactor had no turn, and the rate went by unused. A turn that is late by no more than
    /// the pace makes up for costs nothing.
    private func lateness(_ index: Int, within elapsed: UInt64, now: Now) -> UInt64 {
        if shared.isPaused { return 0 }
        let held = max(pacer.holdsUntil, connections[index].pacer.holdsUntil)
        return now.nanoseconds > held ? min(now.nanoseconds - held, elapsed) : 0
    }

    private func deadline(_ now: Now) -> UInt64 {
        if passAgain, !isBacklogHigh { return now.nanoseconds }
        var deadline = nextScan
        // What is due and still waits, waits for a connection or for the pace, not for the clock.
        if let due = retryQueue.nextDue, due > now.nanoseconds { deadline = min(deadline, due) }
        if let due = addresses.nextAttempt {
            deadline = min(deadline, max(due, now.nanoseconds + millisecond))
        }
        if let due = nextWriteDue { deadline = min(deadline, due) }
        deadline = min(deadline, nextPaced)
        return deadline
    }
}
