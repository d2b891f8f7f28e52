import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideLists
import BroadsideObservability
import BroadsidePolicy
import BroadsideSupport

/// Reports a run's progress and serves its control socket, on the main thread, ten times per
/// second. It takes its data from one sample of the reactors' statistics per second.
final class RunMonitor {
    private let plan: Plan
    private let session: LedgerSession
    private let coordinator: RunCoordinator
    private let services: ReactorServices
    private let source: ListSource
    private let outlets: RunOutlets
    private let passes: RunPasses
    /// Whether the run waits for its next wave.
    private var isWaiting: Bool
    /// Time at which the run began to send, or to wait for its next wave.
    private(set) var sendingSince: Now
    /// Wakes the reactors, so that they read the shared state.
    private let wake: () -> Void

    private var sampler: RunSampler
    private var growth: GrowthWatch?
    private var progress: Progress
    private var log: EventLog
    private var telemetry: Telemetry
    private var notices: RunNotices
    private var report = ReactorReport()
    private var nextSave: UInt64
    private let telemetryFile: BackgroundFile<[UInt8]>
    private let metricsFile: BackgroundFile<String>?
    private var hasEnded = false
    /// Keyboard input; nil if no progress is shown, if standard input is the list, or if it is not
    /// a terminal.
    private let terminal: TerminalKeys?
    private var keys: RunKeys?
    /// The plan that is printed before the run, and again with the help about keys; nil if no
    /// progress is shown.
    private let planText: String?

    /// Interval between writes of the telemetry.
    private static var saveInterval: UInt64 { 15 * second }

    init(
        _ plan: Plan, session: LedgerSession, coordinator: RunCoordinator,
        services: ReactorServices,
        source: ListSource, outlets: RunOutlets, passes: RunPasses, alert: AlertText?,
        planText: String?, start: Now,
        wake: @escaping () -> Void
    ) {
        self.plan = plan
        self.session = session
        self.coordinator = coordinator
        self.services = services
        self.source = source
        self.outlets = outlets
        self.passes = passes
        isWaiting = passes.dueAt > start.wallMilliseconds
        sendingSince = start
        self.wake = wake
        // SAFETY: only the file's thread replaces the file, and the properties of the directory
        // that it reads (path, descriptor, claim) were set before the run.
        nonisolated(unsafe) let directory = session.directory
        telemetryFile = BackgroundFile(
            "\(session.directory.path)/\(Telemetry.fileName)",
            consequence: "the report will have no curves"
        ) { (bytes) throws(BroadsideError) in
            try unsafe directory.checkClaim()
            try unsafe directory.replace(Telemetry.fileName, with: bytes, syncsName: false)
        }
        metricsFile = outlets.metrics.map { metrics in
            BackgroundFile(
                plan.options.metrics ?? "", consequence: "the metrics are not updated"
            ) { (text) throws(BroadsideError) in try metrics.publish(text) }
        }
        sampler = RunSampler(
            session.surroundings(plan, source: source, passes, start), start: start)
        growth = GrowthWatch(plan, target: coordinator.connectionTarget)
        progress = Progress(plan.options.progress)
        self.planText = planText
        // A list that is typed at the terminal must not be read as keys.
        terminal = progress.isLive && plan.options.tokens != .file("-") ? TerminalKeys() : nil
        keys = terminal.map { _ in RunKeys() }
        log = EventLog(
            plan.options.log, progress: plan.options.progress,
            campaign: hexadecimal(session.campaign), name: session.manifest.name,
            labels: session.manifest.labels ?? [:],
            isOnTerminal: progress.isLive)
        telemetry = Self.telemetry(plan, session, passes, alert, start)
        // The operator paused an earlier pass.
        if coordinator.isPaused { telemetry.beginPause(atMilliseconds: start.wallMilliseconds) }
        nextSave = start.nanoseconds + Self.saveInterval
        notices = RunNotices(
            plan, coordinator, services, passes, list: source.list.name, start: start)
        if passes.endedCount == 0 {
            var started = RunEvent.Fields()
            started.endpoint = plan.hostAndPort
            report(
                RunEvent(
                    .started, .info,
                    "run \(session.epoch) of campaign \(hexadecimal(session.campaign))"
                        + " to \(plan.hostAndPort)", milliseconds: start.wallMilliseconds,
                    fields: started), start)
        }
        sampler.take(waves: passes.progress(start, isWaiting: isWaiting))
        // The warnings are already on standard error. Here they are added to the log, if a log was
        // requested.
        for warning in session.claimWarnings where plan.options.log != nil {
            report(
                RunEvent(
                    .ledgerCopied, .warning, warning, milliseconds: start.wallMilliseconds), start)
        }
    }

