import BroadsideTestSupport
import Foundation
import Testing

/// Provider tokens that were made elsewhere.
@Suite(.timeLimit(.minutes(60)))
struct TokenFileTests {
    private static let keyOptions: Set<String> = ["auth-key", "key-id", "team-id"]

    private func arguments(
        _ campaign: Campaign, to endpoint: String, file: String, _ more: [String] = []
    ) -> [String] {
        campaign.arguments(
            to: endpoint, ["--auth-token-file", file] + more, without: Self.keyOptions)
    }

    @Test func `A token file sends a campaign and leaves no token in the ledger`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 500)
        let file = "\(campaign.directory.path)/token"
        let token = try campaign.authority.providerToken(in: campaign.directory)
        try campaign.directory.write(token + "\n", to: "token")
        #expect(chmod(file, 0o600) == 0)
        let sent = try Broadside.run(
            arguments(campaign, to: server.endpoint, file: file), in: campaign.directory)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(!sent.errors.contains("chmod"))
        #expect(!(sent.errors + sent.output).contains(token.suffix(20)))
        #expect(try server.finish().count { $0[5] == "200" } == 500)
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger + "/provider-token"))
        for name in try campaign.directory.names(in: campaign.ledger) {
            let bytes = try Data(contentsOf: URL(filePath: "\(campaign.ledger)/\(name)"))
            #expect(bytes.range(of: Data(token.suffix(20).utf8)) == nil, "\(name)")
        }
    }

    @Test func `A token file replaced during a run is used from then on`() throws {
        let server = try RecordingServer(
            "plain", ["--detail", (1...1700).map(String.init).joined(separator: ",")])
        let campaign = try Campaign(rows: 1600)
        let file = "\(campaign.directory.path)/token"
        let now = Int(Date().timeIntervalSince1970)
        let first = try campaign.authority.providerToken(
            issuedAt: now - 1500, in: campaign.directory)
        let second = try campaign.authority.providerToken(issuedAt: now, in: campaign.directory)
        try campaign.directory.write(first, to: "token")
        let sending = try Broadside.start(
            arguments(campaign, to: server.endpoint, file: file, ["--rate", "100"]),
            in: campaign.directory)
        try sending.wait { try server.answerCount() >= 100 }
        // Half a file first, which has to be passed over, then the whole one in its place.
        try campaign.directory.write(String(second.prefix(30)), to: "token")
        try sending.wait {
            let said = FileManager.default.contents(atPath: sending.errorsPath) ?? Data()
            return String(decoding: said, as: UTF8.self).contains("stays in use")
        }
        try campaign.directory.write(second, to: "fresh")
        #expect(rename("\(campaign.directory.path)/fresh", file) == 0)
        try sending.wait {
            let latest = try server.eventsSoFar().suffix(40).compactMap(\.fields)
            return !latest.isEmpty
                && latest.allSatisfy { $0.contains { $0.value == "bearer \(second)" } }
        }
        try campaign.hurry()
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.contains("the previous token stays in use"), "\(sent.errors)")
        let requests = try server.events().compactMap(\.fields)
        #expect(requests.count == 1600)
        #expect(Set(requests.map { $0.first { $0.name == ":path" }?.value }).count == 1600)
        let used = requests.map { $0.first { $0.name == "authorization" }?.value }
        let change = try #require(used.firstIndex(of: "bearer \(second)"))
        #expect(change >= 100)
        #expect(used[..<change].allSatisfy { $0 == "bearer \(first)" })
        #expect(used[change...].count { $0 == "bearer \(first)" } < 20)
    }

    @Test
    func
        `A token file that disappears is a warning, and an expired token does not replace a good one`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 400)
        let now = Int(Date().timeIntervalSince1970)
        let good = try campaign.authority.providerToken(issuedAt: now, in: campaign.directory)
        let old = try campaign.authority.providerToken(
            issuedAt: now - 9_300, in: campaign.directory)
        let file = try campaign.directory.write(good, to: "token")
        let sending = try Broadside.start(
            arguments(campaign, to: server.endpoint, file: file, ["--rate", "5"]),
            in: campaign.directory)
        func wait(for text: String) throws {
            try sending.wait {
                let said = FileManager.default.contents(atPath: sending.errorsPath) ?? Data()
                return String(decoding: said, as: UTF8.self).contains(text)
            }
        }
        try sending.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        #expect(unlink(file) == 0)
        try wait(for: "--auth-token-file \(file) has disappeared: put it back")
        let older = try campaign.directory.write(old, to: "older")
        #expect(rename(older, file) == 0)
        try wait(for: "has an older token than before; the previous token stays in use")
        try campaign.hurry()
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.ranges(of: "has disappeared").count == 1, "\(sent.errors)")
        #expect(try server.finish().count { $0[5] == "200" } == 400)
    }

    @Test
    func `An old token in a token file is a warning, and its refusal says what to do`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 5)
        let token = try campaign.authority.providerToken(
            issuedAt: Int(Date().timeIntervalSince1970) - 7200, in: campaign.directory)
        let file = try campaign.directory.write(token, to: "token")
        #expect(chmod(file, 0o644) == 0)
        let sent = try Broadside.run(
            arguments(campaign, to: server.endpoint, file: file), in: campaign.directory)
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(sent.errors.contains("120 minutes old"), "\(sent.errors)")
        #expect(sent.errors.contains("chmod 600 \(file)"))
        #expect(sent.errors.contains("put a new one into the file"), "\(sent.errors)")
    }

    @Test func `A refused token leads to the program that makes it, not to a key's options`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 5)
        let token = try campaign.authority.providerToken(
            keyID: "ZZZZZZZZZZ", in: campaign.directory)
        let file = try campaign.directory.write(token, to: "token")
        let sent = try Broadside.run(
            arguments(campaign, to: server.endpoint, file: file), in: campaign.directory)
        #expect(sent.exitCode == 4, "\(sent.errors)")
        let report = try Broadside.run(
            ["report", "--ledger", campaign.ledger], in: campaign.directory)
        #expect(report.exitCode == 0, "\(report.errors)")
        for text in [sent.errors, report.output] {
            #expect(text.contains("heck the program that makes the provider token"), "\(text)")
            #expect(!text.contains("swapped"), "\(text)")
        }
    }

    @Test(arguments: [
        "", "abc", "a.b.c", "eyJhbGciOiJub25lIn0.e30.", "bearer x.y.z",
        "-----BEGIN PRIVATE KEY-----\nMIGH",
    ])
    func `A token file without a provider token is refused`(_ text: String) throws {
        let campaign = try Campaign(rows: 1)
        let file = try campaign.directory.write(text, to: "token")
        let refused = try Broadside.run(
            arguments(campaign, to: "localhost:1", file: file, ["--dry-run"]),
            in: campaign.directory)
        #expect(refused.exitCode == 2, "\(refused.errors)")
        #expect(refused.errors.contains("--auth-token-file \(file): not a provider token"))
        #expect(refused.errorLines.count == 1)
    }

    @Test func `A token that an editor or a header altered is read, or refused with the remedy`()
        throws
    {
        let campaign = try Campaign(rows: 1)
        let token = try campaign.authority.providerToken(in: campaign.directory)
        func printed(_ bytes: [UInt8]) throws -> Finished {
            let file = try campaign.directory.write(bytes, to: "token")
            #expect(chmod(file, 0o600) == 0)
            return try Broadside.run(
                ["doctor", "--print-token", "--auth-token-file", file], in: campaign.directory)
        }
        let marked = try printed(Array("\u{feff}\(token)\r\n".utf8))
        #expect(marked.exitCode == 0 && marked.output == token + "\n", "\(marked.errors)")
        let wide: [UInt8] = [0xff, 0xfe] + Array(token.utf8).flatMap { [$0, 0] as [UInt8] }
        for (bytes, remedy) in [
            (Array("\"\(token)\"\n".utf8), "remove the quotes and write the token alone"),
            (Array("'\(token)'".utf8), "remove the quotes"),
            (Array("Authorization: Bearer \(token)\n".utf8), "remove 'Authorization: Bearer'"),
            (wide, "but UTF-16 text: write the token as UTF-8"),
        ] {
            let refused = try printed(bytes)
            #expect(refused.exitCode == 2 && refused.errorLines.count == 1, "\(refused.errors)")
            #expect(refused.errors.contains("not a provider token"), "\(refused.errors)")
            #expect(refused.errors.contains(remedy), "\(refused.errors)")
            #expect(!refused.errors.contains(token.suffix(20)))
        }
    }
}
