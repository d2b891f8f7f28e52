import Foundation
import TestSupport
import Testing

/// Provider tokens that grow old, on clocks that libfaketime turns.
@Suite(.timeLimit(.minutes(60)))
struct RenewalTests {
    /// When the kept token was made, seconds since 1970.
    private func issued(_ campaign: Campaign) throws -> Int {
        let file = campaign.ledger + "/provider-token"
        let attributes = try FileManager.default.attributesOfItem(atPath: file)
        #expect(attributes[.posixPermissions] as? Int == 0o600)
        let line = try String(contentsOfFile: file, encoding: .utf8)
        return try #require(Int(line.prefix { $0 != " " }))
    }

    @Test("After 45 minutes there is a new token, kept; nothing pauses, is lost or doubled")
    func byAge() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 9000)
        let offset = try campaign.directory.write("+0", to: "offset")
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "3000", "--connections", "2"]),
            in: campaign.directory, environment: FakeTime.following(offset))
        // Once the token lies there its making is past.
        let file = campaign.ledger + "/provider-token"
        try sending.wait { FileManager.default.fileExists(atPath: file) }
        usleep(500_000)
        let first = try issued(campaign)
        try campaign.directory.write("+46m", to: "offset")
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let second = try issued(campaign)
        #expect(second - first >= 45 * 60, "\(second - first)")
        let journal = try server.finish()
        #expect(journal.count == 9000)
        #expect(Set(journal.map { $0[4] }).count == 9000)
        #expect(journal.allSatisfy { $0[5] == "200" })
        // Both connections carried it to the end: a renewal needs no other.
        #expect(Set(journal.map { $0[1] }).count == 2)
    }

    @Test("Called expired, it is renewed once for the whole run")
    func expired() throws {
        let campaign = try Campaign(rows: 5000)
        let early = try LocalAPNs()
        let begun = try campaign.send(to: early.endpoint, ["--limit", "10"])
        #expect(begun.exitCode == 0, "\(begun.errors)")
        let first = try issued(campaign)
        // For this one the token is 65 minutes old, and a new one 40.
        let server = try LocalAPNs(clock: "+65m")
        let sent = try campaign.send(
            to: server.endpoint, ["--resume", "--connections", "3", "--reactors", "2"],
            environment: FakeTime.fixed("+25m"))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let second = try issued(campaign)
        #expect(second - first >= 25 * 60)
        let journal = try server.finish()
        #expect(journal.contains { $0[6] == "ExpiredProviderToken" })
        let accepted = journal.filter { $0[5] == "200" }.map { $0[4] }
        #expect(accepted.count == 4990)
        #expect(Set(accepted).count == 4990)
        #expect(try campaign.statistics().accepted == 5000)
    }

    @Test("A resume uses the token again below 40 minutes of age, however it is ended")
    func resumes() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 50)
        var made: [Int] = []
        for (number, clock) in ["+0m", "+19m", "+39m", "+41m", "+50m", "+79m"].enumerated() {
            let sent = try campaign.send(
                to: server.endpoint, ["--resume", "--limit", "\(number + 1)"],
                environment: FakeTime.fixed(clock))
            #expect(sent.exitCode == 0, "\(sent.errors)")
            made.append(try issued(campaign))
        }
        // Made at once and again after 41 minutes.
        #expect(Set(made).count == 2)
        #expect(made[2] == made[0])
        #expect(made[3] != made[0])
        #expect(made[5] == made[3])
    }

    @Test("A fresh token that is called expired: the clock is wrong, and no other is made")
    func clock() throws {
        let server = try LocalAPNs(clock: "+2h")
        let campaign = try Campaign(rows: 50)
        var kept: Set<String> = []
        for more in [[], ["--resume"], ["--resume"]] {
            let sent = try campaign.send(to: server.endpoint, more)
            #expect(sent.exitCode == 4)
            #expect(sent.errors.contains("check the clock"), "\(sent.errors)")
            kept.insert(
                try String(contentsOfFile: campaign.ledger + "/provider-token", encoding: .utf8))
        }
        // Another one of the same second would have another signature.
        #expect(kept.count == 1 && kept.first?.split(separator: "\n").count == 1)
        #expect(try issued(campaign) > 0)
        #expect(try server.finish().allSatisfy { $0[6] == "ExpiredProviderToken" })
    }
}
