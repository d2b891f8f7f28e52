import BroadsideTestSupport
import Foundation
import Testing

/// The disk below `telemetry.json`, the metrics, the summary, the report, a trace, or the claim that a run makes at
/// its end, hangs: the thread that takes signals does not wait for it.
@Suite(.timeLimit(.minutes(60)))
struct StalledTelemetryTests {
    private let server: LocalAPNs
    private let campaign: Campaign

    /// - Parameter rows: More than a run that sends slowly gets to.
    init(rows: Int = 8_000) throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: rows)
    }

    /// A run that sends slowly; once the file `fail` holds a word, that is what hangs.
    private func start(_ more: [String] = []) throws -> Subprocess {
        let sending = try start(["--rate", "200"] + more, hanging: "")
        try campaign.waitForRows(sending)
        return sending
    }

    /// A run below which something hangs from the beginning on.
    private func start(_ options: [String], hanging word: String) throws -> Subprocess {
        let directory = campaign.directory
        _ = try directory.write(word, to: "fail")
        try? FileManager.default.removeItem(atPath: note)
        let library = try Shim.compile("fail-calls", in: directory)
        return try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--log", "text"] + options), in: directory,
            environment: ["LD_PRELOAD": library, "FAIL_FILE": "\(directory.path)/fail"])
    }

    /// Is there once something hangs.
    private var note: String { "\(campaign.directory.path)/fail.hangs" }

    private func waitForHang(_ sending: Subprocess) throws {
        try sending.wait { FileManager.default.fileExists(atPath: note) }
    }

    /// Stops a run. A second signal comes when its rows are settled: before, both may be one request.
    private func stop(_ sending: Subprocess, signals: Int) throws {
        sending.send(signal: SIGTERM)
        guard signals > 1 else { return }
        try sending.wait {
            try String(contentsOfFile: sending.errorsPath, encoding: .utf8).contains("stopped: ")
        }
        sending.send(signal: SIGTERM)
    }

    @Test(arguments: [1, 2])
    func `A claim at the end that is never synced delays nothing`(signals: Int) throws {
        let sending = try start()
        defer { sending.send(signal: SIGKILL) }
        _ = try campaign.directory.write("claim", to: "fail")
        try stop(sending, signals: signals)
        let stopped = try sending.wait(limit: 120)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        let cause =
            signals == 1
            ? "its disk accepts no data at the moment"
            : "a second signal ended the wait for its disk"
        #expect(stopped.errors.contains("at the end: \(cause)"), "\(stopped.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
        // What is left of the claim is the ledger's own.
        _ = try campaign.directory.write("", to: "fail")
        let resumed = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try server.finish().count == campaign.tokens.count)
    }

    @Test func `A first signal during the claim at the end does not end the wait for it`() throws {
        let sending = try start(["--limit", "1000"])
        defer { sending.send(signal: SIGKILL) }
        _ = try campaign.directory.write("claim", to: "fail")
        try sending.wait {
            try String(contentsOfFile: sending.errorsPath, encoding: .utf8).contains("complete: ")
        }
        sending.send(signal: SIGTERM)
        let finished = try sending.wait(limit: 120)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let words = "at the end: its disk accepts no data at the moment"
        #expect(finished.errors.contains(words), "\(finished.errors)")
    }

    @Test(arguments: [1, 2])
    func `A sync that never ends delays neither control nor signals`(signals: Int) throws {
        let directory = campaign.directory
        let sending = try start(["--rate", "200"], hanging: "sync")
        try campaign.waitForRows(sending)
        defer { sending.send(signal: SIGKILL) }
        // Each request has the telemetry saved.
        for rate in ["210", "220"] {
            let told = try Broadside.run(
                ["control", "--ledger", campaign.ledger, "rate", rate], in: directory)
            #expect(told.exitCode == 0, "\(told.errors)")
        }
        try expectStop(
            of: sending, signals: signals,
            telling: "telemetry.json is still being written: the report will have no")
    }

    @Test(arguments: [1, 2])
    func `Metrics that are never synced delay neither control nor signals`(
        signals: Int
    ) throws {
        let directory = campaign.directory
        let sending = try start(["--metrics", "\(directory.path)/metrics.prom"])
        defer { sending.send(signal: SIGKILL) }
        _ = try directory.write("metrics", to: "fail")
        // They are written once a second.
        try waitForHang(sending)
        let told = try Broadside.run(
            ["control", "--ledger", campaign.ledger, "rate", "210"], in: directory)
        #expect(told.exitCode == 0, "\(told.errors)")
        try expectStop(of: sending, signals: signals, telling: "the metrics are not updated")
    }

    @Test(arguments: ["summary", "report"], [1, 2])
    func `A summary or report that is never synced does not delay the exit`(
        output: String, signals: Int
    ) throws {
        let sending = try start(["--\(output)", "\(campaign.directory.path)/\(output)"])
        defer { sending.send(signal: SIGKILL) }
        _ = try campaign.directory.write(output, to: "fail")
        try expectStop(
            of: sending, signals: signals, telling: "/\(output) is still being written")
    }

    @Test(arguments: ["summary", "report"])
    func `A finished run names the output that was not synced, and so does its resume`(
        output: String
    ) throws {
        let directory = campaign.directory
        let path = "\(directory.path)/\(output)"
        let sending = try start(["--\(output)", path], hanging: output)
        defer { sending.send(signal: SIGKILL) }
        let sent = try sending.wait()
        #expect(sent.exitCode == 5, "\(sent.errors)")
        #expect(sent.errors.contains("\(path) is still being written"), "\(sent.errors)")
        #expect(try campaign.ledger("verify").output.contains(", finished"))

        let resumed = try start(["--\(output)", path, "--resume"], hanging: output)
        defer { resumed.send(signal: SIGKILL) }
        try waitForHang(resumed)
        resumed.send(signal: SIGTERM)
        let told = try resumed.wait()
        #expect(told.exitCode == 5, "\(told.errors)")
        #expect(told.errors.contains("\(path) is still being written"), "\(told.errors)")
        #expect(try server.finish().count == campaign.tokens.count)
    }

    @Test(arguments: [1, 2])
    func `A trace that is never synced delays nothing`(signals: Int) throws {
        let sending = try start(["--trace-frames", "\(campaign.directory.path)/frames"])
        defer { sending.send(signal: SIGKILL) }
        _ = try campaign.directory.write("frames", to: "fail")
        // Some are on their way there.
        try waitForHang(sending)
        try expectStop(of: sending, signals: signals, telling: "the trace is incomplete")
    }

    @Test func `A trace whose disk is full ends, and the run continues`() throws {
        // So many rows have a longer trace than waits for its disk.
        try Self(rows: 40_000).endTrace()
    }

    private func endTrace() throws {
        let path = "\(campaign.directory.path)/frames"
        let sending = try start(
            ["--trace-frames", path], hanging: "frames")
        defer { sending.send(signal: SIGKILL) }
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.contains("\(path) is still being written"), "\(sent.errors)")
        #expect(try server.finish().count == campaign.tokens.count)
    }

    private func expectStop(of sending: Subprocess, signals: Int, telling words: String) throws {
        try stop(sending, signals: signals)
        let stopped = try sending.wait()
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(stopped.errors.contains(words), "\(stopped.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
    }
}
