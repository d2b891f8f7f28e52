import BroadsideTestSupport
import Testing

/// Servers that keep a header table of their own although ours has a size of 0: every response means
/// what it says, from the first insertion on.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct HeaderTableTests {
    @Test func `h2o indexes from its first response on, and every row is accepted`() throws {
        let server = try H2O()
        let campaign = try Campaign(rows: 1500)
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "4", "--summary", "-"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        try expectComplete(campaign, summary: summary)
        #expect(summary.reconnects == 0)
        let tally = try server.tally(campaign.tokens)
        #expect(tally.isExact, "missing \(tally.missing), repeated \(tally.repeated)")
    }

    @Test(arguments: [1, 2, 1000])
    func `A server that indexes from the Nth response on gives each row its own verdict`(first: Int)
        throws
    {
        let server = try RecordingServer("index", ["--from", "\(first)"], script: "indexing.py")
        let campaign = try Campaign(rows: 2000)
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--connections", "1", "--abort-after", "2000", "--request-timeout", "120s",
                "--summary", "-",
            ])
        let summary = try SendSummary(json: sent.output)
        #expect(summary.rows == 2000 && summary.remaining == 0 && summary.reconnects == 0)
        let reset = try server.tally(campaign.tokens, ["reset"])
        for row in try campaign.export() {
            let number = try #require(row.line) - 1
            let wasReset = reset.counts[number] > 0
            switch number % 10 {
            case 1:
                #expect(row.state == "rejected" && row.status == 410)
                #expect(row.timestamp == "\(1_700_000_000_000 + number)")
            case 2:
                #expect(row.state == "rejected" && row.status == 400)
                #expect(row.reason == "BadDeviceToken")
            default:
                #expect(row.state == (wasReset ? "unknown" : "accepted"), "row \(number)")
            }
        }
        #expect(summary.unknown == reset.counts.reduce(0, +) && summary.unknown > 80)
        let tally = try server.tally(campaign.tokens, ["taken", "reset"])
        #expect(tally.isExact, "missing \(tally.missing), repeated \(tally.repeated)")
    }
}
