import BroadsideEngine
internal import BroadsideLedgerFormat
import BroadsideLists
import BroadsideObservability
internal import BroadsidePayloads
internal import BroadsidePolicy
import BroadsideRing
internal import BroadsideRows
import BroadsideSupport
import BroadsideTLS
internal import Glibc
internal import Synchronization

extension LedgerSession {
    /// Clock of a rising rate. It continues the clock of the previous run if the rate is the same.
    /// nil if the rate is constant.
    fileprivate func rampClock(_ plan: Plan) -> RampClock? {
        guard let ramp = plan.options.rate?.ramp else { return nil }
        let earlier = isResumed ? Telemetry.read(from: directory)?.sentNanoseconds(of: ramp) : nil
        return RampClock(ramp, sentNanoseconds: earlier ?? 0)
    }
}

/// The threads of a run in progress, which the main thread supervises.
struct LiveRun {
    private let plan: Plan
    private let session: LedgerSession
    private let prepared: PreparedRun
    private let list: TokenList
    /// Credential at the beginning of the pass.
    private let sender: Sender
    private let tlsConfiguration: TLSConfigurationBox
    private let settings: ReactorSettings
    private let coordinator: RunCoordinator
    private let services: ReactorServices
    private let pool: ChunkPool
    private let start: Now
    private let outlets: RunOutlets
    private let passes: RunPasses
    /// Rows that are due in this pass; nil: all.
    private let due: DueRows?

    init(
        _ plan: Plan, _ prepared: PreparedRun, list: TokenList, context: TLSContext,
        outlets: RunOutlets, passes: RunPasses
    ) throws(BroadsideError) {
        self.passes = passes
        due = passes.due
        self.plan = plan
        self.prepared = prepared
        session = prepared.session
        self.list = list
        self.outlets = outlets
        start = Clock.now()
        sender =
            passes.requests.sender
            ?? Sender(credential: plan.credential, route: plan.route, context: context)
        tlsConfiguration = TLSConfigurationBox(sender.route.tlsConfiguration(sender.context))
        settings = plan.reactorSettings(manifest: session.manifest)
        let authorization = try sender.credential.authorization(
            nowSeconds: start.wallMilliseconds / 1000)
        session.directory.removeEarlierProviderTokens()
        coordinator = RunCoordinator(
            authorization: authorization.value, issuedAt: authorization.issuedAtSeconds,
            milliRate: plan.options.rate.map { milliRate($0.last) },
            ramp: session.rampClock(plan),
            abortAfter: plan.options.abortAfter,
            maxBadTokensPercent: plan.options.maxBadTokens,
            assumesCanary: plan.options.assumesCanary,
            topics: plan.payloads.set.topic?.topics,
            // The rows of later waves were read, too, to find their zones.
            rowsRead: session.rowsRead(more: passes.laterRows), canary: session.canaryGate(),
            connectionTarget: plan.connectionTarget,
            sign: authorization.sign, keyID: authorization.keyID)
        passes.requests.begin(coordinator, start)
        services = ReactorServices(route: plan.route, reactors: plan.shape.reactors)
        pool = ChunkPool(reactors: plan.shape.reactors)
    }

