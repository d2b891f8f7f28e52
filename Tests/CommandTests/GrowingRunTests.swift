import BroadsideTestSupport
import Foundation
import Testing

/// A run that chooses its connections while it goes on, against the simulator.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct GrowingRunTests {
    private struct Told: Decodable {
        var connections: Int
    }

    /// With ten streams a connection and 50 ms to an answer, 40,000 rows take four connections 50
    /// seconds: the run sees what it lacks, opens more, and is stopped once they are there.
    @Test(arguments: [1, 2])
    func `A run limited by its connections' streams opens more connections`(reactors: Int) throws {
        let server = try LocalAPNs(["--latency", "50ms", "--max-streams", "10"])
        let campaign = try Campaign(rows: 40_000)
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                ["--reactors", "\(reactors)", "--log", "json", "--summary", "-"]),
            in: campaign.directory)
        func said(_ text: String) throws -> Int {
            let log = try String(contentsOfFile: process.errorsPath, encoding: .utf8)
            return log.components(separatedBy: text).count - 1
        }
        try process.wait(limit: 200) { try said("\"connection-open\"") >= 8 }
        #expect(try said("from 4 to 8 connections") == 1)
        process.send(signal: SIGINT)
        let stopped = try process.wait(limit: 120)
        #expect(stopped.exitCode == 3 || stopped.exitCode == 0, "\(stopped.errors)")

        let summary = try SendSummary(json: stopped.output)
        let told = try JSONDecoder().decode(Told.self, from: Data(stopped.output.utf8))
        #expect(told.connections >= 8 && told.connections <= 64)
        // Those that are new took nobody's place.
        #expect(summary.reconnects == 0 && summary.unknown == 0)
        let lines = try server.finish()
        #expect(Set(lines.map { $0[1] }).count > 4)
        #expect(Set(lines.map { $0[4] }).count == lines.count)
        #expect(lines.count == summary.accepted)
    }

    @Test func `--connections fixes their number, and a short list opens no more`() throws {
        let server = try LocalAPNs(["--latency", "20ms", "--max-streams", "2"])
        for (rows, more, connections) in [(900, [], 1), (3000, ["--connections", "5"], 5)] {
            let campaign = try Campaign(rows: rows)
            let sent = try campaign.send(
                to: server.endpoint, more + ["--log", "json", "--summary", "-"])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let told = try JSONDecoder().decode(Told.self, from: Data(sent.output.utf8))
            #expect(told.connections == connections)
            #expect(!sent.errors.contains("\"growth\""))
        }
    }
}
