import Broadside

/// `broadside bench`.
enum BenchCommand {
    static let description: CommandDescription = CommandDescription(
        name: "bench",
        summary: "throughput of this machine against the simulator, or against an endpoint",
        usage: "[OPTIONS]",
        discussion: """
            Needs no files: a simulated APNs is started as a process of its own, device tokens and a
            payload are made, 'broadside send' with its ledger sends them, and everything is removed
            again; meanwhile it lies in TMPDIR, a list of at most 20 million rows (1.3 GB) and ledgers.
            Simulator and engine share this machine's cores; what the simulator costs is shown
            apart. With --endpoint another server is measured, never Apple's: the tokens are made up.

            A warm-up of at most a second and four times the latency finds the rate from which the
            rows for --duration are computed; the run takes about so long, not exactly. Where it takes
            less than half of that it is made again with more rows, twice at most. Bytes are those
            of HEADERS and DATA frames, without TLS, counted on a short run of its own.
            """,
        sections: [
            OptionSection(
                title: "How much",
                options: [
                    .init("duration", "D", "about how long the measured run takes (default: 5s)"),
                    .init(
                        "payload-bytes", "N", "octets of the payload, 20 to 4096 (default: 242)"),
                    .init("connections", "N", "connections in all (default: 4)"),
                    .init("streams", "N", "streams a connection (default: the server's limit)"),
                    .init("reactors", "N", "event-loop threads (default: chosen)"),
                ]),
            OptionSection(
                title: "Against what",
                options: [
                    .init(
                        "latency", "D", "from a request to the simulator's answer (default: 0ms)"),
                    .init(
                        "endpoint", "HOST[:PORT]",
                        "another server, not Apple's (default: a simulator that is started)"),
                    .init("ca-file", "FILE", "certificates to trust there; goes with --endpoint"),
                    .init("topic", "TOPIC", "apns-topic there; goes with --endpoint"),
                ]),
            CredentialOptions.credentials,
            OptionSection(
                title: "What it tells",
                options: [.init("json", nil, "the figures as JSON")]),
        ],
        examples: [
            .init("What this machine carries", "broadside bench"),
            .init(
                "The same where each answer takes 200 ms, as JSON",
                "broadside bench --latency 200ms --connections 50 --json"),
        ],
        run: { (arguments) throws(CommandFailure) in try run(arguments) })

    private static func run(_ arguments: ParsedArguments) throws(CommandFailure) -> Int32 {
        let options = try options(from: arguments)
        let result = try BenchRun(options).run()
        print(arguments.has("json") ? result.json : result.table, terminator: "")
        return 0
    }

    /// Reads the options' values and what they mean together.
    static func options(from arguments: ParsedArguments) throws(CommandFailure) -> BenchOptions {
        try arguments.refuseWords(of: description)
        var options = BenchOptions()
        if let duration = try arguments.duration("duration") {
            guard BenchOptions.durations.contains(duration) else {
                throw .usage("--duration is from 100ms to 10m: mend the value")
            }
            options.durationNanoseconds = duration
        }
        if let count = try arguments.integer("payload-bytes", in: BenchOptions.payloadCounts) {
            options.payloadCount = count
        }
        options.connections = try arguments.integer("connections", in: 1...10_000)
        options.streams = try arguments.integer("streams", in: 1...100_000)
        options.reactors = try arguments.integer("reactors", in: 1...256)
        let latency = try arguments.duration("latency")
        options.latencyNanoseconds = latency ?? 0
        let forEndpoint = ["ca-file", "topic"] + CredentialOptions.credentials.options.map(\.name)
        guard let endpoint = arguments.string("endpoint") else {
            if let name = forEndpoint.first(where: arguments.has) {
                throw .usage(
                    "--\(name) goes with --endpoint: add that, or leave it out; the simulator has "
                        + "its own")
            }
            return options
        }
        guard latency == nil else {
            throw .usage("--latency is the simulator's: leave it out, or --endpoint")
        }
        guard !BenchOptions.isApples(endpoint) else {
            throw .usage(
                "--endpoint \(endpoint) is Apple's: a benchmark's made-up tokens don't go there; "
                    + "use another server, or leave it out for the simulator")
        }
        _ = try arguments.required("ca-file", "FILE")
        for name in ["endpoint"] + forEndpoint {
            if let value = arguments.string(name) {
                options.endpointArguments += ["--\(name)", value]
            }
        }
        return options
    }
}
