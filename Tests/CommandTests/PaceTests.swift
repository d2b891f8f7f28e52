import BroadsideTestSupport
import Testing

/// `--pace`: answers that slow down under load.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct PaceTests {
    /// A connection that carries 100 answers a second, however many requests wait: with all 300
    /// streams in use each answer takes three seconds. So long that a busy machine's pauses are
    /// short beside it.
    private static let scenario =
        "{ latency: { value: '5ms', capacity: 100, capacity_by: 'connection' } }"

    /// The run's log; everything is sent, each row once.
    private func send(_ pace: String, rows: Int) throws -> String {
        let directory = try TemporaryDirectory()
        let scenario = try directory.write(Self.scenario, to: "slow.json5")
        let server = try LocalAPNs(["--max-streams", "300", "--scenario", scenario])
        let campaign = try Campaign(rows: rows)
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--connections", "1", "--summary", "-", "--log", "text", "--pace", pace,
                "--request-timeout", "2m",
            ], limit: 200)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == rows)
        let requests = try server.finish()
        #expect(Set(requests.map { $0[4] }).count == rows && requests.count == rows)
        return sent.errors
    }

    @Test func `A connection whose responses slow down gets fewer requests in flight`() throws {
        let log = try send("adaptive", rows: 2000)
        #expect(log.contains("responses slow down under load"), "\(log)")
        #expect(log.contains("with 300 in flight: limited to"), "\(log)")
    }

    @Test func `A fixed number of requests in flight is not lowered by slow responses`() throws {
        let log = try send("fixed", rows: 2000)
        #expect(!log.contains("responses slow down"), "\(log)")
    }
}
