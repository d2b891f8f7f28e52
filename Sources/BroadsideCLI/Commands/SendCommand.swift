import APNs
import Broadside

/// `broadside send`.
enum SendCommand {
    static let description: CommandDescription = CommandDescription(
        name: "send",
        summary: "send a campaign: tokens + payload -> APNs -> ledger",
        usage: "--tokens FILE --payload FILE --topic TOPIC CREDENTIAL --ledger DIR [OPTIONS]",
        discussion: """
            Sends one notification to every device token of a list and records in the ledger what
            became of each. Safe to kill at any instant: --resume goes on where it ended. Durations
            are written 500ms, 30s, 15m, 2h, 1d.

            Exit codes: 0 no row is remaining, failed or unknown; 1 could not be done; 2 the request
            is wrong, nothing was sent; 3 rows remain, --resume continues; 4 the campaign as a whole
            is wrong, stopped early; 5 a file or disk error; 6 finished, but rows are failed or
            unknown, --retry sends them again; 7 the ledger is in use by another process.
            """,
        sections: [
            OptionSection(
                title: "What to send",
                options: ListOptions.list + [
                    .init("to", "TOKEN", "one device instead of a list"),
                    .init(
                        "payload", "FILE",
                        "JSON payload; {{column}} in its strings is replaced a row, a string that is just {{column:int}} or {{column:bool}} becomes one, {{column|text}} has a default, {{{{ writes {{"
                    ),
                    .init(
                        "payload-by", "COLUMN=DIR",
                        "a payload for each value of a column: DIR/pt-BR.json, then pt.json, default.json, --payload"
                    ),
                    .init(
                        "topic", "TOPIC",
                        "apns-topic: the app's bundle ID, with the push type's suffix"),
                    .init("push-type", "TYPE", "apns-push-type (default: alert)"),
                    .init("priority", "1|5|10", "apns-priority (default: 10; 5 for background)"),
                    .init(
                        "expiration", "WHEN",
                        "apns-expiration: 0, Unix seconds, or +90s, +2h from the first start"),
                    .init(
                        "collapse-id", "ID",
                        "apns-collapse-id: at most 64 bytes; {{column}} is replaced"),
                    ListOptions.limit,
                ]),
            protocolSection,
            ListOptions.whichRows,
        ] + commonSections,
        examples: [
            .init(
                "Look first; nothing is connected, nothing is written",
                #"""
                broadside send --environment development --topic com.example.MyApp \
                    --auth-key AuthKey_XXXXXXXXXX.p8 --key-id XXXXXXXXXX \
                    --team-id YYYYYYYYYY --tokens tokens.txt \
                    --payload payload.json --dry-run
                """#),
            .init(
                "Send what a campaign file describes, to 1,000 rows first; write a page about it",
                #"""
                broadside send --campaign evening.json5 --canary 1000 \
                    --ledger tonight --report tonight.html
                """#
            ),
            .init(
                "Go on after a stop, a crash, a power cut",
                "broadside send --campaign evening.json5 --ledger tonight --resume"),
        ],
        run: { (arguments) throws(CommandFailure) in
            let options = try options(from: arguments)
            if arguments.has("print-campaign") {
                print(CampaignOptions.text(arguments, of: description), terminator: "")
                return 0
            }
            do throws(BroadsideError) {
                return try CampaignRun.run(options)
            } catch {
                throw CommandFailure(message: error.message, exitCode: error.exitCode)
            }
        })

    private static let protocolSection = OptionSection(
        title: "Which protocol",
        options: [
            .init(
                "protocol", "http2|binary",
                "provider API, or a legacy gateway at --endpoint (default: http2)"),
            .init(
                "binary-command", "0|1|2",
                "form of the gateway's notifications: simple, enhanced, frame (default: 2)"),
        ])

    /// What is the same for every run over a list.
    static let commonSections: [OptionSection] = [
        CampaignOptions.section,
        CredentialOptions.credentials,
        CredentialOptions.endpoint,
        OptionSection(
            title: "How fast",
            options: [
                .init(
                    "connections", "N",
                    "connections in all (default: 4, or 1 for short lists and slow rates; up to 64 "
                        + "while more pay)"),
                .init(
                    "max-streams", "N",
                    "most requests in flight a connection; the server's limit always holds"),
                .init("reactors", "N", "event-loop threads (default: 1, and more while they pay)"),
                .init(
                    "rate", "N",
                    "requests a second in all, retries counted (default: unlimited)"),
                .init("rate-per-connection", "N", "requests a second a connection"),
                .init(
                    "pace", "adaptive|fixed",
                    "adaptive: fewer requests in flight where answers slow down under load; not with "
                        + "--protocol binary, which has no answers (default: adaptive)"),
                .init(
                    "hpack", "strict|compact",
                    "headers put into APNs' table: apns-id, -expiration and -collapse-id once; or "
                        + "constant headers and the provider token too (default: strict)"),
            ]),
        OptionSection(
            title: "When things go wrong",
            options: [
                .init(
                    "max-attempts", "N",
                    "a row ends as failed after so many attempts, once --retry-for is over (default: 5)"
                ),
                .init(
                    "retry-for", "D",
                    "how long after its first attempt a row is tried at least (default: 15m)"),
                .init(
                    "on-lost", "record|resend",
                    "a row whose answer was lost: record it as unknown, or send it again (default: record)"
                ),
                .init(
                    "request-timeout", "D",
                    "longest wait for a row's answer, then it is lost (default: 30s)"),
                .init(
                    "give-up-after", "D",
                    "stop after so long without an answer to any row (default: 60s)"),
                .init(
                    "abort-after", "N",
                    "stop after N refusals in a row; until the first success at most N requests are in flight (default: 50)"
                ),
                .init(
                    "max-bad-tokens", "P",
                    "stop when more than P percent of the last 10,000 answers are BadDeviceToken (default: 50)"
                ),
                ListOptions.maxInvalid,
                .init(
                    "canary", "N",
                    "send N rows first, spread over a plain file, and wait for their answers"),
                .init(
                    "canary-max-rejected", "P",
                    "stop when more than P percent of the canary's rows are refused or invalid, 410 not counted (default: 20)"
                ),
                .init(
                    "deadline", "D",
                    "stop so long after the first start; --resume without it goes on"),
                .init(
                    "dry-run", nil, "read and check everything, connect nowhere, write nothing"),
                .init(
                    "yes", nil, "do not ask at a terminal before a run against Apple's production"),
            ]),
        OptionSection(
            title: "Results",
            options: [
                .init(
                    "ledger", "DIR", "where results go; must not exist, except with --resume"),
                .init("resume", nil, "go on with DIR's run: settled rows are not sent again"),
                .init(
                    "must-resume", nil,
                    "as --resume, but exit 2 if DIR holds no ledger, instead of a campaign sent twice"
                ),
                .init(
                    "retry", "STATES",
                    "with --resume: send rows again that ended so: failed, unknown, or failed,unknown",
                    choices: ["failed", "unknown", "failed,unknown"]),
                .init("summary", "FILE", "write the summary as JSON; - for standard output"),
            ]),
        WatchOptions.section,
    ]

    /// Reads the options' values; what they mean together is the engine's to check.
    static func options(from arguments: ParsedArguments) throws(CommandFailure) -> SendOptions {
        try arguments.refuseWords(of: description)
        var options = SendOptions()
        switch (arguments.string("tokens"), arguments.string("to")) {
        case (let file?, nil): options.tokens = .file(file)
        case (nil, let token?): options.tokens = .single(token)
        case (nil, nil): throw .usage("--tokens is missing: add --tokens FILE, or --to TOKEN")
        case (.some, .some): throw .usage("--tokens and --to exclude each other: drop one")
        }
        options.payloadBy = arguments.string("payload-by")
        options.payload = arguments.string("payload")
        if options.payloadBy == nil { _ = try arguments.required("payload", "FILE") }
        options.topic = arguments.string("topic")
        if let type = try arguments.choice("push-type", PushType.self) { options.pushType = type }
        options.priority = try priority(arguments)
        options.expiration = try expiration(arguments)
        options.collapseID = arguments.string("collapse-id")
        try ListOptions.read(arguments, into: &options)
        try CredentialOptions.read(arguments, into: &options)
        try readProtocol(arguments, into: &options)
        try readLimits(arguments, into: &options)
        try readResults(arguments, into: &options)
        return options
    }

    static func readProtocol(
        _ arguments: ParsedArguments, into options: inout SendOptions
    ) throws(CommandFailure) {
        if let value = try arguments.choice("protocol", WireProtocol.self) {
            options.wireProtocol = value
        }
        guard let text = arguments.string("binary-command") else { return }
        guard let command = UInt8(text).flatMap(BinaryCommand.init(rawValue:)) else {
            throw .usage("--binary-command '\(text)' is unknown: use 0, 1 or 2")
        }
        guard options.wireProtocol == .binary else {
            throw .usage("--binary-command goes with --protocol binary: add that, or leave it out")
        }
        options.binaryCommand = command
    }

    static func readLimits(
        _ arguments: ParsedArguments, into options: inout SendOptions
    ) throws(CommandFailure) {
        options.connections = try arguments.integer("connections", in: 1...10_000)
        options.maxStreams = try arguments.integer("max-streams", in: 1...100_000)
        options.reactors = try arguments.integer("reactors", in: 1...256)
        options.rate = try arguments.positiveNumber("rate")
        options.ratePerConnection = try arguments.positiveNumber("rate-per-connection")
        if let value = try arguments.choice("pace", PaceMode.self) { options.pace = value }
        if let value = try arguments.choice("hpack", SendOptions.HeaderIndexing.self) {
            options.headerIndexing = value
        }
        if let value = try arguments.integer("max-attempts", in: 1...1000) {
            options.maxAttempts = value
        }
        if let value = try arguments.duration("retry-for") { options.retryFor = value }
        if let value = try arguments.choice("on-lost", LostAnswerPolicy.self) {
            options.onLost = value
        }
        if let value = try arguments.duration("request-timeout") {
            guard value > 0 else { throw .usage("--request-timeout must be above 0") }
            options.requestTimeout = value
        }
        options.giveUpAfter = try arguments.duration("give-up-after")
        if let value = try arguments.integer("abort-after", in: 1...1_000_000) {
            options.abortAfter = value
        }
        if let value = try arguments.percentage("max-bad-tokens") { options.maxBadTokens = value }
        if let value = try arguments.percentage("max-invalid") { options.maxInvalid = value }
        options.canary = try arguments.integer("canary", in: 1...1_000_000)
        if let value = try arguments.percentage("canary-max-rejected") {
            guard options.canary != nil else {
                throw .usage("--canary-max-rejected goes with --canary: add --canary N")
            }
            options.canaryMaxRejected = value
        }
        options.deadline = try arguments.duration("deadline")
    }

    static func readResults(
        _ arguments: ParsedArguments, into options: inout SendOptions
    ) throws(CommandFailure) {
        options.isDryRun = arguments.has("dry-run")
        options.isConfirmed = arguments.has("yes")
        options.ledger = arguments.string("ledger")
        options.mustResume = arguments.has("must-resume")
        options.resumes = arguments.has("resume") || options.mustResume
        if let states = arguments.string("retry") {
            for state in states.split(separator: ",").map(String.init) {
                guard state == "failed" || state == "unknown" else {
                    throw .usage("--retry '\(state)' is unknown: use failed, unknown or both")
                }
                options.retry.insert(state)
            }
            guard options.resumes else {
                throw .usage("--retry goes with --resume: add --resume")
            }
        }
        options.summary = arguments.string("summary")
        try WatchOptions.read(arguments, into: &options)
    }

    private static func priority(_ arguments: ParsedArguments) throws(CommandFailure) -> Priority? {
        guard let text = arguments.string("priority") else { return nil }
        guard let value = UInt8(text).flatMap(Priority.init(rawValue:)) else {
            throw .usage("--priority '\(text)' is unknown: use 10, 5 or 1")
        }
        return value
    }

    private static func expiration(
        _ arguments: ParsedArguments
    ) throws(CommandFailure) -> Expiration? {
        guard let text = arguments.string("expiration") else { return nil }
        guard let value = Expiration(text) else {
            throw .usage("--expiration '\(text)' is unknown: use 0, Unix seconds, or +90s, +2h")
        }
        return value
    }
}
