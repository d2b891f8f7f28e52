import APNs
import Campaign
internal import Glibc
import Ring
internal import Synchronization
import TLS

/// One `send`, from its options to its exit code.
public enum CampaignRun {
    /// Does what the options ask.
    ///
    /// - Returns: The documented exit code.
    /// - Throws: What made it impossible, with the exit code for it; nothing was sent then.
    public static func run(_ options: SendOptions) throws(BroadsideError) -> Int32 {
        guard let tokens = options.tokens else {
            throw .request("--tokens is missing: add --tokens FILE, or --to TOKEN")
        }
        if case .single(let token) = tokens, canonicalToken(token) == nil {
            throw .request("--to '\(token)' is no device token: hexadecimal digits in pairs")
        }
        let list = try TokenList(
            tokens, format: options.format, tokenColumn: options.tokenColumn)
        let plan = try Plan(options, listByteCount: list.byteCount)
        for warning in plan.warnings { standardError("broadside: warning: \(warning)") }
        let context = try tlsContext(options, plan.credential)
        if options.isDryRun { return try DryRun.run(plan, list: list) }
        guard options.ledger != nil else {
            throw .request("--ledger is missing: add --ledger DIR, a directory that does not exist")
        }
        if let path = options.summary, path != "-" { try checkWritable(path, option: "summary") }
        if let path = options.report { try checkWritable(path, option: "report") }
        try confirm(plan)
        try checkRing()
        raiseDescriptorLimit()
        let signals = SignalWatch()
        let outlets = try RunOutlets(options)
        let session = try RunSession(plan, list: list, now: Clock.now())
        if session.isFinishedAlready {
            if let report = options.report, let ledger = options.ledger {
                try LedgerReading(path: ledger).writeReport(
                    to: try OutputFile(report, option: "report", permissions: nil), isOurs: true)
            }
            return try session.reportFinished()
        }
        return try LiveRun(
            plan, session: session, list: list, context: context, outlets: outlets
        ).run(signals)
    }

    /// A run against Apple's production by a person at a terminal is asked for once more.
    private static func confirm(_ plan: Plan) throws(BroadsideError) {
        guard plan.goesToProduction, !plan.options.isConfirmed, isatty(STDIN_FILENO) == 1 else {
            return
        }
        standardError(plan.description)
        standardError("This goes to Apple's production devices. Type yes to send:")
        guard readLine() == "yes" else {
            throw .request("not confirmed: nothing was sent")
        }
    }

    static func tlsContext(
        _ options: SendOptions, _ credential: Credential
    ) throws(BroadsideError) -> TLSContext {
        var configuration = ClientConfiguration()
        configuration.identity = credential.identity
        if let path = options.caFile {
            configuration.trustsSystemRoots = false
            configuration.additionalAuthorities = try readFile(
                path, option: "ca-file", limit: 1 << 22)
        }
        do {
            return try TLSContext(client: configuration)
        } catch {
            let isIdentity = error.code == .keyMismatch
            let option =
                isIdentity
                ? options.certificate.map { "--certificate \($0): " }
                : options.caFile.map { "--ca-file \($0): " }
            throw .request((option ?? "") + error.message)
        }
    }

    /// Containers often forbid io_uring: better known before a ledger is begun.
    private static func checkRing() throws(BroadsideError) {
        do {
            _ = try Ring(entries: 8, bufferCount: 8, bufferSize: 4096)
        } catch {
            throw BroadsideError("\(error)", exitCode: 1)
        }
    }

    /// A descriptor a connection, and as many again while connections are replaced.
    private static func raiseDescriptorLimit() {
        var limit = rlimit()
        guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else {
            return
        }
        limit.rlim_cur = limit.rlim_max
        _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }
}

extension Plan {
    /// What will be done, in a few lines.
    var description: String {
        let rate = options.rate.map { "\(Int($0)) requests a second" } ?? "no rate limit"
        let chosen = options.connections == nil ? " (chosen)" : ""
        return """
            endpoint     \(place)
            topic        \(headers.topic ?? credential.onlyTopic ?? "none"), push type \(headers.pushType.rawValue), priority \
            \(headers.priority.rawValue)
            payload      \(payload.count) bytes
            connections  \(connections)\(chosen) on \(reactors) reactor\(reactors == 1 ? "" : "s"), \
            at most \(streamsPerConnection) streams each
            rate         \(rate)
            """
    }
}
