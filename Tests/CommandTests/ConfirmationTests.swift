import Foundation
import TestSupport
import Testing

/// A person at a terminal is asked before anything goes to Apple's production.
@Suite(.timeLimit(.minutes(60)))
struct ConfirmationTests {
    /// Runs a command on a terminal of its own and types an answer.
    private static let typing = """
        import os, pty, sys
        child, terminal = pty.fork()
        if child == 0:
            os.execv(sys.argv[2], sys.argv[2:])
        os.write(terminal, sys.argv[1].encode() + b"\\n")
        said = b""
        try:
            while chunk := os.read(terminal, 4096):
                said += chunk
        except OSError:
            pass
        sys.stdout.buffer.write(said)
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """

    /// Types an answer to a run of three rows; `more` options follow.
    private func answer(
        _ answer: String, _ command: String, _ campaign: Campaign, _ more: [String] = []
    ) throws -> Finished {
        let options = campaign.arguments(
            to: "x", more,
            without: command == "probe"
                ? ["endpoint", "ca-file", "payload"] : ["endpoint", "ca-file"]
        ).dropFirst()
        let asked = try Subprocess(
            "python3", ["-c", Self.typing, answer, Broadside.path(), command] + options,
            in: campaign.directory)
        return try asked.wait(limit: 60)
    }

    @Test(
        "send and probe ask for the number of devices, and anything else ends them",
        arguments: ["send", "probe"])
    func asks(_ command: String) throws {
        let campaign = try Campaign(rows: 3)
        for typed in ["no", "", "yes", "4", "33", "-3"] {
            let finished = try answer(typed, command, campaign)
            #expect(finished.exitCode == 2, "\(typed): \(finished.output)")
            #expect(finished.output.contains("3 devices of Apple's production"))
            #expect(finished.output.contains("api.push.apple.com:443 (Apple, production)"))
            #expect(finished.output.contains("nothing was sent"))
            #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        }
    }

    /// The only address that is connected is a port of this machine on which nothing listens.
    @Test("The number of devices goes ahead; a file that is too long, or too short, is seen before")
    func confirms() throws {
        let proxy = ["--proxy", "http://127.0.0.1:1", "--give-up-after", "1s"]
        for (rows, typed) in [(3, "3"), (12_345, "12,345"), (12_345, "12345")] {
            let campaign = try Campaign(rows: rows)
            let finished = try answer(typed, "send", campaign, proxy)
            #expect(finished.exitCode == 1, "\(finished.output)")
            #expect(FileManager.default.fileExists(atPath: campaign.ledger))
            for words in [
                "tokens.txt", "rows         \(rows == 3 ? "3" : "12,345")",
                "signing key \(Campaign.keyID)", "topic        \(Campaign.topic)",
                "alert        Broadside / Hello", "no rate limit", "ledger \(campaign.ledger)",
            ] {
                #expect(
                    finished.output.replacing("\r\n             ", with: " ").contains(words),
                    "\(words): \(finished.output)")
            }
        }
    }

    @Test("Of a compressed list the number is an estimate, and says so")
    func estimates() throws {
        let campaign = try Campaign(rows: 1)
        let list = "\(campaign.directory.path)/random.txt.gz"
        let make = "head -c 6400000 /dev/urandom | od -An -v -tx1 -w32 | tr -d ' ' | gzip"
        _ = try Subprocess.run(
            "sh", ["-c", "\(make) >'\(list)'"], in: campaign.directory, limit: 60)
        let finished = try answer("no", "send", campaign, ["--tokens", list])
        let found = try #require(finished.output.firstMatch(of: /rows         about ([0-9,]+)/)).1
        let digits = found.filter { $0 != "," }
        #expect((160_000...240_000).contains(try #require(Int(digits))), "\(found)")
        #expect(
            finished.output.contains("Type the number, \(digits), to send"), "\(finished.output)")
        // A short one is read to its end.
        let short = try Campaign(rows: 20_000)
        _ = try Subprocess.run("gzip", ["-k", short.list], in: short.directory, limit: 60)
        let exact = try answer("no", "send", short, ["--tokens", short.list + ".gz"])
        #expect(exact.output.contains("rows         20,000"), "\(exact.output)")
    }
}
