import Broadside
import Glibc
import Simulator
import Support

/// `broadside simulate`.
enum SimulateCommand {
    static let description: CommandDescription = CommandDescription(
        name: "simulate",
        summary: "a local APNs to send to, with faults where you want them",
        usage: "--listen ADDRESS:PORT --state DIR [OPTIONS]",
        discussion: """
            Answers like APNs on a port of this machine. Prints one line, 'listening on HOST:PORT',
            once it accepts connections, then the 'broadside send' line that talks to it. SIGTERM or
            SIGINT end it with exit code 0; what it saw and said then goes to stderr.

            What becomes of a token can be computed: h = splitmix64(first 8 bytes of the token,
            big-endian, padded with zeros at the end, XOR seed), u = h / 2^64; BadDeviceToken where
            u < bad-token, Unregistered where u < bad-token + unregistered, else 200.
            """,
        sections: groups.map(\.section),
        examples: [
            .init(
                "An APNs with 10,000 devices, 2% of them gone",
                #"""
                broadside simulate --listen 127.0.0.1:2197 --state apns \
                    --issue-tokens 10000 --unregistered 0.02
                """#),
            .init(
                "One that answers after 50 ms and ends each connection after 500 requests",
                #"""
                broadside simulate --listen 127.0.0.1:2197 --state apns \
                    --latency 50ms --scenario goaway
                """#
            ),
            .init("List the scenarios", "broadside simulate --scenario list"),
        ],
        run: { (arguments) throws(BroadsideError) in try run(arguments) })

    private static func run(_ arguments: ParsedArguments) throws(BroadsideError) -> Int32 {
        if arguments.string("scenario") == "list" {
            print(SimulatorOptions.scenarioList)
            return 0
        }
        let options = try options(from: arguments)
        // Blocked before any thread starts, as threads inherit the mask: this one waits for them.
        let signals = SignalSet([SIGTERM, SIGINT])
        signals.block()
        let totals: SimulatorTotals
        do throws(SimulatorError) {
            let endpoint = try ProviderEndpoint(options)
            print("listening on \(endpoint.address)")
            print(endpoint.sendCommand.map(shellWord).joined(separator: " "))
            for service in endpoint.otherServices {
                print(service.place)
                print(service.command.map(shellWord).joined(separator: " "))
            }
            fflush(nil)
            while signals.take(nanoseconds: 60_000_000_000) == nil {}
            totals = endpoint.stop()
        } catch {
            throw BroadsideError(error.message, exitCode: error.exitCode)
        }
        standardError(totals.report(lint: options.lint))
        return totals.journalFailed || totals.deliveriesFailed ? 5 : 0
    }

    /// Reads the options' values; what they mean together is the simulator's to check.
    static func options(from arguments: ParsedArguments) throws(BroadsideError) -> SimulatorOptions
    {
        try arguments.refuseWords(of: description)
        var options = SimulatorOptions(state: try arguments.required("state", "DIR"))
        for group in groups { try group.read(arguments, into: &options) }
        if options.isFast, !arguments.has("hpack-lint") { options.lint = .off }
        return options
    }

    private static let groups: [OptionGroup<SimulatorOptions>] = [
        OptionGroup(
            title: "Where",
            options: [
                .text(
                    "listen", "ADDRESS:PORT", \.listen, "numeric address; port 0 picks one"),
                .custom(
                    "state", .file(.read), "DIR",
                    "certificates and keys; filled on first use, then reused"
                ) { (text, options) throws(BroadsideError) in options.state = text },
                .text(
                    "binary-listen", "ADDRESS:PORT", \.binaryListen,
                    "a legacy binary gateway too; port 0 picks one"),
                .text(
                    "feedback-listen", "ADDRESS:PORT", \.feedbackListen,
                    "a feedback service too, of what the gateway learned"),
            ]),
        OptionGroup(
            title: "How it answers",
            options: [
                .duration("latency", \.latencyNanoseconds, "from a request to its answer"),
                .duration(
                    "latency-jitter", \.latencyJitterNanoseconds,
                    "answers come up to this much earlier or later"),
                .integer(
                    "max-streams", 1...1_000_000, \.maxStreams,
                    "streams a connection; one until the first authenticated answer"),
                .share("unregistered", \.unregistered, "share of unregistered tokens"),
                .share("bad-token", \.badToken, "share of bad tokens"),
                .custom(
                    "seed", .number, "N", "turns the same tokens into other fates (default: 0)"
                ) { (text, options) throws(BroadsideError) in
                    guard let seed = UInt64(text) else {
                        throw .usage(
                            "seed",
                            "'\(text)' is not a whole number from 0 to 2^64 - 1: fix the value"
                        )
                    }
                    options.seed = seed
                },
                .choice(
                    "environment", \.environment,
                    "tokens, keys and certificates of the other are refused"),
                .custom(
                    "scenario", .file(.read), "FILE|NAME",
                    "faults: GOAWAY, resets, stalls, bursts of 503 and so on; 'list' shows "
                        + "what ships (default: none)"
                ) { (text, options) throws(BroadsideError) in
                    options.scenario = try scenario(named: text)
                },
            ]),
        OptionGroup(
            title: "Devices",
            options: [
                .integer(
                    "issue-tokens", 0...10_000_000, \.issuedTokens,
                    "write N device tokens to DIR/tokens.txt; no others are good"),
                .file(
                    "offline", \.offline, placeholder: "SHARE|FILE",
                    "devices that are offline: a share of all, or a token a line "
                        + "(default: none)"),
                .duration(
                    "store-for", \.storeNanoseconds,
                    "how long a notification is kept for a device that is offline"),
                .choice(
                    "store-by", \.storeRule,
                    "keep the newest notification of each app, or of each app and collapse "
                        + "identifier"),
                .file(
                    "saving-power", \.savingPower, placeholder: "SHARE|FILE",
                    "devices that save power: priority 10 reaches them at once, 5 late and in "
                        + "groups, 1 with others (default: none)"),
                .duration("group-for", \.groupNanoseconds, "how late such a group is"),
                .file(
                    "deliveries", \.deliveries, use: .written,
                    "a line for each notification that a device got: "
                        + "t_us,token,topic,apns_id,collapse_id,expiration,from"),
            ]),
        OptionGroup(
            title: "How it works",
            options: [
                .integer("threads", 1...256, \.threads, "event-loop threads"),
                .file(
                    "control", \.control, use: .socket, placeholder: "PATH",
                    "socket that takes a command a line: status, scenario NAME, online TOKEN, "
                        + "offline TOKEN, saving-power TOKEN, awake TOKEN"),
                .flag(
                    "fast", \.isFast,
                    "answer as cheaply as possible: no journal, no scenario, nothing stored, all "
                        + "streams at once, no payload looked at, no HPACK lint unless asked for"),
            ]),
        OptionGroup(
            title: "What it reports",
            options: [
                .file(
                    "journal", \.journal, use: .written,
                    "a line a request: t_us,connection,stream,apns_id,token,status,reason"),
                .choice(
                    "hpack-lint", \.lint,
                    "deviations from the HPACK discipline: count them, answer them with "
                        + "GOAWAY, do not look"),
                .choice("hpack-lint-profile", \.lintProfile, "which discipline"),
                .choice(
                    "payload-lint", \.payloadLint,
                    "bodies that are compressed or are not JSON dictionaries: count them, "
                        + "refuse them with PayloadEmpty, do not look"),
            ]),
    ]

    /// A scenario that is misspelt is named aright; all else about it is the simulator's to say.
    private static func scenario(named name: String) throws(BroadsideError) -> String {
        let names = SimulatorOptions.scenarioList.split(separator: "\n").compactMap {
            $0.split(separator: " ").first.map(String.init)
        }
        guard !names.contains(name), !name.contains("/"), !name.contains("."),
            let nearest = nearestName(to: name, among: names)
        else { return name }
        throw .usage(
            "scenario", "'\(name)' is unknown: did you mean \(nearest)? --scenario list shows all")
    }
}

extension SimulatorOptions: OptionValues {
    static var defaults: SimulatorOptions { SimulatorOptions(state: "") }
}
