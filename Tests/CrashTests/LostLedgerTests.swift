import BroadsideTestSupport
import Foundation
import Testing

/// A ledger that is removed while its run goes on: what is sent from then on would be in no ledger.
@Suite(.timeLimit(.minutes(60)))
struct LostLedgerTests {
    @Test func `A run whose ledger is removed stops, and --resume begins nothing`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 20_000)
        let words = campaign.arguments(to: server.endpoint, ["--rate", "1000"])
        let process = try Broadside.start(words, in: campaign.directory)
        defer { process.send(signal: SIGKILL) }
        try process.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        try FileManager.default.removeItem(atPath: campaign.ledger)
        let ended = try process.wait()
        #expect(ended.exitCode == 5, "\(ended.errors)")
        let last = try #require(ended.errorLines.last)
        #expect(
            last.contains("the ledger, or a segment of it, was removed or moved"), "\(ended.errors)"
        )
        #expect(
            last.contains("put the missing files back, then --resume continues"), "\(ended.errors)")
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        let again = try Broadside.run(words + ["--resume"], in: campaign.directory)
        #expect(again.exitCode == 2, "\(again.errors)")
        let sent = try server.finish().map { $0[4] }
        #expect(sent.count < 20_000)
        #expect(Set(sent).count == sent.count)
    }

    @Test func `A run whose segment is removed stops, and is not finished`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 20_000)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "1000", "--reactors", "1"]),
            in: campaign.directory)
        defer { process.send(signal: SIGKILL) }
        try process.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        try FileManager.default.removeItem(atPath: "\(campaign.ledger)/segment-0001-00")
        let ended = try process.wait()
        #expect(ended.exitCode == 5, "\(ended.errors)")
        #expect(ended.errors.contains("or a segment of it, was removed"), "\(ended.errors)")
        let again = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(again.exitCode == 5 && again.errors.contains("segment-0001-00"), "\(again.errors)")
        #expect(try server.finish().count < 20_000)
    }
}
