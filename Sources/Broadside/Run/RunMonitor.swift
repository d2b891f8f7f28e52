import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideLists
import BroadsideObservability
import BroadsidePolicy
import BroadsideSupport

/// Tells how a run goes on, and hears what its operator wants: the main thread calls it ten times a
/// second. Everything it shows comes from one look a second at what the reactors published.
final class RunMonitor {
    private let plan: Plan
    private let session: LedgerSession
    private let coordinator: RunCoordinator
    private let services: ReactorServices
    private let source: ListSource
    private let outlets: RunOutlets
    /// Makes the reactors look at the shared state.
    private let wake: () -> Void

    private var sampler: RunSampler
    private var growth: GrowthWatch?
    private var progress: Progress
    private var log: EventLog
    private var telemetry: Telemetry
    private var report = ReactorReport()
    private var nextSave: UInt64
    private var tokenVersion: UInt32
    private var reportedRetries: UInt64 = 0
    private var nextRetries: UInt64
    private var didReportStop = false
    /// How many stopped topics were told of.
    private var topicsTold = 0
    /// That the list's disk does not respond was said of the current read.
    private var didWarnAboutList = false
    /// So was that it waits until another provider token may be made.
    private var didWarnAboutToken = false
    private let telemetryFile: BackgroundFile<[UInt8]>
    private let metricsFile: BackgroundFile<String>?
    private var hasEnded = false
    /// Where a person types; nil if nobody watches, or standard input is something else.
    private let terminal: TerminalKeys?
    private var keys: RunKeys?
    /// What was said of the run before it began, to be said once more.
    private let planText: String?

    /// Time between two writes of the telemetry.
    private static var saveInterval: UInt64 { 15 * second }
    /// A read of the list that takes longer is told of.
    private static var listPatience: UInt64 { 5 * second }
    /// Retries are summed up over so long.
    private static var retriesInterval: UInt64 { 10 * second }

    init(
        _ plan: Plan, session: LedgerSession, coordinator: RunCoordinator,
        services: ReactorServices,
        source: ListSource, outlets: RunOutlets, alert: AlertText?, planText: String?, start: Now,
        wake: @escaping () -> Void
    ) {
        self.plan = plan
        self.session = session
        self.coordinator = coordinator
        self.services = services
        self.source = source
        self.outlets = outlets
        self.wake = wake
        // SAFETY: the file's thread alone replaces it, and what it reads of the directory (path,
        // descriptor, claim) was set before the run.
        nonisolated(unsafe) let directory = session.directory
        telemetryFile = BackgroundFile(
            "\(session.directory.path)/\(Telemetry.fileName)",
            consequence: "the report will lack its curves"
        ) { (bytes) throws(BroadsideError) in
            try unsafe directory.checkClaim()
            try unsafe directory.replace(Telemetry.fileName, with: bytes)
        }
        metricsFile = outlets.metrics.map { metrics in
            BackgroundFile(
                plan.options.metrics ?? "", consequence: "the metrics stay as they are"
            ) { (text) throws(BroadsideError) in try metrics.publish(text) }
        }
        sampler = RunSampler(session.surroundings(plan, source: source), start: start)
        growth = GrowthWatch(plan, target: coordinator.connectionTarget)
        progress = Progress(plan.options.progress)
        self.planText = planText
        // A list that is typed there is not to be taken for keys.
        terminal = progress.isLive && plan.options.tokens != .file("-") ? TerminalKeys() : nil
        keys = terminal.map { _ in RunKeys() }
        log = EventLog(
            plan.options.log, progress: plan.options.progress,
            campaign: hexadecimal(session.campaign), name: session.manifest.name,
            labels: session.manifest.labels ?? [:],
            isOnTerminal: progress.isLive)
        telemetry = Telemetry.read(from: session.directory) ?? Telemetry()
        telemetry.begin(
            session.epoch, atMilliseconds: start.wallMilliseconds, settings: plan.settings)
        telemetry.command = plan.options.command
        if let report = plan.options.report { telemetry.recordReport(report) }
        telemetry.hasEndpoint = plan.options.endpoint != nil
        telemetry.alert = alert
        if telemetry.listModifiedAtMilliseconds == nil, let path = session.manifest.listPath {
            telemetry.listModifiedAtMilliseconds = modifiedAtMilliseconds(path)
        }
        nextSave = start.nanoseconds + Self.saveInterval
        nextRetries = start.nanoseconds + Self.retriesInterval
        tokenVersion = coordinator.authorizationVersion
        var started = RunEvent.Fields()
        started.endpoint = plan.hostAndPort
        report(
            RunEvent(
                .started, .info,
                "run \(session.epoch) of campaign \(hexadecimal(session.campaign))"
                    + " to \(plan.hostAndPort)", milliseconds: start.wallMilliseconds,
                fields: started), start)
        // Standard error has it already: it goes into a log that was asked for.
        if let warning = session.claimWarning, plan.options.log != nil {
            report(
                RunEvent(
                    .ledgerCopied, .warning, warning, milliseconds: start.wallMilliseconds), start)
        }
    }

