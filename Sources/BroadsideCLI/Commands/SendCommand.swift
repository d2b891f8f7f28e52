import BroadsideCampaigns
import BroadsideAPNs
import BroadsideLegacyGateway
import BroadsideSupport

/// `broadside send`: sends a campaign.
enum SendCommand: Command {
    static let name = "send"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "send a campaign: tokens + payload -> APNs -> ledger",
        usage: "--tokens FILE --payload FILE --topic TOPIC CREDENTIAL --ledger DIR [OPTIONS]",
        discussion: """
            Sends one notification to every device token in a list, and records the outcome of each row
            in the ledger. It is safe to kill at any time: --resume continues where it stopped.
            Write durations like 500ms, 30s, 15m, 2h or 1d.

            Exit codes: 0 no row is remaining, failed or unknown; 1 failed: APNs cannot be reached, or
            this machine lacks something; 2 the request is wrong, nothing was sent; 3 rows remain,
            --resume continues; 4 the campaign as a whole is wrong, stopped early; 5 a file or disk
            error; 6 finished, but rows are failed or unknown, --retry sends them again; 7 another
            process uses the ledger, or the ledger is an old copy.
            """,
        sections: ownGroups.map(\.section) + commonSections,
        examples: [
            .init(
                "Check everything first, without connecting or writing",
                #"""
                broadside send --environment development --topic com.example.MyApp \
                    --auth-key AuthKey_XXXXXXXXXX.p8 --key-id XXXXXXXXXX \
                    --team-id YYYYYYYYYY --tokens tokens.txt \
                    --payload payload.json --dry-run
                """#),
            .init(
                "Send what a campaign file describes, first to 1,000 rows, and write a report",
                #"""
                broadside send --campaign evening.json5 --canary 1000 \
                    --ledger tonight --report tonight.html
                """#
            ),
            .init(
                "Continue after a stop, a crash or a power cut",
                "broadside send --campaign evening.json5 --ledger tonight --resume"),
        ],
        essentials: [
            "campaign", "tokens", "payload", "topic", "auth-key", "environment", "rate", "canary",
            "dry-run", "ledger",
        ],
        summarizeWrongCampaign: { summarizeWrongCampaign($0, $1) },
        run: { (arguments) throws(BroadsideError) in
            let options = try read(arguments, options)
            if arguments.has("print-campaign") {
                print(CampaignOptions.text(arguments, of: description), terminator: "")
                return 0
            }
            return try CampaignRun.run(options)
        })

    /// Option groups that only `send` has.
    private static let ownGroups = [
        whatToSend, whichProtocol, ListOptions.whichRows, SplitOptions.group,
        EarlierLedgerOptions.group, LocalTimeOptions.group, whatToKeep,
    ]

    /// The values of `--keep-tokens`.
    private enum TokenKeeping: String, CaseIterable {
        case yes
        case no
    }

    private static let whatToKeep = OptionGroup<SendOptions>(
        title: "What the ledger keeps",
        options: [
            Option(
                .init(
                    "keep-tokens", .choice(TokenKeeping.allCases.map(\.rawValue)), "yes|no",
                    "no: the ledger stores neither tokens nor hashes of them (default: yes). Without tokens, prune, --skip-dead and --cap can't use the ledger; ledger export and ledger find need the list; report --receipts needs apns-ids; a list from standard input is refused"
                )
            ) { (arguments, options) throws(BroadsideError) in
                if let keeping = try arguments.choice("keep-tokens", TokenKeeping.self) {
                    options.keepsTokens = keeping == .yes
                }
            }
        ])

    private static let whatToSend = OptionGroup<SendOptions>(
        title: "What to send",
        options: ListOptions.list + [
            .custom("to", .text, "TOKEN", "one device instead of a list") {
                (text, options) throws(BroadsideError) in
                guard options.tokens == nil else {
                    throw .usage("tokens", "and --to exclude each other: remove one")
                }
                options.tokens = .single(text)
            },
            .file(
                "payload", \.payload,
                "JSON payload; in its strings, {{column}} is replaced per row, and {{column|text}} has a default; a string that is only {{column:int}} or {{column:bool}} becomes a number or a boolean; {{column:fit}} is shortened so that the payload fits; write {{{{ for {{"
            ),
            .custom(
                "payload-by", .columnDirectory, "COLUMN=DIR",
                "a payload for each value of a column; for pt-BR, the first that exists: DIR/pt-BR.json, DIR/pt.json, DIR/default.json, --payload"
            ) { (text, options) throws(BroadsideError) in options.payloadBy = text },
            .text(
                "topic", "TOPIC", \.topic,
                "apns-topic: the app's bundle ID, with the push type's suffix; {{column}} is replaced, "
                    + "only with a provider token; at most 256 topics, each with its own guards"),
            pushType,
            .priority(["1", "5", "10"], "apns-priority (default: 10; 5 for background)") {
                (priority, options) in options.priority = priority
            },
            .expiration(
                "apns-expiration: 0, Unix seconds, a date (ISO 8601, UTC unless it has an offset), or +90s, +2h after the first start"
            ) { (expiration, options) in options.expiration = expiration },
            .text(
                "collapse-id", "ID", \.collapseID,
                "apns-collapse-id: at most 64 bytes; {{column}} is replaced"),
            ListOptions.limit,
        ])

    static let pushType = Option<SendOptions>.choice(
        "push-type", \.pushType, placeholder: "TYPE", "apns-push-type: \(pushTypes)")

    /// All push types, for the help.
    static let pushTypes = PushType.allCases.map(\.rawValue).joined(separator: ", ")

    private static let whichProtocol = OptionGroup<SendOptions>(
        title: "Which protocol",
        options: [
            .choice(
                "protocol", \.wireProtocol,
                "provider API, or a legacy gateway at --endpoint"),
            .custom(
                "binary-command", .choice(["0", "1", "2"]), "0|1|2",
                "form of the gateway's notifications: 0 simple, 1 enhanced, 2 frame "
                    + "(default: \(SendOptions.defaults.binaryCommand.rawValue))"
            ) { (text, options) throws(BroadsideError) in
                guard let command = UInt8(text).flatMap(BinaryCommand.init(rawValue:)) else {
                    throw .usage("binary-command", "'\(text)' is unknown: use 0, 1 or 2")
                }
                guard options.wireProtocol == .binary else {
                    throw .usage(
                        "binary-command",
                        "requires --protocol binary: add it, or remove this option")
                }
                options.binaryCommand = command
            },
        ])

    /// Sections common to all runs over a list.
    static let commonSections =
        [CampaignOptions.section] + commonGroups.map(\.section)

    private static let commonGroups = [
        CredentialOptions.credentials, CredentialOptions.endpoint, howFast, whenThingsGoWrong,
        results, WatchOptions.group,
    ]

    private static let howFast = OptionGroup<SendOptions>(
        title: "How fast",
        options: [
            .integer(
                "connections", SendOptions.connectionsRange, \.connections,
                "connections in all (default: 4, or 1 for short lists and slow rates; up to 64 "
                    + "if more are faster)"),
            .integer(
                "max-streams", SendOptions.maxStreamsRange, \.maxStreams,
                "at most N requests in flight per connection; the server's limit always applies"),
            .integer(
                "reactors", SendOptions.reactorsRange, \.reactors,
                "event-loop threads (default: 1, and more if that is faster)"),
            .sendRate(
                "rate", \.rate,
                "requests per second in all, retries included (default: unlimited); A..B/D, such as "
                    + "100..5000/10m, rises evenly from A to B within D of sending, then stays at B"
            ),
            .rate("rate-per-connection", \.ratePerConnection, "requests per second per connection"),
            .choice(
                "pace", \.pace,
                "adaptive: fewer requests in flight if responses slow down under load; not with "
                    + "--protocol binary, which has no responses"),
            .choice(
                "hpack", \.headerIndexing,
                "which headers APNs may cache; strict: Apple's older documents, most bytes; current: "
                    + "Apple's present text about requests, also constant headers; compact: its "
                    + "text about connections, also the provider token, fewest bytes"),
        ])

    private static let whenThingsGoWrong = OptionGroup<SendOptions>(
        title: "When things go wrong",
        options: [
            .integer(
                "max-attempts", SendOptions.maxAttemptsRange, \.maxAttempts,
                "a row ends as failed after N attempts, but not before --retry-for has passed"),
            .duration(
                "retry-for", \.retryFor,
                "retry a row for at least this long after its first attempt"),
            .choice(
                "on-lost", \.onLost,
                "a row whose response was lost: record it as unknown, or send it again"),
            .duration(
                "request-timeout", \.requestTimeout, least: 1,
                "longest wait for a response; after that, the response counts as lost"),
            .duration(
                "give-up-after", \.giveUpAfter, default: SendOptions.defaultGiveUpAfter, least: 1,
                "stop after this time without a response; pauses and long waits for --rate do not count; without this option, a run that never reached the server stops after three attempts per address"
            ),
            .integer(
                "abort-after", SendOptions.abortAfterRange, \.abortAfter,
                "stop after N refusals in a row; until the first success at most N requests are in flight"
            ),
            .percentage(
                "max-bad-tokens", \.maxBadTokens,
                "stop when more than P percent of the last 10,000 responses are BadDeviceToken"),
            .percentage(
                "max-invalid", \.maxInvalid,
                "stop when more than P percent of the rows read so far are invalid; checked for the first 1,000 rows before anything is sent, then every 10,000 rows and at the end; 100: never stop"
            ),
            .integer(
                "canary", SendOptions.canaryRange, \.canary,
                "send N rows first, and wait for their responses; if the file is not compressed, these rows are spread over it"
            ),
            .percentage(
                "canary-max-rejected", \.canaryMaxRejected,
                "stop when more than P percent of the canary's rows are refused, invalid or without a response; 410 does not count"
            ),
            FleetOptions.assumeCanary,
            .duration(
                "deadline", \.deadline,
                "stop this time after the first start; to continue later, use --resume without this option"
            ),
            .choice(
                "payload-check", \.payloadCheck,
                "error: do not send a payload that 'payload check' rejects; warnings go to stderr"),
            .integer(
                "preview", 1...SendOptions.previewLimit, \.preview,
                "print the first N requests for each payload, without connecting or writing"
            ),
            .flag(
                "dry-run", \.isDryRun, "read and check everything, without connecting or writing"),
            .flag(
                "yes", \.isConfirmed,
                "do not ask for confirmation at a terminal before a run against Apple's production"),
        ])

    private static let results = OptionGroup<SendOptions>(
        title: "Results",
        options: LedgerOptions.options + [
            .file(
                "summary", \.summary, use: .written,
                "write the summary as JSON; - for standard output"),
            .custom(
                "name", .text, "TEXT",
                "name of the campaign, shown in report, metrics, log and summary"
            ) { (text, options) throws(BroadsideError) in
                try SendOptions.checkName(text)
                options.name = SecretText.masked(text)
            },
            FleetOptions.label,
        ])

    /// Reads the options of a run. If one is wrong, writes a summary, because its file may have
    /// that of an earlier run.
    ///
    /// - Parameters:
    ///   - options: Reads the options.
    ///   - write: Writes the summary, with the options that could be read.
    static func read<Options>(
        _ arguments: ParsedArguments,
        _ options: (ParsedArguments) throws(BroadsideError) -> Options,
        write: (BroadsideError, SendOptions) -> Void = CampaignRun.writeSummary
    ) throws(BroadsideError) -> Options {
        do throws(BroadsideError) {
            return try options(arguments)
        } catch {
            writeSummary(error, arguments, write)
            throw error
        }
    }

    /// Writes the summary of a run whose campaign file is missing or wrong. The names of the run's
    /// inputs are not all known, so a file with other content stays.
    static func summarizeWrongCampaign(
        _ error: BroadsideError, _ arguments: ParsedArguments,
        write: (BroadsideError, SendOptions) -> Void = CampaignRun.writeSummary
    ) {
        guard let path = arguments.string("summary"), !isRegularFile(path) || isSummary(path)
        else { return }
        writeSummary(error, arguments) { error, known in
            var options = known
            // Only the file may name the campaign's ledger, so the counts are unknown.
            if options.ledger == nil { options.ledgerUse = .resumeOrBegin }
            write(error, options)
        }
    }

    private static func writeSummary(
        _ error: BroadsideError, _ arguments: ParsedArguments,
        _ write: (BroadsideError, SendOptions) -> Void
    ) {
        guard !arguments.has("print-campaign") else { return }
        var known = SendOptions()
        try? results.read(arguments, into: &known)
        known.summary = arguments.string("summary")
        known.isDryRun = arguments.has("dry-run") || arguments.has("preview")
        write(error, known)
    }

    /// Whether a file has a summary or, like a new temporary file, nothing.
    private static func isSummary(_ path: String) -> Bool {
        guard let bytes = try? readFile(path, option: "summary", limit: 1 << 20) else {
            return false
        }
        return bytes.isEmpty
            || bytes[0] == UInt8(ascii: "{")
                && String(decoding: bytes, as: UTF8.self).contains("\"outcome\"")
    }

    /// Reads the options' values; the engine checks their combination.
    static func options(from arguments: ParsedArguments) throws(BroadsideError) -> SendOptions {
        try arguments.rejectWords(of: description)
        try require(arguments, RequiredOption.ledger(arguments))
        var options = SendOptions()
        try readOptions(arguments, into: &options)
        return options
    }

    /// Checks that the options of a campaign are complete, and names missing ones.
    ///
    /// - Parameters:
    ///   - list: Option that names the devices.
    ///   - more: Options required besides those of the campaign.
    static func require(
        _ arguments: ParsedArguments,
        list: RequiredOption = RequiredOption("tokens", "FILE", or: [("to", "TOKEN")]),
        _ more: [RequiredOption]
    ) throws(BroadsideError) {
        var required = [
            list,
            RequiredOption(
                "payload", "FILE", or: [("payload-by", "COLUMN=DIR")], rare: ["arm"]),
        ]
        // A campaign file may be written before it is complete.
        if !arguments.has("print-campaign") {
            required += RequiredOption.toConnect(arguments) + more
        }
        try arguments.require(required)
    }

    /// Reads all options of a send.
    static func readOptions(
        _ arguments: ParsedArguments, into options: inout SendOptions
    ) throws(BroadsideError) {
        try checkPayload(arguments)
        for group in ownGroups { try group.read(arguments, into: &options) }
        try EarlierLedgerOptions.check(options)
        try SplitOptions.check(options, arguments)
        try options.delivery.check()
        try readCommon(arguments, into: &options)
    }

    /// Refuses a payload on the command line if options of the campaign file choose the rows'
    /// payloads instead, so that the given payload would reach few rows or none.
    private static func checkPayload(_ arguments: ParsedArguments) throws(BroadsideError) {
        let given = ["payload", "payload-by"].filter {
            arguments.has($0) && !arguments.isFromFile($0)
        }
        guard let name = given.first else { return }
        // Each option with its usual key in a campaign file.
        let choosing = [("payload-by", "payload-by"), ("arm", "arms")].first { option, _ in
            arguments.isFromFile(option)
        }
        guard let (option, key) = choosing else { return }
        let values = arguments.strings(option).map(shellWord).joined(separator: ", ")
        throw .usage(
            name,
            "does not replace '\(key)' of the campaign file, which still chooses the payloads of rows "
                + "(\(values)): change those files, or use a campaign file without '\(key)'; to keep "
                + "the choice, add --\(option) to the command line as well")
    }

    /// Reads the options common to all runs over a list.
    static func readCommon(
        _ arguments: ParsedArguments, into options: inout SendOptions
    ) throws(BroadsideError) {
        options.command = RunCommand.current
        for group in commonGroups { try group.read(arguments, into: &options) }
        if arguments.has("canary-max-rejected"), options.canary == nil {
            throw .usage("canary-max-rejected", "requires --canary: add --canary N")
        }
        try FleetOptions.check(options)
        try LedgerOptions.check(options, arguments)
    }
}
