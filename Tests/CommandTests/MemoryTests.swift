import BroadsideTestSupport
import Testing

/// Memory goes by what is in flight, never by the length of the list.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct MemoryTests {
    @Test func `A dry run of a million rows takes as much memory as one of 10,000`() throws {
        // Of the program's pages a run counts those that it finds in the cache: the largest of four.
        let before = try (0..<3).map { _ in try dryRun(rows: 10_000) }.max()!
        let many = try dryRun(rows: 1_000_000)
        let few = max(before, try dryRun(rows: 10_000))
        #expect(abs(many - few) < 4 << 20, "\(few) and \(many) bytes")
    }

    private func dryRun(rows: Int) throws -> Int {
        let campaign = try Campaign(rows: rows)
        let (finished, peak) = try Broadside.runMeasured(
            campaign.arguments(to: "127.0.0.1:1", ["--dry-run"]), in: campaign.directory)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let count = rows == 10_000 ? "10,000" : "1,000,000"
        #expect(finished.output.contains("to send      \(count)\n"))
        return peak
    }

    @Test
    func `A send, an export and a verification of 200,000 rows take as much memory as of 10,000`()
        throws
    {
        // The server that costs least.
        let server = try LocalAPNs()
        // As above: others may have emptied the cache, and filled it before the long run.
        var shortRuns = try (0..<3).map { _ in try send(rows: 10_000, server) }
        let many = try send(rows: 200_000, server)
        shortRuns.append(try send(rows: 10_000, server))
        for (index, many) in many.enumerated() {
            let few = shortRuns.map { $0[index] }.max()!
            #expect(abs(many - few) < 8 << 20, "\(few) and \(many) bytes")
            // 64 MiB, 96 KiB a connection, 0.5 KiB a stream in flight.
            #expect(many < (64 << 20) + 4 * (96 << 10) + 400 * 512)
        }
    }

    private func send(rows: Int, _ server: LocalAPNs) throws -> [Int] {
        let campaign = try Campaign(rows: rows)
        let ledger = ["--ledger", campaign.ledger]
        let (sent, sending) = try Broadside.runMeasured(
            campaign.arguments(
                to: server.endpoint, ["--connections", "4", "--summary", "-"]),
            in: campaign.directory)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == rows)
        let told = try #require(summary.peak_rss_bytes)
        #expect(abs(sending - told) < 4 << 20, "\(told) of \(sending) bytes")
        let file = "\(campaign.directory.path)/export.csv"
        let (exported, exporting) = try Broadside.runMeasured(
            ["ledger", "export", "--output", file] + ledger, in: campaign.directory)
        let (verified, verifying) = try Broadside.runMeasured(
            ["ledger", "verify"] + ledger, in: campaign.directory)
        #expect(exported.exitCode == 0 && verified.exitCode == 0)
        return [sending, exporting, verifying]
    }
}
