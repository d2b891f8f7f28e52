import BroadsideTestSupport
import Foundation
import Testing

/// Provider tokens that grow old, on clocks that libfaketime turns.
@Suite(.timeLimit(.minutes(60)))
struct RenewalTests {
    /// The tokens that a server saw, in their order, without repetitions in a row.
    private func tokens(_ events: [RecordedEvent]) -> [String] {
        var found: [String] = []
        for fields in events.compactMap(\.fields) {
            guard let value = fields.first(where: { $0.name == "authorization" })?.value,
                value != found.last
            else { continue }
            found.append(value)
        }
        return found
    }

    /// `iat` of a token.
    private func issued(_ token: String) throws -> Int {
        let claims = try #require(token.split(separator: ".").dropFirst().first)
        var base64 = claims.replacing("-", with: "+").replacing("_", with: "/")
        while base64.count % 4 != 0 { base64.append("=") }
        let json = try JSONSerialization.jsonObject(
            with: try #require(Data(base64Encoded: String(base64))))
        return try #require((json as? [String: Any])?["iat"] as? Int)
    }

    @Test func `In the next window the run makes a new token and loses no row`() throws {
        let server = try RecordingServer(
            "plain", ["--detail", (1...2000).map(String.init).joined(separator: ",")])
        let campaign = try Campaign(rows: 1200)
        let offset = try campaign.directory.write(FakeTime.offset(inWindow: 600), to: "offset")
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "100", "--connections", "2"]),
            in: campaign.directory, environment: FakeTime.following(offset))
        try sending.wait { try server.answerCount() > 30 }
        let first = try #require(try tokens(server.eventsSoFar()).first)
        // In one step: the run reads the file all the time, and must not find it empty.
        let next = try campaign.directory.write(FakeTime.offset(inWindow: 2400), to: "next")
        #expect(rename(next, offset) == 0)
        try sending.wait {
            let latest = tokens(Array(try server.eventsSoFar().suffix(40)))
            return latest.count == 1 && latest != [first]
        }
        try campaign.hurry()
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let found = try tokens(server.events())
        let dates = try found.map(issued)
        // Two connections: what was in flight with the first may come behind the second.
        #expect(
            Set(found).count == 2 && Set(dates).count == 2, "\(dates)")
        #expect(dates.last == dates[0] + 1800 && dates[0] % 1800 == 0)
        let requests = try server.events().compactMap(\.fields)
        #expect(requests.count == 1200)
        #expect(Set(requests.map { $0.first { $0.name == ":path" }?.value }).count == 1200)
    }

    @Test func `A token of the last window that is called expired is renewed once`() throws {
        let campaign = try Campaign(rows: 5000)
        // Two minutes into a window the token is that of the one before: for the server it is 67 minutes
        // old, and this window's 37.
        let server = try LocalAPNs(clock: FakeTime.offset(inWindow: 120 + 2100))
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "3", "--reactors", "2"],
            environment: FakeTime.inWindow(120))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let journal = try server.finish()
        #expect(journal.contains { $0[6] == "ExpiredProviderToken" })
        let accepted = journal.filter { $0[5] == "200" }.map { $0[4] }
        #expect(accepted.count == 5000)
        #expect(Set(accepted).count == 5000)
        #expect(try campaign.statistics().accepted == 5000)
    }

    @Test func `Runs of one window use the same token, and none is stored`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 50)
        // What an earlier version left is taken away.
        let old = campaign.ledger + "/provider-token"
        for (number, second) in [400, 900, 1500, 1920, 2200].enumerated() {
            let sent = try campaign.send(
                to: server.endpoint,
                [
                    number == 0 ? "--resume-or-begin" : "--resume", "--limit", "\(number + 1)",
                    "--connections", "1",
                ],
                environment: FakeTime.inWindow(second))
            #expect(sent.exitCode == 0, "\(sent.errors)")
            #expect(!FileManager.default.fileExists(atPath: old))
            try "1 secret\n".write(toFile: old, atomically: false, encoding: .utf8)
        }
        let values = try server.events().compactMap(\.fields)
            .compactMap { $0.first { $0.name == "authorization" }?.value }
        try #require(values.count == 5)
        // From 2,100 s on the next window's is used.
        #expect(Set(values[..<4]).count == 1)
        #expect(values[4] != values[3])
        #expect(try issued(values[4]) == issued(values[3]) + 1800)
    }

    @Test func `A token of this window that is called expired points to the clock`() throws {
        let server = try LocalAPNs(clock: "+2h")
        let campaign = try Campaign(rows: 50)
        for more in [[], ["--resume"], ["--resume"]] {
            let sent = try campaign.send(to: server.endpoint, more)
            #expect(sent.exitCode == 4)
            #expect(sent.errors.contains("check the clock"), "\(sent.errors)")
        }
        #expect(try server.finish().allSatisfy { $0[6] == "ExpiredProviderToken" })
    }
}
