import BroadsideTestSupport
import Foundation
import Testing

/// Guards and refusals in campaigns whose waves one process sends, an hour each second.
@Suite(.timeLimit(.minutes(60)))
struct WaveGuardTests {
    /// Zones in which nine o'clock is an hour later each, the first at midnight in UTC.
    private static func zone(_ hour: Int) -> String { "Etc/GMT-\(9 - hour)" }

    /// Starts shortly before midnight.
    private static func send(
        _ campaign: Campaign, to endpoint: String, _ more: [String]
    ) throws -> Finished {
        func day(_ days: Int) -> String {
            Date(timeIntervalSinceNow: Double(days) * 86_400)
                .formatted(.iso8601.year().month().day())
        }
        var environment = try FakeTime.fixed("+0")
        environment["FAKETIME"] = "@\(day(1)) 23:59:00 x3600"
        environment["TZ"] = "UTC"
        let directory = campaign.directory
        return try Broadside.run(
            campaign.arguments(
                to: endpoint,
                [
                    "--tokens", "\(directory.path)/list.csv", "--zone-column", "tz",
                    "--deliver-at", "09:00", "--on", day(2),
                ] + more), in: directory, environment: environment)
    }

    @Test func `Waves of bad tokens only are stopped after --abort-after rows of all waves`() throws
    {
        let server = try RecordingServer(
            "reason", ["--status", "400", "--reason", "BadDeviceToken"])
        let campaign = try Campaign(zones: (0..<80).map { Self.zone($0 / 20) })
        let sent = try Self.send(campaign, to: server.endpoint, ["--abort-after", "50"])
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
        let sent = try Self.send(
            campaign, to: server.endpoint, ["--topic", "{{app}}", "--abort-after", "5"])
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
