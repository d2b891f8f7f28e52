import Foundation
import TestSupport
import Testing

/// The disk below `telemetry.json`, the metrics, or the claim that a run makes at its end, hangs: the thread that
/// takes signals does not wait for it.
@Suite(.timeLimit(.minutes(60)))
struct StalledTelemetryTests {
    private let server: LocalAPNs
    private let campaign: Campaign

    init() throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: 40_000)
    }

    /// A run that sends slowly; once the file `fail` holds a word, that is what hangs.
    private func start(_ more: [String] = []) throws -> Subprocess {
        let directory = campaign.directory
        let library = try Shim.compile("fail-calls", in: directory)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "200"] + more), in: directory,
            environment: ["LD_PRELOAD": library, "FAIL_FILE": "\(directory.path)/fail"])
        try campaign.waitForRows(sending)
        return sending
    }

    @Test(arguments: [1, 2])
    func `A claim at the end that is never on disk keeps nothing waiting`(signals: Int) throws {
        let sending = try start()
        defer { sending.send(signal: SIGKILL) }
        _ = try campaign.directory.write("claim", to: "fail")
        for _ in 0..<signals {
            sending.send(signal: SIGTERM)
            usleep(300_000)
        }
        let stopped = try sending.wait(limit: 120)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
        // What is left of the claim is the ledger's own.
        _ = try campaign.directory.write("", to: "fail")
        let resumed = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try server.finish().count == 40_000)
    }

    @Test(arguments: [1, 2])
    func `A sync that never ends keeps neither control nor signals waiting`(signals: Int) throws {
        let directory = campaign.directory
        _ = try directory.write("sync", to: "fail")
        let sending = try start()
        defer { sending.send(signal: SIGKILL) }
        // Each request has the telemetry saved.
        for rate in ["210", "220"] {
            let told = try Broadside.run(
                ["control", "--ledger", campaign.ledger, "rate", rate], in: directory)
            #expect(told.exitCode == 0, "\(told.errors)")
        }
        try expectStop(
            of: sending, signals: signals,
            telling: "telemetry.json is still being written: the report will lack")
    }

    @Test(arguments: [1, 2])
    func `Metrics that are never on disk keep neither control nor signals waiting`(
        signals: Int
    ) throws {
        let directory = campaign.directory
        let sending = try start(["--metrics", "\(directory.path)/metrics.prom"])
        defer { sending.send(signal: SIGKILL) }
        _ = try directory.write("metrics", to: "fail")
        // They are written once a second.
        usleep(1_500_000)
        let told = try Broadside.run(
            ["control", "--ledger", campaign.ledger, "rate", "210"], in: directory)
        #expect(told.exitCode == 0, "\(told.errors)")
        try expectStop(of: sending, signals: signals, telling: "the metrics stay as they are")
    }

    private func expectStop(of sending: Subprocess, signals: Int, telling words: String) throws {
        for _ in 0..<signals {
            sending.send(signal: SIGTERM)
            usleep(300_000)
        }
        let stopped = try sending.wait()
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(stopped.errors.contains(words), "\(stopped.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
    }
}
