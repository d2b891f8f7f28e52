import BroadsideTestSupport
import Foundation
import Testing

/// `--split`, `--split-salt` and `--arm`: each device's arm, and what the arms get. Arms are computed
/// by `Tests/Reference/arms_reference.py`.
@Suite(.timeLimit(.minutes(60)))
struct ArmTests {
    private struct Summary: Decodable {
        var accepted: Int
        var skipped: Int
        var remaining: Int
        var reasons: [String: Int]
        var arms: [String: [String: Int]]?
    }

    private static let split = "a=45,b=44.5"
    private static let salt = "spring: test"
    private static let rowCount = 400

    /// The tokens of all tests, which were judged once, and the arm of each.
    private static let judged = Result {
        let tokens = DeviceTokens(count: rowCount)
        let all = (0..<rowCount).map(tokens.token)
        let found = try judge(all, split, TemporaryDirectory())
        return (tokens: tokens, arms: all.map { found[$0] ?? "" })
    }

    private let campaign: Campaign
    private let tokens: DeviceTokens
    /// Arm of each row.
    private let arms: [String]

    init() throws {
        (tokens, arms) = try Self.judged.get()
        campaign = try Campaign(rows: 0)
        try campaign.directory.write(tokens.list(), to: "tokens.txt")
        #expect(Set(arms) == ["a", "b", "holdout"])
    }

    private static func judge(
        _ tokens: [String], _ split: String, _ directory: TemporaryDirectory
    ) throws -> [String: String] {
        let list = try directory.write(tokens.joined(separator: "\n"), to: "judged.txt")
        let found = try Subprocess.run(
            "sh",
            [
                "-c", "exec python3 -B \"$0\" \"$1\" \"$2\" < \"$3\"",
                "\(Tool.packageRoot)/Tests/Reference/arms_reference.py", split, salt, list,
            ], in: directory)
        return try JSONDecoder().decode([String: String].self, from: Data(found.output.utf8))
    }

    private func options(_ more: [String] = [], split: String = split) -> [String] {
        ["--split", split, "--split-salt", Self.salt] + more
    }

    private func count(_ arm: String) -> Int { arms.count { $0 == arm } }

    /// Each line of an export: line number, token, state, reason and arm.
    private func exported(_ more: [String] = []) throws -> [[String]] {
        let finished = try campaign.ledger("export", more)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        // Bytes are split faster than characters.
        let lines = finished.output.utf8.split(separator: UInt8(ascii: "\n")).map {
            $0.split(separator: UInt8(ascii: ","), omittingEmptySubsequences: false)
                .map { String(decoding: $0, as: UTF8.self) }
        }
        #expect(lines.first?.last == "arm")
        return lines.dropFirst().map { [$0[0], $0[1], $0[2], $0[4], $0[9]] }
    }

    private func expected(_ row: Int) -> [String] {
        let isHeldOut = arms[row] == "holdout"
        return [
            "\(row + 1)", tokens.token(row), isHeldOut ? "skipped" : "accepted",
            isHeldOut ? "Holdout" : "", arms[row],
        ]
    }

