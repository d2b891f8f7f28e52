import BroadsideTestSupport
import Foundation
import Testing

/// Rehearsals of a campaign, with a server that is not Apple's, in the campaign's own ledger.
@Suite(.timeLimit(.minutes(60)))
struct RehearsalTests {
    private let server: RecordingServer

    init() throws { server = try RecordingServer() }

    @Test func `A night that a stopped rehearsal began is not continued at Apple`() throws {
        let nights = try Nights(rows: 300, endpoint: server.endpoint)
        let stopped = try nights.runCutShort(at: (1, "20:00"))
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        let rows = try nights.statistics(1).accepted
        try #require(rows > 1 && rows < 300)
        for more in [["--dry-run"], ["--yes"]] {
            let refused = try nights.run(
                ["--endpoint", "api.push.apple.com"] + more, at: (1, "20:05"))
            #expect(refused.exitCode == 2, "\(refused.errors)")
            for words in [
                "has sent, or may have sent, \(rows) rows to \(server.endpoint), but this start goes to "
                    + "api.push.apple.com:443, so nothing is sent",
                "with --name NAME, which goes to the whole list;",
                "continue with --endpoint \(server.endpoint)",
            ] { #expect(refused.errors.contains(words), "\(words): \(refused.errors)") }
        }
        // From one relay to another, the night continues.
        let relay = try nights.run(["--endpoint", "127.0.0.1:1", "--dry-run"], at: (1, "20:05"))
        #expect(relay.exitCode == 0, "\(relay.errors)")
        #expect(
            relay.errors.contains(
                "warning: \(rows) rows went to \(server.endpoint) in earlier runs, and are not sent "
                    + "again: if that was a rehearsal, stop this start"), "\(relay.errors)")
        let same = try nights.run(at: (1, "20:05"))
        #expect(same.exitCode == 0, "\(same.errors)")
        #expect(!same.errors.contains("earlier runs"), "\(same.errors)")
        #expect(try server.answers().count == 300)
    }

    @Test func `A resume at another server warns of the rows that it does not send again`() throws {
        let campaign = try Campaign(rows: 20)
        let rehearsal = try campaign.send(to: server.endpoint, ["--limit", "5"])
        #expect(rehearsal.exitCode == 0, "\(rehearsal.errors)")
        let words =
            "warning: 5 rows went to \(server.endpoint) in earlier runs, and are not sent again: if "
            + "that was a rehearsal, begin a new ledger"
        let looked = try campaign.send(
            to: "api.push.apple.com", ["--resume", "--dry-run"])
        #expect(looked.exitCode == 0, "\(looked.errors)")
        #expect(looked.errors.contains(words), "\(looked.errors)")
        let unreachable = try campaign.send(
            to: "127.0.0.1:1", ["--resume", "--give-up-after", "1s"])
        #expect(unreachable.exitCode != 0)
        #expect(unreachable.errors.contains(words), "\(unreachable.errors)")
        let resumed = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(!resumed.errors.contains("earlier runs"), "\(resumed.errors)")
        #expect(try server.answers().count == 20)
    }
}