    /// Continues the telemetry of the ledger's earlier runs with this run.
    private static func telemetry(
        _ plan: Plan, _ session: LedgerSession, _ passes: RunPasses, _ alert: AlertText?,
        _ start: Now
    ) -> Telemetry {
        var telemetry = Telemetry.read(from: session.directory) ?? Telemetry()
        telemetry.begin(
            session.epoch, atMilliseconds: start.wallMilliseconds, settings: plan.settings,
            earlierPasses: passes.endedCount)
        telemetry.command = plan.options.command
        if let report = plan.options.report { telemetry.recordReport(report) }
        telemetry.hasEndpoint = plan.options.endpoint != nil
        telemetry.credential = StopAdvice.CredentialKind(plan.credential).rawValue
        telemetry.alert = alert
        telemetry.firstTopic = plan.payloads.firstTopic
        if let waves = passes.waves?.waves { telemetry.record(waves: waves) }
        telemetry.givenListPath = plan.options.givenListPath
        if telemetry.listModifiedAtMilliseconds == nil, let path = session.manifest.listPath {
            telemetry.listModifiedAtMilliseconds = modifiedAtMilliseconds(path)
        }
        return telemetry
    }

    /// Performs the periodic work of a run. Called repeatedly until the run ends.
    func update(_ now: Now) {
        for control in outlets.controls { control.serve { [self] line in response(line, now) } }
        plan.options.host?.serve { (request) throws(BroadsideError) in try obey(request, now) }
        takeKeys(now)
        takeEvents(now)
        telemetryFile.takeResult()
        guard sampler.isDue(now) else { return }
        sample(now)
        grow(now)
        for warning in notices.obstacles(now) { report(warning, now) }
        publishMetrics()
        keys?.forget(now.nanoseconds)
        progress.show(sampler.snapshot, keys: keys)
        plan.options.host?.take(snapshotNow)
        if now.nanoseconds >= nextSave { save(now) }
    }

    /// Handles the start of a pass over the waves that are due. If the run has waited, curves and
    /// rates begin at this time.
    func beginWave(_ now: Now) {
        assert(!hasEnded, "a wave begins before the reactors end")
        if isWaiting {
            isWaiting = false
            sendingSince = now
            sampler = RunSampler(
                session.surroundings(plan, source: source, passes, now), start: now)
            telemetry.restart(atMilliseconds: now.wallMilliseconds)
        }
        passes.beginWaves()
        telemetry.send(waves: passes.sentWaves)
        sampler.take(waves: passes.progress(now, isWaiting: false))
        for text in passes.beginnings.compactMap(\.currentText) {
            report(RunEvent(.wave, text, now), now)
        }
    }

    /// Handles the end of a pass, if another pass follows.
    func endPass(_ summary: Summary, _ now: Now) {
        telemetry.end(
            outcome: nil, cause: nil, counts: summary.counts, atMilliseconds: now.wallMilliseconds)
        publishMetrics()
        save(now)
    }

    /// Handles the end of the reactors. Nothing is redrawn afterwards.
    func reactorsEnded(_ now: Now) {
        assert(!hasEnded, "a run ends once")
        hasEnded = true
        terminal?.restore()
        takeEvents(now)
        sample(now)
        plan.options.host?.take(snapshotNow)
        progress.finish()
    }

    /// Records the end of a run in metrics, telemetry and log.
    ///
    /// - Parameter message: The last line of the run; nil if all is well.
    func end(_ summary: Summary, stop: StopRecord, message: String?, now: Now) {
        assert(hasEnded, "the reactors end before the run")
        sampler.end(summary)
        publishMetrics()
        progress.end(snapshotNow)
        telemetry.end(
            outcome: summary.outcome.rawValue, cause: message, stop: stop,
            counts: summary.counts, atMilliseconds: now.wallMilliseconds)
        var fields = RunEvent.Fields()
        fields.outcome = summary.outcome.rawValue
        fields.cause = stop.kind
        fields.status = stop.status
        fields.reason = stop.reason.map { printable($0) }
        fields.counts = summary.counts
        report(
            RunEvent(
                .ended, .info, "\(summary.outcome.rawValue): \(summary.accepted) accepted",
                milliseconds: now.wallMilliseconds, fields: fields), now)
        save(now)
    }

