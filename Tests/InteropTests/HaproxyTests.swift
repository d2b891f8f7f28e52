import BroadsideTestSupport
import Foundation
import Testing

/// haproxy in front of a server that hangs up in the middle: what the server may have got is not sent
/// twice with `--on-lost record`, and each row has one outcome that is true, as far as haproxy's is.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct HaproxyTests {
    private static let rows = 300

    /// Row 3 of ten is a dead token, row 9 meets the trouble.
    private func meetsTrouble(_ row: Int) -> Bool { row % 10 == 9 }
    private func isDead(_ row: Int) -> Bool { row % 10 == 3 }

    /// A response that comes to nothing, or not in time, is a 502 or 504 of haproxy's; one that breaks off
    /// behind its headers ends without the bytes that they announced.
    @Test(
        arguments: [
            ("garbage", 502), ("silent", 504), ("after-headers", 0), ("reset-after-headers", 0),
        ])
    func `A request whose response haproxy lost is unknown and sent once`(
        way: String, status: Int
    ) throws {
        let server = try Haproxy(way: way)
        let campaign = try Campaign(rows: Self.rows)
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "2", "--summary", "-"])
        #expect(sent.exitCode == 6, "\(sent.errors)")
        let tally = try server.tally(campaign.tokens)
        #expect(tally.isExact, "\(tally)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.outcome == "complete" && summary.rows == Self.rows)
        #expect(summary.unknown == Self.rows / 10 && summary.rejected == Self.rows / 10)
        #expect(summary.accepted == Self.rows * 8 / 10 && summary.remaining == 0)
        try expectRows(campaign, trouble: ("unknown", status, "ConnectionLost"))

        // What may have been sent goes out again when somebody says so, and nothing else does.
        let retried = try campaign.send(
            to: server.endpoint, ["--resume", "--retry", "unknown", "--summary", "-"])
        #expect(retried.exitCode == 0, "\(retried.errors)")
        try expectTwice(server.tally(campaign.tokens))
        #expect(try SendSummary(json: retried.output).accepted == Self.rows * 9 / 10)
    }

    @Test(arguments: ["garbage", "silent"])
    func `With resend every row is accepted although haproxy lost responses`(way: String) throws {
        let server = try Haproxy(way: way)
        let campaign = try Campaign(rows: Self.rows)
        let sent = try campaign.send(
            to: server.endpoint,
            ["--connections", "2", "--on-lost", "resend", "--summary", "-"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == Self.rows * 9 / 10 && summary.retries >= Self.rows / 10)
        try expectTwice(server.tally(campaign.tokens))
    }

    /// RFC 9113, section 8.7: REFUSED_STREAM says that "the stream is being closed prior to any processing
    /// having occurred". haproxy says it of requests that its server has got, too. Who speaks the protocol
    /// has to believe it; whatever arrives twice is what haproxy denied.
    @Test(arguments: ["before", "reset-before", "half-a-header"])
    func `A request that haproxy reports as not processed is sent again, and no other`(
        way: String
    ) throws {
        let server = try Haproxy(way: way)
        let campaign = try Campaign(rows: Self.rows)
        let trace = "\(campaign.directory.path)/trace"
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "2", "--trace-frames", trace])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let denied = try String(contentsOfFile: trace, encoding: .utf8).split(separator: "\n")
            .count { $0.contains("\"received\"") && $0.contains("\"REFUSED_STREAM\"") }
        #expect(denied >= Self.rows / 10)
        try expectTwice(server.tally(campaign.tokens))
        try expectRows(campaign, trouble: ("accepted", 200, ""))
    }

    @Test
    func `A 200 through haproxy without announced length is accepted wherever its body ends`()
        throws
    {
        let server = try Haproxy(way: "inside-chunk")
        let campaign = try Campaign(rows: Self.rows)
        let sent = try campaign.send(to: server.endpoint, ["--connections", "2"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try server.tally(campaign.tokens).isExact)
        try expectRows(campaign, trouble: ("accepted", 200, ""))
    }

    /// Rows that met the trouble arrived twice, all others once.
    private func expectTwice(_ tally: Tally) {
        let wrong = tally.counts.indices.first { tally.counts[$0] != (meetsTrouble($0) ? 2 : 1) }
        #expect(wrong == nil, "\(tally)")
    }

    /// Each row once, with its one outcome.
    private func expectRows(_ campaign: Campaign, trouble: (String, Int, String)) throws {
        let rows = try campaign.export()
        #expect(rows.map(\.line) == (1...Self.rows).map { $0 })
        let wrong = rows.enumerated().filter { row, exported in
            let due =
                meetsTrouble(row)
                ? trouble : isDead(row) ? ("rejected", 410, "Unregistered") : ("accepted", 200, "")
            return (exported.state, exported.status ?? 0, exported.reason) != due
                || exported.token != campaign.tokens.token(row) || exported.attempts != 1
        }
        #expect(wrong.isEmpty, "\(wrong.count): \(wrong.prefix(2))")
        #expect(try campaign.ledger("verify").exitCode == 0)
    }

    @Test
    func `A server that loses every response costs few rows, and none is sent twice`() throws {
        let server = try Haproxy(way: "garbage", every: 1)
        let campaign = try Campaign(rows: 3000)
        var lost = 0
        for more in [[], ["--resume"]] {
            let before = server.requestCount()
            let process = try Broadside.start(
                campaign.arguments(to: server.endpoint, more + ["--summary", "-"]),
                in: campaign.directory)
            // One request on each connection, and one after each pause.
            try process.wait { server.requestCount() >= before + 7 }
            process.send(signal: SIGINT)
            let sent = try process.wait()
            #expect(sent.exitCode == 3, "\(sent.errors)")
            let summary = try SendSummary(json: sent.output)
            #expect(summary.accepted == 0 && summary.rows == 3000 && summary.unknown > lost)
            lost = summary.unknown
            // The backend responds to who asks a second time: nothing was.
            let tally = try server.tally(campaign.tokens)
            #expect(tally.repeated == 0 && tally.total == lost, "\(tally), \(lost) lost")
        }
        #expect(lost < 40)
    }

    @Test func `A 503 of haproxy without backend is sent again, and no row is lost`() throws {
        let server = try Haproxy(way: "before", every: 1_000_000)
        let campaign = try Campaign(rows: 2000)
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, ["--rate", "100", "--connections", "2", "--summary", "-"]),
            in: campaign.directory)
        try process.wait { server.requestCount() > 50 }
        try server.setListening(false)
        let before = server.requestCount()
        // Nothing arrives while the port is closed; the run does not end for it.
        try process.wait {
            let status = try campaign.control("status", "--json").output
            let object = try? JSONSerialization.jsonObject(with: Data(status.utf8))
            return (object as? [String: Any])?["limited_by"] as? String == "retry"
        }
        #expect(process.isRunning && server.requestCount() <= before + 8)
        try server.setListening(true)
        try campaign.hurry()
        let sent = try process.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let tally = try server.tally(campaign.tokens)
        #expect(tally.isExact, "\(tally)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == 1800 && summary.rejected == 200 && summary.retries > 0)
    }
}
