import BroadsideTestSupport
import Foundation
import Testing

/// `--rate A..B/D`, by the server's own clock.
@Suite(.timeLimit(.minutes(60)))
struct RisingRateTests {
    private struct Progress: Decodable {
        var phase: String
        var rate_limit: Double
        var rate_ramp_to: Double
        var rate_ramp_seconds_left: Double
    }

    @Test func `A rate rises along its line, is told, and a resume continues where it had got to`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 6_000)
        let rate = ["--rate", "200..2000/3s", "--progress", "json"]
        let firstCount = 1_200
        let limited = try campaign.send(to: server.endpoint, rate + ["--limit", "\(firstCount)"])
        #expect(limited.exitCode == 0, "\(limited.errors)")
        let resumed = try campaign.send(to: server.endpoint, ["--resume"] + rate)
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        let looks = resumed.errors.split(separator: "\n").compactMap {
            try? JSONDecoder().decode(Progress.self, from: Data($0.utf8))
        }
        let first = try #require(looks.first)
        #expect(first.rate_ramp_to == 2_000 && first.rate_limit >= 900)
        #expect(first.rate_ramp_seconds_left <= 1.9)

        let times = try server.finish().map { try #require(Double($0[0])) / 1e6 }.sorted()
        #expect(times.count == 6_000)
        // The gap between the runs counts as a second at most.
        var sending = 0.0
        for (index, time) in times.enumerated() {
            if index > 0 {
                let gap = time - times[index - 1]
                sending += index == firstCount ? min(1, gap) : gap
            }
            let rising = min(sending, 3)
            let line = 200 * rising + 300 * rising * rising + 2_000 * (sending - rising)
            // What waits on its way does not arrive before it was sent: twice a burst.
            #expect(Double(index) <= line + 60, "request \(index) after \(sending) s of sending")
        }
    }

    @Test func `A plan names the least time of the rows that are sent, not of those left out`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1_000)
        let rows = (0..<1_000).map { row in
            "\(campaign.tokens.token(row)),\(row % 10 == 0 ? "yes" : "no")\n"
        }
        let list = try campaign.directory.write(
            "token,wanted\n" + rows.joined() + "none,yes\n", to: "list.csv")
        let wanted = ["--tokens", list, "--where", "wanted=yes"]
        // 200 requests while the rate rises, the others at 30 per second.
        for (more, words) in [
            ([], "at least 36 s for these rows"),
            (["--tokens", list], "at least 36 s for the rows to send"),
            (wanted, "at least 6 s for the rows to send"),
            (["--rate", "5000..9000/1s"], "within 1 s of sending\n"),
        ] {
            let rate = more.contains("--rate") ? [] : ["--rate", "10..30/10s"]
            let dry = try campaign.send(to: server.endpoint, ["--dry-run"] + rate + more)
            #expect(dry.exitCode == 0, "\(dry.errors)")
            #expect(dry.output.contains(words), "\(more): \(dry.output)")
        }
        let rate = ["--rate", "100..300/10s", "--progress", "json"]
        let filtered = try campaign.send(to: server.endpoint, wanted + rate + ["--limit", "500"])
        #expect(filtered.exitCode == 0, "\(filtered.errors)")
        #expect(
            filtered.errors.contains("at least 3 s if all these rows are sent"),
            "\(filtered.errors)")
        let resumed = try campaign.send(to: server.endpoint, wanted + rate + ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(
            resumed.errors.contains(" s if all the rows that are left are sent"),
            "\(resumed.errors)")
    }

    @Test func `A rate that falls, or one without a time, is refused over the control socket`()
        throws
    {
        let server = try RecordingServer("stall")
        let campaign = try Campaign(rows: 300)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "5"]), in: campaign.directory)
        defer { process.send(signal: SIGKILL) }
        try process.wait {
            FileManager.default.fileExists(atPath: "\(campaign.ledger)/control")
        }
        for (words, answer) in [
            ("10..5/3s", "write 5..10/3s"), ("5..10", "100..5000/10m"), ("5..10/x", "how long"),
        ] {
            let refused = try Broadside.run(
                ["control", "--ledger", campaign.ledger, "rate", words],
                in: campaign.directory)
            #expect(refused.exitCode == 2 && refused.errors.contains(answer), "\(refused.errors)")
        }
        let rises = try Broadside.run(
            ["control", "--ledger", campaign.ledger, "rate", "7..10/3s", "--json"],
            in: campaign.directory)
        #expect(rises.exitCode == 0 && rises.output.contains(#""rate_limit":7"#), "\(rises)")
    }
}
