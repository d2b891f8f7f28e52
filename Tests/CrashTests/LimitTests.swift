import BroadsideTestSupport
import Foundation
import Testing

/// `--limit` that grows and shrinks over the resumes of one campaign, judged by a server's record: no
/// run asks for a row behind its own limit, whatever earlier ones have begun there.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct LimitTests {
    private static let count = 3_000

    /// A run, and when it is stopped: once it has so many rows accepted, seconds before its end; nil: not at all.
    private struct Step {
        var limit: Int?
        var stopsAfter: Int?
    }

    private static let steps: [Step] = [
        Step(limit: 2_500, stopsAfter: 60), Step(limit: 10), Step(limit: 400), Step(limit: 401),
        Step(limit: 2_000, stopsAfter: 80), Step(limit: 300), Step(limit: 900), Step(limit: 5),
        Step(limit: 2_900, stopsAfter: 80), Step(limit: 1_001), Step(limit: nil, stopsAfter: 80),
        Step(limit: 1_200), Step(limit: 2_999), Step(limit: nil),
    ]

    @Test func `No run sends a row behind its limit, and each row goes out once`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: Self.count)
        var before = [Int](repeating: 0, count: Self.count)
        for (place, step) in Self.steps.enumerated() {
            let words: Comment = "step \(place): --limit \(step.limit ?? 0)"
            let options =
                ["--resume-or-begin", "--reactors", "2", "--connections", "2", "--summary", "-"]
                + (step.limit.map { ["--limit", "\($0)"] } ?? [])
                + (step.stopsAfter == nil ? [] : ["--rate", "200"])
            let process = try Broadside.start(
                campaign.arguments(to: server.endpoint, options), in: campaign.directory)
            if let more = step.stopsAfter {
                // An earlier run may have sent more rows than it had to before it stopped.
                let goal = before.count { $0 > 0 } + more
                try process.wait {
                    (try? campaign.statistics().accepted).map { $0 >= goal } ?? false
                }
                process.send(signal: SIGINT)
            }
            let ended = try process.wait(limit: 120)
            #expect(ended.exitCode == (step.stopsAfter == nil ? 0 : 3), "\(words) \(ended.errors)")
            let seen = try server.tally(campaign.tokens)
            let strays = seen.counts.indices.filter {
                seen.counts[$0] > before[$0] && $0 >= step.limit ?? .max
            }
            #expect(strays.isEmpty, "\(words): \(strays.count) rows, \(strays.prefix(3))")
            #expect(seen.repeated == 0, "\(words)")
            before = seen.counts
            try judge(campaign, seen, step, try SendSummary(json: ended.output), words)
        }
        #expect(before.allSatisfy { $0 == 1 })
        let verified = try campaign.ledger("verify")
        #expect(verified.output.contains("finished") && !verified.output.contains("not finished"))
    }

    /// The rows of the campaign are those before the limit, and what was sent behind it.
    private func judge(
        _ campaign: Campaign, _ seen: Tally, _ step: Step, _ summary: SendSummary,
        _ words: Comment
    ) throws {
        let limit = min(step.limit ?? Self.count, Self.count)
        let expected = seen.counts.indices.map { row in
            seen.counts[row] > 0 ? "accepted" : row < limit ? "remaining" : nil
        }
        var found = [String?](repeating: nil, count: Self.count)
        for row in try campaign.export(
            ["accepted", "unknown", "failed", "remaining", "in-doubt"].flatMap { ["--state", $0] })
        {
            found[row.line! - 1] = row.state
        }
        let wrong = found.indices.filter { found[$0] != expected[$0] }
        let first = wrong.first.map { "row \($0): \(found[$0] ?? "none")" } ?? ""
        #expect(wrong.isEmpty, "\(words): \(wrong.count), \(first)")
        let statistics = try campaign.statistics()
        for told in [summary, statistics] {
            #expect(told.rows == expected.count { $0 != nil }, "\(words)")
            #expect(told.accepted == expected.count { $0 == "accepted" }, "\(words)")
            #expect(told.remaining == expected.count { $0 == "remaining" }, "\(words)")
            #expect(told.in_doubt == 0, "\(words)")
        }
        let verified = try campaign.ledger("verify")
        #expect(verified.exitCode == 0, "\(words) \(verified.errors)")
        #expect(verified.output.contains("not finished") == (step.stopsAfter != nil), "\(words)")
    }

    /// A campaign that was killed with rows in doubt behind a limit of 20, and those rows.
    private func killed(
        _ campaign: Campaign, _ server: RecordingServer
    ) throws -> Set<Int> {
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                ["--resume-or-begin", "--limit", "2000", "--rate", "250"]),
            in: campaign.directory)
        try process.wait {
            (try? campaign.statistics().accepted).map { $0 >= 100 } ?? false
        }
        process.send(signal: SIGKILL)
        _ = try process.wait(limit: 60)
        let doubt = try DoubtfulRows(campaign).rows
        try #require(doubt.contains { $0 >= 20 })
        return doubt
    }

    private func run(
        _ campaign: Campaign, _ server: RecordingServer, _ options: [String]
    ) throws -> (finished: Finished, seen: Tally) {
        let finished = try campaign.send(to: server.endpoint, ["--resume"] + options)
        return (finished, try server.tally(campaign.tokens))
    }

    @Test
    func `Rows in doubt behind the limit are unknown and not sent by a run with that limit`() throws
    {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: Self.count)
        let doubt = try killed(campaign, server)
        let before = try server.tally(campaign.tokens)
        let limited = try run(campaign, server, ["--limit", "20"])
        #expect(limited.finished.exitCode == 6, "\(limited.finished.errors)")
        #expect(limited.seen.counts == before.counts)
        #expect(try DoubtfulRows(campaign).rows == doubt)
        #expect(try campaign.statistics().unknown == doubt.count)
        #expect(try campaign.statistics().in_doubt == 0)

        let retried = try run(campaign, server, ["--limit", "20", "--retry", "unknown"])
        #expect(retried.finished.exitCode == 6, "\(retried.finished.errors)")
        let strays = before.counts.indices.filter {
            retried.seen.counts[$0] > before.counts[$0] && $0 >= 20
        }
        #expect(strays.isEmpty, "\(strays.count)")
        #expect(try campaign.statistics().in_doubt == 0)
        #expect(try campaign.statistics().unknown == doubt.count { $0 >= 20 })
        let whole = try run(campaign, server, [])
        #expect(whole.finished.exitCode == 6)
        #expect(whole.seen.repeated == 0)
    }

    @Test func `Failed rows behind the limit of a run with --retry stay failed`() throws {
        let campaign = try Campaign(rows: 100)
        let busy = try RecordingServer(
            "reason", ["--status", "429", "--reason", "TooManyRequests"])
        let first = try campaign.send(
            to: busy.endpoint, ["--max-attempts", "1", "--retry-for", "1s"])
        #expect(first.exitCode == 6, "\(first.errors)")
        let before = try campaign.export()
        let server = try RecordingServer()
        for options in [["--limit", "20", "--retry", "failed"], []] {
            let (ended, seen) = try run(campaign, server, options)
            #expect(ended.exitCode == 6, "\(ended.errors)")
            #expect(seen.counts == (0..<100).map { $0 < 20 ? 1 : 0 })
        }
        let after = try campaign.export()
        #expect(after.count(where: { $0.state == "failed" }) == 80)
        #expect(zip(before, after).dropFirst(20).allSatisfy { $0.settledAt == $1.settledAt })
    }

    @Test
    func `With --on-lost resend rows in doubt behind the limit wait for a run beyond it`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: Self.count)
        let doubt = try killed(campaign, server)
        let before = try server.tally(campaign.tokens)
        let resend = ["--on-lost", "resend"]
        for _ in 0..<2 {
            let limited = try run(campaign, server, ["--limit", "20"] + resend)
            #expect(limited.finished.exitCode == 3)
            let advice = "\(doubt.count { $0 >= 20 }) rows beyond --limit are in doubt"
            let errors = limited.finished.errors.replacing(",", with: "")
            #expect(errors.contains(advice), "\(limited.finished.errors)")
            let strays = before.counts.indices.filter {
                limited.seen.counts[$0] > before.counts[$0] && $0 >= 20
            }
            #expect(strays.isEmpty, "\(strays.count)")
            #expect(try DoubtfulRows(campaign).rows == doubt.filter { $0 >= 20 })
        }
        let whole = try run(campaign, server, resend)
        #expect(whole.finished.exitCode == 0, "\(whole.finished.errors)")
        #expect(whole.seen.missing == 0)
    }
}
