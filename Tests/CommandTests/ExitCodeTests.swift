import BroadsideTestSupport
import Foundation
import Testing

/// What scripts go by: 3, 6 and 7 apart, and whether a campaign may be begun.
@Suite(.timeLimit(.minutes(60)))
struct ExitCodeTests {
    /// A run, and what its exit code has to be at once and where it is resumed as it is.
    struct Ending: Sendable, CustomTestStringConvertible {
        var testDescription: String
        /// Behaviour of the recording server.
        var server: String
        var more: [String]
        var code: Int32
        var outcome: String
        /// Of a resume that asks for nothing more.
        var resumed: Int32

        init(
            _ name: String, _ server: String, _ more: [String] = [], code: Int32,
            outcome: String, resumed: Int32
        ) {
            (testDescription, self.server, self.more) = (name, server, more)
            (self.code, self.outcome, self.resumed) = (code, outcome, resumed)
        }
    }

    static let endings: [Ending] = [
        .init("all accepted", "plain", code: 0, outcome: "complete", resumed: 0),
        .init("answers lost", "reset", code: 6, outcome: "complete", resumed: 6),
        .init(
            "no answer in time", "stall", ["--request-timeout", "1s"], code: 6,
            outcome: "complete", resumed: 6),
        .init(
            "the deadline has passed", "plain", ["--deadline", "0s"], code: 3, outcome: "stopped",
            resumed: 0),
    ]

    @Test(arguments: endings)
    func `Remaining rows are exit 3, and failed or unknown ones exit 6`(ending: Ending) throws {
        let server = try RecordingServer(ending.server)
        let campaign = try Campaign(rows: 60)
        let options = ["--connections", "1", "--summary", "-"]
        let sent = try campaign.send(to: server.endpoint, options + ending.more)
        #expect(sent.exitCode == ending.code, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.outcome == ending.outcome)
        #expect((summary.remaining != 0) == (ending.code == 3), "\(summary)")
        #expect((summary.failed + summary.unknown > 0) == (ending.code == 6), "\(summary)")
        let resumed = try campaign.send(to: server.endpoint, options + ["--resume"])
        #expect(resumed.exitCode == ending.resumed, "\(resumed.errors)")
    }

    @Test func `A message about one row says row`() throws {
        let server = try RecordingServer("lost")
        let campaign = try Campaign(rows: 1)
        let sent = try campaign.send(to: server.endpoint, ["--connections", "1"])
        #expect(sent.exitCode == 6)
        #expect(sent.errors.contains("broadside: 1 row is unknown: --resume --retry unknown"))
    }

    @Test
    func `A finished probe with unknown rows prunes, and an unfinished one does not`() throws {
        for (behaviour, more, code) in [
            ("reset", [], 6), ("plain", ["--deadline", "0s"], 3),
        ] as [(String, [String], Int32)] {
            let server = try RecordingServer(behaviour)
            let campaign = try Campaign(rows: 60)
            let output = "\(campaign.directory.path)/clean.txt"
            var arguments = campaign.arguments(
                to: server.endpoint, ["--connections", "1", "--then-prune", output] + more,
                without: ["payload"])
            arguments[0] = "probe"
            let probed = try Broadside.run(arguments, in: campaign.directory)
            #expect(probed.exitCode == code, "\(probed.errors)")
            let clean = try? String(contentsOfFile: output, encoding: .utf8)
            let list = try String(contentsOfFile: campaign.list, encoding: .utf8)
            #expect(clean == (code == 6 ? list : nil), "\(probed.errors)")
        }
    }

    @Test func `Every command that writes or copies a ledger in use is exit 7`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 5)
        let one = ["--shard", "1/1"]
        #expect(try campaign.send(to: server.endpoint, one).exitCode == 0)
        let lock = open("\(campaign.ledger)/lock", O_RDWR | O_CLOEXEC)
        #expect(lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0)
        defer { close(lock) }
        var probe = campaign.arguments(
            to: server.endpoint, one + ["--resume"], without: ["payload"])
        probe[0] = "probe"
        let merged = "\(campaign.directory.path)/merged"
        for arguments in [
            campaign.arguments(to: server.endpoint, one + ["--resume"]),
            campaign.arguments(to: server.endpoint, one + ["--must-resume"]),
            probe, ["ledger", "merge", "--output", merged, campaign.ledger],
        ] {
            let refused = try Broadside.run(arguments, in: campaign.directory)
            #expect(refused.exitCode == 7, "\(arguments[0]): \(refused.errors)")
            #expect(refused.errorLines.count == 1, "\(refused.errors)")
            #expect(refused.errors.contains("in use by another process"), "\(refused.errors)")
        }
        #expect(!FileManager.default.fileExists(atPath: merged))
        #expect(try campaign.ledger("verify").exitCode == 0)
        flock(lock, LOCK_UN)
        #expect(try campaign.send(to: server.endpoint, one + ["--must-resume"]).exitCode == 0)
    }

    @Test func `--must-resume continues a ledger and refuses to begin one`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 60)
        let stopped = try campaign.send(to: server.endpoint, ["--deadline", "0s"])
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        let whole = try campaign.send(to: server.endpoint, ["--must-resume"])
        #expect(whole.exitCode == 0, "\(whole.errors)")
        try FileManager.default.removeItem(atPath: campaign.ledger)
        let lost = try campaign.send(to: server.endpoint, ["--must-resume", "--resume"])
        #expect(lost.exitCode == 2, "\(lost.errors)")
        let taken = try server.tally(campaign.tokens)
        #expect(taken.total == 60 && taken.repeated == 0)
    }
}
