import BroadsideEngine
import BroadsideLedgers
import BroadsideLists
import BroadsideObservability
import BroadsideRing
public import BroadsideSupport
package import BroadsideTLS
internal import Glibc
internal import Synchronization

/// Runs `send`, from its options to its exit code.
public enum CampaignRun {
    /// Runs a send with the options.
    ///
    /// - Returns: The documented exit code.
    /// - Throws: If the run could not begin: the cause, with its exit code. In that case, nothing
    ///   was sent.
    public static func run(_ options: SendOptions) throws(BroadsideError) -> Int32 {
        defer { if options.host == nil { OutputQueue.standardError.finish() } }
        blockHangUp(options)
        var stage = Stage()
        do throws(BroadsideError) {
            return try run(options, &stage)
        } catch {
            if !stage.isBegun, stage.hasLedger || !mayBeOfEarlierRun(options) {
                Summary.write(error, isNew: !options.resumes, to: options, stage.signals)
            }
            throw error
        }
    }

    /// Makes a run continue if the terminal is closed while the run starts. It takes the signal when
    /// it sends.
    static func blockHangUp(_ options: SendOptions) {
        if options.host == nil, !options.opensNoConnection { SignalSet([SIGHUP]).block() }
    }

    /// Writes the summary of a run that did not begin, because its options are wrong.
    ///
    /// - Parameter options: The options that could be read.
    public static func writeSummary(of error: BroadsideError, _ options: SendOptions) {
        guard !mayBeOfEarlierRun(options) else { return }
        Summary.write(error, isNew: !options.resumes, to: options, nil)
    }

    /// Whether an earlier run may have written the summary's file. That is so if this run had to
    /// begin a ledger, but both the ledger and the file already exist.
    private static func mayBeOfEarlierRun(_ options: SendOptions) -> Bool {
        guard !options.resumes, let ledger = options.ledger, let summary = options.summary,
            summary != "-", (try? fileExists(summary)) ?? true
        else { return false }
        return (try? LedgerDirectory.isBegunLedgerIfThere(ledger)) ?? true
    }

    /// How far a call has come.
    private struct Stage {
        /// The watch that defers signals; nil until signals are deferred.
        var signals: SignalWatch?
        /// Whether this run has opened its ledger.
        var hasLedger = false
        /// Whether the run has begun, or was found to be finished. In both cases, it writes its own
        /// summary.
        var isBegun = false
    }

    private static func run(
        _ options: SendOptions, _ stage: inout Stage
    ) throws(BroadsideError) -> Int32 {
        try options.checkValues()
        let options = try checkTokens(options)
        try checkLedger(options)
        guard options.tokens == .file(ListBytes.standardInput), !options.opensNoConnection else {
            return try run(options, spooling: nil, &stage)
        }
        let directory = try openLedger(options)
        stage.hasLedger = true
        let signals = watchSignals(options)
        stage.signals = signals
        do throws(BroadsideError) {
            return try run(options, spooling: directory, &stage)
        } catch {
            // If a signal stopped the run, a complete copy of standard input is kept for a resume.
            guard error.exitCode != 3 || (try? directory.hasSpool) != true else { throw error }
            if error.exitCode == 3 {
                try Summary.stoppedEarly(directory)?.write(to: options, signals)
            }
            directory.discardUnlessBegun()
            throw error
        }
    }

    /// Refuses options with which the ledger would store tokens, if `--keep-tokens no` forbids
    /// that.
    ///
    /// - Returns: The options. A command line that contains a token is removed from them.
    private static func checkTokens(_ options: SendOptions) throws(BroadsideError) -> SendOptions {
        guard !options.keepsTokens else { return options }
        var options = options
        switch options.tokens {
        case .single: options.command = nil
        case .file(ListBytes.standardInput):
            throw .usage(
                "tokens",
                "-: the ledger would get a copy of standard input, but --keep-tokens no forbids "
                    + "tokens in it: write the list to a file, and name that file")
        default: break
        }
        let column = options.tokenColumn ?? TokenList.defaultTokenColumn
        if let rule = options.rules.columns.first(where: { $0.name == column }) {
            throw .usage(
                rule.option,
                "names the column of the tokens, so the ledger would store tokens, but "
                    + "--keep-tokens no forbids that: remove one of the options")
        }
        if let option = options.rules.optionWithToken {
            throw .usage(
                option,
                "compares with a device token, so the ledger would store that token, but "
                    + "--keep-tokens no forbids that: remove one of the options")
        }
        return options
    }

