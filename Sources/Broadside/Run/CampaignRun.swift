import APNs
import Campaign
import Engine
internal import Glibc
import Ledgers
import Lists
import Observability
import Ring
public import Support
internal import Synchronization
import TLS

/// One `send`, from its options to its exit code.
public enum CampaignRun {
    /// Does what the options ask.
    ///
    /// - Returns: The documented exit code.
    /// - Throws: What made it impossible, with the exit code for it; nothing was sent then.
    public static func run(_ options: SendOptions) throws(BroadsideError) -> Int32 {
        defer { OutputQueue.standardError.finish() }
        guard options.tokens == .file(ListBytes.standardInput), !options.onlyLooks else {
            return try run(options, spooling: nil)
        }
        let directory = try openLedger(options)
        // A signal waits, so that what is copied is not left by half.
        _ = watchSignals()
        do throws(BroadsideError) {
            return try run(options, spooling: directory)
        } catch {
            // What was spooled whole is kept for the resume of a run that a signal stopped.
            guard error.exitCode != 3 || !directory.hasSpool else { throw error }
            if error.exitCode == 3 { try Summary.stoppedEarly(directory)?.write(to: options) }
            directory.discardUnlessBegun()
            throw error
        }
    }

    /// From here on signals wait to be taken, and no output is waited for: a terminal that takes none
    /// would keep them waiting.
    private static func watchSignals() -> SignalWatch {
        let signals = SignalWatch()
        OutputQueue.standardError.start()
        OutputQueue.standardOutput.start()
        return signals
    }

    /// Where a ledger keeps the list that came from standard input.
    package static func spooledList(ledger: String) -> String {
        "\(ledger)/\(LedgerDirectory.spoolName)"
    }

    private static func openLedger(
        _ options: SendOptions
    ) throws(BroadsideError) -> LedgerDirectory {
        guard let ledger = options.ledger else {
            throw .usage("ledger", "is missing: add --ledger DIR, a directory that does not exist")
        }
        return try LedgerDirectory.openForRun(
            ledger, resumes: options.resumes, mustResume: options.mustResume)
    }

    /// - Parameter spooling: The ledger's directory, locked, where the list is standard input.
    private static func run(
        _ options: SendOptions, spooling: LedgerDirectory?
    ) throws(BroadsideError) -> Int32 {
        guard let tokens = options.tokens else {
            throw .usage("tokens", "is missing: add --tokens FILE, or --to TOKEN")
        }
        if case .single(let token) = tokens, canonicalToken(token) == nil {
            throw .usage(
                "to",
                "'\(token)' is not a device token: expected an even number of hexadecimal digits")
        }
        let payloads = try PayloadFiles(options)
        let list = try openList(tokens, options, wanted: payloads.columns, spooling: spooling)
        let plan = try Plan(
            options, payloads: payloads, listByteCount: list.bytes.estimatedByteCount)
        for warning in plan.warnings { standardErrorLine("broadside: warning: \(warning)") }
        for warning in try FirstPayload.check(plan, list) {
            standardErrorLine("broadside: warning: \(warning)")
        }
        let context = try tlsContext(options, plan.credential, resumesSessions: true)
        let skips = try ExclusionScan(options, payloads: payloads.set)
        if let count = options.preview {
            try Preview.run(plan, list: list, skips: skips, count: count)
            if !options.isDryRun { return 0 }
        }
        if options.isDryRun { return try DryRun.run(plan, list: list, skips: skips) }
        guard let ledger = options.ledger else {
            throw .usage("ledger", "is missing: add --ledger DIR, a directory that does not exist")
        }
        if let path = options.summary, path != "-" { try checkWritable(path, option: "summary") }
        if let path = options.report { try checkWritable(path, option: "report") }
        // What is left of a campaign that was begun is checked with what earlier runs read of it.
        let isBegun = options.resumes && LedgerDirectory.unlocked(ledger).hasManifest
        // A part by bytes is found by reading the list, which may take minutes: signals are taken then.
        let isPartSearched = options.shard != nil && list.isCutByBytes
        if !isBegun, !isPartSearched {
            try ListLook(list, plan: plan, part: .wholeList).check()
        }
        try confirm(plan, list)
        try checkLimits(plan)
        let signals = watchSignals()
        var outlets = try RunOutlets(options)
        let directory = if let spooling { spooling } else { try openLedger(options) }
        let session: LedgerSession
        do throws(BroadsideError) {
            let part = isBegun ? nil : try list.part(of: options.shard)
            if let part, isPartSearched { try ListLook(list, plan: plan, part: part).check() }
            session = try LedgerSession(
                plan, list: list, part: part, skips: skips, directory: directory, now: Clock.now())
        } catch {
            if error.exitCode == 3 {
                try Summary.stoppedEarly(directory)?.write(to: options)
            } else {
                directory.discardUnlessBegun()
            }
            throw error
        }
        if session.isFinishedAlready { return try session.tellFinished(plan, outlets) }
        outlets.listen(in: directory)
        return try LiveRun(
            plan, session: session, list: list, context: context, outlets: outlets
        ).run(signals)
    }