    /// Called again and again while the run goes on.
    func update(_ now: Now) {
        for control in outlets.controls { control.serve { [self] line in response(line, now) } }
        takeKeys(now)
        takeEvents(now)
        telemetryFile.takeResult()
        guard sampler.isDue(now) else { return }
        sample(now)
        grow(now)
        warnAboutStalledList(now)
        warnAboutHeldToken(now)
        publishMetrics()
        keys?.forget(now.nanoseconds)
        progress.show(sampler.snapshot, keys: keys)
        if now.nanoseconds >= nextSave { save(now) }
    }

    /// The reactors have ended: nothing is redrawn any more.
    func reactorsEnded(_ now: Now) {
        assert(!hasEnded, "a run ends once")
        hasEnded = true
        terminal?.restore()
        takeEvents(now)
        sample(now)
        progress.finish()
    }

    /// The run's last word.
    ///
    /// - Parameter message: The last line; nil where all is well.
    func end(_ summary: Summary, stop: StopRecord, message: String?, now: Now) {
        sampler.end(summary)
        publishMetrics()
        telemetry.end(
            outcome: summary.outcome.rawValue, cause: message, stop: stop,
            counts: summary.counts, atMilliseconds: now.wallMilliseconds)
        var fields = RunEvent.Fields()
        fields.outcome = summary.outcome.rawValue
        fields.cause = stop.kind
        fields.status = stop.status
        fields.reason = stop.reason
        fields.counts = summary.counts
        report(
            RunEvent(
                .ended, .info, "\(summary.outcome.rawValue): \(summary.accepted) accepted",
                milliseconds: now.wallMilliseconds, fields: fields), now)
        save(now)
    }

    /// The page that `--report` asks for.
    func reportPage(
        _ summary: Summary, cause: StopCause, advice: StopAdvice, now: Now
    ) -> [UInt8] {
        var data = ReportData(
            summary: summary, telemetry: telemetry, epochs: session.manifest.epochs, course: nil,
            ledgerPath: session.directory.path, listPath: session.manifest.listPath,
            createdAtMilliseconds: now.wallMilliseconds)
        data.cause = cause
        data.steps = advice.steps
        return ReportPage(data: data).html
    }

    private var phase: RunSnapshot.Phase {
        hasEnded
            ? .finished
            : coordinator.isStopping ? .stopping : coordinator.isPaused ? .paused : .running
    }

    private func sample(_ now: Now) {
        report = services.report
        sampler.sample(
            report, list: source.progress, phase: phase, milliRate: coordinator.milliRate,
            ramp: coordinator.ramp,
            guards: GuardStatus(
                session.manifest, coordinator, isAssumed: plan.options.assumesCanary), now: now)
        telemetry.take(sampler.snapshot, sampler.series, report)
        sampler.take(topics: coordinator.topicReports)
        tellOfTopics(now)
        // What the operator set holds for this run alone.
        if let ramp = coordinator.ramp, ramp.ramp == plan.options.rate?.ramp {
            telemetry.take(ramp)
        }
    }