    /// Checks that the ledger can be used, and that its directory contains no input list. Creates
    /// nothing.
    private static func checkLedger(_ options: SendOptions) throws(BroadsideError) {
        guard let ledger = options.ledger else { return }
        if options.resumes {
            try LedgerDirectory.checkForRun(ledger, begins: options.ledgerUse != .resume)
            if options.part != nil { try LedgerDirectory.checkForPart(ledger) }
        }
        var lists: [(option: String, path: String)] = []
        if case .file(let path) = options.tokens { lists.append(("tokens", path)) }
        if let path = options.suppress { lists.append(("suppress", path)) }
        for list in lists
        where list.path != ListBytes.standardInput && LedgerDirectory.contains(list.path, ledger) {
            throw .usage(
                list.option,
                "\(list.path) is in the ledger's directory, where a run replaces "
                    + "and removes files: move it elsewhere, or name another --ledger "
                    + "(to use the ledger's copy of standard input, write --tokens - "
                    + "</dev/null)")
        }
    }

    /// Defers signals until the caller takes them. Makes all output asynchronous, because a blocked
    /// terminal would otherwise delay signals.
    private static func watchSignals(_ options: SendOptions) -> SignalWatch {
        let signals = SignalWatch()
        guard options.host == nil else { return signals }
        OutputQueue.standardError.start()
        OutputQueue.standardOutput.start()
        return signals
    }

    /// Path of a ledger's copy of a list that came from standard input.
    package static func spooledList(ledger: String) -> String {
        "\(ledger)/\(LedgerDirectory.spoolName)"
    }

    private static func openLedger(
        _ options: SendOptions
    ) throws(BroadsideError) -> LedgerDirectory {
        guard let ledger = options.ledger else {
            throw .usage(
                "ledger", "is missing: add --ledger DIR, a directory that does not exist yet")
        }
        return try LedgerDirectory.openForRun(
            ledger, resumes: options.resumes, begins: options.ledgerUse != .resume)
    }

    /// - Parameters:
    ///   - spooling: Locked directory of the ledger; nil unless the list is standard input.
    ///   - stage: Progress of the call. If the list is standard input, signals are already
    ///     deferred, so that they do not interrupt the copy of standard input.
    private static func run(
        _ options: SendOptions, spooling: LedgerDirectory?, _ stage: inout Stage
    ) throws(BroadsideError) -> Int32 {
        let checked =
            if let waiting = stage.signals {
                try waiting.prepare { () throws(BroadsideError) in
                    try CheckedRun(options, spooling: spooling)
                }
            } else {
                try CheckedRun(options, spooling: nil)
            }
        let plan = checked.plan
        if let count = options.preview {
            try Preview.run(checked, count: count)
            if !options.isDryRun { return 0 }
        }
        if options.isDryRun { return try DryRun.run(checked) }
        try confirm(checked)
        try checkLimits(plan)
        let signals = stage.signals ?? watchSignals(options)
        stage.signals = signals
        var outlets = try RunOutlets(options)
        let directory = if let spooling { spooling } else { try openLedger(options) }
        stage.hasLedger = true
        let prepared: PreparedRun
        do throws(BroadsideError) {
            prepared = try signals.prepare(deadline: options.deadline) {
                () throws(BroadsideError) in
                try PreparedRun(checked, directory: directory)
            }
        } catch {
            guard error.exitCode != ExitCode.rowsRemain else {
                try Summary.stoppedEarly(directory)?.write(to: options, signals)
                throw error
            }
            directory.discardUnlessBegun()
            throw advisingResume(error, options, directory)
        }
        let session = prepared.session
        stage.isBegun = session.isFinishedAlready
        if session.isFinishedAlready { return try session.reportFinished(plan, outlets, signals) }
        let hook = try options.hook.map { (command) throws(BroadsideError) in
            try EventHook(command, ledger: directory.path)
        }
        // From here on, a night without its ledger counts as lost.
        try options.night?.noteBegun()
        outlets.listen(in: directory)
        stage.isBegun = true
        return try send(checked, prepared, directory, outlets, hook, signals)
    }