    /// Runs until the end of the pass.
    ///
    /// - Returns: The exit code; nil if more rows are due later, in the next pass.
    func run(_ signals: SignalWatch) throws(BroadsideError) -> Int32? {
        let shownSize = plan.options.progress == .none ? nil : prepared.size
        let planText = shownSize.map { size in
            plan.description(
                of: list, size: size, ahead: ahead(of: size), alert: prepared.alert,
                waves: passes.waves,
                for: STDERR_FILENO)
        }
        if let planText, passes.endedCount == 0 {
            standardError(planText)
            let call = "broadside control --ledger \(shellWord(session.directory.path))"
            standardError(
                folded(
                    "control      \(call) status|rate N|pause|resume|stop", indent: 13,
                    for: STDERR_FILENO))
        }
        var selection = session.selection
        selection.due = due
        let source = try ListSource(
            list: list, pool: pool, plan: session.resumePlan(), selection: selection,
            canary: coordinator.canary, isHashed: session.manifest.listHash == nil)
        // From here on only the list thread accesses the list.
        try services.start(list: source)
        // If a resume begins after the deadline, nothing may be sent before the watch first checks
        // the deadline.
        if passes.deadline?.hasPassed(Clock.now()) == true {
            passes.stopTooLate(isResumed: session.isResumed)
        }
        var threads: [ReactorThread] = []
        let monitor = RunMonitor(
            plan, session: session, coordinator: coordinator, services: services, source: source,
            outlets: outlets, passes: passes, alert: prepared.alert, planText: planText,
            start: start, wake: { for thread in threads { thread.wake() } })
        let watch = PassWatch(
            credential: CredentialWatch(
                plan, sender, coordinator: coordinator, tlsConfiguration: tlsConfiguration,
                requests: passes.requests, now: start),
            ledger: LedgerWatch(session.directory, now: start), deadline: passes.deadline,
            quietAt: passes.quietAt, nextWaveAt: passes.nextWaveAt)
        if passes.endedCount == 0 { plan.options.host?.begin() }
        if passes.requests.takeReload() { watch.credential.reload(Clock.now()) }
        waitForWave(watch, signals, monitor)
        // A run without waves begins even if it was already stopped, and then ends at once.
        if passes.waves == nil || !coordinator.isStopping {
            threads = try makeThreads()
            watch.ledger.watch(
                segments: threads.indices.map {
                    LedgerFormat.segmentName(epoch: session.epoch, reactor: UInt16($0))
                })
            for thread in threads { thread.start() }
            passes.callHook()
            while !threads.allSatisfy(\.hasEnded) {
                poll(watch, threads, signals, monitor)
                endPassIfDue(watch, source, threads)
            }
        }
        watch.credential.end()
        for thread in threads { thread.join() }
        services.stop()
        let listEnd = ListEnd(source, of: services, coordinator, passes.requests, signals)
        monitor.reactorsEnded(Clock.now())
        // The latest check may be a second old.
        if watch.ledger.isGone { coordinator.stop(.ledgerGone) }
        return try finish(threads, source: source, listEnd, signals, monitor)
    }

    /// Ends the pass if quiet hours begin, or if the next wave is due and only rows that wait to be
    /// sent again are left.
    private func endPassIfDue(
        _ watch: PassWatch, _ source: ListSource, _ threads: [ReactorThread]
    ) {
        guard !coordinator.isStopping else { return }
        let now = Clock.now().wallMilliseconds
        let isQuiet = watch.quietAt.map { now >= $0 } ?? false
        let isNextDue = watch.nextWaveAt.map { now >= $0 } ?? false
        guard isQuiet || isNextDue && source.progress.isAtEnd else { return }
        passes.endEarly(for: isQuiet ? .quietHours : .nextWave)
        coordinator.stop(.control)
        for thread in threads { thread.wake() }
    }

    /// Creates the reactors and their segments.
    private func makeThreads() throws(BroadsideError) -> [ReactorThread] {
        var threads: [ReactorThread] = []
        var segments: [Int32] = []
        for reactor in 0..<plan.shape.reactors {
            let segment = try session.directory.createSegment(
                epoch: session.epoch, reactor: UInt16(reactor))
            segments.append(segment)
            threads.append(
                try ReactorThread(
                    reactor: reactor, settings: settings, coordinator: coordinator,
                    services: services,
                    recordConfiguration: tlsConfiguration, pool: pool, layout: list.layout,
                    campaign: session.segmentNumber, epoch: session.epoch,
                    segment: segment, claim: session.directory.claim?.descriptor ?? -1,
                    trace: outlets.trace))
        }
        // Every segment is durable before any row is reserved, so a segment that is missing later
        // must have been lost. All segments have names before the first header is written.
        try session.directory.syncDirectory()
        for (reactor, segment) in segments.enumerated() {
            try session.directory.writeHeader(
                segment, campaign: session.segmentNumber, epoch: session.epoch,
                reactor: UInt16(reactor))
        }
        try session.recordCreatedSegments()
        return threads
    }

