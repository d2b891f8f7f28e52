import BroadsideCampaigns
import BroadsideSupport
internal import Glibc

/// One benchmark. It consists of a short run that counts bytes, a run that finds the rate, and the
/// measured run.
struct BenchRun {
    /// Measurements of a `send`, from its summary and the kernel.
    struct Measured {
        var summary: BenchSummary
        var cpuMicroseconds: Double
        var latencies: [LedgerLatencies.Column]
        /// CPU time of the simulator; nil if no simulator was started.
        var simulatorMicroseconds: Double?

        var answered: Double { Double(summary.accepted + summary.rejected) }
    }

    private let options: BenchOptions
    private let files: BenchFiles
    private let signals = BenchSignals()

    /// Rows and milliseconds of the run that counts bytes.
    private static let sample = (rows: 1000, milliseconds: 300)
    /// Rows and milliseconds of the run that finds the rate.
    private static let warmUp = (rows: 1_000_000, milliseconds: 1000)

    /// Number of columns in the latency histogram.
    private static let columnCount = 16

    /// Maximum number of attempts of a run that must last for a minimum time.
    private static let sampleLimit = 3

    /// Each of the two runs before the measured run lasts this many latencies longer, because
    /// connections accept more requests only after their first responses.
    private static let latencies = 4

    init(_ options: BenchOptions) throws(BroadsideError) {
        self.options = options
        files = try BenchFiles(payloadCount: options.payloadCount)
    }

    func run() throws(BroadsideError) -> BenchResult {
        try files.extendList(to: Self.sample.rows, signals)
        let trace = "\(files.path)/frames"
        let latency = Int(options.latencyNanoseconds / 1_000_000)
        let sample = try measureBriefly(
            rows: Self.sample.rows, name: "sample",
            milliseconds: Self.sample.milliseconds + Self.latencies * latency,
            more: ["--trace-frames", trace, "--connections", "1"])
        let bytes = BenchTrace(BenchFiles.text(trace)).bytesEach
        let seconds = Double(options.durationNanoseconds) / 1e9
        try files.extendList(to: Self.warmUp.rows, signals)
        let answer = sample.summary.latency.p50 ?? 0
        let found = try measureBriefly(
            rows: Self.warmUp.rows, name: "warm-up",
            milliseconds: min(Self.warmUp.milliseconds, max(100, Int(seconds * 500)))
                + Self.latencies * Int(answer),
            more: connections)
        // Subtracts two latencies: little is sent before the first responses, and the last
        // responses are only awaited.
        let elapsed = found.summary.elapsedSeconds
        let rate = found.answered / max(elapsed - 2 * answer / 1000, elapsed / 4)
        let measured = try measure(
            for: seconds, rate: rate,
            after: "\(grouped(wholeNumber(rate))) per second in the warm-up")
        if measured.summary.rejected > 0 {
            standardErrorLine(
                "broadside: warning: \(measured.summary.rejected) of "
                    + "\(Int(measured.answered)) notifications were refused, and a server may "
                    + "handle refused notifications faster than accepted ones: check the endpoint")
        }
        return BenchResult(
            measured, options, bytesEach: bytes, reference: try reference(for: measured))
    }

    /// Measures h2load with the same number of requests. Returns nil if h2load is not installed, or
    /// if `--endpoint` is given, because another server is measured only once.
    private func reference(for measured: Measured) throws(BroadsideError) -> BenchReference? {
        guard options.endpointArguments.isEmpty, let program = BenchReference.program else {
            return nil
        }
        let version =
            try finish(
                BenchChild(["--version"], name: "h2load-version", in: files.path, program: program)
            ).text.split(separator: "\n").first.map(String.init) ?? "h2load"
        standardErrorLine("broadside: \(version) sends the same requests for comparison")
        let (simulator, target) = try startSimulator("h2load-simulator")
        defer { simulator.stop(SIGTERM) }
        let arguments = try BenchReference.arguments(
            requests: Int(measured.answered), options,
            connections: measured.summary.connections ?? 1, to: target, payload: files.payload)
        let done = try finish(
            BenchChild(arguments, name: "h2load", in: files.path, program: program))
        guard done.end.exitCode == 0,
            let found = BenchReference(
                done.text, version: version, cpuMicroseconds: done.end.cpuMicroseconds)
        else {
            standardErrorLine(
                "broadside: warning: h2load failed, so the comparison does not include it")
            return nil
        }
        return found
    }

    private func finish(
        _ child: BenchChild
    ) throws(BroadsideError) -> (end: BenchChild.End, text: String) {
        while true {
            if let end = child.poll() { return (end, BenchFiles.text(child.outputPath)) }
            try signals.wait()
        }
    }

    /// Sends for a short time. On a busy machine, or with a distant endpoint, the time may pass
    /// before the first response. The time is then extended.
    private func measureBriefly(
        rows: Int, name: String, milliseconds: Int, more: [String]
    ) throws(BroadsideError) -> Measured {
        var milliseconds = milliseconds
        for look in 1..<Self.sampleLimit {
            let measured = try send(
                rows: rows, name: "\(name)-\(look)", milliseconds: milliseconds, more: more)
            if measured.answered > 0 { return measured }
            milliseconds *= 5
        }
        return try measure(rows: rows, name: name, milliseconds: milliseconds, more: more)
    }

