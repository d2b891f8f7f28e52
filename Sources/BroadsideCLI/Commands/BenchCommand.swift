import BroadsideCampaigns
import BroadsideSupport

/// `broadside bench`: measures the throughput of this machine.
enum BenchCommand: Command {
    static let name = "bench"

    static let description: CommandDescription = CommandDescription(
        name: name,
        summary: "measure the throughput of this machine, against a simulator or an endpoint",
        usage: "[OPTIONS]",
        discussion: """
            Needs no files. It starts a simulator in a separate process, generates device tokens and a
            payload, runs 'broadside send' with a ledger, and removes everything at the end. Until then,
            TMPDIR holds the list, with at most 20 million rows (1.3 GB), and the ledgers. Simulator and
            sender share this machine's cores; the simulator's CPU time is shown separately. With
            --endpoint, it measures another server, but never Apple's, because the tokens are made up.

            A short warm-up (at most one second plus four times the latency) measures the rate, which
            determines the number of rows. So --duration is approximate. A run that takes less than half
            of --duration is repeated with more rows, at most twice. A separate short run counts the bytes
            of HEADERS and DATA frames, without TLS.

            If h2load (of nghttp2) is installed, bench also runs h2load, with the same payload, the same
            numbers of connections and streams, and a simulator of the same kind, and prints the CPU time
            per request of both. h2load sends as many requests, but at most a million. h2load reads no list
            and writes no ledger.
            """,
        sections: [
            howMuch.section, againstWhat.section, CredentialOptions.credentials.section,
            OptionSection(
                title: "What it reports",
                options: [.init("json", .flag, nil, "the figures as JSON")]),
        ],
        examples: [
            .init("The throughput of this machine", "broadside bench"),
            .init(
                "The same with responses that take 200 ms, as JSON",
                "broadside bench --latency 200ms --connections 50 --json"),
        ],
        essentials: [
            "duration", "latency", "connections", "streams", "reactors",
            "payload-bytes", "endpoint", "ca-file", "topic", "json",
        ],
        run: { (arguments) throws(BroadsideError) in try run(arguments) })

    private static let howMuch = OptionGroup<BenchOptions>(
        title: "Load",
        options: [
            .custom(
                "duration", .text, "D", "approximate duration of the measured run (default: 5s)"
            ) { (text, options) throws(BroadsideError) in
                guard let duration = parseDuration(text) else {
                    throw .usage("duration", ParsedArguments.noDuration(text))
                }
                guard BenchOptions.durations.contains(duration) else {
                    throw .usage(
                        "duration",
                        "'\(text)' is not a duration from 100ms to 10m: write it like 5s")
                }
                options.durationNanoseconds = duration
            },
            .integer(
                "payload-bytes", BenchOptions.payloadCounts, \.payloadCount,
                "bytes of the payload, 20 to 4096"),
            .integer(
                "connections", 1...10_000, \.connections,
                "connections in all (default: \(BenchOptions.defaultConnections))"),
            .integer(
                "streams", 1...100_000, \.streams,
                "streams per connection (default: the server's limit)"),
            .integer("reactors", 1...256, \.reactors, "event-loop threads (default: chosen)"),
        ])

    private static let againstWhat = OptionGroup<BenchOptions>(
        title: "Server",
        options: [
            .duration(
                "latency", \.latencyNanoseconds, "time from a request to the simulator's response"),
            // Passed on to `send`.
            .custom(
                "endpoint", .text, "HOST[:PORT]",
                "another server, not Apple's (default: bench starts a simulator)"
            ) { (_, _) throws(BroadsideError) in },
            .custom(
                "ca-file", .file(.read), "FILE",
                "with --endpoint: certificates to trust (default: the system's)"
            ) { (_, _) throws(BroadsideError) in },
            .custom("topic", .text, "TOPIC", "with --endpoint: apns-topic") {
                (_, _) throws(BroadsideError) in
            },
        ])

    private static func run(_ arguments: ParsedArguments) throws(BroadsideError) -> Int32 {
        let options = try options(from: arguments)
        let result = try BenchRun(options).run()
        print(arguments.has("json") ? result.json : result.table, terminator: "")
        return 0
    }

    /// Reads the options' values and checks their combination.
    static func options(from arguments: ParsedArguments) throws(BroadsideError) -> BenchOptions {
        try arguments.rejectWords(of: description)
        var options = BenchOptions()
        for group in [howMuch, againstWhat] { try group.read(arguments, into: &options) }
        let forEndpoint =
            ["ca-file", "topic"] + CredentialOptions.credentials.section.options.map(\.name)
        guard let endpoint = arguments.string("endpoint") else {
            if let name = forEndpoint.first(where: arguments.has) {
                throw .usage(
                    name,
                    "requires --endpoint: add --endpoint HOST:PORT, or remove --\(name) to use "
                        + "the simulator's own value")
            }
            return options
        }
        guard !arguments.has("latency") else {
            throw .usage(
                "latency", "configures the simulator, but --endpoint replaces it: remove one")
        }
        guard !BenchOptions.isApples(endpoint) else {
            throw .usage(
                "endpoint",
                "\(endpoint) is Apple's server, which must not get the made-up tokens of a benchmark: "
                    + "name another server, or remove --endpoint to use the simulator")
        }
        try arguments.require(RequiredOption.toConnect(arguments))
        for name in ["endpoint"] + forEndpoint {
            if let value = arguments.string(name) {
                options.endpointArguments += ["--\(name)", value]
            }
        }
        return options
    }
}

extension BenchOptions: OptionValues {
    static var defaults: BenchOptions { BenchOptions() }
}
