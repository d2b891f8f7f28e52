import BroadsideTestSupport
import Foundation
import Testing

/// The rows of whole campaigns to other projects' servers.
let interopRows = TestSize.isLong ? 200_000 : TestSize.isFull ? 20_000 : 3_000

/// Whole campaigns to nghttp2's server, judged by that server's own log.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct NghttpdTests {
    @Test(arguments: [
        ("127.0.0.1", "localhost"), ("127.0.0.1", "127.0.0.1"), ("::1", "[::1]"),
    ])
    func `nghttpd gets every row once over IPv4 and IPv6`(address: String, host: String) throws {
        let campaign = try Campaign(rows: host == "localhost" ? interopRows : 2000)
        let server = try Nghttpd(address: address, for: campaign.tokens)
        let sent = try campaign.send(
            to: "\(host):\(server.port)", ["--connections", "4", "--summary", "-"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errorLines.isEmpty, "\(sent.errors)")
        try expectComplete(campaign, summary: SendSummary(json: sent.output))
        let tally = try server.tally(campaign.tokens)
        #expect(tally.isExact, "missing \(tally.missing), repeated \(tally.repeated)")
    }

    @Test func `nghttpd with padding, one stream and a small window gets every row once`() throws {
        let server = try Nghttpd([
            "--padding=200", "--max-concurrent-streams=1", "--window-bits=6",
            "--connection-window-bits=16", "--header-table-size=0",
        ])
        let campaign = try Campaign(rows: 1000)
        let sent = try campaign.send(
            to: "localhost:\(server.port)",
            ["--connections", "4", "--summary", "-", "--expiration", "0", "--collapse-id", "x"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        try expectComplete(campaign, summary: SendSummary(json: sent.output))
        let tally = try server.tally(campaign.tokens)
        #expect(tally.isExact, "missing \(tally.missing), repeated \(tally.repeated)")
    }
}

/// The ledger is sound and finished, and the export has each line once, all accepted.
func expectComplete(
    _ campaign: Campaign, summary: SendSummary, sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let count = campaign.tokens.count
    #expect(summary.outcome == "complete", sourceLocation: sourceLocation)
    #expect(summary.rows == count, sourceLocation: sourceLocation)
    #expect(summary.accepted == count, sourceLocation: sourceLocation)
    #expect(summary.remaining == 0, sourceLocation: sourceLocation)
    #expect(try campaign.statistics().accepted == count, sourceLocation: sourceLocation)

    let verified = try campaign.ledger("verify")
    #expect(verified.exitCode == 0, "\(verified.errors)", sourceLocation: sourceLocation)
    #expect(verified.output.contains("finished"), sourceLocation: sourceLocation)

    let rows = try campaign.export()
    #expect(rows.map(\.line) == (1...count).map { $0 }, sourceLocation: sourceLocation)
    #expect(
        rows.allSatisfy { $0.state == "accepted" && $0.status == 200 },
        sourceLocation: sourceLocation)
    let wrong = rows.indices.first { rows[$0].token != campaign.tokens.token($0) }
    #expect(wrong == nil, sourceLocation: sourceLocation)
}