    @Test func `Each device is in the arm that Python computes, and the holdout gets nothing`()
        throws
    {
        let server = try RecordingServer()
        let metrics = campaign.directory.fresh("metrics.prom")
        let finished = try campaign.send(
            to: server.endpoint, options(["--summary", "-", "--metrics", metrics]))
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let paths = try server.events().filter { $0.event == "answer" }.compactMap(\.path)
        let sent = (0..<Self.rowCount).filter { arms[$0] != "holdout" }
        #expect(paths.sorted() == sent.map { "/3/device/\(tokens.token($0))" }.sorted())

        #expect(try exported() == (0..<Self.rowCount).map(expected))
        let one = try exported(["--arm", "b"])
        #expect(one == (0..<Self.rowCount).filter { arms[$0] == "b" }.map(expected))

        let summary = try JSONDecoder().decode(Summary.self, from: Data(finished.output.utf8))
        #expect(summary.reasons == ["Holdout": count("holdout")])
        #expect(summary.arms?["a"]?["accepted"] == count("a"))
        #expect(summary.arms?["b"]?["accepted"] == count("b"))
        #expect(summary.arms?["holdout"]?["skipped"] == count("holdout"))
        let statistics = try campaign.ledger("stats", ["--json"])
        let counted = try JSONDecoder().decode(Summary.self, from: Data(statistics.output.utf8))
        #expect(counted.arms == summary.arms)
        let text = try campaign.ledger("stats").output
        #expect(text.contains("arm a") && text.contains("\(count("a")) accepted"))
        let series = try String(contentsOfFile: metrics, encoding: .utf8)
        #expect(
            series.contains(
                "broadside_arm_rows_settled_total{arm=\"b\",state=\"accepted\"} \(count("b"))"))
        let page = try Broadside.run(
            ["report", "--ledger", campaign.ledger], in: campaign.directory)
        #expect(page.output.contains("<h2>Arms</h2>"))
        #expect(page.output.contains("<td class=\"n\" data-label=\"accepted\">\(count("a"))</td>"))
        let found = try campaign.ledger("find", ["--token", tokens.token(0)])
        #expect(found.output.contains(", arm \(arms[0])"), "\(found.output)")
    }

    @Test
    func `Arms with their own payload, collapse ID and priority get those, the others the rest`()
        throws
    {
        try campaign.directory.write(#"{"aps":{"alert":"To a"}}"#, to: "a.json")
        let file = try campaign.directory.write(
            """
            {
              payload: "\(campaign.payloadFile)",
              arms: {
                a: { payload: "a.json", "collapse-id": "from-a" },
                b: { priority: 5 },
              },
            }
            """, to: "arms.json5")
        for hpack in ["strict", "compact"] {
            let server = try RecordingServer("arms", script: "arms.py")
            let finished = try Broadside.run(
                campaign.arguments(
                    to: server.endpoint,
                    options([
                        "--campaign", file, "--collapse-id", "all", "--hpack", hpack,
                        "--ledger", campaign.directory.fresh("ledger-\(hpack)"),
                    ]), without: ["payload"]), in: campaign.directory)
            #expect(finished.exitCode == 0, "\(finished.errors)")
            let answers = try server.events().filter { $0.event == "answer" }
            #expect(answers.count == Self.rowCount - count("holdout"))
            let armOfPath = Dictionary(
                uniqueKeysWithValues: (0..<Self.rowCount).map {
                    ("/3/device/\(tokens.token($0))", arms[$0])
                })
            for answer in answers {
                let isA = armOfPath[answer.path ?? ""] == "a"
                #expect(answer.action == (isA ? "from-a 10" : "all 5"))
                #expect(answer.body?.contains("To a") == isA)
            }
        }
    }

    @Test func `Shards, a resume and another night put each device into the same arm`() throws {
        let server = try RecordingServer()
        let first = try campaign.send(to: server.endpoint, options(["--limit", "150"]))
        #expect(first.exitCode == 0, "\(first.errors)")
        let resumed = try campaign.send(to: server.endpoint, options(["--resume"]))
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try exported() == (0..<Self.rowCount).map(expected))
        var merged: [[String]] = []
        for shard in 1...3 {
            let ledger = campaign.directory.fresh("shard-\(shard)")
            let finished = try campaign.send(
                to: server.endpoint, options(["--shard", "\(shard)/3", "--ledger", ledger]))
            #expect(finished.exitCode == 0, "\(finished.errors)")
            let export = try Broadside.run(
                ["ledger", "export", "--ledger", ledger], in: campaign.directory)
            merged += export.output.split(separator: "\n").dropFirst().map {
                let fields = $0.split(separator: ",", omittingEmptySubsequences: false)
                return [1, 2, 4, 9].map { String(fields[$0]) }
            }
        }
        let all = (0..<Self.rowCount).map { Array(expected($0).dropFirst()) }
        #expect(merged.sorted { $0[0] < $1[0] } == all.sorted { $0[0] < $1[0] })
    }

    @Test
    func `Another reason to skip a row comes before the holdout, and copies of it are held out`()
        throws
    {
        let held = (0..<Self.rowCount).filter { arms[$0] == "holdout" }
        let sent = (0..<Self.rowCount).filter { arms[$0] != "holdout" }
        let token = tokens.token
        let rows = [held[0], held[0], held[1], sent[0], sent[0], sent[1], held[2]].map(token)
        let list = try campaign.directory.write(
            rows.joined(separator: "\n") + "\nnonsense\n", to: "copies.txt")
        let optOuts = try campaign.directory.write(token(held[1]) + "\n", to: "opt-outs.txt")
        let options = options([
            "--tokens", list, "--suppress", optOuts, "--duplicates", "skip", "--max-invalid", "100",
        ])
        let dry = try campaign.send(to: "localhost:1", options + ["--dry-run"])
        #expect(dry.exitCode == 0, "\(dry.errors)")
        #expect(dry.output.contains("skipped      5: Suppressed 1, Duplicate 1, Holdout 3"))
        #expect(
            dry.output.contains("arms         a 45%, b 44.5%, holdout 10.5% (receives nothing)"))
        let server = try RecordingServer()
        let finished = try campaign.send(to: server.endpoint, options)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(
            try exported().map { $0[3] } == [
                "Holdout", "Holdout", "Suppressed", "", "Duplicate", "", "Holdout",
                "MalformedToken",
            ])
        #expect(
            try exported().map { $0[4] } == [
                "holdout", "holdout", "holdout", arms[sent[0]], arms[sent[0]], arms[sent[1]],
                "holdout", "",
            ])
    }

    @Test func `A preview shows a request for each arm, and a dry run counts its rows`() throws {
        let a = try campaign.directory.write(#"{"aps":{"alert":"To a"}}"#, to: "a.json")
        let preview = try campaign.send(
            to: "localhost:1", options(["--arm", "a=\(a)", "--preview", "1"]))
        #expect(preview.exitCode == 0, "\(preview.errors)")
        #expect(preview.output.contains(", arm a,") && preview.output.contains(", arm b,"))
        #expect(!preview.output.contains("arm holdout"))
        #expect(preview.output.contains("To a"))
        let dry = try campaign.send(to: "localhost:1", options(["--dry-run"]))
        #expect(dry.output.contains("by arm: a \(count("a")), b \(count("b"))"), "\(dry.output)")
    }

    @Test func `Rows that a run has not settled are exported with the arm of their token`() throws {
        let server = try RecordingServer()
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, options(["--rate", "5"])),
            in: campaign.directory)
        try sending.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        sending.send(signal: SIGTERM)
        let first = try sending.wait()
        #expect(first.exitCode == 3, "\(first.errors)")
        let open = try exported(["--state", "remaining", "--state", "in-doubt"])
        #expect(open.count > Self.rowCount / 2)
        for row in open {
            #expect(row[4] == arms[try #require(Int(row[0])) - 1])
        }
        let own = try exported(["--state", "remaining", "--arm", "a"])
        #expect(!own.isEmpty && own.allSatisfy { $0[4] == "a" })
    }

    @Test func `An export without rows says that --arm excludes those with the reason`() throws {
        let server = try RecordingServer()
        let sent = try campaign.send(to: server.endpoint, options([]))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let none = try campaign.ledger("export", ["--reason", "Holdout", "--arm", "a"])
        let held = "the ledger has \(count("holdout")) Holdout"
        #expect(
            none.errors.contains("\(held), but no row with this --reason meets --arm a"),
            "\(none.errors)")
        let own = try campaign.ledger("export", ["--reason", "Holdout", "--arm", "holdout"])
        #expect(own.exitCode == 0 && own.errors.isEmpty, "\(own.errors)")
    }

    @Test(arguments: [
        (["--split", "a=50"], "--split requires --split-salt"),
        (["--split-salt", "x"], "--split-salt requires --split"),
        (["--arm", "a=x.json"], "--arm requires --split"),
        (["--split", "a=50,a=1", "--split-salt", "x"], "--split 'a=50,a=1' has arm a twice"),
        (["--split", "a=50", "--split-salt", ""], "--split-salt takes 1 to 200 bytes"),
        (
            ["--split", "a=50", "--split-salt", "x", "--arm", "b=tokens.txt"],
            "--arm 'b' is not an arm"
        ),
        (
            ["--split", "a=50", "--split-salt", "x", "--arm", "holdout=x"],
            "holdout receives nothing"
        ),
        (["--split", "a=50", "--split-salt", "x", "--arm", "a"], "--arm 'a' is not ARM=FILE"),
        (
            ["--split", "a=50", "--split-salt", "x", "--arm-priority", "a=7"],
            "--arm-priority 'a=7' is not ARM=1|5|10"
        ),
        (
            [
                "--split", "a=50", "--split-salt", "x", "--arm-priority", "a=10", "--push-type",
                "background", "--payload-check", "off",
            ],
            "--arm-priority a=10 of a background push must be 5: 10 is refused"
        ),
        (["--split", "a=50", "--split-salt", "x", "--arm", "a=none.json"], "none.json"),
    ])
    func `A wrong option of arms is exit 2 and names what is wrong`(
        _ options: [String], _ words: String
    ) throws {
        let finished = try campaign.send(to: "localhost:1", options + ["--dry-run"])
        #expect(finished.exitCode == 2)
        #expect(finished.errorLines.count == 1, "\(finished.errors)")
        #expect(finished.errors.contains(words), "\(finished.errors)")
    }

    @Test(arguments: [
        ("{ arms: [] }", "line 1, column 9: 'arms' is an array"),
        ("{ arms: { a: 1 } }", "arm 'a' is a number"),
        ("{ arms: { a: { payloads: 'x' } } }", "unknown key 'payloads' of an arm"),
        ("{ arms: { a: { payload: 1 } } }", "'payload' is a number: it must be a string"),
        (
            "{ arms: { a: { payload: 'x' } },\n  arm: ['b=x'] }",
            "line 2, column 3: 'arm' is also set in 'arms': remove one of the two"
        ),
        ("{ 'arm-priority': 'b=5', arms: { a: { priority: 5 } } }", "'arm-priority' is also set"),
    ])
    func `Wrong arms of a campaign file are exit 2 and name their place`(
        _ text: String, _ words: String
    ) throws {
        let file = try campaign.directory.write(text, to: "wrong.json5")
        let finished = try campaign.send(
            to: "localhost:1", options(["--campaign", file, "--dry-run"]))
        #expect(finished.exitCode == 2)
        #expect(finished.errors.contains(words), "\(finished.errors)")
    }

    @Test func `A resume with another split is exit 2, and an unknown arm too`() throws {
        let server = try RecordingServer()
        let first = try campaign.send(to: server.endpoint, options(["--limit", "5"]))
        #expect(first.exitCode == 0, "\(first.errors)")
        let other = try campaign.send(
            to: server.endpoint, options(["--resume"], split: "a=50,b=39.5"))
        #expect(other.exitCode == 2)
        #expect(other.errors.contains("--split was a=45,b=44.5,holdout=10.5"), "\(other.errors)")
        let export = try campaign.ledger("export", ["--arm", "c"])
        #expect(export.exitCode == 2)
        #expect(export.errors.contains("name one of a, b, holdout"), "\(export.errors)")
    }
}
