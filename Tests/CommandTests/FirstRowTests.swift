import BroadsideTestSupport
import Foundation
import Testing

/// What is shown and checked of a template is what the first row that is sent gets.
@Suite(.timeLimit(.minutes(60)))
struct FirstRowTests {
    /// Options, and the name in the row that comes first with them; nil: none is shown.
    struct Example: CustomTestStringConvertible, Sendable {
        var options: [String]
        var name: String?
        var testDescription: String { options.joined(separator: " ") }

        init(_ options: String, _ name: String?) {
            self.options = options.split(separator: " ").map(String.init)
            self.name = name
        }
    }

    /// Rows with Ann, Bob, Cal, Dee, Eve and Flo; Dee's token is Ann's.
    private static let names = ["Ann", "Bob", "Cal", "Dee", "Eve", "Flo"]

    private let campaign: Campaign

    /// `%` in options is the directory: `list.csv`, the same compressed, and lists of opt-outs.
    init() throws {
        campaign = try Campaign(rows: 6, payload: #"{"aps":{"alert":"Hi {{name}}"}}"#)
        let token = { [campaign] in campaign.tokens.token($0 == 3 ? 0 : $0) }
        let rows = Self.names.indices.map {
            "\(token($0)),\(Self.names[$0]),\($0 == 0 ? 2 : 1)\n"
        }
        let list = try campaign.directory.write(
            "token,name,n\n" + rows.joined(), to: "list.csv")
        for (name, rows) in [("ann", [0]), ("two", [0, 1]), ("all", [0, 1, 2, 4, 5])] {
            _ = try campaign.directory.write(
                rows.map { token($0) + "\n" }.joined(), to: "\(name).txt")
        }
        _ = try Subprocess.run("gzip", ["-k", list], in: campaign.directory, limit: 60)
    }

    private func arguments(_ options: [String]) -> [String] {
        let list = options.contains("--tokens") ? [] : ["--tokens", "%/list.csv"]
        return (list + options).map { $0.replacing("%", with: campaign.directory.path) }
    }

    static let examples = [
        Example("", "Ann"),
        Example("--suppress %/ann.txt", "Bob"),
        Example("--suppress %/two.txt --limit 3", "Cal"),
        Example("--suppress %/two.txt --limit 2", nil),
        Example("--suppress %/all.txt", nil),
        Example("--shard 2/2", "Dee"),
        Example("--shard 2/2 --duplicates skip", "Eve"),
        Example("--shard 3/3 --suppress %/all.txt", nil),
        Example("--tokens %/list.csv.gz --shard 2/2", "Bob"),
        Example("--tokens %/list.csv.gz --shard 2/2 --suppress %/two.txt", "Flo"),
        Example("--tokens %/list.csv.gz --shard 2/2 --suppress %/two.txt --limit 1", nil),
        Example("--tokens %/list.csv.gz --shard 4/6 --duplicates skip", nil),
    ]

    @Test(arguments: examples)
    func `A dry run shows the alert of the first row that is sent`(_ example: Example) throws {
        let finished = try campaign.send(
            to: "localhost:1", arguments(example.options) + ["--dry-run"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let shown = finished.output.split(separator: "\n").first { $0.hasPrefix("alert ") }
        #expect(
            shown.map(String.init)
                == example.name.map { "alert        Hi \($0) (the first row's)" })
    }

    @Test(arguments: examples)
    func `The start of a run shows the alert of the first row that is sent`(_ example: Example)
        throws
    {
        let options = arguments(example.options)
        let finished = try campaign.send(
            to: "localhost:1",
            options + ["--progress", "auto", "--give-up-after", "1s"])
        for name in Self.names {
            #expect(
                finished.errors.contains("Hi \(name) (the first row's)") == (name == example.name),
                "\(finished.errors)")
        }
    }

    @Test func `The payload check takes the values of the first row that is sent`() throws {
        // Of Ann's row it is 2.
        let payload = try campaign.directory.write(
            #"{"aps":{"alert":"Hi {{name}}","relevance-score":"{{n:int}}"}}"#, to: "score.json")
        func check(_ options: String) throws -> Finished {
            let all = arguments(["--payload", payload] + Example(options, nil).options)
            let dry = try campaign.send(to: "localhost:1", all + ["--dry-run"])
            let preview = try campaign.send(to: "localhost:1", all + ["--preview", "1"])
            let sent = try campaign.send(to: "localhost:1", all + ["--give-up-after", "1s"])
            #expect(dry.errors == preview.errors)
            if dry.exitCode != 0 {
                #expect(sent.errors == dry.errors)
                #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
            } else {
                #expect(!sent.errors.contains("relevance"), "\(sent.errors)")
                #expect(sent.errors.contains("gave up on localhost:1"), "\(sent.errors)")
            }
            return dry
        }
        for options in ["", "--shard 1/2", "--tokens %/list.csv.gz --shard 1/2 --limit 1"] {
            let refused = try check(options)
            #expect(refused.exitCode == 2)
            #expect(
                refused.errors.contains(
                    "filled in by line 2 of the list: 'relevance-score' must be"),
                "\(options): \(refused.errors)")
        }
        for options in [
            "--suppress %/ann.txt", "--shard 2/2", "--tokens %/list.csv.gz --shard 2/2",
        ] {
            let taken = try check(options)
            #expect(taken.exitCode == 0, "\(options): \(taken.errors)")
        }
    }

    /// A member of `aps` with the column `v`, a wrong and a right value, and the words about the
    /// wrong one.
    static let wrongValues: [(String, String, String, String)] = [
        (
            #""badge":"{{v:int}}""#, "-1", "3",
            "on line 2, '-1' in column 'v' is not a badge, which is 0 or above"
        ),
        (
            #""interruption-level":"{{v}}""#, "timeSensitive", "active",
            "on line 2, 'timeSensitive' in column 'v' is not an interruption level (passive, "
        ),
    ]

    @Test(arguments: wrongValues)
    func `A wrong value of the first row makes this row invalid, and the others are sent`(
        member: String, wrong: String, right: String, says: String
    ) throws {
        let apns = try LocalAPNs()
        let many = try Campaign(rows: 20, payload: #"{"aps":{"alert":"x",\#(member)}}"#)
        let rows = (0..<20).map { "\(many.tokens.token($0)),\($0 == 0 ? wrong : right)\n" }
        let list = try many.directory.write("token,v\n" + rows.joined(), to: "list.csv")
        let dry = try many.send(to: apns.endpoint, ["--tokens", list, "--dry-run"])
        #expect(dry.exitCode == 0 && dry.output.contains(says), "\(dry.output)\(dry.errors)")
        let sent = try many.send(to: apns.endpoint, ["--tokens", list])
        #expect(sent.exitCode == 0 && sent.errors.contains(says), "\(sent.errors)")
        #expect(try many.export(["--state", "invalid"]).map(\.reason) == ["BadValue"])
        // Without the check, each row is sent.
        let unchecked = try many.send(
            to: apns.endpoint,
            ["--tokens", list, "--payload-check", "off", "--ledger", many.ledger + "2"])
        #expect(unchecked.exitCode == 0 && unchecked.errors.isEmpty, "\(unchecked.errors)")
        #expect(try apns.finish().count == 19 + 20)
    }

    @Test func `An alert that is empty in the first row that is sent is a warning`() throws {
        let few = try Campaign(rows: 0, payload: #"{"aps":{"alert":"{{body}}"}}"#)
        let rows = ["", "", "Hi"].enumerated().map { "\(hexToken($0.offset)),\($0.element)\n" }
        let list = try few.directory.write("token,body\n" + rows.joined(), to: "list.csv")
        let dry = try few.send(to: "localhost:1", ["--tokens", list, "--dry-run"])
        #expect(dry.exitCode == 0 && dry.errors.split(separator: "\n").count == 2)
        #expect(dry.errors.contains("filled in by line 2 of the list: 'alert' is empty"))
    }

    @Test func `Rows whose values leave the alert without text are counted by one warning`() throws
    {
        let campaign = try Campaign(rows: 4, payload: #"{"aps":{"alert":"{{body}}"}}"#)
        let rows = ["Hi", "", "  ", "Ho"].enumerated().map {
            "\(campaign.tokens.token($0.offset)),\($0.element)\n"
        }
        let list = try campaign.directory.write("token,body\n" + rows.joined(), to: "list.csv")
        for (payload, more) in [
            (#"{"aps":{"alert":"{{body|News}}"}}"#, []),
            (#"{"aps":{"alert":"{{body}}"}}"#, ["--payload-check", "off"]),
        ] {
            let file = try campaign.directory.write(payload, to: "other.json")
            let dry = try campaign.send(
                to: "localhost:1", ["--tokens", list, "--payload", file, "--dry-run"] + more)
            #expect(dry.exitCode == 0 && dry.errors.isEmpty, "\(dry.errors)")
        }
        let warning =
            "broadside: warning: --tokens \(list): 2 of 4 rows read make an alert without text, the "
            + "first on line 3: write a default for empty values, as in {{name|friend}}\n"
        let apns = try LocalAPNs()
        for more in [["--dry-run"], []] {
            let sent = try campaign.send(to: apns.endpoint, ["--tokens", list] + more)
            #expect(sent.exitCode == 0 && sent.errors == warning, "\(sent.errors)")
        }
        #expect(try apns.finish().count == 4)
    }

    @Test(arguments: [999, 2500])
    func `More suppressed rows than the first check reads do not hide the first row that is sent`(
        count: Int
    ) throws {
        let many = try Campaign(rows: count + 1)
        let token = many.tokens.token
        let list = try many.directory.write(
            "token,n\n" + (0...count).map { "\(token($0)),\($0 < count ? 1 : 2)\n" }.joined(),
            to: "list.csv")
        let optOuts = try many.directory.write(
            (0..<count).map { token($0) + "\n" }.joined(), to: "outs.txt")
        let payload = try many.directory.write(
            #"{"aps":{"alert":"Hi {{n}}","relevance-score":"{{n:int}}"}}"#, to: "score.json")
        for more in [["--dry-run"], ["--give-up-after", "1s"]] {
            let refused = try many.send(
                to: "localhost:1",
                ["--tokens", list, "--payload", payload, "--suppress", optOuts] + more)
            #expect(refused.exitCode == 2)
            #expect(
                refused.errors.contains("line \(count + 2) of the list: 'relevance-score' must be"),
                "\(refused.errors)")
        }
    }

    @Test(arguments: ["--suppress %/out.txt", "--duplicates skip", "--split a=99 --split-salt x"])
    func `A list with wrong values is refused before anything is sent, also if rows are skipped`(
        options: String
    ) throws {
        let server = try LocalAPNs()
        let many = try Campaign(
            rows: 2_000, payload: #"{"aps":{"alert":"x","badge":"{{n:int}}"}}"#)
        let rows = (0..<2_000).map { "\(many.tokens.token($0)),\($0 % 2 == 0 ? "7" : "x")\n" }
        let list = try many.directory.write("token,n\n" + rows.joined(), to: "list.csv")
        _ = try many.directory.write(many.tokens.token(0) + "\n", to: "out.txt")
        let all =
            ["--tokens", list]
            + Example(options.replacing("%", with: many.directory.path), nil).options
        for more in [["--dry-run"], ["--preview", "1"], [], ["--resume-or-begin"]] {
            let refused = try many.send(to: server.endpoint, all + more)
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(refused.errors.contains("%) of the 1,000 rows read are invalid, line "))
            #expect(refused.errors.contains(" is BadValue, because 'x' in column 'n'"))
            #expect(!FileManager.default.fileExists(atPath: many.ledger))
        }
        #expect(try server.finish().isEmpty)
    }

    @Test func `A suppression list without tokens in some rows is one warning`() throws {
        let optOuts = try campaign.directory.write(
            (1..<10).map { hexToken($0 + 5_000) + "\n" }.joined() + "none\n", to: "some.txt")
        let more = arguments(["--suppress", optOuts, "--give-up-after", "1s"])
        let finished = try campaign.send(to: "localhost:1", more)
        #expect(finished.errors.ranges(of: "1 of 10 rows contain no device token").count == 1)
    }

    @Test func `A suppression list with too many rows without a token is refused`() throws {
        let token = campaign.tokens.token
        let optOuts = try campaign.directory.write(
            (0..<4).map {
                $0 < 2
                    ? "{\"token\":\"\(token($0))\"}\n"
                    : "{\"device\":{\"token\":\"\(token($0))\"}}\n"
            }.joined(), to: "outs.jsonl")
        let more = arguments(["--suppress", optOuts, "--give-up-after", "1s"])
        for dry in [["--dry-run"], []] {
            let refused = try campaign.send(to: "localhost:1", more + dry)
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(
                refused.errors.contains(
                    "outs.jsonl: 2 of 4 rows contain no device token, the first on line 3, so these devices "
                        + "would get the push: correct the list, or raise --max-invalid, which is 10"
                ),
                "\(refused.errors)")
        }
        let taken = try campaign.send(
            to: "localhost:1", more + ["--dry-run", "--max-invalid", "50"])
        #expect(
            taken.exitCode == 0 && taken.errors.contains("these devices get the push"),
            "\(taken.errors)")
    }
}
