import BroadsideTestSupport
import Foundation
import Testing

/// What a run says at its end, and where.
@Suite(.timeLimit(.minutes(60)))
struct EndingTests {
    @Test
    func `A short run that ends well prints no warning, however soon the server closes`() throws {
        let server = try LocalAPNs()
        // The server's FIN overtakes the completion of our last write in one of ten.
        for number in 0..<30 {
            let campaign = try Campaign(rows: 3)
            let sent = try campaign.send(to: server.endpoint, ["--log", "text"])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            #expect(!sent.errors.contains("warning"), "run \(number): \(sent.errors)")
        }
    }

    @Test(arguments: ["auto", "none"])
    func `A resume of a finished campaign says so and writes summary, metrics and report`(
        progress: String
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 5)
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        let path = campaign.directory.path
        let ended = Date().timeIntervalSince1970
        let again = try campaign.send(
            to: "127.0.0.1:1",
            [
                "--resume", "--summary", "\(path)/summary", "--metrics", "\(path)/metrics",
                "--report", "\(path)/report.html", "--progress", progress,
            ], environment: FakeTime.fixed("+3600"))
        #expect(again.exitCode == 0 && again.errors.contains("is finished"), "\(again.errors)")
        let metrics = try String(contentsOfFile: "\(path)/metrics", encoding: .utf8)
        #expect(metrics.contains("broadside_rows_settled_total{state=\"accepted\"} 5\n"))
        #expect(metrics.contains("broadside_phase{phase=\"finished\"} 1\n"))
        // The time is that of the run's end.
        let updated = metrics.split(separator: "\n")
            .first { $0.hasPrefix("broadside_updated_timestamp_seconds ") }
            .flatMap { Double($0.split(separator: " ")[1]) }
        #expect(try #require(updated) <= ended, "\(metrics)")
        #expect(try String(contentsOfFile: "\(path)/report.html", encoding: .utf8).contains("svg"))
        let summary = try #require(
            JSONSerialization.jsonObject(
                with: Data(contentsOf: URL(fileURLWithPath: "\(path)/summary")))
                as? [String: Any])
        #expect(summary["accepted"] as? Int == 5)
        let latency = try #require(summary["latency_ms"] as? [String: Any])
        #expect(Set(latency.keys) == ["p50", "p90", "p99", "p999", "max"])
        // No connection was made: nothing is known of what limits one.
        #expect(summary["limited_by"] is NSNull)
    }

    @Test func `All users may read a metrics file, whatever the umask is, but not a summary`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let path = campaign.directory.path
        let words =
            [try Broadside.path()]
            + campaign.arguments(
                to: server.endpoint,
                ["--metrics", "\(path)/metrics", "--summary", "\(path)/summary"])
        let sent = try Subprocess(
            "sh", ["-c", "umask 077; exec \"$@\"", "sh"] + words, in: campaign.directory
        ).wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        for (name, permissions) in [("metrics", 0o644), ("summary", 0o600)] {
            let found = try FileManager.default.attributesOfItem(atPath: "\(path)/\(name)")
            #expect(found[.posixPermissions] as? Int == permissions, "\(name)")
        }
    }

    @Test func `A stop while the last row is in flight leaves nothing to resume`() throws {
        // The answer is awaited by the run, and the word has to come before it.
        for latency in ["4s", "20s", "60s"] {
            let server = try LocalAPNs(["--latency", latency])
            let campaign = try Campaign(rows: 1)
            let socket = "\(campaign.directory.path)/control"
            let process = try Broadside.start(
                campaign.arguments(
                    to: server.endpoint,
                    ["--control", socket, "--summary", "-", "--request-timeout", "5m"]),
                in: campaign.directory)
            func control(_ word: String) throws -> Finished {
                try Broadside.run(["control", socket, word, "--json"], in: campaign.directory)
            }
            try process.wait { try control("status").output.contains("\"in_flight\":1") }
            let isStopped = try control("stop").exitCode == 0
            let ended = try process.wait(limit: 300)
            #expect(ended.exitCode == 0, "\(ended.errors)")
            guard isStopped else { continue }
            #expect(!ended.errors.contains("stopped by"), "\(ended.errors)")
            #expect(!ended.errors.contains("--resume"), "\(ended.errors)")
            let summary = try SendSummary(json: ended.output)
            #expect(summary.outcome == "complete" && summary.accepted == 1)
            return
        }
        Issue.record("the word never came before the answer")
    }

    @Test
    func `A signal during the search for duplicates is exit 3, and a resume sends each row once`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 200_000)
        let more = ["--duplicates", "skip", "--limit", "1000", "--summary", "-"]
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, more), in: campaign.directory)
        try process.wait {
            FileManager.default.fileExists(atPath: campaign.ledger + "/.skips.new")
                || FileManager.default.fileExists(atPath: campaign.ledger + "/skips")
        }
        process.send(signal: SIGTERM)
        let stopped = try process.wait()
        // Whether it came before the first row or, on a slow machine, after it: 3, or all is done.
        #expect(stopped.exitCode == 3 || stopped.exitCode == 0, "\(stopped.errors)")
        let first = try SendSummary(json: stopped.output)
        #expect(first.outcome == (stopped.exitCode == 3 ? "stopped" : "complete"))
        #expect(try campaign.ledger("verify").exitCode == 0)
        let resumed = try campaign.send(to: server.endpoint, more + ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        let whole = try SendSummary(json: resumed.output)
        #expect(whole.campaign == first.campaign && whole.accepted == 1000)
        let journal = try server.finish()
        #expect(journal.count == 1000 && Set(journal.map { $0[4] }).count == 1000)
    }
}
