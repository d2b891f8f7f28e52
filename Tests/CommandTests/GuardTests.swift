import BroadsideTestSupport
import Foundation
import Testing

/// What holds a campaign back or ends it early, by `broadside simulate`: the options' words reach the
/// engine, and a resume keeps to them.
@Suite(.timeLimit(.minutes(60)))
struct GuardTests {
    private static let summary = ["--summary", "-"]

    @Test func `--deadline counts from the first start, and a resume may omit it`() throws {
        let server = try Simulation()
        // Two seconds at 200 a second: most is left, however busy the machine is.
        let campaign = try Campaign(rows: 2000)
        let options = try server.credentials() + Self.summary
        let slow = ["--rate", "200", "--deadline", "2s"]
        let sent = try campaign.send(to: server.endpoint, options + slow)
        #expect(sent.exitCode == 3 && sent.errors.contains("deadline"), "\(sent.errors)")
        let first = try SendSummary(json: sent.output)
        #expect(first.outcome == "stopped" && (first.remaining ?? 0) >= 1500, "\(first)")
        #expect(first.failed == 0 && first.unknown == 0)

        // It has passed: nothing more goes out.
        let late = try campaign.send(to: server.endpoint, options + slow + ["--resume"])
        #expect(late.exitCode == 3, "\(late.errors)")
        #expect(try SendSummary(json: late.output).accepted == first.accepted)

        let rest = try campaign.send(to: server.endpoint, options + ["--resume"])
        #expect(rest.exitCode == 0, "\(rest.errors)")
        #expect(try SendSummary(json: rest.output).accepted == 2000)
        try server.stop()
    }

    @Test(arguments: [(20, 4), (50, 0)])
    func `--max-bad-tokens judges the last 10,000 responses`(percent: Int, exitCode: Int32) throws {
        let server = try Simulation(["--bad-token", "0.3"])
        let campaign = try Campaign(rows: 12_000)
        let sent = try campaign.send(
            to: server.endpoint,
            server.credentials() + Self.summary + [
                "--max-bad-tokens", "\(percent)",
                // The 2,000 that it doesn't need are not all in flight when it stops.
                "--connections", "4", "--max-streams", "100",
            ])
        #expect(sent.exitCode == exitCode, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted + summary.rejected >= 10_000)
        if exitCode == 4 {
            #expect(sent.errors.contains("--max-bad-tokens"), "\(sent.errors)")
            #expect((summary.remaining ?? 0) > 0)
        }
        try server.stop()
    }