    /// Page of `--report`.
    ///
    /// - Parameter isUrgent: Whether to omit the curves of killed runs, because they require
    ///   reading the ledger's rows.
    func reportPage(
        _ summary: Summary, cause: StopCause, advice: StopAdvice, isUrgent: Bool, now: Now
    ) -> [UInt8] {
        let epochs = session.manifest.epochs
        var course: SettlementTimeline?
        let untimed = telemetry.runsWithoutEnd(epochs)
        if !untimed.isEmpty, !isUrgent {
            course = session.earlierCourse(telemetry.withoutWaits(epochs), of: untimed)
        }
        var data = ReportData(
            summary: summary, telemetry: telemetry, epochs: epochs, course: course,
            ledgerPath: session.directory.path, listPath: session.manifest.listPath,
            createdAtMilliseconds: now.wallMilliseconds)
        data.identity = session.manifest.identity
        data.cause = cause
        data.steps = advice.steps
        data.hasLedger = advice.hasLedger
        return ReportPage(data: data).html
    }

    private var phase: RunSnapshot.Phase {
        hasEnded
            ? .finished
            : coordinator.isStopping
                ? .stopping
                : coordinator.isPaused ? .paused : isWaiting ? .waiting : .running
    }

    private func sample(_ now: Now) {
        report = services.report
        sampler.sample(
            report, list: source.progress, phase: phase, milliRate: coordinator.milliRate,
            ramp: coordinator.ramp,
            guards: GuardStatus(
                session.manifest, coordinator, isAssumed: plan.options.assumesCanary), now: now)
        sampler.take(waves: passes.progress(now, isWaiting: isWaiting))
        if isWaiting {
            telemetry.wait(untilMilliseconds: now.wallMilliseconds)
        } else {
            telemetry.take(sampler.snapshot, sampler.series, report)
        }
        sampler.take(topics: coordinator.topicReports)
        if let warning = notices.stoppedTopics(sampler.snapshot.topics, now) {
            report(warning, now)
        }
        // A rate set by the operator applies to this process only.
        if let ramp = coordinator.ramp, ramp.ramp == plan.options.rate?.ramp {
            telemetry.take(ramp)
        }
    }

    /// Reason for the run's number of connections; nil if the run did not choose it.
    var growthDescription: String? { growth?.words }

    /// Adds connections if that increases throughput.
    private func grow(_ now: Now) {
        guard
            let message = growth?.observe(
                sampler.snapshot, threads: services.threadUses, growthSuspended: growthSuspended)
        else { return }
        sampler.want(connections: coordinator.connectionTarget?.total ?? plan.shape.connections)
        wake()
        report(RunEvent(.growth, message, now), now)
    }

    private var growthSuspended: Bool {
        !coordinator.anyAccepted || coordinator.canary?.isPending == true || phase != .running
    }

    /// Warns that the ledger's claim could not be renewed at the end of the run. This matters to
    /// operators who keep copies of ledgers.
    func reportEndClaim(_ problem: String, _ now: Now) {
        let warning =
            "the ledger could not renew its claim at the end: \(problem). The recorded outcomes "
            + "are correct, but do not resume a copy of the ledger that was made during this run, "
            + "because broadside can't detect that such a copy is old"
        standardErrorLine("broadside: warning: \(warning)")
        guard plan.options.log != nil else { return }
        report(
            RunEvent(.ledgerCopied, .warning, warning, milliseconds: now.wallMilliseconds), now)
    }

    // MARK: Events

    private func report(_ event: RunEvent, _ now: Now) {
        log.write(event, now: now.nanoseconds)
        plan.options.host?.take(event)
        if event.level >= .notice { telemetry.add(event) }
    }

    private func takeEvents(_ now: Now) {
        let events = notices.events(
            sampler.snapshot, retries: report.statistics.ownRetries, now)
        for event in events { report(event, now) }
        log.flush(now: now.nanoseconds, isEnd: hasEnded)
    }

    // MARK: Files

    /// Schedules a write of the data for the report.
    private func save(_ now: Now) {
        nextSave = now.nanoseconds + Self.saveInterval
        telemetryFile.put(telemetry.encoded)
    }

    private func publishMetrics() {
        metricsFile?.put(MetricsText(sampler.snapshot, use: ProcessUse.now()).text)
    }

    /// Whether the telemetry is still being written to the ledger's disk.
    var isSaving: Bool { telemetryFile.isWriting }

    /// Whether the metrics are still being written.
    var isPublishing: Bool { metricsFile?.isWriting ?? false }

    /// Gives up waiting for unfinished writes at the end of the run.
    func abandonWriting() {
        telemetryFile.leave()
        metricsFile?.leave()
    }

    // MARK: Control

