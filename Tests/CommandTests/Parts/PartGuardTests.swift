import BroadsideTestSupport
import Foundation
import Testing

/// Guards of a campaign of several lists: a part may be too short for each of them alone.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct PartGuardTests {
    private static func part(_ index: Int) -> [String] {
        ["--part", "\(index)/3", "--campaign-id", "0123456789abcdef", "--summary", "-"]
    }

    private func guards(_ json: String) throws -> [String: Any] {
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        return try #require(object?["guards"] as? [String: Any])
    }

    @Test func `A part whose rows are all refused is exit 4, and so is its resume`() throws {
        let server = try LocalAPNs(["--bad-token", "1"])
        for rows in [1, 7, 49] {
            let campaign = try Campaign(rows: rows)
            let sent = try campaign.send(to: server.endpoint, Self.part(2))
            #expect(sent.exitCode == 4, "\(sent.errors)")
            #expect(
                sent.errors.contains("\(rows) in all: 400 BadDeviceToken"), "\(sent.errors)")
            let summary = try SendSummary(json: sent.output)
            #expect(summary.outcome == "aborted" && summary.rejected == rows)
            #expect(try guards(sent.output)["only_bad_tokens"] as? Bool == true)
            let resumed = try campaign.send(to: server.endpoint, Self.part(2) + ["--resume"])
            #expect(resumed.exitCode == 4 && resumed.errors.contains("\(rows) in all"))
            #expect(try SendSummary(json: resumed.output).outcome == "aborted")
        }
        // By itself such a list is a list of bad tokens.
        let alone = try Campaign(rows: 7)
        #expect(try alone.send(to: server.endpoint).exitCode == 0)
        #expect(try server.finish().count == 1 + 7 + 49 + 7)
    }

    @Test func `A part whose rows are all refused over two runs is exit 4`() throws {
        let server = try LocalAPNs(["--bad-token", "1"])
        let campaign = try Campaign(rows: 9)
        let first = try campaign.send(to: server.endpoint, Self.part(1) + ["--limit", "4"])
        #expect(first.exitCode == 4, "\(first.errors)")
        let second = try campaign.send(to: server.endpoint, Self.part(1) + ["--resume"])
        #expect(second.exitCode == 4 && second.errors.contains("9 in all"), "\(second.errors)")
    }

    @Test func `Devices that are gone, or one acceptance, keep a part from being refused`() throws {
        let gone = try LocalAPNs(["--unregistered", "1"])
        let campaign = try Campaign(rows: 7)
        let sent = try campaign.send(to: gone.endpoint, Self.part(1))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        // Half of the tokens are bad: among 40 there is one that is not.
        let half = try LocalAPNs(["--bad-token", "0.5"])
        let other = try Campaign(rows: 40)
        #expect(try other.send(to: half.endpoint, Self.part(1)).exitCode == 0)
    }

    @Test func `--assume-canary accepts another part's canary only if it passed`() throws {
        let good = try LocalAPNs()
        let first = try Campaign(rows: 300)
        let canary = ["--canary", "20"]
        let sent = try first.send(to: good.endpoint, Self.part(1) + canary)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let passed = try guards(sent.output)
        #expect(passed["canary"] as? String == "passed")
        #expect(passed["canary_responses"] as? Int == 20 && passed["canary_refused"] as? Int == 0)
        #expect(passed["responses"] as? Int == 300 && passed["bad_tokens"] as? Int == 0)
        #expect(passed["consecutive_refusals"] as? Int == 0)
        let stats = try first.ledger("stats", ["--json"]).output
        #expect(try guards(stats)["canary"] as? String == "passed")

        let second = try Campaign(rows: 300)
        let assumed = try second.send(
            to: good.endpoint, Self.part(2) + canary + ["--assume-canary"])
        #expect(assumed.exitCode == 0, "\(assumed.errors)")
        #expect(try guards(assumed.output)["canary"] as? String == "assumed")
        #expect(try guards(assumed.output)["canary_responses"] is NSNull)

        // What the first responses are stops a part only if no canary has passed.
        let bad = try LocalAPNs(["--bad-token", "1"])
        let third = try Campaign(rows: 300)
        let stopped = try third.send(to: bad.endpoint, Self.part(3))
        #expect(stopped.exitCode == 4, "\(stopped.errors)")
        #expect(try SendSummary(json: stopped.output).rejected == 50)
        let fourth = try Campaign(rows: 300)
        let whole = try fourth.send(to: bad.endpoint, Self.part(3) + ["--assume-canary"])
        #expect(whole.exitCode == 4, "\(whole.errors)")
        #expect(try SendSummary(json: whole.output).rejected == 300)
        #expect(whole.errors.contains("300 in all"), "\(whole.errors)")

        let refused = try third.send(to: bad.endpoint, ["--assume-canary"])
        #expect(refused.exitCode == 2 && refused.errors.contains("add --part K/N"))
    }

    @Test func `control status shows the canary and the guards' counts`() throws {
        let server = try LocalAPNs(["--bad-token", "0.02"])
        let campaign = try Campaign(rows: 20_000)
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, Self.part(1) + ["--canary", "50", "--rate", "1000"]),
            in: campaign.directory)
        var seen: [String: Any] = [:]
        try process.wait {
            let answer = try Broadside.run(
                ["control", "--ledger", campaign.ledger, "--json", "status"],
                in: campaign.directory)
            // Before the first second has passed there are none.
            let object = try? JSONSerialization.jsonObject(with: Data(answer.output.utf8))
            seen = (object as? [String: Any])?["guards"] as? [String: Any] ?? [:]
            return seen["canary"] as? String == "passed"
        }
        #expect((seen["responses"] as? Int ?? 0) >= 50 && seen["canary_responses"] as? Int == 50)
        #expect((seen["bad_tokens_of"] as? Int ?? 0) >= 50)
        process.send(signal: SIGTERM)
        #expect(try process.wait(limit: 60).exitCode == 3)
    }
}
