import BroadsideTestSupport
import Foundation
import Testing

/// What the command says when all is well: help, version, summary, progress, exports.
@Suite(.timeLimit(.minutes(60)))
struct OutputTests {
    private func run(_ arguments: [String]) throws -> Finished {
        try Broadside.run(arguments, in: TemporaryDirectory(), limit: 120)
    }

    @Test func `--version and the overview are printed`() throws {
        let version = try run(["--version"])
        #expect(version.exitCode == 0 && version.errors.isEmpty)
        #expect(
            version.output.wholeMatch(of: /broadside [0-9]+\.[0-9]+\.[0-9]+[-a-z0-9.]*\n/) != nil)
        for arguments in [["--help"], ["help"], ["-h"]] {
            let help = try run(arguments)
            #expect(help.exitCode == 0 && help.errors.isEmpty)
            #expect(help.output.contains("send") && help.output.contains("ledger"))
            #expect(help.output.contains(/\nExamples:\n  .*:\n    broadside send --/))
            // What a script that starts a campaign has to tell apart.
            #expect(
                help.output.contains(
                    /\nExit codes:\n +0 +complete\n(?: +[1-6] .*\n(?: {5}.*\n)*){6} +7 .*\n/))
        }
        let nothing = try run([])
        #expect(nothing.exitCode == 2 && nothing.output.isEmpty)
        #expect(
            nothing.errorLines == ["broadside: no command given: run broadside help to list them"])
    }

    @Test(arguments: [
        (
            "send",
            [
                "tokens", "to", "payload", "topic", "push-type", "priority", "expiration",
                "collapse-id", "auth-key", "key-id", "team-id", "environment", "port",
                "endpoint",
                "ca-file", "connections", "max-streams", "reactors", "rate",
                "rate-per-connection",
                "max-attempts", "retry-for", "on-lost", "request-timeout", "give-up-after",
                "abort-after", "limit", "dry-run", "yes", "ledger", "resume", "retry",
                "summary",
                "progress",
            ]
        ),
        (
            "ledger",
            ["ledger", "json", "tokens", "format", "state", "output", "apns-id", "token"]
        ),
        (
            "tokens",
            [
                "tokens", "format", "token-column", "duplicates", "json", "output",
                "registered-column",
            ]
        ),
        ("payload", ["payload", "push-type", "topic", "json"]),
    ])
    func `Help names every option of the command, in lines that fit a terminal`(
        command: String, options: [String]
    ) throws {
        let page = try run([command, "--help"])
        #expect(page.exitCode == 0 && page.errors.isEmpty)
        #expect(try run(["help", command]).output == page.output)
        for option in options {
            #expect(
                page.output.contains("  --\(option) ") || page.output.contains("  --\(option)\n"))
        }
        #expect(page.output.split(separator: "\n").allSatisfy { $0.count <= 80 })
    }

    @Test(arguments: [
        "send", "night", "probe", "broadcast", "channel", "prune", "ledger", "tokens", "payload",
        "doctor", "control", "status", "report", "simulate", "bench", "feedback",
    ])
    func `-h is one screen: usage, ten options at most, examples, and where the rest is`(
        command: String
    ) throws {
        let page = try run([command, "-h"])
        #expect(page.exitCode == 0 && page.errors.isEmpty)
        let lines = page.output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count <= 45, "\(lines.count) lines")
        #expect(lines.allSatisfy { $0.count <= 80 })
        #expect(lines.first?.hasPrefix("Usage: broadside \(command) ") == true)
        #expect((1...10).contains(lines.count { $0.hasPrefix("  --") }))
        #expect(
            page.output.contains("Examples:\n") && page.output.contains("    broadside \(command)"))
        #expect(page.output.hasSuffix(" detail\n") || page.output.hasSuffix(" details\n"))
        #expect(page.output.contains("broadside \(command) --help: "))
    }

    @Test func `The help of a subcommand has its own usage, options and examples only`() throws {
        let page = try run(["ledger", "stats", "--help"]).output
        #expect(page.hasPrefix("Usage: broadside ledger stats --ledger DIR [OPTIONS]\n"))
        #expect(page.contains(/\n  stats +counts of rows/) && !page.contains("\n  forget "))
        #expect(page.contains(/\n  --json +print JSON\n/) && !page.contains("\n  --follow"))
        #expect(page.contains("broadside ledger stats --ledger tonight"))
        #expect(!page.contains("broadside ledger merge"))
        #expect(try run(["help", "ledger", "stats"]).output == page)
        let forget = try run(["ledger", "forget", "-h"]).output
        #expect(forget.hasPrefix("Usage: broadside ledger forget --tokens FILE|--token TOKEN "))
        #expect(forget.contains(/\n  --tokens FILE +the devices\n/))
        #expect(!forget.contains("Examples:"))
        #expect(forget.hasSuffix("\nbroadside ledger forget --help: details\n"))
        let dedupe = try run(["tokens", "dedupe", "--help"]).output
        #expect(dedupe.contains("\n  --by COLUMN") && !dedupe.contains("\n  --duplicates"))
        let list = try run(["channel", "list", "--help"]).output
        #expect(list.contains("\n  --app BUNDLE") && !list.contains("\n  --storage"))
        #expect(try run(["ledger", "stat", "--help"]).output == run(["ledger", "--help"]).output)
    }

    @Test func `No paragraph of the help has more than 600 characters`() throws {
        let page = try run(["help", "--markdown"])
        #expect(page.exitCode == 0)
        let blocks = page.output.split(separator: "\n\n")
        #expect(blocks.contains { $0.hasPrefix("| Option |") })
        for block in blocks where !block.hasPrefix("|") && !block.hasPrefix("```") {
            #expect(block.count <= 600, "\(block)")
        }
    }

    @Test(arguments: [
        (["sned"], "send"), (["help", "leger"], "ledger"), (["ledger", "stat"], "stats"),
        (["Send"], "send"), (["qqqqqqqq"], "help"),
    ])
    func `An unknown command names the nearest one`(arguments: [String], advice: String) throws {
        let finished = try run(arguments)
        #expect(finished.exitCode == 2 && finished.output.isEmpty)
        #expect(finished.errorLines.count == 1)
        #expect(finished.errors.hasPrefix("broadside: unknown "), "\(finished.errors)")
        #expect(finished.errors.contains(advice))
    }

    @Test(arguments: [
        (["ledger"], "stats"), (["ledger", "stats"], "--ledger is missing"),
        (["ledger", "stats", "--ledger", "/nowhere"], "/nowhere"),
        (["ledger", "verify", "--ledger", "/proc"], "/proc"),
        (["ledger", "find", "--ledger", "@ledger"], "--apns-id"),
        (["ledger", "find", "--ledger", "@ledger", "--token", "zz"], "'zz'"),
        (["ledger", "find", "--ledger", "@ledger", "--apns-id", "1234"], "'1234'"),
        (
            ["ledger", "find", "--ledger", "@ledger", "--token", "aa", "--apns-id", "x"],
            "--token"
        ),
        (["ledger", "export", "--ledger", "@ledger", "--format", "xml"], "'xml'"),
        (["ledger", "export", "--ledger", "@ledger", "--state", "lost"], "'lost'"),
        (["ledger", "export", "--ledger", "@ledger", "--tokens", "/nowhere"], "/nowhere"),
        (["ledger", "export", "--ledger", "@ledger", "--output", "/nowhere/x"], "/nowhere/x"),
    ])
    func `A ledger command with missing or wrong options is exit 2`(
        arguments: [String], words: String
    ) throws {
        let campaign = try finishedCampaign()
        let finished = try run(arguments.map { $0 == "@ledger" ? campaign.ledger : $0 })
        #expect(finished.exitCode == 2, "\(finished.errors)")
        #expect(finished.output.isEmpty, "\(finished.output)")
        #expect(finished.errorLines.count == 1, "\(finished.errors)")
        #expect(finished.errors.hasPrefix("broadside: "))
        #expect(finished.errors.contains(words), "\(finished.errors)")
    }

    private func finishedCampaign() throws -> Campaign {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 5)
        #expect(try campaign.send(to: server.endpoint, ["--connections", "1"]).exitCode == 0)
        return campaign
    }

    static let summaryKeys: Set = [
        "campaign", "name", "labels", "outcome", "rows", "accepted", "rejected", "invalid",
        "skipped", "failed", "unknown", "in_doubt", "remaining", "reasons", "retries",
        "connections", "reconnects",
        "elapsed_seconds", "notifications_per_second", "cpu_microseconds_per_notification",
        "latency_ms", "peak_rss_bytes", "limited_by", "guards",
        "payload_fallbacks",
    ]

    @Test func `The summary has exactly its documented keys, however the run ends`() throws {
        let server = try RecordingServer("verdicts")
        let campaign = try Campaign(rows: 100)
        let file = "\(campaign.directory.path)/summary.json"
        let sent = try campaign.send(to: server.endpoint, ["--summary", file])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.output.isEmpty || !sent.output.contains("{"))
        let good = try object(try Data(contentsOf: URL(filePath: file)))
        #expect(Set(good.keys) == Self.summaryKeys)
        let latency = try #require(good["latency_ms"] as? [String: Double])
        #expect(Set(latency.keys) == ["p50", "p90", "p99", "p999", "max"])
        let limits = try #require(good["limited_by"] as? [String: Double])
        #expect(
            Set(limits.keys) == [
                "input", "rate", "connecting", "retry", "streams", "window", "socket", "cpu",
            ])
        let sum: Double = limits.values.reduce(0, +)
        #expect(abs(sum - 1) < 0.01)
        #expect(good["name"] is NSNull && (good["labels"] as? [String: String]) == [:])
        #expect((good["campaign"] as? String)?.wholeMatch(of: /[0-9a-f]{16}/) != nil)
        #expect(good["outcome"] as? String == "complete")
        #expect((good["peak_rss_bytes"] as? Int ?? 0) > 1_000_000)

        let failed = try Campaign(rows: 3)
        let refused = try failed.send(
            to: "127.0.0.1:\(Ports.free())", ["--summary", "-", "--give-up-after", "1s"])
        #expect(refused.exitCode == 1)
        let bad = try object(Data(refused.output.utf8))
        #expect(Set(bad.keys) == Self.summaryKeys)
        #expect(bad["outcome"] as? String == "error")
        #expect(bad["remaining"] as? Int == 3)
        // Not "reading the list": no connection stood.
        let waits = try #require(bad["limited_by"] as? [String: Double])
        let connecting: Double = waits["connecting", default: 0] + waits["retry", default: 0]
        #expect(connecting > 0.5, "\(waits)")

        let statistics = try object(Data(try campaign.ledger("stats", ["--json"]).output.utf8))
        for key in ["campaign", "rows", "accepted", "rejected", "reasons", "retries"] {
            #expect(statistics[key] as? NSObject == good[key] as? NSObject, "\(key)")
        }
    }

    @Test func `A complete campaign whose summary can't be written says so`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 20)
        let sent = try campaign.send(to: server.endpoint, ["--summary", "/dev/full"])
        #expect(sent.exitCode == 5, "\(sent.errors)")
        #expect(
            sent.errors.contains("every row is settled, but an output file is missing: /dev/full: ")
                && sent.errors.contains("broadside ledger stats --ledger \(campaign.ledger)"),
            "\(sent.errors)")
        #expect(try campaign.statistics().accepted == 20)
    }

    @Test(arguments: ["summary", "report", "metrics"])
    func `An output that is a socket is refused before anything is sent`(option: String) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 3)
        let socket = "\(campaign.directory.path)/socket"
        let script = "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])"
        try Subprocess.run("python3", ["-c", script, socket], in: campaign.directory)
        let refused = try campaign.send(to: server.endpoint, ["--\(option)", socket])
        #expect(refused.exitCode == 2 && refused.errorLines.count == 1, "\(refused.errors)")
        #expect(refused.errors.contains("--\(option) \(socket) is a socket: name a file"))
        #expect(try server.answers().isEmpty)
    }

    @Test func `A summary that can't be written does not prevent the report, and both are named`()
        throws
    {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 20)
        let page = "\(campaign.directory.path)/page.html"
        func send(_ report: String, _ more: [String] = []) throws -> String {
            let outputs = ["--summary", "/dev/full", "--report", report]
            let sent = try campaign.send(to: server.endpoint, outputs + more)
            #expect(sent.exitCode == 5, "\(sent.errors)")
            return sent.errors
        }
        for resume in [[], ["--resume"]] {
            let errors = try send(page, resume)
            #expect(errors.contains("but an output file is missing: /dev/full: "), "\(errors)")
            try FileManager.default.removeItem(atPath: page)
            let both = try send("/dev/full", ["--resume"])
            #expect(both.contains("but output files are missing: /dev/full: "), "\(both)")
            #expect(both.ranges(of: "/dev/full: No space left").count == 2, "\(both)")
        }
    }

    @Test func `A run that can't begin writes its summary, unless another process has the ledger`()
        throws
    {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 20)
        let file = "\(campaign.directory.path)/summary.json"
        let wrong = try campaign.directory.write(
            String(repeating: "no token\n", count: 20), to: "wrong.txt")
        let taken = campaign.directory.fresh("taken")
        try FileManager.default.createDirectory(
            atPath: taken, withIntermediateDirectories: false)
        func send(_ more: [String], code: Int32) throws -> Data {
            try campaign.directory.write("yesterday", to: "summary.json")
            let sent = try campaign.send(
                to: server.endpoint, ["--summary", file, "--name", "evening"] + more)
            #expect(sent.exitCode == code && sent.errorLines.count == 1, "\(sent.errors)")
            return try Data(contentsOf: URL(filePath: file))
        }
        for (more, accepted) in [
            (["--tokens", wrong], 0), (["--tokens", "nowhere.txt"], 0), (["--ledger", taken], 0),
            // Nothing shows what earlier runs sent.
            (["--resume", "--ledger", "nowhere"], nil),
            (["--rate", "abc"], 0), (["--rate", "abc", "--resume"], nil), (["--arm", "a=x"], 0),
        ] as [([String], Int?)] {
            let failed = try object(send(more, code: 2))
            #expect(Set(failed.keys) == Self.summaryKeys)
            #expect(failed["outcome"] as? String == "error" && failed["campaign"] is NSNull)
            #expect(failed["accepted"] as? Int == accepted, "\(more)")
            #expect(failed["name"] as? String == "evening")
            // A refused list has rows that were not counted.
            for key in ["rows", "invalid", "skipped", "reasons"] {
                #expect(failed[key] is NSNull, "\(key): \(more)")
            }
        }
        let printed = try campaign.send(
            to: server.endpoint, ["--summary", "-", "--tokens", "nowhere.txt"])
        #expect(try object(Data(printed.output.utf8))["outcome"] as? String == "error")
        #expect(
            try send(["--tokens", wrong, "--dry-run"], code: 2) == Data("yesterday".utf8))
        for more in [["--dry-run"], ["--print-campaign"]] {
            #expect(try send(["--rate", "abc"] + more, code: 2) == Data("yesterday".utf8))
        }
        #expect(try campaign.send(to: server.endpoint, ["--limit", "5"]).exitCode == 0)
        let lock = open("\(campaign.ledger)/lock", O_RDWR | O_CLOEXEC)
        defer { close(lock) }
        #expect(flock(lock, LOCK_EX | LOCK_NB) == 0)
        #expect(try send(["--resume"], code: 7) == Data("yesterday".utf8))
    }

    @Test func `A second start without --resume leaves the first run's summary unchanged`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 20)
        let file = "\(campaign.directory.path)/summary.json"
        #expect(try campaign.send(to: server.endpoint, ["--summary", file]).exitCode == 0)
        let summary = try Data(contentsOf: URL(filePath: file))
        #expect(try object(summary)["accepted"] as? Int == 20)
        for more in [[], ["--tokens", "nowhere.txt"], ["--rate", "abc"]] {
            let second = try campaign.send(to: server.endpoint, ["--summary", file] + more)
            #expect(second.exitCode == 2 && second.errorLines.count == 1, "\(second.errors)")
            #expect(try Data(contentsOf: URL(filePath: file)) == summary, "\(more)")
        }
        // On standard output, there is no earlier summary.
        let printed = try campaign.send(to: server.endpoint, ["--summary", "-"])
        #expect(try object(Data(printed.output.utf8))["outcome"] as? String == "error")
    }

    @Test(arguments: ["send", "night", "probe"])
    func `A missing or wrong campaign file leaves no earlier summary, but files with other content`(
        command: String
    ) throws {
        let directory = try TemporaryDirectory()
        let list = try directory.write("aabb\n", to: "t.txt")
        let path = "\(directory.path)/s.json"
        let named = try directory.write("{\"token\":\"aabb\",\"outcome\":\"x\"}\n", to: "t.jsonl")
        let place =
            command == "night"
            ? ["--ledgers", directory.path] : ["--ledger", "\(directory.path)/l"]
        func run(_ more: [String]) throws {
            let wrong = try Broadside.run([command] + more, in: directory, limit: 60)
            #expect(wrong.exitCode == 2 && wrong.errorLines.count == 1, "\(wrong.errors)")
        }
        for (campaign, more) in [
            (nil, ["--summary", path]), ("{tokens:'t.txt',,}", ["--summary", path]),
            ("{rate:[1],summary:'s.json'}", command == "probe" ? ["--summary", path] : []),
            ("{rte:1}", ["--summary", path, "--name", "evening"]),
        ] as [(String?, [String])] {
            let file = "\(directory.path)/\(campaign == nil ? "nowhere" : "c").json5"
            if let campaign { try directory.write(campaign, to: "c.json5") }
            for (earlier, place) in [
                ("{\n  \"campaign\" : \"00\",\n  \"outcome\" : \"complete\"\n}\n", []), ("", place),
            ] {
                let summary = try directory.write(earlier, to: "s.json")
                try run(["--campaign", file] + place + more)
                let written = try object(Data(contentsOf: URL(filePath: summary)))
                #expect(Set(written.keys) == Self.summaryKeys)
                #expect(written["outcome"] as? String == "error", "\(more)")
                // The counts are known if the ledger is known, and has not begun.
                let isKnown = place.first == "--ledger"
                for count in ["accepted", "unknown", "in_doubt"] {
                    #expect((written[count] is NSNull) != isKnown, "\(count): \(place + more)")
                }
            }
            try run(["--campaign", file, "--summary", list])
            if campaign != nil { try run(["--campaign", file, "--summary", file]) }
            #expect(try String(contentsOfFile: list, encoding: .utf8) == "aabb\n")
            try run(["--campaign", file, "--tokens", named, "--summary", named])
            #expect(try String(contentsOfFile: named, encoding: .utf8).contains("aabb"))
            let kept = "{\"outcome\":\"complete\"}"
            let summary = try directory.write(kept, to: "s.json")
            try run(place + ["--campaign", file, "--dry-run"] + more)
            #expect(try String(contentsOfFile: summary, encoding: .utf8) == kept)
        }
    }

    private func object(_ json: Data) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: json) as? [String: Any])
    }

    @Test func `--progress json prints one JSON object per second and the final numbers`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 250)
        let sent = try campaign.send(
            to: server.endpoint, ["--rate", "100", "--connections", "1", "--progress", "json"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let lines = sent.errors.split(separator: "\n").filter { $0.hasPrefix("{") }
        #expect(lines.count >= 1 && lines.count <= Int(sent.seconds) + 2, "\(sent.errors)")
        for line in lines {
            let progress = try object(Data(line.utf8))
            #expect(progress["settled"] is Int && progress["in_flight"] is Int)
        }
        let last = try object(Data(#require(lines.last).utf8))
        #expect(last["phase"] as? String == "finished" && last["accepted"] as? Int == 250)
    }

    @Test
    func `An export replaces its file as a whole and is the same on standard output`() throws {
        let campaign = try finishedCampaign()
        let file = "\(campaign.directory.path)/export.csv"
        let written = try campaign.ledger("export", ["--output", file])
        #expect(written.exitCode == 0 && written.output.isEmpty)
        let text = try String(contentsOfFile: file, encoding: .utf8)
        #expect(try campaign.ledger("export", ["--output", "-"]).output == text)
        #expect(text.split(separator: "\n").count == 6)
        #expect(try campaign.export(["--state", "rejected", "--state", "failed"]).isEmpty)

        // Without the list the lines and the tokens of accepted rows are empty.
        try FileManager.default.moveItem(atPath: campaign.list, toPath: campaign.list + ".gone")
        #expect(try campaign.export().allSatisfy { $0.line == nil && $0.token.isEmpty })
        let named = try campaign.export(["--tokens", campaign.list + ".gone"])
        #expect(named.map(\.line) == [1, 2, 3, 4, 5])
    }

    @Test func `ledger find without a match is exit 1 with one line`() throws {
        let campaign = try finishedCampaign()
        let token = try campaign.ledger("find", ["--token", String(repeating: "0", count: 64)])
        #expect(token.exitCode == 1 && token.output.isEmpty)
        #expect(token.errorLines.count == 1)
        let other = "00000000-0000-8000-8000-000000000001"
        #expect(try campaign.ledger("find", ["--apns-id", other]).exitCode == 1)
    }

    @Test func `ledger find warns that it searches without a missing list`() throws {
        let campaign = try finishedCampaign()
        try FileManager.default.removeItem(atPath: campaign.list)
        let warning = "/tokens.txt is missing: name the list that was sent"
        let none = try campaign.ledger("find", ["--token", String(repeating: "0", count: 64)])
        #expect(none.exitCode == 1 && none.errors.contains(warning), "\(none.errors)")
        let found = try campaign.ledger("find", ["--token", campaign.tokens.token(1)])
        #expect(found.exitCode == 0 && found.output.contains("row 1 "), "\(found.output)")
        #expect(found.errors.contains(warning), "\(found.errors)")
    }
}