    /// Rows that earlier runs left; nil in a first run, or if the list's size is unknown.
    private func ahead(of size: ListSize) -> RowsAhead? {
        guard session.isResumed else { return nil }
        return RowsAhead(
            leftOf: size, settled: session.kept.settled,
            sentSeconds: Double(coordinator.ramp?.sentNanoseconds ?? 0) / 1e9,
            elapsedSeconds: RowsAhead.seconds(
                since: session.manifest.firstStartedAtMilliseconds, start),
            plan.options)
    }

    /// Waits until the rows of the pass are due or the run is stopped. No connection is opened
    /// meanwhile.
    private func waitForWave(_ watch: PassWatch, _ signals: SignalWatch, _ monitor: RunMonitor) {
        guard passes.waves != nil else { return }
        while !coordinator.isStopping, Clock.now().wallMilliseconds < passes.dueAt {
            poll(watch, [], signals, monitor)
        }
        guard !coordinator.isStopping else { return }
        // A machine that was suspended when the wave was due may wake during quiet hours.
        if let quiet = watch.quietAt, Clock.now().wallMilliseconds >= quiet {
            passes.endEarly(for: .quietHours)
            coordinator.stop(.control)
            return
        }
        monitor.beginWave(Clock.now())
    }

    /// Reports progress and forwards signals; called repeatedly.
    private func poll(
        _ watch: PassWatch, _ threads: [ReactorThread], _ signals: SignalWatch,
        _ monitor: RunMonitor
    ) {
        switch signals.wait(milliseconds: watch.wait(from: Clock.now())) {
        case .stop:
            passes.requests.handleSignal()
            for thread in threads { thread.wake() }
        case .reload:
            if coordinator.isStopping {
                passes.requests.reloadLater()
            } else {
                watch.credential.reload(Clock.now())
            }
        case .finished, .timeout:
            break
        }
        let now = Clock.now()
        if let deadline = watch.deadline, deadline.hasPassed(now),
            !coordinator.isStopping || passes.endsEarly
        {
            passes.requests.stop(.deadline)
            for thread in threads { thread.wake() }
        }
        if watch.ledger.isGone(now) {
            coordinator.stop(.ledgerGone)
            for thread in threads { thread.wake() }
        }
        outlets.trace?.setStopping(coordinator.isStopping)
        rememberCanary()
        if watch.credential.poll(now) {
            for thread in threads { thread.wake() }
        }
        monitor.update(now)
    }

    /// Stop cause that corresponds to an error of the ledger.
    private static func cause(of error: BroadsideError) -> StopCause {
        error.exitCode == ExitCode.inUse
            ? .superseded : .ledgerFailed(detail: error.message)
    }

    /// Records that the canary has passed, so that a resume needs no canary.
    private func rememberCanary() {
        // Without a response, the canary has proved nothing for the rows of later waves.
        guard let canary = coordinator.canary, canary.verdict == .passed,
            canary.counts.responses > 0, coordinator.stopCause != .ledgerGone
        else { return }
        do throws(BroadsideError) {
            try session.recordPassedCanary()
        } catch {
            coordinator.stop(Self.cause(of: error))
        }
    }

