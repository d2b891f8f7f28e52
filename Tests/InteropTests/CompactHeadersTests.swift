import BroadsideTestSupport
import Foundation
import Testing

/// `--hpack compact`: constant headers and the provider token are sent once a connection.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct CompactHeadersTests {
    private static let compact = ["--hpack", "compact"]

    @Test func `Compact headers are inserted once and indexed from the second request on`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 1200)
        let sent = try campaign.send(
            to: server.endpoint, Self.compact + ["--connections", "1", "--expiration", "0"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let requests = try server.events().filter { $0.event == "request" }
        let detailed = requests.filter { $0.fields != nil }
        try #require(requests.count == 1200 && detailed.count == 3)
        typealias Form = RequestBytesTests.Representation
        let forms = detailed.map { $0.fields!.map { Form($0) } }
        let start = [
            Form("indexed", 3, ":method"), Form("indexed", 7, ":scheme"),
            Form("without", 4, ":path"),
        ]
        #expect(
            forms[0] == start + [
                Form("incremental", 1, ":authority"), Form("incremental", 23, "authorization"),
                Form("incremental", 0, "apns-topic"), Form("incremental", 0, "apns-push-type"),
                Form("incremental", 0, "apns-id"), Form("incremental", 0, "apns-expiration"),
                Form("incremental", 0, "apns-priority"),
            ])
        let later =
            start + [
                Form("indexed", 68, ":authority"), Form("indexed", 67, "authorization"),
                Form("indexed", 66, "apns-topic"), Form("indexed", 65, "apns-push-type"),
                Form("without", 64, "apns-id"), Form("indexed", 63, "apns-expiration"),
                Form("indexed", 62, "apns-priority"),
            ]
        #expect(forms[1] == later)
        #expect(forms[2] == later)
        // The same headers as with --hpack strict, decoded by code that is not ours.
        let tables = Set(requests.compactMap(\.table))
        #expect(
            tables.count == 1 && detailed.allSatisfy { $0.fields!.allSatisfy { $0.evicts == nil } })
        let values = detailed.map { request in
            request.fields!.filter { $0.name != "apns-id" && $0.name != ":path" }.map(\.value)
        }
        #expect(values[1] == values[0] && values[2] == values[0])
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `nghttpd gets each row with the current token under compact headers`() throws {
        let server = try Nghttpd()
        let campaign = try Campaign(rows: 4000)
        let directory = campaign.directory
        let authority = try TestAuthority.shared()
        let now = Int(Date().timeIntervalSince1970)
        let tokens = try [60, 30].map {
            try authority.providerToken(issuedAt: now - $0, in: directory)
        }
        let file = try directory.write(tokens[0], to: "token")
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                Self.compact + [
                    "--connections", "2", "--rate", "100", "--auth-token-file", file, "--summary",
                    "-",
                ], without: ["auth-key", "key-id", "team-id"]), in: directory)
        try process.wait { server.logCount > 20_000 }
        try directory.write(tokens[1], to: "token.new")
        guard rename("\(directory.path)/token.new", file) == 0 else {
            throw TestFailure("the token's file can't be replaced")
        }
        try process.wait {
            try String(contentsOfFile: server.log, encoding: .utf8).contains(tokens[1])
        }
        try campaign.hurry()
        let sent = try process.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        try expectComplete(campaign, summary: SendSummary(json: sent.output))
        #expect(try server.tally(campaign.tokens).isExact)
        let log = try String(contentsOfFile: server.log, encoding: .utf8)
        let counts = tokens.map { token in
            log.split(separator: "\n").count { $0.hasSuffix("authorization: bearer \(token)") }
        }
        #expect(counts[0] > 0 && counts[1] > 0 && counts[0] + counts[1] == 4000, "\(counts)")
    }

    @Test
    func `Compact headers work with a table of 0 bytes and with 100 requests per connection`()
        throws
    {
        let narrow = try Nghttpd(["--header-table-size=0"])
        let nginx = try Nginx()
        for server in [narrow as any LoggingServer, nginx] {
            let campaign = try Campaign(rows: 2000)
            let sent = try campaign.send(
                to: server.endpoint, Self.compact + ["--connections", "2", "--summary", "-"])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            try expectComplete(campaign, summary: SendSummary(json: sent.output))
            server.settle()
            #expect(try server.tally(campaign.tokens).isExact)
        }
    }

    @Test func `The simulator refuses each indexing policy if it expects another`() throws {
        let policies = ["strict", "compact", "current"]
        for asked in policies {
            let simulation = try Simulation([
                "--hpack-lint", "refuse", "--hpack-lint-profile", asked,
            ])
            for given in policies {
                let campaign = try Campaign(rows: 500)
                // Where every request is refused, nothing is to be waited for.
                let patience = asked == given ? "60s" : "2s"
                let finished = try Broadside.run(
                    [
                        "send", "--tokens", campaign.list, "--payload", campaign.payloadFile,
                        "--endpoint", simulation.endpoint, "--ledger", campaign.ledger,
                        "--progress", "none", "--hpack", given, "--give-up-after", patience,
                        "--connections", "1", "--expiration", "0",
                    ] + simulation.credentials(), in: campaign.directory)
                #expect((finished.exitCode == 0) == (asked == given), "\(asked), \(given)")
            }
        }
    }

    @Test func `A resume may change the indexing policy`() throws {
        let server = try Nghttpd()
        let campaign = try Campaign(rows: 1000)
        for (limit, indexingPolicy) in [("500", "strict"), ("1000", "compact")] {
            let sent = try campaign.send(
                to: server.endpoint,
                ["--limit", limit, "--resume-or-begin", "--hpack", indexingPolicy])
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        #expect(try server.tally(campaign.tokens).isExact)
    }
}
