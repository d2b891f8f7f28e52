import BroadsideTestSupport
import Foundation
import Testing

/// A server that falls silent in the middle of a burst, while the run waits for several connections'
/// answers to come together (`CompletionBatching`): that wait is in vain once, and then no more.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct SilentBurstTests {
    private static let connections = 4

    /// How often the threads of a process have gone to sleep so far.
    private func sleeps(of process: pid_t) throws -> Int {
        let tasks = "/proc/\(process)/task"
        return try FileManager.default.contentsOfDirectory(atPath: tasks).reduce(0) { sum, task in
            let status = try String(contentsOfFile: "\(tasks)/\(task)/status", encoding: .utf8)
            let line = status.split(separator: "\n").first {
                $0.hasPrefix("voluntary_ctxt_switches:")
            }
            return try sum + #require(line.flatMap { Int($0.split(separator: "\t")[1]) })
        }
    }

    @Test func `A silent burst costs few turns and loses no row`() throws {
        let server = try RecordingServer(
            "silent-in-burst", ["--setting", "3=4"], script: "trouble.py")
        let campaign = try Campaign(rows: 6000)
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--connections", "\(Self.connections)", "--reactors", "1", "--pace", "fixed",
                    "--request-timeout", "200s", "--give-up-after", "200s", "--summary", "-",
                ]), in: campaign.directory)
        // Everything that the server lets come has come, and it says nothing.
        var looks = 0
        while try server.answerCount() < Self.connections * (150 + 1000), looks < 600 {
            guard process.isRunning else {
                Issue.record("ended early: \(try process.wait().errors)")
                return
            }
            looks += 1
            usleep(200_000)
        }
        let (before, start) = (try sleeps(of: process.identifier), ContinuousClock.now)
        usleep(1_000_000)
        let slept = try sleeps(of: process.identifier) - before
        let seconds = (ContinuousClock.now - start) / .seconds(1)
        // Timers are looked at twenty times a second; a wait for company is a millisecond at most.
        #expect(Double(slept) < 200 * seconds, "\(slept) times in \(seconds) s")

        try server.goOn()
        let sent = try process.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try SendSummary(json: sent.output).accepted == 6000)
        let taken = try server.tally(campaign.tokens)
        #expect(taken.missing == 0 && taken.repeated == 0 && taken.strangers == 0, "\(taken)")
    }
}
