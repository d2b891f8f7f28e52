import BroadsideTestSupport
import Foundation
import Testing

/// `--max-invalid`: a list that is most likely the wrong one is refused before anything is connected,
/// by every command that reads it, and by all of them alike.
@Suite(.timeLimit(.minutes(60)))
struct InvalidListTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var file = "list.txt"
        var list: String
        var more: [String] = []
        /// What is wrong; nil: nothing.
        var says: [String]?

        var testDescription: String { name }
    }

    private static func token(_ row: Int) -> String {
        let digits = String(row + 1, radix: 16)
        return String(repeating: "0", count: 64 - digits.count) + digits
    }

    /// Rows of which those are invalid that are named so.
    private static func lines(_ count: Int, isInvalid: (Int) -> Bool) -> String {
        (0..<count).map { (isInvalid($0) ? "oops" : token($0)) + "\n" }.joined()
    }

    static let cases: [Case] = [
        .init(name: "an empty file", list: "", says: ["contains no rows"]),
        .init(name: "blank lines", list: "\n  \n\r\n", says: ["contains no rows"]),
        .init(
            name: "a header alone", file: "list.csv", list: "token\n", says: ["contains no rows"]),
        .init(
            name: "base64", list: "q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=\n",
            says: ["device tokens in base64", "line 1"]),
        .init(
            name: "another key", file: "list.jsonl", list: "{\"device\":\"\(token(1))\"}\n",
            says: ["no 'token'", "--token-column"]),
        .init(
            name: "NaN in JSON Lines", file: "list.jsonl",
            list: "{\"token\":\"\(token(1))\",\"x\":NaN}\n",
            says: ["line 1 is not a JSON object (column 81): this character is not allowed"]),
        .init(
            name: "commas after objects", file: "list.jsonl",
            list: "{\"token\":\"\(token(1))\"},\n",
            says: ["line 1 is not a JSON object (column 77): text after the end"]),
        .init(
            name: "single quotes in JSON Lines", file: "list.jsonl",
            list: "{'token':'\(token(1))'}\n",
            says: ["line 1 is not a JSON object (column 2)", "a wrong kind of quote"]),
        .init(
            name: "lines as JSON Lines", list: lines(3) { _ in false },
            more: ["--format", "jsonl"],
            says: ["line 1 is not a JSON object: is it a list with one token per line?"]),
        .init(
            name: "one of three", list: lines(3) { $0 == 1 },
            says: ["1 (33.3%) of the 3 rows", "line 2 is 'oops'", "--max-invalid, which is 10"]),
        .init(
            name: "one of three, wanted", list: lines(3) { $0 == 1 }, more: ["--max-invalid", "34"]
        ),
        .init(
            name: "none valid, wanted", list: lines(3) { _ in true },
            more: ["--max-invalid", "100"], says: ["all of its 3 rows are invalid"]),
        .init(
            name: "2,000 of which the last is valid, wanted", list: lines(2_000) { $0 < 1_999 },
            more: ["--max-invalid", "100"]),
        .init(
            name: "101 of the first 1,000", list: lines(5_000) { $0 >= 899 && $0 < 1_000 },
            says: ["101 (10.1%) of the 1,000 rows", "line 900"]),
        .init(name: "a tenth", list: lines(5_000) { $0 % 10 == 3 }),
        .init(
            name: "none may be", list: lines(5_000) { $0 == 77 }, more: ["--max-invalid", "0"],
            says: ["1 (0.1%) of the 1,000 rows", "line 78", "which is 0"]),
    ]

    @Test(arguments: cases)
    func
        `A list with too many invalid rows is refused alike by send, probe, dry run and tokens check`(
            example: Case
        ) throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let list = try campaign.directory.write(example.list, to: example.file)
        let dry = ["--dry-run", "--tokens", list] + example.more
        let send = ["--tokens", list] + example.more
        var probe = campaign.arguments(to: server.endpoint, send, without: ["payload", "ledger"])
        probe[0] = "probe"
        probe += ["--ledger", campaign.directory.path + "/probed"]
        let calls = [
            ["tokens", "check", "--tokens", list] + example.more,
            campaign.arguments(to: server.endpoint, dry), probe,
            campaign.arguments(to: server.endpoint, send),
        ]
        var told: Set<String> = []
        for call in calls {
            let done = try Broadside.run(call, in: campaign.directory, limit: 120)
            #expect(done.exitCode == (example.says == nil ? 0 : 2), "\(call[0]): \(done.errors)")
            for words in example.says ?? [] {
                #expect(done.errors.contains(words), "\(call[0]): \(done.errors)")
            }
            if example.says != nil { told.insert(done.errors) }
            // A list in base64 is refused before it is read to its end.
            let isCheck = call[1] == "check" && example.says != nil && example.name != "base64"
            #expect(done.output.contains("nothing would be sent") == isCheck, "\(done.output)")
        }
        #expect(told.count == (example.says == nil ? 0 : 1), "\(told)")
        let names = try campaign.directory.names(in: campaign.directory.path)
        #expect(names.contains("ledger") == (example.says == nil))
        #expect(names.contains("probed") == (example.says == nil))
        let requests = try server.finish()
        if example.says != nil { #expect(requests.isEmpty) }
    }

    @Test(arguments: ["-", "gz", "zst"])
    func `Too many invalid rows on standard input or in a compressed list are refused`(form: String)
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let text = Self.lines(2_000) { $0 % 5 == 0 }
        let input = try campaign.directory.write(text, to: "input.txt")
        var list = "-"
        if form == "gz" {
            list = try Packing.gzip.write(Array(text.utf8), to: "l.txt", in: campaign.directory)
        } else if form == "zst" {
            list = try Packing.zstd.write(Array(text.utf8), to: "l.txt", in: campaign.directory)
        }
        let sent = try Broadside.run(
            campaign.arguments(to: server.endpoint, ["--tokens", list]), in: campaign.directory,
            input: form == "-" ? input : nil, limit: 120)
        #expect(sent.exitCode == 2, "\(sent.errors)")
        #expect(sent.errors.contains("200 (20.0%) of the 1,000 rows"), "\(sent.errors)")
        let names = try campaign.directory.names(in: campaign.directory.path)
        #expect(!names.contains("ledger"))
        #expect(try server.finish().isEmpty)
    }

    /// The states of a ledger, those of earlier runs among them.
    private func counts(_ campaign: Campaign) throws -> SendSummary { try campaign.statistics() }

    @Test
    func
        `Too many invalid rows found while sending stop the run and its resumes until the option is raised`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let list = try campaign.directory.write(
            Self.lines(60_000) { $0 >= 1_000 }, to: "list.txt")
        let first = try campaign.send(
            to: server.endpoint, ["--tokens", list, "--reactors", "1"])
        #expect(first.exitCode == 4, "\(first.errors)")
        #expect(first.errors.contains("10,000 of the first 11,000 rows are invalid"))
        #expect(first.errors.contains("--max-invalid"), "\(first.errors)")
        let stopped = try counts(campaign)
        #expect(stopped.invalid == 10_000 && stopped.accepted <= 1_000)
        let again = try campaign.send(to: server.endpoint, ["--tokens", list, "--resume"])
        #expect(again.exitCode == 2, "\(again.errors)")
        #expect(again.errors.contains("raise --max-invalid to continue"), "\(again.errors)")
        #expect(try counts(campaign) == stopped)
        let wanted = try campaign.send(
            to: server.endpoint, ["--tokens", list, "--resume", "--max-invalid", "100"])
        #expect(wanted.exitCode == 0, "\(wanted.errors)")
        let all = try counts(campaign)
        #expect(all.accepted == 1_000 && all.invalid == 59_000 && all.remaining == 0)
        #expect(try campaign.ledger("verify").exitCode == 0)
    }

    @Test
    func `Too many invalid rows at the list's end are exit 4, and nothing sent leaves no ledger`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let list = try campaign.directory.write(
            Self.lines(4_000) { $0 >= 1_000 }, to: "list.txt")
        let sent = try campaign.send(to: server.endpoint, ["--tokens", list])
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(sent.errors.contains("3,000 of the first 4,000 rows"), "\(sent.errors)")
        #expect(try counts(campaign).accepted == 1_000)
        #expect(try counts(campaign).outcome == "aborted")
        // The same call says the same: a script that runs it again must not take it for done.
        let page = campaign.directory.path + "/page.html"
        for more in [[], ["--retry", "failed,unknown"]] {
            let again = try campaign.send(
                to: server.endpoint,
                ["--tokens", list, "--resume", "--summary", "-", "--report", page] + more)
            #expect(again.exitCode == 4, "\(again.errors)")
            #expect(again.errors.contains("3,000 of the first 4,000 rows"), "\(again.errors)")
            #expect(again.errors.contains("--max-invalid"), "\(again.errors)")
            #expect(try SendSummary(json: again.output).outcome == "aborted")
            let text = try String(contentsOfFile: page, encoding: .utf8)
            #expect(text.contains("All 4,000 rows are settled, but 3,000 of the first 4,000 rows"))
            #expect(text.contains("If the list is right as it is, record the campaign as complete"))
        }
        let wanted = try campaign.send(
            to: server.endpoint,
            [
                "--tokens", list, "--resume", "--max-invalid", "100", "--summary", "-", "--report",
                page,
            ])
        #expect(wanted.exitCode == 0, "\(wanted.errors)")
        #expect(
            wanted.errorLines.count == 1 && wanted.errors.contains("nothing is sent"),
            "\(wanted.errors)")
        #expect(try SendSummary(json: wanted.output).outcome == "complete")
        #expect(try !String(contentsOfFile: page, encoding: .utf8).contains("are settled, but"))
        // All commands report the outcome of the latest call.
        func expectAll(_ outcome: String) throws {
            #expect(try counts(campaign).outcome == outcome)
            let status = try Broadside.run(["status", campaign.ledger], in: campaign.directory)
            #expect(status.output.contains(outcome), "\(status.output)")
            let report = try Broadside.run(
                ["report", "--ledger", campaign.ledger], in: campaign.directory)
            #expect(report.output.contains(">\(outcome), 25.0% accepted"), "\(outcome)")
        }
        try expectAll("complete")
        let plain = try campaign.send(to: server.endpoint, ["--tokens", list, "--resume"])
        #expect(plain.exitCode == 4, "\(plain.errors)")
        try expectAll("aborted")
        let others = try campaign.directory.write(
            Self.lines(1_000) { _ in false }, to: "others.txt")
        let unsent = try campaign.send(
            to: server.endpoint,
            [
                "--tokens", list, "--suppress", others, "--ledger",
                campaign.directory.path + "/unsent",
            ])
        #expect(unsent.exitCode == 2, "\(unsent.errors)")
        #expect(unsent.errors.contains("nothing was sent"), "\(unsent.errors)")
        let names = try campaign.directory.names(in: campaign.directory.path)
        #expect(!names.contains("unsent"))
        #expect(try server.finish().count == 1_000)
    }

    @Test func `A resume with only invalid rows left is exit 4 if earlier runs have sent rows`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let list = try campaign.directory.write(
            Self.lines(4_000) { $0 >= 1_000 }, to: "list.txt")
        let sent = try campaign.send(to: server.endpoint, ["--tokens", list, "--limit", "1000"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let resumed = try campaign.send(
            to: server.endpoint, ["--tokens", list, "--resume", "--summary", "-"])
        #expect(resumed.exitCode == 4, "\(resumed.errors)")
        #expect(resumed.errors.contains("3,000 of the first 4,000 rows"), "\(resumed.errors)")
        #expect(!resumed.errors.contains("nothing was sent"), "\(resumed.errors)")
        #expect(try SendSummary(json: resumed.output).outcome == "aborted")
        #expect(try counts(campaign).accepted == 1_000)
    }

    @Test(arguments: [["--where", "country != DE"], [], ["--duplicates", "skip"]])
    func `A header among the rows is named, and the list is refused if its columns differ`(
        more: [String]
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let rows = (0..<40).map { "\(Self.token($0)),FR,no\n" }
        func list(_ header: String) throws -> String {
            try campaign.directory.write(
                "token,country,opted\n\(rows[..<20].joined())\(header)\n\(rows[20...].joined())",
                to: "list.csv")
        }
        for (header, says, code) in [
            ("Token,country,opted", "line 22 repeats the header and is not a device", 0),
            (
                "token,opted,country",
                "line 22 is another header, with the columns token, opted, country: join only", 2
            ),
            ("country,token,opted", "line 22 is another header, with the columns country,", 2),
        ] {
            let tokens = try list(header)
            let ledger = "\(campaign.directory.path)/\(header)"
            let options = ["--tokens", tokens, "--ledger", ledger] + more
            var calls = [
                campaign.arguments(to: server.endpoint, options + ["--dry-run"]),
                campaign.arguments(to: server.endpoint, options),
            ]
            if more.isEmpty { calls.append(["tokens", "check", "--tokens", tokens]) }
            for call in calls {
                let done = try Broadside.run(call, in: campaign.directory, limit: 120)
                #expect(done.exitCode == code, "\(call): \(done.errors)")
                #expect(done.errors.ranges(of: says).count == 1, "\(call): \(done.errors)")
            }
        }
        #expect(try server.finish().count == 40)
    }

    @Test func `Other headers behind the first rows of a run are one warning`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let rows = (0..<3_000).map { "\(Self.token($0)),FR,no\n" }
        for (header, count) in [("token,opted,country", 1), ("token,country,opted", 0)] {
            let list = try campaign.directory.write(
                "token,country,opted\n\(rows[..<2_000].joined())\(header)\n"
                    + "\(rows[2_000...].joined())\(header)\ntoken,FR,no\n", to: "list.csv")
            let sent = try campaign.send(
                to: server.endpoint,
                [
                    "--tokens", list, "--ledger", campaign.directory.path + "/sent\(count)",
                    "--log",
                    "text",
                ])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let words = " of the list is another header, with the columns token, opted"
            #expect(sent.errors.ranges(of: words).count == count, "\(sent.errors)")
            let same = "line 2002 of the list repeats the header and is not a device"
            #expect(sent.errors.ranges(of: same).count == 1 - count, "\(sent.errors)")
        }
        #expect(try server.finish().count == 6_000)
    }

    @Test(arguments: [[], ["--deliver-at", "00:00", "--zone-default", "UTC"]])
    func `Another header in the list of a campaign that has begun is a warning`(
        more: [String]
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let rows = (0..<40).map { "\(Self.token($0)),FR,no\n" }
        let list = try campaign.directory.write(
            "token,country,opted\n\(rows[..<20].joined())token,opted,country\n"
                + rows[20...].joined(), to: "list.csv")
        let options = ["--tokens", list] + more
        let begun = try campaign.send(to: server.endpoint, options + ["--limit", "10"])
        #expect(begun.exitCode == 0, "\(begun.errors)")
        let words = "line 22 is another header, with the columns token, opted, country: the values"
        for last in [["--dry-run"], []] {
            let resumed = try campaign.send(to: server.endpoint, options + ["--resume"] + last)
            #expect(resumed.exitCode == 0, "\(resumed.errors)")
            #expect(resumed.errors.ranges(of: words).count == 1, "\(resumed.errors)")
        }
        #expect(try server.finish().count == 40)
    }

    @Test func `Another header that is found with the time zones leaves no ledger`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let rows = (0..<1_100).map { "\(Self.token($0)),FR\n" }.joined()
        let local = ["--deliver-at", "00:00", "--zone-default", "UTC"]
        for (last, code) in [("country,token\n", 2), ("", 0)] as [(String, Int32)] {
            let list = try campaign.directory.write(
                "token,country\n\(rows)\(last)", to: "list.csv")
            let sent = try campaign.send(to: server.endpoint, ["--tokens", list] + local)
            #expect(sent.exitCode == code, "\(sent.errors)")
            #expect(sent.errors.contains("line 1102 is another header") == (code == 2))
        }
        #expect(try server.finish().count == 1_100)
    }

    @Test func `A row with the name of the token's column alone is an ordinary invalid row`() throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let rows = (0..<40).map { "\(Self.token($0)),FR\n" }.joined()
        let list = try campaign.directory.write(
            "token,country\n\(rows)token,FR\n", to: "list.csv")
        let options = ["--tokens", list, "--where", "country = FR"]
        for call in [
            ["tokens", "check", "--tokens", list],
            campaign.arguments(to: server.endpoint, options + ["--dry-run"]),
            campaign.arguments(to: server.endpoint, options),
        ] {
            let done = try Broadside.run(call, in: campaign.directory, limit: 120)
            #expect(done.exitCode == 0, "\(call): \(done.errors)")
            #expect(!done.errors.contains("header"), "\(call): \(done.errors)")
        }
        #expect(try server.finish().count == 40)
    }

    @Test func `Messages about malformed rows show no device token`() throws {
        let campaign = try Campaign(rows: 3)
        let tokens = (0..<3).map(campaign.tokens.token)
        for text in [tokens.joined(separator: "!"), "x" + tokens[0] + "\n", tokens[0] + "f\n"] {
            let list = try campaign.directory.write(text, to: "list.txt")
            for call in [
                ["tokens", "check", "--tokens", list],
                campaign.arguments(to: "127.0.0.1:1", ["--tokens", list]),
            ] {
                let refused = try Broadside.run(call, in: campaign.directory)
                #expect(refused.exitCode == 2, "\(refused.errors)")
                #expect(refused.errors.contains("\(tokens[0].prefix(8))…"), "\(refused.errors)")
                let told = refused.errors + refused.output
                #expect(!told.contains(tokens[0].prefix(9)), "\(told)")
            }
        }
    }

    @Test func `A canary counts invalid rows as refused`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let list = try campaign.directory.write(
            Self.lines(1_000) { (($0 * 7_919) >> 4) % 10 < 3 }, to: "list.txt")
        let options = ["--tokens", list, "--max-invalid", "100", "--canary", "100"]
        let refused = try campaign.send(to: server.endpoint, options)
        #expect(refused.exitCode == 4, "\(refused.errors)")
        #expect(refused.errors.contains("refused or invalid"), "\(refused.errors)")
        let passed = try campaign.send(
            to: server.endpoint, options + ["--resume", "--canary-max-rejected", "60"])
        #expect(passed.exitCode == 0, "\(passed.errors)")
    }

    @Test
    func `Rows invalid because of the payload count as invalid unless they are skipped`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(
            rows: 1, payload: #"{"aps":{"alert":"x","badge":"{{badge:int}}"}}"#)
        let rows = (0..<100).map { "\(Self.token($0)),\($0 < 50 ? "7" : "seven")\n" }
        let list = try campaign.directory.write("token,badge\n" + rows.joined(), to: "l.csv")
        for more in [["--dry-run"], []] {
            let sent = try campaign.send(to: server.endpoint, ["--tokens", list] + more)
            #expect(sent.exitCode == 2, "\(sent.errors)")
            #expect(sent.errors.contains("50 (50.0%) of the 100 rows"), "\(sent.errors)")
            #expect(sent.errors.contains("line 52 is BadValue"), "\(sent.errors)")
        }
        let others = (50..<100).map { Self.token($0) + "\n" }.joined()
        let skips = try campaign.directory.write(others, to: "others.txt")
        for more in [["--dry-run"], []] {
            let sent = try campaign.send(
                to: server.endpoint, ["--tokens", list, "--suppress", skips] + more)
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        #expect(try server.finish().count == 50)
    }

    @Test
    func `A part is judged by its own invalid rows, and one without rows is accepted`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        // By row numbers: all that is invalid is in the second part.
        let text = Self.lines(1_000) { $0 % 2 == 1 && $0 < 400 }
        let list = try Packing.gzip.write(Array(text.utf8), to: "l.txt", in: campaign.directory)
        let short = try campaign.directory.write(Self.lines(2) { _ in false }, to: "short.txt")
        func send(_ list: String, _ more: [String], _ ledger: String) throws -> Finished {
            try campaign.send(
                to: server.endpoint,
                ["--tokens", list, "--ledger", campaign.directory.path + "/" + ledger] + more)
        }
        #expect(try send(list, ["--shard", "1/2"], "one").exitCode == 0)
        let second = try send(list, ["--shard", "2/2"], "two")
        #expect(second.exitCode == 2, "\(second.errors)")
        #expect(second.errors.contains("200 (40.0%) of the 500 rows"), "\(second.errors)")
        #expect(try send(list, ["--shard", "2/2", "--dry-run"], "none").exitCode == 2)
        #expect(try send(list, ["--limit", "1"], "limit").exitCode == 0)
        #expect(try send(list, ["--limit", "4"], "more").exitCode == 2)
        for shard in 1...4 {
            let sent = try send(short, ["--shard", "\(shard)/4"], "short\(shard)")
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        #expect(try server.finish().count == 503)
    }

    @Test func `A dry run and send name the first invalid row of each reason, and its cause`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(
            rows: 1,
            payload: #"{"aps":{"alert":"Hi {{name}}","badge":"{{badge:int}}"},"x":"{{note|-}}"}"#)
        var text = Array("token,name,badge,note\n".utf8)
        for row in 0..<94 { text += "\(Self.token(row)),Ann,1,\n".utf8 }
        text += "\(Self.token(94)),J".utf8
        text.append(0xf6)
        text += "rg,1,\n\(Self.token(95)),\"Jim \\\"JJ\\\" Doe\",1,\n".utf8
        text += "ExponentPushToken[abcdefghijklmnopqrstuv],Bo,1,\noops,Cy,1,\n".utf8
        text += "\(Self.token(98)),Di\n\(Self.token(99)),Ed,1,".utf8
        text += String(repeating: "y", count: 5_000).utf8
        text += "\n".utf8
        let list = try campaign.directory.write(text, to: "list.csv")
        let explanations = [
            "1 BadValue",
            "on line 96, 'J\u{fffd}rg' in column 'name' is not UTF-8 text: write the list",
            "iconv -f ENCODING", "1 MalformedRow",
            #"the row on line 97 has quotes after backslashes (\") in a quoted field: write such"#,
            "2 MalformedToken", "line 98 is 'ExponentPushToken[",
            "; such rows have Expo push tokens",
            "1 MissingColumn", "line 100 has no 'badge', from which the payload is made",
            "1 PayloadTooLarge", "on line 101, the payload has more than 4,096 bytes; its longest",
            "value, in column 'note', has 5,000",
        ]
        let dry = try campaign.send(to: server.endpoint, ["--tokens", list, "--dry-run"])
        #expect(dry.exitCode == 0, "\(dry.errors)")
        #expect(dry.output.contains("invalid      6, the first on line 96\n"), "\(dry.output)")
        for words in explanations { #expect(dry.output.contains(words), "\(dry.output)") }
        let sent = try campaign.send(to: server.endpoint, ["--tokens", list])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let warnings = sent.errors.split(separator: "\n").filter {
            $0.contains("6 of the 100 rows read are invalid and will not be sent: ")
        }
        #expect(warnings.count == 1, "\(sent.errors)")
        for words in explanations {
            #expect(warnings.first?.contains(words) == true, "\(words): \(sent.errors)")
        }
        #expect(try server.finish().count == 94)
    }

    @Test func `A dry run names the column and the value of a wrong topic`()
        throws
    {
        let campaign = try Campaign(rows: 1)
        let rows = (0..<40).map {
            "\(Self.token($0)),\($0 < 38 ? "com.example.app" : "App Store")\n"
        }
        let list = try campaign.directory.write("token,app\n" + rows.joined(), to: "list.csv")
        let dry = try campaign.send(
            to: "localhost:1", ["--tokens", list, "--topic", "{{app}}", "--dry-run"])
        #expect(dry.exitCode == 0, "\(dry.errors)")
        #expect(
            dry.output.contains(
                "2 BadValue: on line 40, 'App Store' in column 'app' does not make a topic"),
            "\(dry.output)")
    }
}