    private func finish(
        _ threads: [ReactorThread], source: ListSource, _ listEnd: ListEnd,
        _ signals: SignalWatch, _ monitor: RunMonitor
    ) throws(BroadsideError) -> Int32? {
        let pass = PassResult(of: threads, sendingSince: monitor.sendingSince)
        let use = ProcessUse.now()
        if pass.failure == nil, isListRead(source, pass.statistics) {
            coordinator.checkRowsAtEnd()
        }
        var stop = coordinator.stopCause ?? pass.failure
        let hasWaited = threads.isEmpty && passes.waves != nil
        let endRow =
            (hasWaited ? session.manifest.rowCount : nil) ?? listEnd.endRow(stop: stop)
        stop = passes.finalStop(after: stop)
        var summary = try summary(stop: stop, pass.statistics, endRow: endRow)
        if isOver(stop, pass.statistics), leavesRows(pass.statistics, endRow: endRow),
            passes.hasNext(Clock.now())
        {
            try endPass(threads, listEnd, endRow: endRow, pass.statistics)
            monitor.endPass(summary, Clock.now())
            writes(signals).awaitTelemetry(monitor)
            passes.end(pass.statistics, pass.latency, seconds: pass.seconds, Clock.now())
            return nil
        }
        if stop == nil, try checkPart(summary, pass.statistics) { stop = coordinator.stopCause }
        passes.add(pass.statistics, pass.latency, seconds: pass.seconds)
        summary.take(
            use: use, statistics: passes.statistics, latency: passes.latency,
            elapsed: passes.sendingSeconds, requests: passes.statistics.requests)
        summary.waves = passes.waves?.waves
        summary.connectionsReason = monitor.growthDescription

        var conclusion = RunConclusion(
            stop: stop, pass.statistics, of: passes, earlier: session.earlier.counts,
            isWhole: (summary.remaining ?? 1) == 0, coordinator)
        do throws(BroadsideError) {
            try record(conclusion, threads, listEnd, endRow: endRow, pass.statistics)
        } catch {
            // The segments contain the rows, so the monitor still receives the summary.
            conclusion.cause = Self.cause(of: error)
        }
        if case .single = plan.options.tokens, summary.accepted > 0 {
            summary.uniqueID = session.uniqueIDOfFirstRow
        }
        summary.outcome = conclusion.outcome(summary)
        let isDiscarded =
            !session.isResumed && conclusion.discardsLedger(isExpected: plan.expectsLedger)
            && plan.options.night?.withdraw() ?? true
        var circumstances = StopAdvice.Circumstances(
            plan, session, summary, wasAnswered: conclusion.wasAnswered)
        circumstances.hasLedger = !isDiscarded
        let advice = conclusion.advice(circumstances)
        let message = conclusion.message(advice, summary, plan)
        monitor.end(summary, stop: conclusion.record, message: message, now: Clock.now())
        let writes = writes(signals)
        writes.awaitTelemetry(monitor)
        if conclusion.ownsLedger, session.hasClaim { writes.awaitClaim(monitor) }
        let ending = RunEnding(
            plan: plan, session: session, passes: passes, conclusion: conclusion,
            summary: summary, advice: advice, message: message, isDiscarded: isDiscarded,
            signals: signals, isUrgent: { coordinator.isStoppingAtOnce })
        return try ending.finish {
            monitor.reportPage(
                summary, cause: conclusion.cause, advice: advice,
                isUrgent: coordinator.isStoppingAtOnce, now: Clock.now())
        }
    }

    /// Checks a part of a campaign that has sent all its rows and reached no device.
    ///
    /// - Returns: Whether the check was made. It may have stopped the campaign.
    private func checkPart(
        _ summary: Summary, _ statistics: RunStatistics
    ) throws(BroadsideError) -> Bool {
        guard plan.options.part != nil, statistics.refusedByCredential == 0,
            summary.remaining == 0, summary.accepted == 0
        else { return false }
        coordinator.checkPartAtEnd(SentRows(try session.count()))
        return true
    }

    /// Summary of the verdicts of all rows of the campaign, from this run and earlier ones.
    private func summary(
        stop: StopCause?, _ statistics: RunStatistics, endRow: UInt64?
    ) throws(BroadsideError) -> Summary {
        var summary = Summary(campaign: session.campaign, outcome: .complete)
        summary.take(session.manifest)
        summary.guards = GuardStatus(
            session.manifest, coordinator, isAssumed: plan.options.assumesCanary)
        summary.topics = coordinator.topicReports
        summary.take(
            session.kept + statistics.counts,
            rows: session.rowCount(with: session.earlier, upTo: endRow))
        summary.unsendable = session.earlier.unsendable
        try takeOpenRows(&summary, stop: stop, endRow: endRow)
        summary.connections = coordinator.connectionTarget?.total ?? plan.shape.connections
        summary.retries = session.manifest.counters.retries + statistics.retries
        summary.shortened = session.manifest.counters.shortened(with: statistics.shortened)
        summary.reconnects = session.manifest.counters.reconnects + statistics.reconnects
        return summary
    }

