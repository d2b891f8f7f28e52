import BroadsideTestSupport
import Foundation
import Testing

/// Ends that somebody asked for, and two processes that want the same ledger.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct SignalTests {
    @Test(arguments: [
        SIGTERM, SIGINT,
    ])
    func `After SIGTERM or SIGINT responses are awaited, exit is 3, and a resume sends the rest`(
        signal: Int32
    ) throws {
        let server = try Nginx()
        // Ten seconds of work, so that the signal comes before the end.
        let rows = 20_000
        let campaign = try Campaign(rows: rows)
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, ["--connections", "4", "--summary", "-", "--rate", "2000"]),
            in: campaign.directory)
        try process.wait { server.logCount >= 2000 * 87 }
        process.send(signal: signal)
        let stopped = try process.wait(limit: 120)
        #expect(stopped.exitCode == 3)
        #expect(stopped.errorLines.count == 1, "\(stopped.errors)")
        #expect(stopped.errors.contains("--resume"))
        let summary = try SendSummary(json: stopped.output)
        #expect(summary.outcome == "stopped")
        #expect(summary.unknown == 0 && summary.rows == rows)
        #expect(summary.accepted >= 2000 && summary.accepted < rows)
        #expect(summary.remaining == rows - summary.accepted)
        server.settle()
        let seen = try server.tally(campaign.tokens)
        #expect(seen.total == summary.accepted && seen.repeated == 0)
        #expect(try campaign.ledger("verify").exitCode == 0)

        let resumed = try campaign.send(to: server.endpoint, ["--resume", "--summary", "-"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        let whole = try SendSummary(json: resumed.output)
        #expect(whole.accepted == rows && whole.campaign == summary.campaign)
        server.settle()
        #expect(try server.tally(campaign.tokens).isExact)

        // A finished one ends at once.
        let again = try campaign.send(to: "127.0.0.1:1", ["--resume", "--summary", "-"])
        #expect(again.exitCode == 0, "\(again.errors)")
        #expect(try SendSummary(json: again.output).accepted == rows)
    }

    @Test func `SIGQUIT ends a run like a kill`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 3_000)
        // Where tests run in the background of a shell the signal is ignored, and would stay so.
        let start = """
            import os, resource, signal, sys
            signal.signal(signal.SIGQUIT, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            os.execv(sys.argv[1], sys.argv[1:])
            """
        let process = try Subprocess(
            "python3",
            ["-c", start, try Broadside.path()]
                + campaign.arguments(to: server.endpoint, ["--rate", "500"]),
            in: campaign.directory)
        try campaign.waitForRows(process)
        process.send(signal: SIGQUIT)
        let ended = try process.wait(limit: 120)
        #expect(ended.exitCode == -SIGQUIT)
        #expect(ended.errors.isEmpty && ended.output.isEmpty, "\(ended.errors.prefix(500))")
        #expect(try campaign.ledger("verify").exitCode == 0)

        let resumed = try campaign.send(to: server.endpoint, ["--resume", "--summary", "-"])
        #expect(resumed.exitCode == 0 || resumed.exitCode == 6, "\(resumed.errors)")
        let whole = try SendSummary(json: resumed.output)
        #expect(whole.accepted + whole.unknown == 3_000)
        #expect(try server.tally(campaign.tokens).repeated == 0)
    }

    /// `timeout` signals its command, and then the group of processes.
    @Test func `Two signals at once are one, so that responses are awaited`() throws {
        let server = try LocalAPNs(["--latency", "2s"])
        let campaign = try Campaign(rows: 1_000)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--summary", "-", "--rate", "50"]),
            in: campaign.directory)
        try process.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        // Both wait in the process until it continues, so no pause comes between them.
        process.send(signal: SIGSTOP)
        process.send(signal: SIGTERM)
        process.send(signal: SIGINT)
        process.send(signal: SIGCONT)
        let stopped = try process.wait(limit: 120)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        let summary = try SendSummary(json: stopped.output)
        #expect(summary.unknown == 0 && summary.accepted > 0, "\(stopped.output)")
    }

    @Test func `A second signal ends a run at once and leaves unanswered rows in doubt`() throws {
        let server = try RecordingServer("stall")
        let campaign = try Campaign(rows: 300)
        let process = try startStalled(campaign, server, ["--log", "text"])
        process.send(signal: SIGINT)
        // A second one before the run has acted on the first would be the same request.
        try process.wait {
            try String(contentsOfFile: process.errorsPath, encoding: .utf8)
                .contains("no new requests: ")
        }
        #expect(process.isRunning)
        process.send(signal: SIGINT)
        let asked = ContinuousClock.now
        let stopped = try process.wait(limit: 120)
        // Far below --request-timeout, which the first signal would have waited.
        #expect(ContinuousClock.now - asked < .seconds(20))
        #expect(stopped.exitCode == 3)
        let summary = try SendSummary(json: stopped.output)
        #expect(summary.rows == nil && summary.remaining == nil)
        #expect(summary.accepted == 20)
        #expect(try campaign.ledger("verify").exitCode == 0)

        let resumed = try campaign.send(to: server.endpoint, ["--resume", "--summary", "-"])
        #expect(resumed.exitCode == 6, "\(resumed.errors)")
        let whole = try SendSummary(json: resumed.output)
        #expect(whole.unknown > 0 && whole.accepted + whole.unknown == 300)
        #expect(try server.tally(campaign.tokens, ["taken", "swallowed"]).repeated == 0)
    }

    @Test func `A ledger in use is read by others and written by none`() throws {
        let server = try RecordingServer("stall")
        let campaign = try Campaign(rows: 300)
        let process = try startStalled(campaign, server)
        let second = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(second.exitCode == 7)
        #expect(second.errorLines.count == 1)
        #expect(second.errors.contains("in use"), "\(second.errors)")
        let fresh = try campaign.send(to: server.endpoint)
        #expect(fresh.exitCode == 7)
        #expect(fresh.errors.contains("in use"), "\(fresh.errors)")
        #expect(!fresh.errors.contains("--resume"), "\(fresh.errors)")

        #expect(process.isRunning)
        #expect(try campaign.statistics().accepted == 20)
        #expect(try campaign.ledger("verify").exitCode == 0)
        #expect(try campaign.export(["--state", "accepted"]).count == 20)
        process.send(signal: SIGKILL)
        _ = try process.wait()
        #expect(try server.events().filter { $0.event == "preface" }.count == 1)
    }

    /// A run of which 20 rows are answered and the others never will be.
    private func startStalled(
        _ campaign: Campaign, _ server: RecordingServer, _ more: [String] = []
    ) throws -> Subprocess {
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, ["--connections", "1", "--summary", "-"] + more),
            in: campaign.directory)
        try process.wait { try server.answerCount() >= 50 }
        try process.wait { (try? campaign.statistics().accepted) == 20 }
        return process
    }
}
