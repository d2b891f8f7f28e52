import BroadsideTestSupport
import Foundation
import Testing

/// A reader of standard output that goes away is not a failure; output that is lost otherwise is one.
@Suite(.timeLimit(.minutes(60)))
struct ClosedOutputTests {
    /// Runs it with a standard output that nobody reads any more.
    static let closed = """
        import os, signal, sys
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        reading, writing = os.pipe()
        os.close(reading)
        os.dup2(writing, 1)
        os.execv(sys.argv[1], sys.argv[1:])
        """
    /// Runs it with a standard output on a disk that is full.
    static let full = """
        import os, sys
        os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
        os.execv(sys.argv[1], sys.argv[1:])
        """

    private func run(_ script: String, _ arguments: [String], _ campaign: Campaign) throws
        -> Finished
    {
        try Subprocess(
            "python3", ["-c", script, Broadside.path()] + arguments, in: campaign.directory
        ).wait(limit: 120)
    }

    /// Every command that writes to standard output; `@` stands for the campaign's directory.
    static let commands: [[String]] = [
        ["--version"], ["help"], ["help", "send"], ["send", "--help"], ["ledger", "-h"],
        ["help", "--man", "send"], ["help", "--markdown"], ["help", "--completion", "bash"],
        ["ledger", "stats", "--ledger", "@/ledger"],
        ["ledger", "stats", "--json", "--ledger", "@/ledger"],
        ["ledger", "verify", "--ledger", "@/ledger"], ["ledger", "export", "--ledger", "@/ledger"],
        ["ledger", "export", "--format", "jsonl", "--output", "-", "--ledger", "@/ledger"],
        ["ledger", "export", "--follow", "--ledger", "@/ledger"],
        ["ledger", "find", "--ledger", "@/ledger", "--token", "TOKEN"],
        ["ledger", "merge", "--output", "@/merged-%", "@/ledger"],
        ["report", "--ledger", "@/ledger"], ["report", "--all", "@/ledger"],
        ["tokens", "check", "--tokens", "@/tokens.txt"],
        ["tokens", "check", "--json", "--tokens", "@/tokens.txt"],
        ["payload", "check", "--payload", "@/payload.json"],
        ["payload", "check", "--json", "--payload", "@/payload.json"],
        ["send", "--dry-run", "--resume"], ["send", "--print-campaign"],
        ["send", "--resume", "--summary", "-"],
        ["simulate", "--scenario", "list"],
    ]

    private func words(_ command: [String], _ campaign: Campaign, _ number: Int) -> [String] {
        var words = command.map {
            $0.replacingOccurrences(of: "@", with: campaign.directory.path)
                .replacingOccurrences(of: "%", with: "\(number)")
                .replacingOccurrences(of: "TOKEN", with: campaign.tokens.token(7))
        }
        // Nothing is connected where all is settled.
        if words[0] == "send", !words.contains("--help") {
            words =
                campaign.arguments(to: "localhost:1", ["--shard", "1/1"]) + words.dropFirst()
        }
        return words
    }

    private func settled(rows: Int) throws -> Campaign {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: rows)
        let sent = try campaign.send(to: server.endpoint, ["--shard", "1/1"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        return campaign
    }

    @Test
    func `A closed pipe ends every command silently with 0, and a full disk with exit 5`() throws {
        let campaign = try settled(rows: 3000)
        for (number, command) in Self.commands.enumerated() {
            let words = words(command, campaign, number)
            let closed = try run(Self.closed, words, campaign)
            #expect(closed.exitCode == 0, "\(command): \(closed.errors)")
            #expect(!closed.errors.contains("broadside: "), "\(command): \(closed.errors)")
            let full = try run(
                Self.full, self.words(command, campaign, number + Self.commands.count), campaign)
            #expect(full.exitCode == 5, "\(command): \(full.errors)")
            // What a resume of a finished ledger always says comes before.
            let lines = full.errorLines.filter { !$0.hasSuffix("is finished: nothing is sent") }
            #expect(lines.count == 1, "\(command): \(full.errors)")
            #expect(full.errors.contains("broadside: "), "\(command): \(full.errors)")
        }
        #expect(try campaign.ledger("verify").exitCode == 0)
    }

    @Test
    func `A summary into a closed pipe changes neither exit code nor messages of a run`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 60)
        let more = ["--summary", "-"]
        let stopped = try run(
            Self.closed, campaign.arguments(to: server.endpoint, more + ["--deadline", "0s"]),
            campaign)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        let whole = try run(
            Self.closed, campaign.arguments(to: server.endpoint, more + ["--resume"]), campaign)
        #expect(whole.exitCode == 0 && whole.errors.isEmpty, "\(whole.errors)")
        #expect(try campaign.statistics().accepted == 60)
    }
}