    /// Sends the rows, in one pass or several.
    private static func send(
        _ checked: CheckedRun, _ first: PreparedRun, _ directory: LedgerDirectory,
        _ outlets: RunOutlets, _ hook: EventHook?, _ signals: SignalWatch
    ) throws(BroadsideError) -> Int32 {
        var (plan, prepared) = (checked.plan, first)
        let (waves, now) = (first.waves, Clock.now())
        let firstStart = first.session.manifest.firstStartedAtMilliseconds
        let passes = RunPasses(
            waves, hook: hook,
            deadline: plan.options.deadline.map {
                RunDeadline($0, firstStart: firstStart, now: now)
            },
            isDueLeft: waves.map { first.session.mayHaveDueRows($0) } ?? true,
            isRowLeft: first.session.mayHaveRows, now: now.wallMilliseconds)
        do throws(BroadsideError) {
            while true {
                let run = try LiveRun(
                    plan, prepared, list: checked.list, context: checked.context,
                    outlets: outlets, passes: passes)
                if let code = try run.run(signals) { return code }
                // Rows that this process settled as failed or unknown are not sent again.
                plan.reopenedSince = plan.reopenedSince ?? prepared.session.epoch
                let (nextPlan, previous) = (plan, prepared)
                let zones = passes.unplannedZones
                let left: [UInt64]?
                (prepared, left) = try signals.prepare { () throws(BroadsideError) in
                    let next = try PreparedRun(
                        nextPlan, checked, after: previous, directory: directory)
                    guard let zones else { return (next, nil) }
                    return (next, try next.session.rowsLeft(of: zones))
                }
                if let left { planWaves(passes, rowsLeft: left, plan.options) }
            }
        } catch {
            if let hook, passes.isStartReported, !hook.isFinished {
                hook.put(.stopped)
                hook.finish(signals, isUrgent: false)
            }
            guard error.exitCode == ExitCode.rowsRemain, passes.endedCount > 0 else {
                // The run itself was complete, and an output file is missing.
                guard !passes.isSummaryWritten else { throw error }
                Summary.write(error, isNew: false, to: plan.options, signals)
                throw advisingResume(error, plan.options, directory)
            }
            try Summary.stoppedEarly(directory)?.write(to: plan.options, signals)
            throw BroadsideError(
                "interrupted between two waves: run the same command with --resume to continue",
                exitCode: ExitCode.rowsRemain)
        }
    }

    /// Returns the error of a start that has begun a ledger with the advice to use `--resume`,
    /// because the same command would be refused.
    private static func advisingResume(
        _ error: BroadsideError, _ options: SendOptions, _ directory: LedgerDirectory
    ) -> BroadsideError {
        // A stop names the next step itself, and a newer attempt continues the ledger.
        guard ![ExitCode.rowsRemain, ExitCode.inUse].contains(error.exitCode),
            !options.resumes, (try? directory.hasManifest) == true
        else { return error }
        var advising = error
        advising.message += "; the ledger has begun, so the next start needs --resume"
        return advising
    }

    /// Plans the waves of rows that quiet hours have interrupted. Warns if the notifications expire
    /// before that.
    private static func planWaves(
        _ passes: RunPasses, rowsLeft left: [UInt64], _ options: SendOptions
    ) {
        passes.plan(left: left)
        if let warning = passes.waves?.expirationWarning(
            options.expiration, deadline: options.deadline)
        {
            standardErrorLine(warning)
        }
    }