    /// Whether the pass has sent all its rows, or quiet hours have ended it.
    private func isOver(_ stop: StopCause?, _ statistics: RunStatistics) -> Bool {
        passes.goesOn(after: stop)
            && !RunPasses.endsRun(
                refused: statistics.refusedByCredential
                    - TopicReport.disallowedRows(coordinator.topicReports),
                accepted: passes.statistics.counts[.accepted] + statistics.counts[.accepted])
    }

    /// Whether rows are left that this process has to settle. A row that it has to reopen is left,
    /// too, until a pass has read it, although the ledger has its earlier verdict.
    private func leavesRows(_ statistics: RunStatistics, endRow: UInt64?) -> Bool {
        let settled = (session.kept + statistics.counts).settled
        return session.rowCount(with: session.earlier, upTo: endRow).map { $0 > settled } ?? true
    }

    /// Writes the end of a pass to the ledger, if another pass follows.
    private func endPass(
        _ threads: [ReactorThread], _ listEnd: ListEnd, endRow: UInt64?,
        _ statistics: RunStatistics
    ) throws(BroadsideError) {
        rememberCanary()
        try session.end(
            lengths: threads.map(\.segmentLength), rows: endRow, listByteCount: list.byteCount,
            listHash: nil, isFinished: false, statistics: statistics, stop: nil)
    }

    /// Writes the end of the run to the ledger.
    private func record(
        _ conclusion: RunConclusion, _ threads: [ReactorThread], _ listEnd: ListEnd,
        endRow: UInt64?, _ statistics: RunStatistics
    ) throws(BroadsideError) {
        // The end of a compressed list is known only now, and is in memory.
        let knowsEnd = conclusion.isWhole && list.bytes.compression != nil
        let overwritten = passes.statistics.overwritten
        if overwritten.count > 0 || knowsEnd { try? list.warnOfDamage(overwritten) }
        // A later resume compares the hash or, if there is none, the parts that were sent.
        let listHash = conclusion.isWhole ? listEnd.contentHash() : nil
        guard conclusion.ownsLedger else { return }
        rememberCanary()
        try session.end(
            lengths: threads.map(\.segmentLength), rows: endRow, listByteCount: list.byteCount,
            listHash: listHash, isFinished: conclusion.isWhole, statistics: statistics,
            stop: conclusion.record)
    }

    private func writes(_ signals: SignalWatch) -> FinalWrites {
        FinalWrites(session, coordinator, passes.requests, trace: outlets.trace, signals)
    }

    /// Reads the ledger if rows remain, or if rows in doubt became unknown. Only the ledger shows
    /// which rows are in doubt, which were not reopened, and which `--retry` does not send. After a
    /// second signal, a campaign's first run does not read the ledger.
    private func takeOpenRows(
        _ summary: inout Summary, stop: StopCause?, endRow: UInt64?
    ) throws(BroadsideError) {
        let recorded: LedgerSummary?
        switch stop {
        case .superseded: recorded = try? session.count(ofOwnRuns: true)
        // The ledger lacks the latest counts of this process.
        case .ledgerFailed: recorded = try? session.count()
        case _ where summary.remaining == 0:
            guard session.earlier.count(.inDoubt) > 0, summary.unknown > 0,
                !coordinator.isStoppingAtOnce, let recorded = try? session.count()
            else { return }
            summary.unsendable = recorded.unsendable
            return
        // The ledger is unreadable or was moved.
        case .ledgerGone: recorded = nil
        case _ where session.isResumed: recorded = try session.count()
        default: recorded = coordinator.isStoppingAtOnce ? nil : try? session.count()
        }
        if let recorded {
            summary.take(recorded.counts, rows: session.rowCount(with: recorded, upTo: endRow))
            summary.unsendable = recorded.unsendable
        } else {
            summary.isInDoubtKnown = summary.remaining == 0
        }
    }

    /// Whether every row of the list was read and has a verdict.
    private func isListRead(_ source: ListSource, _ statistics: RunStatistics) -> Bool {
        coordinator.stopCause == nil && statistics.refusedByCredential == 0
            && source.progress.isAtEnd
    }
}
