import BroadsideTestSupport
import Foundation
import Testing

/// Guards and refusals in campaigns whose waves one process sends.
@Suite(.timeLimit(.minutes(60)))
struct WaveGuardTests {
    /// Zones in which nine o'clock is an hour later each, the first at midnight in UTC.
    private static func zone(_ hour: Int) -> String { "Etc/GMT-\(9 - hour)" }

    /// The arguments of a send whose first wave is due when day 2 begins.
    private static func arguments(
        _ campaign: Campaign, to endpoint: String, _ more: [String]
    ) -> [String] {
        campaign.arguments(
            to: endpoint,
            [
                "--tokens", "\(campaign.directory.path)/list.csv", "--zone-column", "tz",
                "--deliver-at", "09:00", "--on", FakeTime.date(2),
            ] + more)
    }

    @Test func `Waves of bad tokens only are stopped after --abort-after rows of all waves`() throws
    {
        let server = try RecordingServer(
            "reason", ["--status", "400", "--reason", "BadDeviceToken"])
        let campaign = try Campaign(zones: (0..<80).map { Self.zone($0 / 20) })
        // An hour each second, from shortly before midnight.
        var environment = try FakeTime.fixed("@\(FakeTime.date(1)) 23:59:00 x3600")
        environment["TZ"] = "UTC"
        let sent = try Broadside.run(
            Self.arguments(campaign, to: server.endpoint, ["--abort-after", "50"]),
            in: campaign.directory, environment: environment)
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(sent.errors.contains("none of the first tokens"), "\(sent.errors)")
        let rejected = try campaign.statistics().rejected
        #expect(rejected == 50)
    }

    @Test func `A topic that is stopped in a wave does not end the waves of other topics`() throws {
        let (bad, good) = ("com.example.bad", "com.example.good")
        let server = try RecordingServer(
            "topics", ["--refuse", "\(bad)=400:DeviceTokenNotForTopic"], script: "topics.py")
        let campaign = try Campaign(rows: 60)
        let tokens = try String(contentsOfFile: campaign.list, encoding: .utf8)
            .split(separator: "\n")
        let rows = tokens.enumerated().map { index, token in
            let topic = index % 2 == 0 ? bad : good
            return "\(token),\(Self.zone(index / 20)),\(topic)\n"
        }
        _ = try campaign.directory.write("token,tz,app\n" + rows.joined(), to: "list.csv")
        // Each wave becomes due once all rows before it that are sent have responses.
        let clock = "\(campaign.directory.path)/clock"
        func setClock(_ day: Int, _ time: String) throws {
            let offset = try #require(FakeTime.at(day, time)["FAKETIME"])
            try offset.write(toFile: clock, atomically: true, encoding: .utf8)
        }
        try setClock(1, "23:59")
        let sending = try Broadside.start(
            Self.arguments(
                campaign, to: server.endpoint, ["--topic", "{{app}}", "--abort-after", "5"]),
            in: campaign.directory,
            environment: FakeTime.following(clock).merging(["TZ": "UTC"]) { $1 })
        defer { sending.stop() }
        try sending.wait { FileManager.default.fileExists(atPath: "\(campaign.ledger)/control") }
        for wave in 0..<2 {
            try setClock(2, "0\(wave):05")
            try sending.wait {
                let counts = try? campaign.statistics()
                return counts?.accepted == 10 * (wave + 1) && counts?.rejected == 10
            }
        }
        try setClock(2, "02:05")
        let sent = try sending.wait(limit: 120)
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(sent.errors.contains(bad) && !sent.errors.contains(good), "\(sent.errors)")
        let responses = try server.events().compactMap(\.action)
        #expect(responses.count { $0 == "\(good) 200" } == 30, "\(responses)")
        #expect(
            responses.count { $0 == "\(bad) 400" } == 10, "those of the first wave: \(responses)")
        let counts = try campaign.statistics()
        #expect(counts.accepted == 30 && counts.rejected == 10 && counts.remaining == 20)
    }
}
