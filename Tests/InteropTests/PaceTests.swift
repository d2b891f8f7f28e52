import Foundation
import TestSupport
import Testing

/// `--pace`: answers that slow down under load.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct PaceTests {
    /// Two connections that carry 400 answers a second each, however many requests wait: with
    /// all 300 streams in use each answer takes 750 ms.
    private static let scenario =
        "{ latency: { value: '5ms', capacity: 400, capacity_by: 'connection' } }"

    private func send(_ pace: String, _ more: [String] = []) throws -> (
        summary: SendSummary, json: [String: Any], log: String
    ) {
        let directory = try TemporaryDirectory()
        let scenario = try directory.write(Self.scenario, to: "slow.json5")
        let server = try LocalAPNs(["--max-streams", "300", "--scenario", scenario])
        let campaign = try Campaign(rows: 6000)
        let sent = try campaign.send(
            to: server.endpoint,
            ["--connections", "2", "--summary", "-", "--log", "text", "--pace", pace] + more,
            limit: 120)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == 6000)
        let requests = try server.finish()
        #expect(requests.count == 6000)
        let json = try JSONSerialization.jsonObject(with: Data(sent.output.utf8))
        return (summary, json as? [String: Any] ?? [:], sent.errors)
    }

    private func median(_ json: [String: Any]) throws -> Double {
        let latency = try #require(json["latency_ms"] as? [String: Any])
        return try #require(latency["p50"] as? Double)
    }

    @Test("A connection whose answers slow down is held to fewer requests in flight")
    func adaptive() throws {
        let adaptive = try send("adaptive")
        #expect(adaptive.log.contains("answers slow down under load"), "\(adaptive.log)")
        #expect(adaptive.log.contains("with 300 in flight: held to"), "\(adaptive.log)")
        let fixed = try send("fixed")
        #expect(!fixed.log.contains("answers slow down"), "\(fixed.log)")
        // 750 ms by the server's own clock, whatever else the machine does.
        #expect(try median(fixed.json) > 600)
        #expect(try median(adaptive.json) < median(fixed.json) / 2)
        let limits = try #require(adaptive.json["limited_by"] as? [String: Double])
        #expect(limits["streams", default: 0] > 0.5, "\(limits)")
    }
}
