import BroadsideTestSupport
import Foundation
import Testing

/// Resumes of campaigns with unsettled rows whose devices `ledger forget` erased.
@Suite(.timeLimit(.minutes(60)))
struct ErasedRowTests {
    private let server: LocalAPNs
    private let campaign: Campaign

    init() throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: 9)
    }

    private func forget(_ rows: [Int]) throws {
        let devices = try campaign.directory.write(
            rows.map { campaign.tokens.token($0) + "\n" }.joined(), to: "erase.txt")
        let finished = try campaign.ledger("forget", ["--tokens", devices])
        #expect(finished.exitCode == 0, "\(finished.errors)")
    }

    @Test func `A resume that waits only for rows of erased devices settles them at once`() throws {
        let list = try campaign.directory.write(
            "token,tz\n"
                + (0..<9).map { "\(campaign.tokens.token($0)),\(TwoWaves.zone($0))\n" }.joined(),
            to: "list.csv")
        let options = ["--tokens", list] + TwoWaves().options
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, options), in: campaign.directory)
        try TwoWaves.wait(sending, of: campaign)
        sending.send(signal: SIGTERM)
        #expect(try sending.wait().exitCode == 3)
        let later = (0..<9).filter(TwoWaves.isLater)
        try forget(later)
        let rest = try campaign.send(to: server.endpoint, options + ["--resume"])
        #expect(rest.exitCode == 0, "\(rest.errors)")
        let rows = try campaign.export()
        for row in 0..<9 {
            #expect(rows[row].state == (later.contains(row) ? "skipped" : "accepted"), "\(row)")
        }
        #expect(try server.finish().count == 6)
    }

    @Test func `A resume does not advise to retry the rows of erased devices`() throws {
        let slow = try LocalAPNs(["--latency", "10m"])
        let sending = try Broadside.start(
            campaign.arguments(to: slow.endpoint), in: campaign.directory)
        try sending.wait { (try? campaign.statistics().in_doubt) ?? 0 > 0 }
        sending.send(signal: SIGKILL)
        #expect(try sending.wait().exitCode == -SIGKILL)
        try forget(Array(0..<9))
        let rest = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(rest.exitCode == 6, "\(rest.errors)")
        #expect(rest.errors.contains("--retry does not send again: "), "\(rest.errors)")
        #expect(!rest.errors.contains("sends them again"), "\(rest.errors)")
        #expect(try server.finish().isEmpty)
    }

    @Test func `A dry run of a resume counts rows of erased devices as skipped`() throws {
        let first = try campaign.send(to: server.endpoint, ["--limit", "4"])
        #expect(first.exitCode == 0, "\(first.errors)")
        try forget([1, 5, 6])
        let planned = try campaign.send(to: server.endpoint, ["--resume", "--dry-run"])
        #expect(planned.exitCode == 0, "\(planned.errors)")
        let lines = [
            "to send      3\n", "settled      4 by earlier runs", "skipped      2: Suppressed 2\n",
            "invalid      0\n",
        ]
        for line in lines { #expect(planned.output.contains(line), "\(planned.output)") }
    }
}
