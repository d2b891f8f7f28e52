import BroadsideTestSupport
import Foundation
import Testing

/// A person at a terminal is asked before anything goes to Apple's production.
@Suite(.timeLimit(.minutes(60)))
struct ConfirmationTests {
    /// Runs a command on a terminal of its own and types an answer.
    static let typing = """
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

    @Test(arguments: ["send", "probe"])
    func `send and probe to production ask for the number of devices, and any other text is exit 2`(
        _ command: String
    ) throws {
        let campaign = try Campaign(rows: 3)
        // `ListSizeTests` have all texts.
        for typed in command == "send" ? ["no", "", "yes", "4", "33", "-3"] : ["", "4"] {
            let finished = try answer(typed, command, campaign)
            #expect(finished.exitCode == 2, "\(typed): \(finished.output)")
            #expect(finished.output.contains("3 devices of Apple's production"))
            #expect(finished.output.contains("api.push.apple.com:443 (Apple, production)"))
            #expect(finished.output.contains("nothing was sent"))
            #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        }
    }

    @Test(arguments: [
        "api.push.apple.com", "API.push.Apple.com:2197", "api.push.apple.com.:443",
        "api.push.apple.com:443",
    ])
    func `Each spelling of Apple's production host asks for confirmation`(_ endpoint: String) throws
    {
        let campaign = try Campaign(rows: 3)
        for command in endpoint.hasPrefix("API") ? ["send", "probe"] : ["send"] {
            let finished = try answer("no", command, campaign, ["--endpoint", endpoint])
            #expect(finished.exitCode == 2, "\(finished.output)")
            #expect(finished.output.contains("3 devices of Apple's production"))
            #expect(finished.output.contains("(Apple, production)"), "\(finished.output)")
            #expect(finished.output.contains("nothing was sent"))
            #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        }
    }

    /// The only address that is connected is a port of this machine on which nothing listens.
    @Test func `The number of devices confirms a run, with separators or without`() throws {
        let proxy = ["--proxy", "http://127.0.0.1:1", "--give-up-after", "1s"]
        for (rows, typed) in [(3, "3"), (12_345, "12,345"), (12_345, "12345")] {
            let campaign = try Campaign(rows: rows)
            let finished = try answer(typed, "send", campaign, proxy)
            #expect(finished.exitCode == 1, "\(finished.output)")
            for words in [
                "gave up on api.push.apple.com:443",
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

    @Test func `A delete and a broadcast to production ask, and any text but yes is exit 2`() throws
    {
        let campaign = try Campaign(rows: 1)
        let payload = try campaign.directory.write(
            #"{"aps":{"timestamp":1790000000,"event":"update","content-state":{}}}"#,
            to: "goal.json")
        let shared = [
            "--app", Campaign.topic, "--channel", "YQ==", "--auth-key", campaign.authority.authKey,
            "--key-id", Campaign.keyID, "--team-id", Campaign.teamID, "--proxy",
            "http://127.0.0.1:1",
        ]
        let broadcast = ["broadcast", "--payload", payload, "--ledger", campaign.ledger] + shared
        func answer(_ text: String, _ words: [String]) throws -> Finished {
            try Subprocess(
                "python3", ["-c", Self.typing, text, Broadside.path()] + words,
                in: campaign.directory
            ).wait(limit: 60)
        }
        for words in [["channel", "delete"] + shared, broadcast] {
            for (text, code) in [("no", 2), ("", 2), ("YES", 2), ("yes", 1)] as [(String, Int32)] {
                let finished = try answer(text, words)
                // The only address that is connected is a port on which nothing listens.
                #expect(finished.exitCode == code, "\(text): \(finished.output)")
                #expect(finished.output.contains("Type yes"), "\(finished.output)")
                #expect(finished.output.contains("api-"), "\(finished.output)")
                #expect(finished.output.contains("not confirmed") == (code == 2))
            }
            let confirmed = try answer("", words + ["--yes"])
            #expect(confirmed.exitCode == 1 && !confirmed.output.contains("Type yes"))
        }
        let development = try answer("", broadcast + ["--environment", "development"])
        #expect(development.exitCode != 0 && !development.output.contains("Type yes"))
    }

    @Test func `The confirmation shows the alert of the first row that is sent`() throws {
        let campaign = try Campaign(rows: 4, payload: #"{"aps":{"alert":"Hi {{name}}"}}"#)
        let rows = (0..<4).map { "\(campaign.tokens.token($0)),row \($0)\n" }
        let list = try campaign.directory.write("token,name\n" + rows.joined(), to: "list.csv")
        let optOuts = try campaign.directory.write(campaign.tokens.token(0) + "\n", to: "out.txt")
        for (options, row) in [
            ([], 0), (["--suppress", optOuts], 1), (["--shard", "2/2"], 2),
        ] as [([String], Int)] {
            let finished = try answer("no", "send", campaign, ["--tokens", list] + options)
            #expect(
                finished.output.contains("alert        Hi row \(row) (the first row's)"),
                "\(options): \(finished.output)")
        }
    }

    @Test
    func `A compressed list with uneven content is counted exactly before the confirmation`() throws
    {
        let campaign = try Campaign(rows: 1)
        let list = "\(campaign.directory.path)/uneven.csv.gz"
        // What compresses well is followed by what does not.
        let make = """
            { echo token,note; yes "$(printf '%064d' 7),$(printf '%0900d' 0)" | head -n 20000
            head -c 6400000 /dev/urandom | od -An -v -tx1 -w32 | tr -d ' ' | sed 's/$/,x/'; } | gzip
            """
        _ = try Subprocess.run(
            "sh", ["-c", "{ \(make); } >'\(list)'"], in: campaign.directory, limit: 60)
        let finished = try answer("no", "send", campaign, ["--tokens", list])
        #expect(finished.output.contains("rows         220,000\r\n"), "\(finished.output)")
        #expect(finished.output.contains("220,000 devices of Apple's production"))
        #expect(finished.output.contains("Type the number, 220000, to send"))
        let shard = try answer("no", "send", campaign, ["--tokens", list, "--shard", "2/7"])
        #expect(shard.output.contains("Type the number, 31429, to send"), "\(shard.output)")
        let limited = try answer("no", "send", campaign, ["--tokens", list, "--limit", "70000"])
        #expect(limited.output.contains("Type the number, 70000, to send"), "\(limited.output)")
    }

    @Test func `A compressed list too long to count is confirmed by an estimate`() throws {
        let campaign = try Campaign(rows: 1)
        let list = "\(campaign.directory.path)/long.txt.zst"
        // 40 times a million rows.
        let make = """
            yes "$(printf '%064d' 7)" | head -n 1000000 | zstd -q -o part.zst
            for part in $(seq 40); do cat part.zst; done >'\(list)'
            """
        _ = try Subprocess.run(
            "sh", ["-c", "cd '\(campaign.directory.path)'; \(make)"], in: campaign.directory,
            limit: 60)
        func ask(_ typed: String, _ more: [String] = []) throws -> Finished {
            try answer(typed, "send", campaign, ["--tokens", list] + more)
        }
        let asked = try ask("yes")
        #expect(asked.exitCode == 2, "\(asked.output)")
        let text = asked.output.replacing("\r\n             ", with: " ")
        let estimate = try #require(
            text.firstMatch(
                of: /about ([0-9,]+), estimated from the first 2,147 MB of the list/), "\(text)"
        ).1
        let digits = estimate.filter { $0 != "," }
        #expect((30_000_000...50_000_000).contains(try #require(Int(digits))))
        #expect(text.contains("This goes to about \(estimate) devices of Apple's production"))
        #expect(text.contains("Type \"about \(digits)\" (the list is too long"), "\(text)")
        let confirmed = try ask(
            "About \(estimate)", ["--proxy", "http://127.0.0.1:1", "--give-up-after", "1s"])
        #expect(confirmed.exitCode == 1, "\(confirmed.output)")
    }
}
