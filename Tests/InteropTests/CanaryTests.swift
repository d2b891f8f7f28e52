import BroadsideTestSupport
import Foundation
import Testing

/// `--canary`, by `broadside simulate`, whose token fates are known beforehand.
@Suite(.timeLimit(.minutes(60)))
struct CanaryTests {
    private static let rows = 5000

    @Test
    func `A refused canary stops the campaign and is judged again without another send`() throws {
        let server = try Simulation(["--bad-token", "0.5"])
        let campaign = try Campaign(rows: Self.rows)
        let options =
            try server.credentials()
            + ["--connections", "2", "--canary", "200", "--summary", "-"]
        let sent = try campaign.send(to: server.endpoint, options)
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(sent.errors.contains("canary"), "\(sent.errors)")
        let first = try SendSummary(json: sent.output)
        #expect(first.accepted + first.rejected == 200, "\(first)")
        #expect(first.remaining == Self.rows - 200)
        // Rows of the list's end are among them.
        let lines = try campaign.export().filter { $0.state != "remaining" }.compactMap(\.line)
        #expect(lines.count == 200 && lines == lines.sorted())
        #expect(lines.max()! > Self.rows * 9 / 10 && lines.min()! < Self.rows / 10)

        let again = try campaign.send(to: server.endpoint, options + ["--resume"])
        #expect(again.exitCode == 4, "\(again.errors)")
        let second = try SendSummary(json: again.output)
        #expect(second.accepted == first.accepted && second.rejected == first.rejected)

        let allowed = try campaign.send(
            to: server.endpoint, options + ["--resume", "--canary-max-rejected", "80"])
        #expect(allowed.exitCode == 0, "\(allowed.errors)")
        let last = try SendSummary(json: allowed.output)
        #expect(last.accepted + last.rejected == Self.rows && last.remaining == 0)
        #expect(try campaign.export().map(\.line) == (1...Self.rows).map { $0 })
    }

    @Test(arguments: [1, 2])
    func `A canary that passed is remembered, and 410 is not a refusal`(reactors: Int) throws {
        let server = try Simulation(["--unregistered", "0.6"])
        let campaign = try Campaign(rows: Self.rows)
        let sent = try campaign.send(
            to: server.endpoint,
            server.credentials() + [
                "--connections", "2", "--reactors", "\(reactors)", "--canary", "150", "--summary",
                "-",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted + summary.rejected == Self.rows)
        #expect(try campaign.export().map(\.line) == (1...Self.rows).map { $0 })
        let manifest = try String(
            contentsOfFile: campaign.ledger + "/manifest.json", encoding: .utf8)
        #expect(manifest.contains("\"canaryPassed\" : true"))
    }

    @Test
    func `A canary of which half is lost does not pass, and a resume sends other rows`() throws {
        let server = try RecordingServer(
            "keep-half", ["--hostile", "1", "--after", "60"], script: "hostile.py")
        let campaign = try Campaign(rows: Self.rows)
        let options = ["--connections", "1", "--canary", "120", "--summary", "-"]
        let sent = try campaign.send(to: server.endpoint, options)
        #expect(sent.exitCode == 3, "\(sent.errors)")
        #expect(
            sent.errors.contains("too few of the canary's rows got a response"), "\(sent.errors)")
        let first = try SendSummary(json: sent.output)
        #expect(first.accepted == 60 && first.unknown == 60, "\(first)")
        #expect(first.remaining == Self.rows - 120, "\(first)")

        let resumed = try campaign.send(to: server.endpoint, options + ["--resume"])
        #expect(resumed.exitCode == 6, "\(resumed.errors)")
        let whole = try SendSummary(json: resumed.output)
        #expect(whole.accepted == Self.rows - first.unknown, "\(whole)")
        #expect(whole.unknown == first.unknown && whole.remaining == 0, "\(whole)")
        #expect(try server.tally(campaign.tokens).repeated == 0)
    }

    @Test(arguments: [1, 3])
    func `The canary of a part by row numbers has only that part's rows`(of index: Int) throws {
        let server = try Simulation(["--bad-token", "0.5"])
        let campaign = try Campaign(rows: Self.rows)
        let packed = try Packing.gzip.write(
            campaign.tokens.list(), to: "list.txt", in: campaign.directory)
        let sent = try campaign.send(
            to: server.endpoint,
            server.credentials() + [
                "--tokens", packed, "--shard", "\(index)/3", "--canary", "120", "--summary", "-",
            ])
        #expect(sent.exitCode == 4, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted + summary.rejected == 120, "\(summary)")
        let lines = try campaign.export().filter { $0.state != "remaining" }.compactMap(\.line)
        #expect(lines.count == 120 && lines.allSatisfy { ($0 - 1) % 3 == index - 1 })
    }
}
