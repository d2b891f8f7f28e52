import BroadsideTestSupport
import Foundation
import Testing

/// `--skip-dead` and `--cap`: which rows earlier ledgers leave out, night after night, by a reading in Python
/// of what `ledger export` prints (`Tests/Reference/earlier_reference.py`).
@Suite(.serialized, .timeLimit(.minutes(60)))
struct EarlierLedgersTests {
    private static let day = 86_400_000

    /// Campaigns of several days, whose ledgers are in one directory.
    private struct Nights {
        let campaign: Campaign
        let nights: String
        let ledgers: TemporaryDirectory
        /// Exports of the nights that are over.
        private(set) var exports: [String] = []

        init(rows: Int) throws {
            campaign = try Campaign(rows: rows)
            ledgers = campaign.directory
            nights = "\(campaign.directory.path)/nights"
            try FileManager.default.createDirectory(
                atPath: nights, withIntermediateDirectories: false)
        }

        func ledger(_ name: String) -> String { "\(nights)/\(name)" }

        /// The tokens of some rows, a line each; kept, because an export reads the list again.
        func list(_ name: String, _ rows: [Int]) throws -> String {
            try campaign.directory.write(
                rows.map { campaign.tokens.token($0) + "\n" }.joined(), to: name)
        }

        /// Sends at another time, to an APNs that finds other tokens dead.
        ///
        /// - Parameter pace: How fast the command's clock runs.
        func send(
            _ name: String, seconds: Int, seed: Int, unregistered: Double = 0.3, pace: Int = 1,
            _ more: [String]
        ) throws -> Finished {
            let server = try LocalAPNs(
                ["--unregistered", "\(unregistered)", "--seed", "\(seed)"], clock: "+\(seconds)")
            return try campaign.send(
                to: server.endpoint, ["--ledger", ledger(name)] + more,
                environment: try FakeTime.fixed("+\(seconds) x\(pace)"))
        }

        /// Sends with everything accepted or, for some tokens, dead.
        func sendToday(_ name: String, _ more: [String] = []) throws -> Finished {
            try send(name, seconds: 0, seed: 1, more)
        }

        func export(_ name: String) throws -> String {
            let path = "\(campaign.directory.path)/\(name).export"
            let made = try Broadside.run(
                ["ledger", "export", "--ledger", ledger(name), "--output", path],
                in: campaign.directory)
            try #require(made.exitCode == 0, "\(made.errors)")
            return path
        }

        /// A night is over: it is an earlier one for those that follow.
        mutating func add(_ name: String) throws { exports.append(try export(name)) }

        func start(_ name: String) throws -> Int {
            let data = try Data(contentsOf: URL(fileURLWithPath: "\(ledger(name))/manifest.json"))
            let manifest = try JSONSerialization.jsonObject(with: data) as? [String: Any]
            return try #require(manifest?["firstStartedAtMilliseconds"] as? Int)
        }

        /// When its rows were accepted, in order, milliseconds since 1970.
        func acceptances(_ name: String) throws -> [Int] {
            try ExportedRow.read(String(contentsOfFile: export(name), encoding: .utf8))
                .map(\.settledAt).sorted()
        }