    /// Why the run has the connections that it has; nil where it did not choose them.
    var growthDescription: String? { growth?.words }

    /// Lets the run grow where that pays.
    private func grow(_ now: Now) {
        guard
            let message = growth?.observe(
                sampler.snapshot, threads: services.threadUses, growthSuspended: growthSuspended)
        else { return }
        sampler.want(connections: coordinator.connectionTarget?.total ?? plan.shape.connections)
        wake()
        report(.growth, message, now)
    }

    private var growthSuspended: Bool {
        !coordinator.anyAccepted || coordinator.canary?.isPending == true || phase != .running
    }

    /// The claim that a run makes at its end was not made: who keeps copies of ledgers has to know.
    func reportEndClaim(_ problem: String, _ now: Now) {
        let warning =
            "the ledger was not claimed once more at the end: \(problem): what was recorded stays "
            + "true, but a copy of the ledger that was made while this run was sending is not known "
            + "as an old one: resume none"
        standardErrorLine("broadside: warning: \(warning)")
        guard plan.options.log != nil else { return }
        report(
            RunEvent(.ledgerCopied, .warning, warning, milliseconds: now.wallMilliseconds), now)
    }

    // MARK: Events

    private func report(_ event: RunEvent, _ now: Now) {
        log.write(event, now: now.nanoseconds)
        if event.level >= .notice { telemetry.add(event) }
    }

    private func takeEvents(_ now: Now) {
        let new = services.takeEvents()
        for event in new.events { report(event, now) }
        if new.lost > 0 {
            report(
                .eventsLost, "\(new.lost) more events on connections", now, .counting(new.lost))
        }
        if coordinator.authorizationVersion != tokenVersion {
            tokenVersion = coordinator.authorizationVersion
            report(.tokenRenewed, "a new provider token is in use", now)
        }
        if coordinator.isStopping, !didReportStop {
            didReportStop = true
            let record = coordinator.stopCause.map {
                StopRecord($0, wasAnswered: coordinator.lastResponse != nil)
            }
            var fields = RunEvent.Fields()
            fields.cause = record?.kind
            fields.status = record?.status
            fields.reason = record?.reason
            fields.counts = sampler.snapshot.counts
            report(.stopping, "no new requests: \(stoppingText)", now, fields)
        }
        sumUpRetries(now)
        log.flush(now: now.nanoseconds, isEnd: hasEnded)
    }

    /// Why the run stops, and what it waits for now.
    private var stoppingText: String {
        let cause = coordinator.stopCause?.message ?? "stopped"
        let inFlight = services.report.statistics.inFlight
        guard inFlight > 0, !coordinator.isStoppingAtOnce else { return cause }
        let seconds = plan.options.requestTimeout / second
        return
            "\(cause); \(grouped(UInt64(inFlight))) in flight, whose responses are awaited for up to "
            + "\(seconds) s; a second signal (Ctrl-C) does not wait, and leaves them unknown"
    }

    private func report(
        _ kind: RunEvent.Kind, _ message: String, _ now: Now, _ fields: RunEvent.Fields = .init()
    ) {
        report(
            RunEvent(
                kind, .notice, message, milliseconds: now.wallMilliseconds, fields: fields), now)
    }

    /// A run whose list's disk hangs stands still: why is said once for each such read.
    private func warnAboutStalledList(_ now: Now) {
        let isSilent = services.readTime(now) >= Self.listPatience
        defer { didWarnAboutList = isSilent }
        guard isSilent, !didWarnAboutList else { return }
        report(
            RunEvent(
                .listSilent, .warning,
                "\(source.list.name): a read has taken \(Self.listPatience / second) s so far: "
                    + "does its disk or network file system respond?",
                milliseconds: now.wallMilliseconds), now)
    }

