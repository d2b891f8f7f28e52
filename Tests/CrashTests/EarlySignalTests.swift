import BroadsideTestSupport
import Foundation
import Testing

/// Signals that come before the first row could be sent.
@Suite(.timeLimit(.minutes(60)))
struct EarlySignalTests {
    /// The keys of a summary that a run may not know.
    private struct Early: Decodable {
        var campaign: String?
        var outcome: String
        var accepted: Int
    }

    /// Runs the command with a SIGINT that waits from its first instruction on.
    private func interrupted(_ arguments: [String], _ campaign: Campaign) throws -> Finished {
        let start = """
            import os, signal, sys
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
            os.kill(os.getpid(), signal.SIGINT)
            os.execv(sys.argv[1], sys.argv[1:])
            """
        return try Subprocess(
            "python3", ["-c", start, try Broadside.path()] + arguments, in: campaign.directory
        ).wait(limit: 120)
    }

    @Test func `A signal before a shard's rows are found begins no campaign`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 30)
        let part = ["--shard", "2/2", "--summary", "-", "--progress", "auto"]
        let stopped = try interrupted(campaign.arguments(to: server.endpoint, part), campaign)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        let early = try JSONDecoder().decode(Early.self, from: Data(stopped.output.utf8))
        #expect(early.campaign == nil && early.outcome == "stopped" && early.accepted == 0)
        #expect(!stopped.errors.contains("campaign"), "\(stopped.errors)")
        #expect(
            stopped.errorLines == [
                "broadside: interrupted before the first row was sent: run the same command with --resume to continue"
            ])

        let resumed = try campaign.send(to: server.endpoint, part + ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        let whole = try SendSummary(json: resumed.output)
        #expect(whole.accepted == whole.rows && whole.accepted > 0)
        #expect(try server.tally(campaign.tokens).repeated == 0)
    }

    @Test func `A signal while a resume reads the ledger is exit 3 and loses nothing`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 30)
        #expect(try campaign.send(to: server.endpoint, ["--limit", "10"]).exitCode == 0)
        let resume = ["--resume", "--summary", "-"]
        let stopped = try interrupted(campaign.arguments(to: server.endpoint, resume), campaign)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        let early = try SendSummary(json: stopped.output)
        #expect(early.outcome == "stopped" && early.accepted == 10)
        let resumed = try campaign.send(to: server.endpoint, resume)
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        let whole = try SendSummary(json: resumed.output)
        #expect(whole.accepted == 30 && whole.campaign == early.campaign)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `A signal while a night reads its ledger names the command that continues it`()
        throws
    {
        let server = try RecordingServer()
        let nights = try Nights(rows: 60, endpoint: server.endpoint)
        let begun = try nights.start(["--rate", "2"])
        try begun.wait { try server.answerCount() > 0 }
        begun.send(signal: SIGTERM)
        #expect(try begun.wait().exitCode == 3)
        let date = try #require(nights.notes().first?.prefix(10))
        let stopped = try interrupted(nights.arguments(), nights.campaign)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(
            stopped.errorLines.last
                == "broadside: the night of \(date) was interrupted: run the same command with "
                + "--date \(date) to continue", "\(stopped.errors)")
        let continued = try nights.run(["--date", String(date)])
        #expect(continued.exitCode == 0, "\(continued.errors)")
        #expect(try server.tally(nights.campaign.tokens).isExact)
    }

    @Test(arguments: [false, true])
    func `A signal while standard input is copied is exit 3 and leaves no partial list`(
        resumes: Bool
    ) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 40)
        let pipe = campaign.directory.fresh("pipe")
        #expect(mkfifo(pipe, 0o600) == 0)
        // For reading too, so that nobody waits for another end, and the pipe does not end.
        let descriptor = open(pipe, O_RDWR | O_CLOEXEC)
        defer { close(descriptor) }
        let half = Array(campaign.tokens.list().prefix(700))
        #expect(write(descriptor, half, half.count) == half.count)
        let arguments = campaign.arguments(
            to: server.endpoint,
            ["--tokens", "-", "--summary", "-"] + (resumes ? ["--resume-or-begin"] : []))
        if resumes {
            // What a run that was killed before its campaign stood has left.
            try FileManager.default.createDirectory(
                atPath: campaign.ledger, withIntermediateDirectories: false,
                attributes: [.posixPermissions: 0o700])
            try Data().write(to: URL(fileURLWithPath: campaign.ledger + "/lock"))
        }
        let process = try Broadside.start(arguments, in: campaign.directory, input: pipe)
        try process.wait {
            let size =
                try? FileManager.default
                .attributesOfItem(atPath: campaign.ledger + "/.tokens.new")[.size] as? Int
            return size ?? nil == half.count
        }
        process.send(signal: SIGINT)
        let stopped = try process.wait(limit: 120)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(stopped.errors.contains("before the whole list was read"))
        let early = try JSONDecoder().decode(Early.self, from: Data(stopped.output.utf8))
        #expect(early.campaign == nil && early.outcome == "stopped")
        let left = try? campaign.directory.names(in: campaign.ledger)
        #expect(left == (resumes ? ["lock"] : nil))

        let file = campaign.list
        let again = try Broadside.run(arguments, in: campaign.directory, input: file)
        #expect(again.exitCode == 0, "\(again.errors)")
        #expect(try server.tally(campaign.tokens).isExact)
    }
}