    /// Asks a person at a terminal to confirm a run against Apple's production by typing the number
    /// of devices, so that a wrong list is noticed.
    private static func confirm(_ run: CheckedRun) throws(BroadsideError) {
        let (plan, list) = (run.plan, run.list)
        guard plan.goesToProduction, !plan.options.isConfirmed, plan.options.host == nil,
            isatty(STDIN_FILENO) == 1
        else { return }
        let size = try ListSize.count(plan, list, run.rows)
        let alert = AlertText(plan, firstRow: try run.rows.first())
        standardError(
            plan.description(
                of: list, size: size, alert: alert,
                // The waves of a resume are known once its ledger is locked.
                waves: run.isBegun ? nil : try run.rows.waves(), for: STDERR_FILENO))
        if plan.options.resumes {
            standardError("this run continues the ledger: settled rows are not sent again")
        }
        standardError(
            "This goes to \(size.devices) of Apple's production environment. Type "
                + "\(size.request) to send:")
        guard let typed = readLine(), size.isConfirmed(by: typed) else {
            throw .request(
                "not confirmed: nothing was sent; in a script, confirm with --yes")
        }
    }

    package static func tlsContext(
        _ options: SendOptions, _ credential: Credential, resumesSessions: Bool = false
    ) throws(BroadsideError) -> TLSContext {
        var configuration = ClientConfiguration()
        // With a client certificate, sessions are not resumed. A server that knows the ticket but
        // not the certificate would refuse all rows.
        configuration.resumesSessions = resumesSessions && credential.identity == nil
        configuration.identity = credential.identity
        if options.wireProtocol == .binary {
            // The gateway's protocol predates ALPN. A gateway sends nothing on success, so a
            // rejected session ticket could not be detected.
            configuration.applicationProtocols = []
            configuration.resumesSessions = false
        }
        if let path = options.caFile {
            configuration.trustsSystemRoots = false
            configuration.additionalAuthorities = try readFile(
                path, option: "ca-file", limit: 1 << 22)
        }
        do {
            return try TLSContext(client: configuration)
        } catch {
            let name =
                error.code == .keyMismatch
                ? options.certificate.map { InputName($0, option: "certificate") }
                : options.caFile.map { InputName($0, option: "ca-file") }
            guard let name else { throw .request(error.message) }
            throw .request(name, ": \(error.message)")
        }
    }

    /// Raises resource limits to their maximum and checks them before a ledger is created. Also
    /// checks whether a container forbids io_uring.
    private static func checkLimits(_ plan: Plan) throws(BroadsideError) {
        let host = plan.options.host
        if host?.raisesLimits ?? true { ResourceLimits.raise() }
        try plan.shape.checkOpenFiles(
            plan.options,
            allowed: host == nil ? ResourceLimits.openFiles : ResourceLimits.openFilesNow)
        let space = RunShape.addressSpace(reactors: plan.shape.reactors)
        if host == nil, let allowed = SystemCall.addressSpaceLimit, allowed < space {
            throw BroadsideError(
                "a run with --reactors \(plan.shape.reactors) needs \(space >> 20) MiB of address "
                    + "space, but only \(allowed >> 20) MiB are allowed here: raise the limit on "
                    + "memory (ulimit -v \(space >> 10)), or limit memory by a control group",
                exitCode: ExitCode.failure)
        }
        try WorkerThread.checkThatSystemGives(
            RunShape.threads(reactors: plan.shape.reactors) + (try metricsThreads(plan))
                + (plan.options.traceFrames == nil ? 0 : 1) + (plan.options.hook == nil ? 0 : 1))
        do {
            try ReactorThread.tryRings(plan.shape.reactors)
        } catch {
            throw BroadsideError("\(error)", exitCode: 1)
        }
    }

    /// Number of threads for metrics: one that writes them, and one for an HTTP endpoint.
    private static func metricsThreads(_ plan: Plan) throws(BroadsideError) -> Int {
        guard let metrics = plan.options.metrics else { return 0 }
        return try MetricsOutlet.address(metrics) == nil ? 1 : 2
    }
}
