import BroadsideTestSupport
import Foundation
import Testing

/// A resume goes on with its own campaign and with no other.
@Suite(.timeLimit(.minutes(60)))
struct CampaignIdentityTests {
    @Test(arguments: [
        (["--payload", "@other"], "payload"),
        (["--tokens", "@longer"], "list"),
        (["--topic", "com.example.other"], "topic"),
        (["--push-type", "background", "--payload-check", "off"], "push type"),
        (["--priority", "5"], "priority"),
        (["--expiration", "0"], "expiration"),
        (["--collapse-id", "x"], "collapse id"),
        (["--environment", "development"], "environment"),
    ])
    func `A resume with another payload, topic, list or header is refused and names it`(
        change: [String], name: String
    ) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 10)
        try campaign.directory.write(#"{"aps":{}}"#, to: "other")
        try campaign.directory.write(campaign.tokens.list() + [0x0a], to: "longer")
        let begun = try campaign.send(to: server.endpoint, ["--limit", "4"])
        #expect(begun.exitCode == 0, "\(begun.errors)")
        let manifest = FileManager.default.contents(atPath: campaign.ledger + "/manifest.json")

        let more = change.map {
            $0.hasPrefix("@") ? "\(campaign.directory.path)/\($0.dropFirst())" : $0
        }
        let resumed = try campaign.send(to: server.endpoint, ["--resume"] + more)
        #expect(resumed.exitCode == 2)
        #expect(resumed.errorLines.count == 1, "\(resumed.errors)")
        #expect(resumed.errors.contains("--ledger"), "\(resumed.errors)")
        #expect(resumed.errors.contains(name), "\(resumed.errors)")
        #expect(try server.answers().count == 4)
        #expect(
            FileManager.default.contents(atPath: campaign.ledger + "/manifest.json") == manifest)

        let right = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(right.exitCode == 0, "\(right.errors)")
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `A resume may change endpoint, connections, rate and key`() throws {
        let campaign = try Campaign(rows: 10)
        let first = try RecordingServer()
        #expect(try campaign.send(to: first.endpoint, ["--limit", "4"]).exitCode == 0)
        let second = try RecordingServer()
        let resumed = try campaign.send(
            to: "127.0.0.1:\(second.port)",
            [
                "--resume", "--connections", "3", "--rate", "1000", "--on-lost", "resend",
                "--key-id", "ZZZ123DEFG",
            ])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try first.answers().count == 4)
        #expect(try second.answers().count == 6)
    }

    @Test func `A resume with a list changed in a chunk in use is refused`() throws {
        let server = try RecordingServer("stall")
        let campaign = try Campaign(rows: 100)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--connections", "1"]),
            in: campaign.directory)
        try process.wait { try server.answerCount() >= 40 }
        process.send(signal: SIGKILL)
        _ = try process.wait()
        let other = DeviceTokens(seed: campaign.tokens.seed ^ 1, count: 100)
        try campaign.directory.write(other.list(), to: "tokens.txt")
        let resumed = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(resumed.exitCode == 2)
        #expect(resumed.errorLines.count == 1)
        #expect(resumed.errors.contains("list"), "\(resumed.errors)")
        #expect(try server.tally(other).total == 0)

        try campaign.directory.write(campaign.tokens.list(), to: "tokens.txt")
        let right = try campaign.send(to: server.endpoint, ["--resume", "--retry", "unknown"])
        #expect(right.exitCode == 0, "\(right.errors)")
        #expect(try campaign.statistics().accepted == 100)
    }

    @Test func `A resume with a list changed in a settled chunk is refused`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 100)
        #expect(try campaign.send(to: server.endpoint, ["--limit", "40"]).exitCode == 0)
        var list = campaign.tokens.list()
        list[65 * 3 + 20] ^= 1
        try campaign.directory.write(list, to: "tokens.txt")
        let resumed = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(resumed.exitCode == 2)
        #expect(resumed.errorLines.count == 1)
        #expect(resumed.errors.contains("on line 1 or later"), "\(resumed.errors)")
        #expect(try server.answers().count == 40)
    }
}
