import Foundation
import TestSupport
import Testing

/// The disk below `telemetry.json` hangs: the thread that takes signals does not wait for it.
@Suite(.timeLimit(.minutes(30)))
struct StalledTelemetryTests {
    @Test(arguments: [1, 2])
    func `A sync that never ends keeps neither control nor signals waiting`(signals: Int) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 40_000)
        let directory = campaign.directory
        let library = "\(directory.path)/fail-calls.so"
        try Subprocess.run(
            "gcc",
            [
                "-O1", "-shared", "-fPIC", "-o", library,
                "\(Tool.packageRoot)/Tests/Shims/fail-calls.c", "-ldl",
            ], in: directory)
        let word = try directory.write("sync", to: "fail")
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "200"]), in: directory,
            environment: ["LD_PRELOAD": library, "FAIL_FILE": word])
        defer { sending.send(signal: SIGKILL) }
        try campaign.waitForRows(sending)
        // Each request has the telemetry saved.
        for rate in ["210", "220"] {
            let told = try Broadside.run(
                ["control", "--ledger", campaign.ledger, "rate", rate], in: directory)
            #expect(told.exitCode == 0, "\(told.errors)")
        }
        for _ in 0..<signals {
            sending.send(signal: SIGTERM)
            usleep(300_000)
        }
        let stopped = try sending.wait()
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(
            stopped.errors.contains("telemetry.json is still being written: the report will lack"),
            "\(stopped.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
    }
}
