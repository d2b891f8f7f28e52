import BroadsideTestSupport
import Foundation
import Testing

/// Keys and provider tokens stay where they belong.
@Suite(.timeLimit(.minutes(60)))
struct SecretsTests {
    @Test
    func `Neither key nor provider token appears in any output, and files are private`() throws {
        let server = try RecordingServer("verdicts")
        let campaign = try Campaign(rows: 200)
        var outputs: [String] = []
        for more in [
            ["--dry-run"], ["--limit", "100", "--progress", "json", "--summary", "-"],
            ["--resume", "--progress", "auto"],
        ] {
            let sent = try campaign.send(to: server.endpoint, more)
            #expect(sent.exitCode == 0, "\(sent.errors)")
            outputs += [sent.output, sent.errors]
        }
        let refused = try campaign.send(
            to: "127.0.0.1:1", ["--ledger", campaign.ledger + "2", "--give-up-after", "1s"])
        #expect(refused.exitCode == 1)
        outputs += [refused.output, refused.errors]
        for subcommand in ["stats", "export", "verify"] {
            let finished = try campaign.ledger(subcommand)
            outputs += [finished.output, finished.errors]
        }

        let bearer = try #require(
            try server.events().compactMap(\.fields).first?
                .first { $0.name == "authorization" }?.value)
        let key = try String(contentsOfFile: campaign.authority.authKey, encoding: .utf8)
        var secrets: [String] = key.split(separator: "\n")
            .filter { !$0.hasPrefix("-----") }.map { String($0.prefix(40)) }
        let signature = try #require(bearer.dropFirst(7).split(separator: ".").last)
        secrets.append(String(signature.prefix(20)))
        #expect(secrets.count >= 3)
        for secret in secrets {
            #expect(outputs.allSatisfy { !$0.contains(secret) })
        }

        let ledger = campaign.ledger
        let names = try campaign.directory.names(in: ledger)
        #expect(!names.contains("provider-token"))
        for name in names {
            let file = "\(ledger)/\(name)"
            let attributes = try FileManager.default.attributesOfItem(atPath: file)
            #expect(attributes[.posixPermissions] as? Int == 0o600, "\(name)")
            let bytes = try Data(contentsOf: URL(filePath: file))
            let holds = secrets.contains { bytes.range(of: Data($0.utf8)) != nil }
            #expect(!holds, "\(name)")
        }
        let attributes = try FileManager.default.attributesOfItem(atPath: ledger)
        #expect(attributes[.posixPermissions] as? Int == 0o700)
    }
}