    /// A run that waits until APNs takes another provider token stands still for up to 20 minutes.
    private func warnAboutHeldToken(_ now: Now) {
        let until = coordinator.tokenBlockedUntil(now)
        defer { didWarnAboutToken = until != nil }
        guard let until, !didWarnAboutToken else { return }
        report(
            RunEvent(
                .tokenHeld, .warning,
                "no request is made until \(timeText(until * 1000)): APNs said "
                    + "TooManyProviderTokenUpdates, and the provider token before is too old: do other "
                    + "senders make tokens of the same key?",
                milliseconds: now.wallMilliseconds), now)
    }

    /// Tells of topics that a guard has stopped.
    private func tellOfTopics(_ now: Now) {
        let stopped = TopicReport.stopped(sampler.snapshot.topics)
        guard stopped.count > topicsTold else { return }
        topicsTold = stopped.count
        report(
            RunEvent(
                .topicStopped, .warning,
                "nothing more is sent to \(TopicReport.text(stopped))",
                milliseconds: now.wallMilliseconds), now)
    }

    private func sumUpRetries(_ now: Now) {
        guard now.nanoseconds >= nextRetries else { return }
        nextRetries = now.nanoseconds + Self.retriesInterval
        let retries = report.statistics.retries
        guard retries > reportedRetries else { return }
        report(
            .retries,
            "\(retries - reportedRetries) requests were sent again in the last "
                + "\(Self.retriesInterval / second) s", now, .counting(retries - reportedRetries))
        reportedRetries = retries
    }

    // MARK: Files

    /// Has what the report needs kept.
    private func save(_ now: Now) {
        nextSave = now.nanoseconds + Self.saveInterval
        telemetryFile.put(telemetry.encoded)
    }

    private func publishMetrics() {
        metricsFile?.put(MetricsText(sampler.snapshot, use: ProcessUse.now()).text)
    }

    /// Whether the telemetry is still on its way to the ledger's disk.
    var isSaving: Bool { telemetryFile.isWriting }

    /// Whether the metrics are still on their way.
    var isPublishing: Bool { metricsFile?.isWriting ?? false }

    /// The end waits no longer for what is still on its way to a disk.
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

    /// The latest look, with what was asked for since.
    private var snapshotNow: RunSnapshot {
        var snapshot = sampler.snapshot
        snapshot.phase = phase
        snapshot.rateLimit = coordinator.milliRate.map { Double($0) / 1000 }
        snapshot.ramp = coordinator.ramp
        return snapshot
    }

    /// Does what the keys ask for that were typed at the terminal.
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
                        ? "the run has no rate limit" : "the rate is not known yet: try again")
                return
            }
            request = .rate(SendRate(rate))
        }
        do throws(BroadsideError) {
            try obey(request, now)
        } catch {
            standardErrorLine("broadside: \(error.message)")
        }
    }

    private func obey(_ request: ControlRequest, _ now: Now) throws(BroadsideError) {
        guard request != .status else { return }
        guard !coordinator.isStopping else {
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
            report(.control, "the operator set the rate to \(rate?.words ?? "unlimited")", now)
        case .pause:
            coordinator.pause(true)
            telemetry.beginPause(atMilliseconds: now.wallMilliseconds)
            report(.control, "the operator paused the run", now)
        case .resume:
            coordinator.pause(false)
            telemetry.endPause(atMilliseconds: now.wallMilliseconds)
            report(.control, "the operator continued the run", now)
        case .stop:
            coordinator.stop(.control)
            report(.control, "the operator stopped the run", now)
        }
        wake()
        save(now)
    }
}

extension LedgerSession {
    /// What a sampler has to know of the campaign.
    fileprivate func surroundings(_ plan: Plan, source: ListSource) -> RunSampler.Context {
        RunSampler.Context(
            campaign: hexadecimal(campaign), name: manifest.name, labels: manifest.labels ?? [:],
            acceptsBySilence: manifest.identity.acceptsBySilence, earlier: kept,
            rows: manifest.rows, knownEnd: manifest.rowCount,
            listByteCount: source.list.byteCount,
            wantedConnections: plan.shape.connections)
    }
}
