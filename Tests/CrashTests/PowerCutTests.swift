import BroadsideTestSupport
import Foundation
import Testing

/// `kill -9`, and then what a power cut takes besides: whatever was written and not synced. By what
/// is left nothing is sent twice, as the server's own log says.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct PowerCutTests {
    static let rows = 3_000
    static let trials = TestSize.isLong ? 60 : TestSize.isFull ? 3 : 2
    /// A disk in user space costs little, and finds what a short run may not show.
    static let diskRows = 10_000
    static let diskTrials = TestSize.isLong ? 60 : 3

    @Test(
        arguments: 0..<trials
    )
    func `Unsynced bytes that a power cut loses or tears make nothing go out twice`(seed: Int)
        throws
    {
        var random = SeededRandom(seed: UInt64(seed + 2000))
        let campaign = try Campaign(rows: Self.rows)
        let server = try Nghttpd()
        let options = [
            "--connections", "4", "--reactors", "2", "--resume-or-begin", "--summary", "-",
        ]
        for _ in 0...seed % 2 {
            let before = server.logCount
            let process = try Broadside.start(
                campaign.arguments(to: server.endpoint, options), in: campaign.directory)
            let goal = Int.random(in: 0..<Self.rows * 400, using: &random)
            try process.wait { server.logCount - before >= goal }
            process.send(signal: SIGKILL)
            _ = try process.wait()
            server.settle()
            try cutPower(campaign, server.tally(campaign.tokens), Int(random.next() >> 40))
            if FileManager.default.fileExists(atPath: campaign.ledger + "/manifest.json") {
                let verified = try campaign.ledger("verify")
                #expect(verified.exitCode == 0, "\(verified.errors)")
            }
        }
        let doubt = try DoubtfulRows(campaign)
        let resumed = try campaign.send(to: server.endpoint, options)
        let summary = try SendSummary(json: resumed.output)
        #expect(resumed.exitCode == (summary.unknown == 0 ? 0 : 6), "\(resumed.errors)")
        #expect(summary.accepted + summary.unknown == Self.rows)
        server.settle()
        let seen = try server.tally(campaign.tokens)
        #expect(seen.repeated == 0 && seen.strangers == 0)
        // What was in doubt is unknown now, and nothing else is: all the rest is sent.
        let untrue = try campaign.export().enumerated().filter { row, exported in
            exported.state == "accepted" && seen.counts[row] != 1
                || (exported.state == "unknown") != doubt.rows.contains(row)
        }
        #expect(untrue.isEmpty, "\(untrue.count) rows")
        let retried = try campaign.send(to: server.endpoint, options + ["--retry", "unknown"])
        #expect(retried.exitCode == 0, "\(retried.errors)")
        server.settle()
        #expect(try server.tally(campaign.tokens).missing == 0)
    }

    /// The test above takes from the ledger's own words what was synced, and lets stay what rows that were
    /// sent need. Here a disk in user space knows what was synced, and nothing else stays for sure: a row
    /// that was sent before its reservation was synced goes out again.
    @Test(
        .enabled(if: FailingDisk.isAllowed, "file systems in user space are not allowed here"),
        arguments: 0..<diskTrials)
    func `A disk that forgets what was not synced makes nothing go out twice`(seed: Int) throws {
        var random = SeededRandom(seed: UInt64(seed + 3000))
        let campaign = try Campaign(rows: Self.diskRows)
        // The disk counts what was written, and so it may be a server that costs little.
        let server = try Nginx(requestsPerConnection: 100_000)
        let path = campaign.directory.path
        let options = [
            "--connections", "4", "--reactors", "2", "--resume-or-begin", "--summary", "-",
        ]
        for _ in 0...seed % 2 {
            // The most of a segment that a run of this length writes is about 100,000 bytes.
            let count = Int.random(in: 0..<60_000, using: &random)
            try Data("power \(count)".utf8).write(to: URL(filePath: "\(path)/back.fail"))
            let words = try FailingDisk.words(
                path,
                [Broadside.path()]
                    + campaign.arguments(to: server.endpoint, options, without: ["ledger"])
                    + ["--ledger", "\(path)/disk/ledger"])
            let process = try Subprocess(words[0], Array(words.dropFirst()), in: campaign.directory)
            #expect([137, 0, 6].contains(try process.wait().exitCode))
        }
        let ledger = ["--ledger", "\(path)/back/ledger"]
        let resumed = try campaign.send(to: server.endpoint, options + ledger)
        let summary = try SendSummary(json: resumed.output)
        #expect(resumed.exitCode == (summary.unknown == 0 ? 0 : 6), "\(resumed.errors)")
        #expect(summary.accepted + summary.unknown == Self.diskRows)
        server.settle()
        let seen = try server.tally(campaign.tokens)
        #expect(seen.repeated == 0 && seen.strangers == 0, "\(seen)")
        let retried = try campaign.send(
            to: server.endpoint, options + ledger + ["--retry", "unknown"])
        #expect(retried.exitCode == 0, "\(retried.errors)")
        server.settle()
        #expect(try server.tally(campaign.tokens).missing == 0)
    }

    private func cutPower(_ campaign: Campaign, _ seen: Tally, _ seed: Int) throws {
        let names = (try? campaign.directory.names(in: campaign.ledger)) ?? []
        guard names.contains(where: { $0.hasPrefix("segment-") }) else { return }
        let rows = seen.counts.indices.filter { seen.counts[$0] > 0 }
        let input = try campaign.directory.write(
            rows.map { "\($0)\n" }.joined(), to: "seen")
        let process = try Subprocess(
            "python3",
            ["-B", "\(Tool.packageRoot)/Tests/Reference/power_cut.py", campaign.ledger, "\(seed)"],
            in: campaign.directory, input: input)
        let finished = try process.wait()
        #expect(finished.exitCode == 0, "\(finished.errors)")
    }
}
