import BroadsideCampaigns
import BroadsideSimulator
import BroadsideSupport
import Glibc

/// `broadside simulate`: runs a local APNs.
enum SimulateCommand: Command {
    static let name = "simulate"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "run a local APNs to send to, with faults on demand",
        usage: "--listen ADDRESS:PORT --state DIR [OPTIONS]",
        discussion: """
            Responds like APNs on a port of this machine. Once it accepts connections, it prints the
            line 'listening on HOST:PORT', then the 'broadside send' line that connects to it. SIGTERM or
            SIGINT end it with exit code 0; a summary of requests and responses then goes to stderr.

            The response for a token can be computed. Let x be the first 8 bytes of the token, as a
            big-endian number, padded with zeros at the end; h = splitmix64(x XOR seed), u = h / 2^64.
            The response is BadDeviceToken if u < bad-token, Unregistered if
            u < bad-token + unregistered, else 200. The timestamp of Unregistered is the time of
            --gone-at. If --gone-at is not given, it is a millisecond after --issue-tokens wrote
            tokens.txt, and without --issue-tokens, it is 1700000000000 + h mod 86400000.
            """,
        sections: groups.map(\.section),
        examples: [
            .init(
                "An APNs with 10,000 device tokens, 2% of them dead",
                #"""
                broadside simulate --listen 127.0.0.1:2197 --state apns \
                    --issue-tokens 10000 --unregistered 0.02
                """#),
            .init(
                "One that responds after 50 ms and ends each connection after 500 requests",
                #"""
                broadside simulate --listen 127.0.0.1:2197 --state apns \
                    --latency 50ms --scenario goaway
                """#
            ),
            .init("List the scenarios", "broadside simulate --scenario list"),
        ],
        essentials: [
            "listen", "state", "issue-tokens", "unregistered", "bad-token", "latency",
            "max-streams", "scenario", "journal", "control-listen",
        ],
        run: { (arguments) throws(BroadsideError) in try run(arguments) })

    private static func run(_ arguments: ParsedArguments) throws(BroadsideError) -> Int32 {
        if arguments.string("scenario") == "list" {
            print(SimulatorOptions.scenarioList)
            return 0
        }
        let options = try options(from: arguments)
        // Blocked before any thread starts, because threads inherit the mask. This thread waits for
        // these signals.
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
            var isWarned = false
            while signals.take(nanoseconds: 1_000_000_000) == nil {
                guard endpoint.wasOutOfFiles, !isWarned else { continue }
                isWarned = true
                standardErrorLine(
                    "broadside: warning: no more files can be opened, so new connections wait: "
                        + "raise the limit on open files (ulimit -n)")
            }
            totals = endpoint.stop()
        } catch {
            throw BroadsideError(error.message, exitCode: error.exitCode)
        }
        standardError(totals.report(lint: options.lint))
        let isWhole =
            !totals.journalFailed && !totals.deliveriesFailed && !totals.recordingFailed
        return isWhole ? 0 : 5
    }

    /// Reads the options' values; the simulator checks their combination.
    static func options(from arguments: ParsedArguments) throws(BroadsideError) -> SimulatorOptions
    {
        try arguments.rejectWords(of: description)
        var options = SimulatorOptions(state: try arguments.required("state", "DIR"))
        for group in groups { try group.read(arguments, into: &options) }
        if options.isFast, !arguments.has("hpack-lint") { options.lint = .off }
        return options
    }

    private static let groups: [OptionGroup<SimulatorOptions>] = [
        OptionGroup(
            title: "Addresses and files",
            options: [
                .text(
                    "listen", "ADDRESS:PORT", \.listen, "numeric address; port 0 picks a free port"),
                .custom(
                    "state", .file(.read), "DIR",
                    "certificates and keys; a new or empty directory, filled on first use, then "
                        + "reused"
                ) { (text, options) throws(BroadsideError) in options.state = text },
                Option(
                    .init(
                        "server-name", .text, "NAME",
                        "a further host name for the certificate, such as api.push.apple.com; the "
                            + "first start with DIR makes the certificate",
                        isRepeatable: true)
                ) { (arguments, options) throws(BroadsideError) in
                    options.serverNames = arguments.strings("server-name").map { $0.lowercased() }
                },
                .text(
                    "binary-listen", "ADDRESS:PORT", \.binaryListen,
                    "also run a legacy binary gateway; port 0 picks a free port"),
                .text(
                    "feedback-listen", "ADDRESS:PORT", \.feedbackListen,
                    "also run a feedback service, which lists the dead tokens that the gateway saw"),
            ]),
        OptionGroup(
            title: "Responses",
            options: [
                .duration("latency", \.latencyNanoseconds, "time from a request to its response"),
                .duration(
                    "latency-jitter", \.latencyJitterNanoseconds,
                    "responses come up to this much earlier or later"),
                .integer(
                    "max-streams", 1...1_000_000, \.maxStreams,
                    "streams per connection; one until the first authenticated response"),
                .share("unregistered", \.unregistered, "share of unregistered tokens"),
                .share("bad-token", \.badToken, "share of bad tokens"),
                .custom(
                    "gone-at", .text, "WHEN",
                    "the timestamp in the 410 of unregistered tokens: 'request' (time of each "
                        + "request), 'start' (start of the simulator), Unix seconds or a date "
                        + "(default: when the tokens were issued, else a day of November 2023)"
                ) { (text, options) throws(BroadsideError) in options.goneAt = try goneAt(text) },
                .custom(
                    "seed", .number, "N",
                    "with another seed, the same tokens get other responses (default: 0)"
                ) { (text, options) throws(BroadsideError) in
                    guard let seed = UInt64(text) else {
                        throw .usage(
                            "seed",
                            "'\(text)' is not a whole number from 0 to 2^64 - 1: write digits, such as 7"
                        )
                    }
                    options.seed = seed
                },
                .file(
                    "replay", \.replay,
                    "take responses from FILE, a recording or your own: the Nth request of a token gets "
                        + "the token's Nth line, later requests its last line; tokens without lines "
                        + "get the usual responses"),
                .choice(
                    "environment", \.environment,
                    "tokens, keys and certificates of the other environment are refused"),
                .custom(
                    "scenario", .choiceOrFile(["list"] + SimulatorOptions.scenarioNames),
                    "FILE|NAME",
                    "faults: GOAWAY, resets, stalls, bursts of 503 and so on; 'list' shows "
                        + "the built-in ones (default: none)"
                ) { (text, options) throws(BroadsideError) in
                    options.scenario = try scenario(named: text)
                },
            ]),
        OptionGroup(
            title: "Devices",
            options: [
                .integer(
                    "issue-tokens", 0...10_000_000, \.issuedTokens,
                    "write N device tokens to DIR/tokens.txt; only these are valid"),
                .file(
                    "offline", \.offline, placeholder: "SHARE|FILE",
                    "devices that are offline: a share of all, or a file with one token per line "
                        + "(default: none)"),
                .duration(
                    "store-for", \.storeNanoseconds,
                    "how long a notification is stored for an offline device"),
                .choice(
                    "store-by", \.storeRule,
                    "keep the newest notification of each app, or of each app and collapse "
                        + "identifier"),
                .file(
                    "saving-power", \.savingPower, placeholder: "SHARE|FILE",
                    "devices that save power: priority 10 reaches them at once, 5 late and in "
                        + "groups, 1 only with others (default: none)"),
                .duration("group-for", \.groupNanoseconds, "delay of the groups of --saving-power"),
                .file(
                    "deliveries", \.deliveries, use: .written,
                    "one line per notification that reached a device: "
                        + "t_us,token,topic,apns_id,collapse_id,expiration,from"),
            ]),
        OptionGroup(
            title: "How it works",
            options: [
                .integer("threads", 1...256, \.threads, "event-loop threads"),
                .file(
                    "control", \.control, use: .socket, placeholder: "PATH",
                    "socket that reads one command per line: status, received, wait COUNT, reset, "
                        + "outcome TOKEN REASON, expire-token, drop, scenario NAME, online TOKEN, "
                        + "offline TOKEN, saving-power TOKEN, awake TOKEN, subscribe CHANNEL TOKEN, unsubscribe CHANNEL TOKEN"
                ),
                .text(
                    "control-listen", "ADDRESS:PORT", \.controlListen,
                    "the same commands over HTTP, for tests in any language; port 0 picks a free port"
                ),
                .integer(
                    "keep-requests", 0...1_000_000, \.keptRequests,
                    "how many of the newest requests to keep for the command 'received'"),
                .flag(
                    "fast", \.isFast,
                    "respond as fast as possible: no journal, no scenario, nothing stored, all "
                        + "streams at once, no checks of payloads and header names, no "
                        + "apns-unique-id, no idle timeout, no GOAWAY at the end, HPACK lint only if "
                        + "asked for"),
            ]),
        OptionGroup(
            title: "What it reports",
            options: [
                .file(
                    "journal", \.journal, use: .written,
                    "one line per request: t_us,connection,stream,apns_id,token,status,reason"),
                .file(
                    "record", \.record, use: .written,
                    "one line of JSON per response, for --replay: token, protocol, status, reason, "
                        + "timestamp, retry_after"),
                .choice(
                    "hpack-lint", \.lint,
                    "deviations from the HPACK indexing policy: count them, respond with "
                        + "GOAWAY, or ignore them"),
                .choice("hpack-lint-profile", \.lintProfile, "indexing policy for --hpack-lint"),
                .choice(
                    "payload-lint", \.payloadLint,
                    "bodies that are compressed or are not JSON dictionaries: count them, "
                        + "refuse them with PayloadEmpty, or ignore them"),
            ]),
    ]

    private static func goneAt(_ text: String) throws(BroadsideError) -> GoneAt {
        if text == "start" { return .start }
        if text == "request" { return .request }
        guard case .at(let seconds) = BroadsideCampaigns.expiration(text), seconds > 0,
            seconds < 100_000_000_000
        else {
            throw .usage(
                "gone-at",
                "'\(text)' is unknown: use request, start, Unix seconds, or a date like "
                    + "2026-01-31T18:00Z")
        }
        return .second(seconds)
    }

    /// Suggests the correct name for a misspelt scenario; the simulator reports all other problems.
    private static func scenario(named name: String) throws(BroadsideError) -> String {
        let names = SimulatorOptions.scenarioNames
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