    @Test func `After a canary passed a resume holds nothing back`() throws {
        let good = try Simulation()
        let campaign = try Campaign(rows: 3000)
        let options = ["--canary", "50", "--connections", "2"] + Self.summary
        let process = try Broadside.start(
            campaign.arguments(
                to: good.endpoint, good.credentials() + options + ["--rate", "100"]),
            in: campaign.directory)
        try process.wait { (try? campaign.statistics().accepted) ?? 0 >= 100 }
        process.send(signal: SIGINT)
        let stopped = try process.wait()
        #expect(stopped.exitCode == 3, "\(stopped.errors)")

        // Two fifths are refused from now on: another canary would not let that through.
        let worse = try Simulation(["--bad-token", "0.4"])
        let resumed = try campaign.send(
            to: worse.endpoint, worse.credentials() + options + ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        let whole = try SendSummary(json: resumed.output)
        #expect(whole.rejected > 600 && whole.accepted + whole.rejected == 3000, "\(whole)")
    }

    @Test func `A server that asks for a longer wait than --give-up-after is exit 3`() throws {
        let directory = try TemporaryDirectory()
        let fault = #"{ do: "answer", reason: "ServiceUnavailable", retry_after: 90, every: 1 }"#
        let scenario = try directory.write("{ faults: [ \(fault) ] }", to: "unavailable.json5")
        let server = try Simulation(["--scenario", scenario])
        let campaign = try Campaign(rows: 200)
        let sent = try campaign.send(
            to: server.endpoint,
            server.credentials() + Self.summary + ["--give-up-after", "5s"])
        #expect(sent.exitCode == 3, "\(sent.errors)")
        #expect(sent.errorLines.count == 1, "\(sent.errors)")
        for words in [
            "no response for 5 s", "503 ServiceUnavailable", "Retry-After: 90 s",
            "--resume continues",
        ] {
            #expect(sent.errors.contains(words), "\(sent.errors)")
        }
        let first = try SendSummary(json: sent.output)
        #expect(first.outcome == "stopped" && first.remaining == 200, "\(first)")

        let sound = try Simulation()
        let rest = try campaign.send(
            to: sound.endpoint, sound.credentials() + Self.summary + ["--resume"])
        #expect(rest.exitCode == 0, "\(rest.errors)")
        #expect(try SendSummary(json: rest.output).accepted == 200)
    }

    @Test func `A row waiting for its retry does not end the run`() throws {
        let directory = try TemporaryDirectory()
        let scenario = try directory.write(
            #"{ faults: [ { do: "answer", reason: "TooManyRequests", every: 1 } ] }"#,
            to: "busy.json5")
        let server = try Simulation(["--scenario", scenario])
        let campaign = try Campaign(rows: 1)
        let sent = try campaign.send(
            to: server.endpoint,
            server.credentials() + Self.summary + [
                "--max-attempts", "7", "--retry-for", "0s", "--give-up-after", "4s",
            ])
        // Doubled without regard to it, the sixth delay would be 8 s or more.
        #expect(sent.exitCode == 6, "\(sent.errors)")
        #expect(try campaign.export().allSatisfy { $0.state == "failed" && $0.attempts == 7 })
    }

    @Test func `--retry failed restarts the attempts and time of failed rows`() throws {
        let directory = try TemporaryDirectory()
        let scenario = try directory.write(
            #"{ faults: [ { do: "answer", reason: "TooManyRequests", every: 1 } ] }"#,
            to: "busy.json5")
        let journal = "\(directory.path)/journal"
        let server = try Simulation(["--scenario", scenario, "--journal", journal])
        let campaign = try Campaign(rows: 5)
        let options =
            try server.credentials() + Self.summary + [
                "--max-attempts", "3", "--retry-for", "0s",
            ]
        let sent = try campaign.send(to: server.endpoint, options)
        #expect(sent.exitCode == 6, "\(sent.errors)")
        #expect(try campaign.export().allSatisfy { $0.state == "failed" && $0.attempts == 3 })
        // A resume alone sends nothing more.
        let ended = try campaign.send(to: server.endpoint, options + ["--resume"])
        #expect(ended.exitCode == 6, "\(ended.errors)")

        let again = try campaign.send(
            to: server.endpoint, options + ["--resume", "--retry", "failed"])
        #expect(again.exitCode == 6, "\(again.errors)")
        let rows = try campaign.export()
        #expect(rows.allSatisfy { $0.state == "failed" && $0.reason == "TooManyRequests" })
        try server.stop()
        let requests = try String(contentsOfFile: journal, encoding: .utf8)
            .split(separator: "\n").filter { $0.contains("TooManyRequests") }
        #expect(requests.count == 30, "five rows, three attempts, twice")
    }

    @Test func `A topic that is not allowed needs a new ledger for a list of any length`() throws {
        let server = try Simulation()
        for rows in [3, 300] {
            let campaign = try Campaign(rows: rows)
            let sent = try campaign.send(
                to: server.endpoint,
                server.options(["ca-file", "auth-key", "key-id", "team-id"]) + Self.summary
                    + ["--topic", "com.example.another"])
            #expect(sent.exitCode == 4, "\(sent.errors)")
            #expect(sent.errors.contains("TopicDisallowed"), "\(sent.errors)")
            #expect(sent.errors.contains("new ledger"), "\(sent.errors)")
            #expect(try SendSummary(json: sent.output).remaining == rows)
        }
        try server.stop()
    }
}