    /// Sends for about the given time. On a busy machine, the rate that a warm-up measured is
    /// unreliable. A run that takes less than half of the time therefore serves as a further
    /// warm-up.
    private func measure(
        for seconds: Double, rate: Double, after finding: String
    ) throws(BroadsideError) -> Measured {
        var (rate, finding) = (rate, finding)
        var looks = Self.sampleLimit
        while true {
            assert(rate.isFinite && rate >= 0, "a rate is a number of rows per second")
            let rows = max(1, min(BenchFiles.rowsLimit, Int(rate * seconds)))
            try files.extendList(to: rows, signals)
            standardErrorLine(
                "broadside: \(finding): sending \(grouped(rows)) notifications")
            looks -= 1
            let measured = try measure(
                rows: rows, name: looks == 0 ? "measured" : "measured-\(looks)",
                milliseconds: nil, more: connections)
            let elapsed = measured.summary.elapsedSeconds
            if looks == 0 || elapsed >= seconds / 2 || rows == BenchFiles.rowsLimit {
                return measured
            }
            rate = Double(rows) / elapsed
            finding = "\(grouped(wholeNumber(rate))) per second in \(BenchResult.tenths(elapsed)) s"
        }
    }

    /// Options for the number of connections. They are always given, because a run that adds
    /// connections while it is measured would distort the result.
    private var connections: [String] {
        let count =
            options.connections ?? max(BenchOptions.defaultConnections, options.reactors ?? 1)
        return ["--connections", "\(count)"]
    }

    /// Like `send`, but a run without a response is an error.
    private func measure(
        rows: Int, name: String, milliseconds: Int?, more: [String]
    ) throws(BroadsideError) -> Measured {
        let measured = try send(rows: rows, name: name, milliseconds: milliseconds, more: more)
        guard measured.answered > 0 else {
            throw BroadsideError(
                "no response came in the \(name) run: check the endpoint", exitCode: 1)
        }
        return measured
    }

    /// Sends the given number of rows, to a new simulator if no endpoint is given.
    ///
    /// - Parameter milliseconds: Time after which no request is started; nil: all rows are sent.
    private func send(
        rows: Int, name: String, milliseconds: Int?, more: [String]
    ) throws(BroadsideError) -> Measured {
        var (simulator, target) = (BenchChild?.none, options.endpointArguments)
        if target.isEmpty {
            let started = try startSimulator("\(name)-simulator")
            (simulator, target) = (started.0, started.1.arguments)
        }
        let summary = "\(files.path)/\(name).json"
        var arguments = [
            "send", "--tokens", files.list, "--limit", "\(rows)", "--payload", files.payload,
            "--ledger", "\(files.path)/\(name)-ledger", "--summary", summary, "--progress", "none",
        ]
        if let streams = options.streams { arguments += ["--max-streams", "\(streams)"] }
        if let reactors = options.reactors { arguments += ["--reactors", "\(reactors)"] }
        if let milliseconds { arguments += ["--deadline", "\(milliseconds)ms"] }
        let sender = try BenchChild(arguments + target + more, name: name, in: files.path)
        var end = sender.poll()
        while end == nil {
            try signals.wait()
            end = sender.poll()
        }
        // A run that ends by its deadline leaves rows remaining, and may lose some responses.
        let whole: Set =
            milliseconds == nil
            ? [ExitCode.complete] : [ExitCode.complete, ExitCode.rowsRemain, ExitCode.openRows]
        guard let end, whole.contains(end.exitCode),
            let told = BenchSummary(BenchFiles.text(summary))
        else {
            throw BroadsideError(
                "the \(name) run failed: \(sender.lastLine)",
                exitCode: Self.exitCode(of: end))
        }
        assert(told.accepted + told.rejected <= rows, "each row has one response")
        // A run whose deadline passed before it could begin leaves no ledger.
        let hasRows = told.accepted + told.rejected > 0
        return Measured(
            summary: told, cpuMicroseconds: end.cpuMicroseconds,
            latencies: hasRows
                ? try LedgerLatencies.columns(
                    ofLedger: "\(files.path)/\(name)-ledger", count: Self.columnCount) : [],
            simulatorMicroseconds: simulator?.stop(SIGTERM)?.cpuMicroseconds)
    }

    /// Exit code of a benchmark after one of its runs has ended. Exit codes about rows are
    /// replaced, because there is nothing to resume or retry.
    private static func exitCode(of end: BenchChild.End?) -> Int32 {
        let own = [ExitCode.badRequest, ExitCode.refused, ExitCode.disk]
        return end.flatMap { own.contains($0.exitCode) ? $0.exitCode : nil } ?? ExitCode.failure
    }

    private func startSimulator(
        _ name: String
    ) throws(BroadsideError) -> (BenchChild, BenchSimulator) {
        let state = "\(files.path)/apns"
        var arguments = [
            "simulate", "--fast", "--listen", "127.0.0.1:0", "--state", state,
            "--latency", "\(options.latencyNanoseconds / 1_000_000)ms",
        ]
        if let streams = options.streams { arguments += ["--max-streams", "\(streams)"] }
        let child = try BenchChild(arguments, name: name, in: files.path)
        let mark = "listening on "
        while true {
            let text = BenchFiles.text(child.outputPath)
            if text.hasPrefix(mark), let end = text.firstIndex(of: "\n") {
                let address = String(text[..<end].dropFirst(mark.count))
                return (child, try BenchSimulator(state: state, address: address))
            }
            if let end = child.poll() {
                throw BroadsideError(
                    "the simulator did not start: \(child.lastLine)",
                    exitCode: Self.exitCode(of: end))
            }
            try signals.wait()
        }
    }
}
