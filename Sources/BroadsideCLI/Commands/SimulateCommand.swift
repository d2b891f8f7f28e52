import Broadside
import Glibc
import Simulator

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

            What becomes of a token can be computed: h = splitmix64(first 8 octets of the token,
            big-endian, padded with zeros at the end, XOR seed), u = h / 2^64; BadDeviceToken where
            u < bad-token, Unregistered where u < bad-token + unregistered, else 200.
            """,
        sections: [
            OptionSection(
                title: "Where",
                options: [
                    .init(
                        "listen", "ADDRESS:PORT",
                        "numeric address; port 0 picks one (default: 127.0.0.1:2197)"),
                    .init(
                        "state", "DIR",
                        "certificates and keys; filled on first use, then reused"),
                    .init(
                        "binary-listen", "ADDRESS:PORT",
                        "a legacy binary gateway too; port 0 picks one"),
                    .init(
                        "feedback-listen", "ADDRESS:PORT",
                        "a feedback service too, of what the gateway learned"),
                ]),
            OptionSection(
                title: "How it answers",
                options: [
                    .init("latency", "D", "from a request to its answer (default: 0ms)"),
                    .init(
                        "latency-jitter", "D",
                        "answers come up to this much earlier or later (default: 0ms)"),
                    .init(
                        "max-streams", "N",
                        "streams a connection; one until the first authenticated answer "
                            + "(default: 1000)"),
                    .init("unregistered", "SHARE", "share of unregistered tokens (default: 0)"),
                    .init("bad-token", "SHARE", "share of bad tokens (default: 0)"),
                    .init("seed", "N", "turns the same tokens into other fates (default: 0)"),
                    .init(
                        "environment", "production|development",
                        "tokens, keys and certificates of the other are refused "
                            + "(default: production)"),
                    .init(
                        "scenario", "FILE|NAME",
                        "faults: GOAWAY, resets, stalls, bursts of 503 and so on; 'list' shows "
                            + "what ships (default: none)"),
                ]),
            OptionSection(
                title: "Devices",
                options: [
                    .init(
                        "issue-tokens", "N",
                        "write N device tokens to DIR/tokens.txt; no others are good"),
                    .init(
                        "offline", "SHARE|FILE",
                        "devices that are offline: a share of all, or a token a line "
                            + "(default: none)"),
                    .init(
                        "store-for", "D",
                        "how long a notification is kept for a device that is offline "
                            + "(default: 30d)"),
                    .init(
                        "store-by", "app|collapse-id",
                        "keep the newest notification of each app, or of each app and collapse "
                            + "identifier (default: app)"),
                    .init(
                        "saving-power", "SHARE|FILE",
                        "devices that save power: priority 10 reaches them at once, 5 late and in "
                            + "groups, 1 with others (default: none)"),
                    .init(
                        "group-for", "D",
                        "how late such a group is (default: 30s)"),
                    .init(
                        "deliveries", "FILE",
                        "a line for each notification that a device got: "
                            + "t_us,token,topic,apns_id,collapse_id,expiration,from"),
                ]),
            OptionSection(
                title: "How it works",
                options: [
                    .init("threads", "N", "event-loop threads (default: 1)"),
                    .init(
                        "control", "PATH",
                        "socket that takes a command a line: status, scenario NAME, online TOKEN, "
                            + "offline TOKEN, saving-power TOKEN, awake TOKEN"),
                    .init(
                        "fast", nil,
                        "answer as cheaply as possible: no journal, no scenario, nothing stored, all "
                            + "streams at once, no payload looked at, no HPACK lint unless asked for"
                    ),
                ]),
            OptionSection(
                title: "What it tells",
                options: [
                    .init(
                        "journal", "FILE",
                        "a line a request: t_us,connection,stream,apns_id,token,status,reason"),
                    .init(
                        "hpack-lint", "report|refuse|off",
                        "deviations from the HPACK discipline: count them, answer them with "
                            + "GOAWAY, do not look (default: report)"),
                    .init(
                        "hpack-lint-profile", "strict|compact",
                        "which discipline (default: strict)"),
                    .init(
                        "payload-lint", "report|refuse|off",
                        "bodies that are compressed or are not JSON dictionaries: count them, "
                            + "refuse them with PayloadEmpty, do not look (default: report)"),
                ]),
        ],
        examples: [
            .init(
                "An APNs with 10,000 devices, 2 % of them gone",
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
        run: { (arguments) throws(CommandFailure) in try run(arguments) })

    private static func run(_ arguments: ParsedArguments) throws(CommandFailure) -> Int32 {
        if arguments.string("scenario") == "list" {
            print(SimulatorOptions.scenarioList)
            return 0
        }
        let options = try options(from: arguments)
        // Blocked before any thread starts, as threads inherit the mask: this one waits for them.
        var signals = sigset_t()
        unsafe sigemptyset(&signals)
        unsafe sigaddset(&signals, SIGTERM)
        unsafe sigaddset(&signals, SIGINT)
        unsafe pthread_sigmask(SIG_BLOCK, &signals, nil)
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
            var signal: Int32 = 0
            while unsafe sigwait(&signals, &signal) != 0 {}
            totals = endpoint.stop()
        } catch {
            throw CommandFailure(message: error.message, exitCode: error.exitCode)
        }
        standardError(totals.report(lint: options.lint))
        return totals.journalFailed || totals.deliveriesFailed ? 5 : 0
    }

    /// Reads the options' values; what they mean together is the simulator's to check.
    static func options(from arguments: ParsedArguments) throws(CommandFailure) -> SimulatorOptions
    {
        try arguments.refuseWords(of: description)
        var options = SimulatorOptions(state: try arguments.required("state", "DIR"))
        if let listen = arguments.string("listen") { options.listen = listen }
        if let value = try arguments.duration("latency") { options.latencyNanoseconds = value }
        if let value = try arguments.duration("latency-jitter") {
            options.latencyJitterNanoseconds = value
        }
        if let value = try arguments.integer("max-streams", in: 1...1_000_000) {
            options.maxStreams = UInt32(value)
        }
        if let value = try share(arguments, "unregistered") { options.unregistered = value }
        if let value = try share(arguments, "bad-token") { options.badToken = value }
        if let text = arguments.string("seed") {
            guard let seed = UInt64(text) else {
                throw .usage(
                    "--seed '\(text)' is no whole number from 0 to 2^64 - 1: mend the value")
            }
            options.seed = seed
        }
        if let value = try arguments.choice("environment", SimulatorEnvironment.self) {
            options.environment = value
        }
        options.scenario = try scenario(arguments)
        options.issuedTokens = try arguments.integer("issue-tokens", in: 0...10_000_000)
        options.binaryListen = arguments.string("binary-listen")
        options.feedbackListen = arguments.string("feedback-listen")
        options.offline = arguments.string("offline")
        if let value = try arguments.duration("store-for") { options.storeNanoseconds = value }
        if let rule = try arguments.choice("store-by", StoreRule.self) { options.storeRule = rule }
        options.savingPower = arguments.string("saving-power")
        if let value = try arguments.duration("group-for") { options.groupNanoseconds = value }
        if let mode = try arguments.choice("payload-lint", PayloadLintMode.self) {
            options.payloadLint = mode
        }
        options.deliveries = arguments.string("deliveries")
        options.control = arguments.string("control")
        if let value = try arguments.integer("threads", in: 1...256) { options.threads = value }
        options.isFast = arguments.has("fast")
        options.journal = arguments.string("journal")
        options.lint = options.isFast ? .off : .report
        if let mode = try arguments.choice("hpack-lint", HPACKLintMode.self) { options.lint = mode }
        if let profile = try arguments.choice("hpack-lint-profile", HPACKLintProfile.self) {
            options.lintProfile = profile
        }
        return options
    }

    /// A scenario that is misspelt is named aright; all else about it is the simulator's to say.
    private static func scenario(
        _ arguments: ParsedArguments
    ) throws(CommandFailure) -> String? {
        guard let name = arguments.string("scenario") else { return nil }
        let names = SimulatorOptions.scenarioList.split(separator: "\n").compactMap {
            $0.split(separator: " ").first.map(String.init)
        }
        guard !names.contains(name), !name.contains("/"), !name.contains("."),
            let nearest = nearestName(to: name, among: names)
        else { return name }
        throw .usage(
            "--scenario '\(name)' is unknown: did you mean \(nearest)? --scenario list shows all")
    }

    private static func share(
        _ arguments: ParsedArguments, _ name: String
    ) throws(CommandFailure) -> Double? {
        guard let text = arguments.string(name) else { return nil }
        guard let value = Double(text), value >= 0, value <= 1 else {
            throw .usage("--\(name) '\(text)' is no share from 0 to 1: write 0.01 for one percent")
        }
        return value
    }
}