    private func response(_ line: String, _ now: Now) -> String {
        var response = JSONLine()
        do throws(BroadsideError) {
            let request = try ControlRequest(line)
            try obey(request, now)
            response.add("ok", true)
            if request == .status {
                response.add("campaign", hexadecimal(session.campaign))
                response.append(snapshotNow.json)
            } else {
                response.add("phase", phase.rawValue)
                response.add(
                    "rate_limit", coordinator.milliRate.map { Double($0) / 1000 }, places: 3)
            }
        } catch {
            response = JSONLine()
            response.add("ok", false)
            response.add("error", error.message)
        }
        return response.object
    }

    /// Latest sample, updated with settings that changed after it.
    private var snapshotNow: RunSnapshot {
        var snapshot = sampler.snapshot
        snapshot.phase = phase
        snapshot.rateLimit = coordinator.milliRate.map { Double($0) / 1000 }
        snapshot.ramp = coordinator.ramp
        return snapshot
    }

    /// Performs the actions of keys typed at the terminal.
    private func takeKeys(_ now: Now) {
        guard let terminal else { return }
        let typed = terminal.take()
        guard !typed.isEmpty, !coordinator.isStopping else { return }
        for action in keys?.take(typed, now: now.nanoseconds) ?? [] { perform(action, now) }
        progress.redraw(snapshotNow, keys: keys)
    }

    private func perform(_ action: RunKeys.Action, _ now: Now) {
        let request: ControlRequest
        switch action {
        case .pause: request = .pause
        case .resume: request = .resume
        case .stop: request = .stop
        case .help:
            standardError([RunKeys.help, planText].compactMap(\.self).joined(separator: "\n"))
            return
        case .faster, .slower:
            let snapshot = snapshotNow
            guard
                let rate = RunKeys.rate(
                    action, limit: snapshot.rateLimit, rate: snapshot.rateNow)
            else {
                standardError(
                    action == .faster
                        ? "the run has no --rate" : "the rate is not known yet: try again")
                return
            }
            request = .rate(SendRate(rate))
        }
        do throws(BroadsideError) {
            try obey(request, now, stopCause: .keyboard)
        } catch {
            standardErrorLine("broadside: \(error.message)")
        }
    }

    private func obey(_ request: RunHost.Request, _ now: Now) throws(BroadsideError) {
        let asked: ControlRequest =
            switch request {
            case .rate(let rate): .rate(rate.map { SendRate($0) })
            case .pause: .pause
            case .resume: .resume
            case .stop: .stop
            }
        try obey(asked, now)
    }

    /// - Parameter stopCause: Cause of the run's end if the request is to stop.
    private func obey(
        _ request: ControlRequest, _ now: Now, stopCause: StopCause = .control
    ) throws(BroadsideError) {
        guard request != .status else { return }
        // A pass that ends because of quiet hours is followed by others.
        guard !coordinator.isStopping || passes.endsEarly else {
            throw .request("the run is stopping already: start it again with --resume")
        }
        switch request {
        case .status:
            return
        case .rate(let rate):
            if let ramp = rate?.ramp {
                coordinator.ramp = RampClock(ramp)
            } else {
                coordinator.milliRate = rate.map { milliRate($0.last) }
            }
            report(RunEvent(.control, "the operator \(rate.changeText)", now), now)
        case .pause:
            coordinator.pause(true)
            telemetry.beginPause(atMilliseconds: now.wallMilliseconds)
            report(RunEvent(.control, "the operator paused the run", now), now)
        case .resume:
            coordinator.pause(false)
            telemetry.endPause(atMilliseconds: now.wallMilliseconds)
            report(RunEvent(.control, "the operator continued the run", now), now)
        case .stop:
            passes.requests.stop(stopCause)
            report(RunEvent(.control, "the operator stopped the run", now), now)
        }
        wake()
        save(now)
    }
}

extension LedgerSession {
    /// Describes the campaign to the sampler of a pass. The pass starts now.
    fileprivate func surroundings(
        _ plan: Plan, source: ListSource, _ passes: RunPasses, _ now: Now
    ) -> RunSampler.Context {
        RunSampler.Context(
            campaign: hexadecimal(campaign), name: manifest.name, labels: manifest.labels ?? [:],
            acceptsBySilence: manifest.identity.acceptsBySilence,
            split: manifest.identity.split, earlier: kept,
            rows: manifest.rows, beyondLimitCount: earlier.beyondLimitCount,
            knownEnd: manifest.rowCount ?? passes.waves?.zones.endRow,
            listByteCount: source.list.byteCount,
            wantedConnections: plan.shape.connections,
            ratePerConnection: plan.options.ratePerConnection,
            earlierPasses: passes.earlierWork(now))
    }
}