        /// What the reading in Python makes of a night: counts, and an expectation that no row differs.
        func judge(_ name: String, _ rules: [String: Any]) throws -> [String: Int] {
            var question = rules
            question["start"] = try start(name)
            question["earlier"] = exports
            question["own"] = try export(name)
            let file = "\(campaign.directory.path)/\(name).question"
            try JSONSerialization.data(withJSONObject: question).write(
                to: URL(fileURLWithPath: file))
            let judged = try Subprocess(
                Tool.path(of: "python3"),
                ["-B", "\(Tool.packageRoot)/Tests/Reference/earlier_reference.py", file],
                in: campaign.directory
            ).wait(limit: 120)
            try #require(judged.exitCode == 0, "\(judged.errors)")
            let answer = try #require(
                try JSONSerialization.jsonObject(with: Data(judged.output.utf8)) as? [String: Any])
            #expect(answer["wrong"] as? [String] == [], "\(name)")
            return try #require(answer["counts"] as? [String: Int])
        }
    }

    @Test func `Night after night, rows end as a reading of the earlier ledgers says`() throws {
        var nights = try Nights(rows: 400)
        let optOuts = try nights.list("opt-outs.txt", Array(stride(from: 0, to: 400, by: 17)))
        let suppressed = stride(from: 0, to: 400, by: 17).map { nights.campaign.tokens.token($0) }
        var total: [String: Int] = [:]
        var random = SeededRandom(seed: 7)
        for (number, day) in [0, 1, 2, 4, 5, 9, 16].enumerated() {
            let name = "night-\(number)"
            var rows = (0..<400).filter { _ in Int.random(in: 0..<5, using: &random) > 0 }
            rows += rows.filter { _ in Int.random(in: 0..<8, using: &random) == 0 }
            rows.shuffle(using: &random)
            let list = try nights.list("\(name).txt", rows)
            var more = [
                "--tokens", list, "--suppress", optOuts, "--duplicates", "skip", "--summary", "-",
            ]
            var rules: [String: Any] = ["duplicates": true, "suppress": suppressed]
            if number > 0 {
                more += [
                    "--skip-dead", nights.nights, "--dead-for", "4d", "--cap", "2/3d", "--history",
                    nights.nights,
                ]
                rules["skips_dead"] = true
                rules["dead_for"] = 4 * Self.day
                rules["cap"] = 2
                rules["period"] = 3 * Self.day
            }
            let seconds = day * 86_400
            if number == 2 {
                let dry = try nights.send(
                    name, seconds: seconds, seed: number, more + ["--dry-run"])
                #expect(dry.exitCode == 0, "\(dry.errors)")
                #expect(
                    dry.output.contains("tokens reported dead in the last 4 d"), "\(dry.output)")
                total["dry"] = Self.number(before: " DeadToken", or: "DeadToken ", in: dry.output)
            }
            let sent = try nights.send(name, seconds: seconds, seed: number, more)
            try #require(sent.exitCode == 0, "\(sent.errors)")
            let counts = try nights.judge(name, rules)
            let summary = try SendSummary(json: sent.output)
            for reason in ["Suppressed", "Duplicate", "DeadToken", "FrequencyCap"] {
                #expect(summary.reasons[reason] ?? 0 == counts[reason] ?? 0, "\(name), \(reason)")
                total[reason, default: 0] += counts[reason] ?? 0
            }
            if number == 2 { #expect(total["dry"] == counts["DeadToken"]) }
            try nights.add(name)
        }
        for reason in ["Suppressed", "Duplicate", "DeadToken", "FrequencyCap"] {
            #expect(total[reason, default: 0] > 20, "\(total)")
        }
    }

    private static func number(before: String, or behind: String, in text: String) -> Int? {
        guard let range = text.range(of: behind) else { return nil }
        return Int(text[range.upperBound...].prefix { $0.isNumber })
    }

    @Test func `A cap counts acceptances to the millisecond`() throws {
        var nights = try Nights(rows: 300)
        // Three seconds of sending are five minutes of its clock, so a late start of a process moves nothing.
        let sent = try nights.send(
            "first", seconds: 0, seed: 1, unregistered: 0, pace: 100,
            ["--rate", "100", "--connections", "1"])
        try #require(sent.exitCode == 0, "\(sent.errors)")
        try nights.add("first")
        // Half of the rows were accepted more than two days before the second start.
        let accepted = try nights.acceptances("first")
        let middle = accepted[accepted.count / 2] / 1000
        let seconds = middle + 2 * 86_400 - Int(Date().timeIntervalSince1970)
        let second = try nights.send(
            "second", seconds: seconds, seed: 1, unregistered: 0,
            ["--cap", "1/2d", "--history", nights.ledger("first")])
        try #require(second.exitCode == 0, "\(second.errors)")
        let counts = try nights.judge("second", ["cap": 1, "period": 2 * Self.day])
        #expect(counts["FrequencyCap"] ?? 0 > 50 && counts["sent"] ?? 0 > 50, "\(counts)")
    }

    @Test func `With a column of registrations, rows of tokens that are back are sent`() throws {
        var nights = try Nights(rows: 200)
        let sent = try nights.sendToday("first")
        try #require(sent.exitCode == 0, "\(sent.errors)")
        try nights.add("first")
        // The local APNs says that its dead tokens died on 2023-11-14 or 15.
        let times = ["2023-01-01", "2024-06-01T10:00:00Z", "1700000000", "never", "1750000000"]
        var registered: [String: String] = [:]
        var text = "token,registered\n"
        for row in 0..<400 {
            let time = times[(row * 7 + row / 200) % times.count]
            registered["\(row + 2)"] = time
            text += "\(nights.campaign.tokens.token(row % 200)),\(time)\n"
        }
        let list = try nights.campaign.directory.write(text, to: "registered.csv")
        let more = ["--tokens", list, "--skip-dead", nights.nights]
        let withoutOffset =
            "\(list): times without an offset in 'registered' are read as UTC, the first on line "
        for (name, duplicates) in [("all", false), ("once", true)] {
            let sent = try nights.sendToday(
                name,
                more + ["--registered-column", "registered"]
                    + (duplicates ? ["--duplicates", "skip"] : []))
            try #require(sent.exitCode == 0, "\(sent.errors)")
            let counts = try nights.judge(
                name,
                ["skips_dead": true, "registered": registered, "duplicates": duplicates])
            #expect(counts["DeadToken"] ?? 0 > 10 && counts["sent"] ?? 0 > 100, "\(counts)")
            let unread = " rows with dead tokens are sent, because their 'registered', the first on"
            #expect(sent.errors.contains(unread), "\(sent.errors)")
            #expect(sent.errors.contains(withoutOffset), "\(sent.errors)")
            // It must not speak for the next one.
            try FileManager.default.moveItem(
                atPath: nights.ledger(name), toPath: "\(nights.campaign.directory.path)/\(name)")
        }
        let zoned = try nights.campaign.directory.write(
            text.replacing(",2023-01-01\n", with: ",2023-01-01T00:00Z\n"), to: "zoned.csv")
        for (list, isSaid) in [(list, true), (zoned, false)] {
            let dry = try nights.sendToday(
                "dry",
                [
                    "--tokens", list, "--skip-dead", nights.nights, "--registered-column",
                    "registered", "--dry-run",
                ])
            #expect(dry.exitCode == 0, "\(dry.errors)")
            #expect(dry.errors.contains("without an offset") == isSaid, "\(dry.errors)")
        }
        let missing = try nights.sendToday("missing", more + ["--registered-column", "born"])
        #expect(missing.exitCode == 2 && missing.errors.contains("born"), "\(missing.errors)")
        let unreadable = try nights.campaign.directory.write(
            text.replacingOccurrences(of: ",[0-9].*", with: ",soon", options: .regularExpression),
            to: "soon.csv")
        let refused = try nights.sendToday(
            "refused",
            [
                "--tokens", unreadable, "--skip-dead", nights.nights, "--registered-column",
                "registered",
            ])
        #expect(refused.exitCode == 2, "\(refused.errors)")
        #expect(refused.errors.contains("--registered-column"), "\(refused.errors)")
    }

    @Test(arguments: [false, true])
    func
        `A resume skips the rows that were skipped at the first start, whatever ledgers came and went`(
            isIndexLost: Bool
        ) throws
    {
        var nights = try Nights(rows: 300)
        let first = try nights.send(
            "first", seconds: -86_400, seed: 1, ["--tokens", nights.list("half", Array(0..<200))])
        try #require(first.exitCode == 0, "\(first.errors)")
        try nights.add("first")
        let rules = [
            "--skip-dead", nights.nights, "--cap", "1/7d", "--history", nights.nights,
        ]
        let begun = try nights.sendToday("own", rules + ["--limit", "150"])
        try #require(begun.exitCode == 0, "\(begun.errors)")
        // Another campaign accepts the rest, after the first start.
        let other = try nights.sendToday("other")
        try #require(other.exitCode == 0, "\(other.errors)")
        if isIndexLost {
            // Nothing else knows which rows were skipped: the earlier ledgers are asked again.
            try FileManager.default.removeItem(atPath: "\(nights.ledger("own"))/skips")
        } else {
            try FileManager.default.removeItem(atPath: nights.ledger("first"))
        }
        for (change, name) in [
            (["--skip-dead", "none", "--cap", "1/7d", "--history", nights.nights], "--skip-dead"),
            (rules + ["--dead-for", "1d"], "--dead-for"),
            (["--skip-dead", nights.nights, "--cap", "2/7d", "--history", nights.nights], "--cap"),
            (
                [
                    "--skip-dead", nights.nights, "--cap", "1/7d", "--history",
                    nights.ledger("other"),
                ],
                "--history"
            ),
        ] {
            let refused = try nights.sendToday("own", change + ["--resume"])
            #expect(refused.exitCode == 2 && refused.errors.contains(name), "\(refused.errors)")
        }
        let resumed = try nights.sendToday("own", rules + ["--resume", "--summary", "-"])
        try #require(resumed.exitCode == 0, "\(resumed.errors)")
        let counts = try nights.judge(
            "own",
            [
                "skips_dead": true, "dead_for": 30 * Self.day, "cap": 1, "period": 7 * Self.day,
            ])
        #expect(counts["FrequencyCap"] ?? 0 > 100 && counts["DeadToken"] ?? 0 > 30, "\(counts)")
        #expect(counts["sent"] == 100)
    }

    @Test func `A copy of a ledger counts no acceptance twice, and the campaign's own none`() throws
    {
        let nights = try Nights(rows: 50)
        let first = try nights.send("first", seconds: -60, seed: 1, unregistered: 0, [])
        try #require(first.exitCode == 0, "\(first.errors)")
        try FileManager.default.copyItem(
            atPath: nights.ledger("first"), toPath: nights.ledger("copy"))
        let twice = ["--cap", "2/1d", "--history", nights.nights]
        let second = try nights.send(
            "second", seconds: 0, seed: 1, unregistered: 0, twice + ["--limit", "20"])
        #expect(second.exitCode == 0, "\(second.errors)")
        let rest = try nights.send(
            "second", seconds: 0, seed: 1, unregistered: 0, twice + ["--resume", "--summary", "-"])
        #expect(rest.exitCode == 0, "\(rest.errors)")
        #expect(try SendSummary(json: rest.output).accepted == 50)
        let third = try nights.send(
            "third", seconds: 30, seed: 1, unregistered: 0, twice + ["--summary", "-"])
        #expect(try SendSummary(json: third.output).reasons["FrequencyCap"] == 50)
        #expect(third.errors.contains("check --cap"), "\(third.errors)")
    }

    @Test func `Of several copies of a ledger the longest counts, wherever it is found`() throws {
        let nights = try Nights(rows: 50)
        let first = try nights.send(
            "middle", seconds: -60, seed: 1, unregistered: 0, ["--limit", "20"])
        try #require(first.exitCode == 0, "\(first.errors)")
        for name in ["a-copy", "z-copy"] {
            try FileManager.default.copyItem(
                atPath: nights.ledger("middle"), toPath: nights.ledger(name))
        }
        let rest = try nights.send("middle", seconds: -30, seed: 1, unregistered: 0, ["--resume"])
        try #require(rest.exitCode == 0, "\(rest.errors)")
        let dry = try nights.send(
            "next", seconds: 0, seed: 1, unregistered: 0,
            ["--cap", "1/1d", "--history", nights.nights, "--dry-run"])
        #expect(dry.output.contains("FrequencyCap 50"), "\(dry.output)\(dry.errors)")
    }

    @Test func `What another app's ledger reports as dead is sent, with a warning`() throws {
        let nights = try Nights(rows: 50)
        let first = try nights.sendToday("first", ["--tokens", nights.campaign.list])
        try #require(first.exitCode == 0, "\(first.errors)")
        let server = try LocalAPNs(["--unregistered", "0.3", "--seed", "1"])
        let sent = try nights.campaign.send(
            to: server.endpoint,
            [
                "--topic", "com.example.other", "--skip-dead", nights.nights, "--dry-run",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.contains("another topic or environment"), "\(sent.errors)")
        #expect(sent.output.contains("DeadToken 0"), "\(sent.output)")
    }

    @Test func `Directories without an earlier ledger, and options that do not fit, are refused`()
        throws
    {
        let nights = try Nights(rows: 5)
        let place = nights.campaign.directory.path
        for (more, words) in [
            (["--skip-dead", nights.nights], "--skip-dead \(nights.nights)"),
            (["--skip-dead", "\(place)/none-there"], "--skip-dead"),
            (["--cap", "1/1d", "--history", nights.nights], "--history \(nights.nights)"),
            (["--cap", "1/1d"], "add --history"), (["--history", place], "add --cap"),
            (["--cap", "0/1d", "--history", place], "--cap '0/1d'"),
            (["--cap", "256/1d", "--history", place], "from 1 to 255"),
            (["--cap", "1/0s", "--history", place], "--cap '1/0s'"),
            (["--cap", "3", "--history", place], "3/7d"),
            (["--dead-for", "1d"], "add --skip-dead"),
            (["--registered-column", "x"], "add --skip-dead"),
            (["--skip-dead", "none", "--skip-dead", place], "./none"),
            (
                ["--skip-dead", place, "--registered-column", "x", "--dead-for", "1d"],
                "exclude each other"
            ),
        ] {
            let refused = try nights.sendToday("own", more)
            #expect(refused.exitCode == 2, "\(more): \(refused.errors)")
            #expect(refused.errorLines.count == 1, "\(more): \(refused.errors)")
            #expect(refused.errors.contains(words), "\(more): \(refused.errors)")
            #expect(!FileManager.default.fileExists(atPath: nights.ledger("own")), "\(more)")
        }
        // Nothing is skipped, and that is as if nothing was said.
        let sent = try nights.sendToday("own", ["--skip-dead", "none", "--dead-for", "2d"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let resumed = try nights.sendToday("own", ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        // The only ledger there is the campaign's own.
        let own = try nights.sendToday(
            "own", ["--resume", "--dry-run", "--skip-dead", nights.nights])
        #expect(own.exitCode == 2, "\(own.errors)")
    }

    @Test func `A damaged earlier ledger is named with the option, and nothing is sent`() throws {
        let nights = try Nights(rows: 20)
        let first = try nights.sendToday("first")
        try #require(first.exitCode == 0, "\(first.errors)")
        let segment = try #require(
            try nights.ledgers.names(in: nights.ledger("first")).first { $0.hasPrefix("segment") })
        let file = URL(fileURLWithPath: "\(nights.ledger("first"))/\(segment)")
        var bytes = try Data(contentsOf: file)
        bytes[bytes.count / 2] ^= 0x55
        try bytes.write(to: file)
        for rule in [
            ["--skip-dead", nights.nights], ["--cap", "1/1d", "--history", nights.nights],
        ] {
            let refused = try nights.sendToday("own", rule)
            #expect(refused.exitCode == 5, "\(refused.errors)")
            let option = rule[0] == "--cap" ? "--history" : "--skip-dead"
            #expect(
                refused.errors.contains("\(option) \(nights.ledger("first"))"), "\(refused.errors)")
            #expect(
                refused.errors.contains("then move the damaged one elsewhere")
                    && !refused.errors.contains("resume"), "\(refused.errors)")
            #expect(!FileManager.default.fileExists(atPath: nights.ledger("own")))
        }
    }

    @Test func `broadside night skips what earlier nights of its campaign report as dead`() throws {
        let nights = try Nights(rows: 100)
        let server = try LocalAPNs(["--unregistered", "0.3", "--seed", "1"])
        let printed = try nights.campaign.send(to: server.endpoint, ["--print-campaign"])
        let file = try nights.campaign.directory.write(
            printed.output.replacingOccurrences(
                of: "  \"ledger\": .*\n", with: "", options: .regularExpression
            ).replacingOccurrences(of: "\"none\"\n", with: "\"none\",\n  \"name\": \"evening\"\n"),
            to: "evening.json5")
        func night(_ more: [String]) throws -> SendSummary {
            let done = try Broadside.run(
                ["night", "--campaign", file, "--ledgers", nights.nights, "--summary", "-"] + more,
                in: nights.campaign.directory)
            try #require(done.exitCode == 0, "\(done.errors)")
            return try SendSummary(json: done.output)
        }
        let first = try night(["--date", "2026-01-01"])
        #expect(first.rejected > 10 && first.skipped == 0)
        let second = try night(["--date", "2026-01-02"])
        #expect(second.reasons["DeadToken"] == first.rejected && second.rejected == 0)
        let third = try night(["--date", "2026-01-03", "--skip-dead", "none"])
        #expect(third.rejected == first.rejected && third.skipped == 0)
        // An earlier night that can't be read keeps no night from being sent.
        let ledger = try #require(
            FileManager.default.enumerator(atPath: nights.nights)?.compactMap { $0 as? String }
                .first { $0.hasSuffix("2026-01-01") })
        let broken = "\(nights.nights)/\(ledger)"
        let segment = try #require(
            try nights.ledgers.names(in: broken).first { $0.hasPrefix("segment") })
        var bytes = try Data(contentsOf: URL(fileURLWithPath: "\(broken)/\(segment)"))
        bytes[bytes.count / 2] ^= 0x55
        try bytes.write(to: URL(fileURLWithPath: "\(broken)/\(segment)"))
        let fourth = try night(["--date", "2026-01-04"])
        // The third night knows the same.
        #expect(fourth.reasons["DeadToken"] == first.rejected)
        // A cap that misses a night's acceptances would send too much.
        try Data("{".utf8).write(to: URL(fileURLWithPath: "\(broken)/manifest.json"))
        let capped = try Broadside.run(
            [
                "night", "--campaign", file, "--ledgers", nights.nights, "--date", "2026-01-05",
                "--cap", "9/7d", "--history", nights.nights,
            ], in: nights.campaign.directory)
        #expect(
            capped.exitCode == 5 && capped.errors.contains("--history \(broken)"),
            "\(capped.errors)")
    }
}
