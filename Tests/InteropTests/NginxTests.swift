import BroadsideTestSupport
import Testing

/// Whole campaigns to nginx, which says goodbye on a connection after every 100 requests.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct NginxTests {
    @Test(arguments: [
        "TLSv1.2", "TLSv1.3",
    ])
    func `nginx's GOAWAY after every 100 requests loses and repeats no row`(tls: String) throws {
        let server = try Nginx(protocols: tls)
        let rows = tls == "TLSv1.3" ? interopRows : max(interopRows / 4, 2_000)
        let campaign = try Campaign(rows: rows)
        let sent = try campaign.send(
            to: "localhost:\(server.port)", ["--connections", "4", "--summary", "-"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        try expectComplete(campaign, summary: summary)
        #expect(summary.reconnects >= rows / 100 - 8)

        let (tally, lines) = try server.tally(campaign.tokens, tls: tls)
        #expect(tally.isExact, "missing \(tally.missing), repeated \(tally.repeated)")
        #expect(lines >= rows)
    }
}