    private static func openList(
        _ tokens: SendOptions.Tokens, _ options: SendOptions,
        wanted: [(name: String, place: String)], spooling: LedgerDirectory?
    ) throws(BroadsideError) -> TokenList {
        if case .single = tokens, options.shard != nil {
            throw .usage("shard", "and --to exclude each other: drop one")
        }
        guard let spooling else {
            return try TokenList(
                tokens, format: options.format, tokenColumn: options.tokenColumn, wanted: wanted,
                isReadAgain: true)
        }
        let path: String
        do throws(BroadsideError) {
            path = try SpooledInput.spool(into: spooling)
        } catch {
            // A campaign that was begun has numbers to tell.
            if error.exitCode == ExitCode.rowsRemain, spooling.hasManifest {
                try Summary.stoppedEarly(spooling)?.write(to: options)
            }
            throw error
        }
        return try TokenList(
            .file(path), format: options.format, tokenColumn: options.tokenColumn,
            wanted: wanted, isSpooled: true)
    }

    /// A run against Apple's production by a person at a terminal is confirmed by the number of devices,
    /// so that the wrong list is noticed.
    private static func confirm(_ plan: Plan, _ list: TokenList) throws(BroadsideError) {
        guard plan.goesToProduction, !plan.options.isConfirmed, isatty(STDIN_FILENO) == 1 else {
            return
        }
        let size = try ListSize.count(plan, list)
        standardError(
            plan.description(
                of: list, size: size, alert: AlertText(plan, list), for: STDERR_FILENO))
        if plan.options.resumes {
            standardError("--resume: rows that are settled are not sent again")
        }
        standardError(
            "This goes to \(size.devices) of Apple's production. Type \(size.request) to send:")
        guard let typed = readLine(), size.isConfirmed(by: typed) else {
            throw .request(
                "not confirmed: nothing was sent; a script confirms with --yes")
        }
    }

    static func tlsContext(
        _ options: SendOptions, _ credential: Credential, resumesSessions: Bool = false
    ) throws(BroadsideError) -> TLSContext {
        var configuration = ClientConfiguration()
        // A server that knows the ticket and not the certificate refuses all rows.
        configuration.resumesSessions = resumesSessions && credential.identity == nil
        configuration.identity = credential.identity
        if options.wireProtocol == .binary {
            // The gateway's protocol is older than ALPN. It says nothing as long as all is well, so that nothing
            // would show that it takes a ticket well.
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

    /// Limits are raised as far as they go. Where that is not enough, or a container forbids
    /// io_uring, it is better known before a ledger is begun.
    private static func checkLimits(_ plan: Plan) throws(BroadsideError) {
        ResourceLimits.raise()
        let connections = plan.shape.connections
        let needed = RunShape.descriptors(connections, reactors: plan.shape.reactors)
        let allowed = ResourceLimits.openFiles
        guard allowed >= UInt64(needed) else {
            throw .usage(
                "connections",
                "\(connections) needs \(needed) open files, and no more than "
                    + "\(allowed) are allowed here: raise the limit (ulimit -n \(needed)) or use "
                    + "fewer connections")
        }
        // Each reactor has a thread, and one of the kernel's for its ledger's disk.
        let isScraped =
            try plan.options.metrics.map { value throws(BroadsideError) in
                try MetricsOutlet.place(value) != nil
            } ?? false
        try WorkerThread.checkThatSystemGives(
            2 * plan.shape.reactors + Self.otherThreads + (isScraped ? 1 : 0))
        do {
            try ReactorThread.tryRings(plan.shape.reactors)
        } catch {
            throw BroadsideError("\(error)", exitCode: 1)
        }
    }

    /// Threads besides the reactors' and the metrics endpoint's: names, the list, the output to stderr
    /// and stdout, credentials that are read again, and the telemetry.
    private static var otherThreads: Int { 6 }
}
