import BroadsideTestSupport
import Foundation
import Testing

/// Tables and values as databases and programs write them: rows of two platforms, words for a missing
/// value, a first line for Excel, files that were joined.
@Suite(.timeLimit(.minutes(60)))
struct PlatformListTests {
    private static func android(_ number: Int) -> String {
        "fcm\(number):APA91b" + String(repeating: "x", count: 134)
    }

    /// Android's rows first.
    private static func table(android: Int, apple: Int) -> String {
        let tokens = DeviceTokens(count: 9)
        return "token,platform\n" + (0..<android).map { "\(Self.android($0)),android\n" }.joined()
            + (0..<apple).map { "\(tokens.token($0)),ios\n" }.joined()
    }

    @Test(arguments: [(20, 20), (1_500, 20), (30_000, 20)])
    func `A list of two platforms is refused with both counts, and sent if --max-invalid allows`(
        android: Int, apple: Int
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let list = try campaign.directory.write(
            Self.table(android: android, apple: apple), to: "platforms.csv")
        var told: Set<String> = []
        for call in [
            ["tokens", "check", "--tokens", list],
            campaign.arguments(to: server.endpoint, ["--tokens", list, "--dry-run"]),
            campaign.arguments(to: server.endpoint, ["--tokens", list]),
        ] {
            let done = try Broadside.run(call, in: campaign.directory, limit: 120)
            #expect(done.exitCode == 2, "\(done.errors)")
            told.insert(done.errors)
        }
        let message = try #require(told.first)
        #expect(told.count == 1, "\(told)")
        #expect(message.contains("FCM registration tokens (Firebase), the first on line 2;"))
        #expect(message.contains("or add --max-invalid 100 (now 10) to send without these rows"))
        let counted =
            android == 20
            ? ["20 (50.0%) of the 40 rows read are FCM", "20 have device tokens"]
            : [
                "1,000 (100.0%) of the 1,000 rows read are FCM",
                "the first device token is on line \(android == 1_500 ? "1,502" : "30,002")",
            ]
        for words in counted { #expect(message.contains(words), "\(message)") }
        let sent = try campaign.send(
            to: server.endpoint, ["--tokens", list, "--max-invalid", "100"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try campaign.statistics().accepted == apple)
        // What has no such option reads it too, and keeps the rows.
        let out = "\(campaign.directory.path)/out.csv"
        let pruned = try Broadside.run(
            ["prune", "--ledger", campaign.ledger, "--tokens", list, "--output", out],
            in: campaign.directory, limit: 120)
        #expect(pruned.exitCode == 0, "\(pruned.errors)")
        #expect(try Data(contentsOf: URL(filePath: out)) == Data(contentsOf: URL(filePath: list)))
        _ = try server.finish()
    }

    @Test(arguments: [20, 0])
    func `A list of two platforms on a pipe is judged by all of its rows`(apple: Int) throws {
        let directory = try TemporaryDirectory()
        let list = try directory.write(Self.table(android: 10_000, apple: apple), to: "list.csv")
        func check(_ more: [String]) throws -> Finished {
            // No file that can be read again.
            try Subprocess(
                "/bin/sh",
                [
                    "-c",
                    "cat '\(list)' | '\(try Broadside.path())' tokens check --tokens - "
                        + more.joined(separator: " "),
                ], in: directory
            ).wait(limit: 120)
        }
        let refused = try check([])
        #expect(refused.exitCode == 2, "\(refused.errors)")
        #expect(refused.errors.contains("FCM registration tokens"), "\(refused.errors)")
        let all = try check(["--max-invalid", "100"])
        #expect(all.exitCode == (apple > 0 ? 0 : 2), "\(all.errors)")
        #expect(all.output.contains("valid        \(apple)\n"), "\(all.output)")
    }

    @Test func `A mixed list of lines gets a command that keeps the other rows`() throws {
        let directory = try TemporaryDirectory()
        let tokens = (0..<4).map { DeviceTokens(count: 9).token($0) }
        let file = try directory.write(
            "0x\(tokens[0])\n\(tokens[1])\n0x\(tokens[2])\n\(tokens[3])\nno\n", to: "list.txt")
        let refused = try Broadside.run(
            ["tokens", "check", "--tokens", file], in: directory, limit: 120)
        for words in [
            "2 (40.0%) of the 5 rows read are device tokens with 0x in front, the first on line 1",
            "1 other row is invalid", "2 have device tokens",
            "or fix the rows: remove 0x, such as ",
        ] { #expect(refused.errors.contains(words), "\(refused.errors)") }
        let command = try #require(refused.errors.components(separatedBy: ", such as ").last)
        let done = try Subprocess.run(
            "/bin/sh", ["-c", "cd '\(directory.path)' && \(command)cat list.fixed.txt"],
            in: directory)
        #expect(done.output == tokens.joined(separator: "\n") + "\nno\n", "\(done.errors)")
    }

    @Test(arguments: ["sep=;\r\n", "\u{feff}sep=;\n", "\"sep=;\"\r\n", "SEP=;\n", "sep=;\n\n"])
    func `A sep= line is neither header nor row and stays in copies`(
        line: String
    ) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 1, payload: #"{"aps":{"alert":"Hi {{name}}"}}"#)
        let tokens = (0..<5).map { DeviceTokens(count: 9).token($0) }
        let text =
            line + "token;name\n" + tokens.map { "\($0);A,n,n\n" }.joined() + "\(tokens[0]);B\n"
        let blank = line.hasSuffix("\n\n") ? 1 : 0
        let list = try campaign.directory.write(text, to: "list.csv")
        let found = try Broadside.run(
            ["tokens", "check", "--tokens", list, "--duplicates"], in: campaign.directory,
            limit: 120)
        #expect(found.output.contains("valid        6\n"), "\(found.output)\(found.errors)")
        #expect(
            found.output.contains("line \(8 + blank): first on line \(3 + blank)"),
            "\(found.output)")
        let sent = try campaign.send(to: server.endpoint, ["--tokens", list])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try campaign.export().map(\.line) == (3...8).map { $0 + blank })
        let out = "\(campaign.directory.path)/out.csv"
        let deduped = try Broadside.run(
            ["tokens", "dedupe", "--tokens", list, "--output", out], in: campaign.directory,
            limit: 120)
        #expect(deduped.exitCode == 0, "\(deduped.errors)")
        let rest = "\(tokens[0]);B\n"
        #expect(
            try Data(contentsOf: URL(filePath: out)) == Data(text.utf8.dropLast(rest.utf8.count)))
        let pruned = try Broadside.run(
            [
                "prune", "--ledger", campaign.ledger, "--tokens", list, "--output", out + "2",
                "--removed", out + "3",
            ], in: campaign.directory, limit: 120)
        #expect(pruned.exitCode == 0, "\(pruned.errors)")
        #expect(try Data(contentsOf: URL(filePath: out + "2")) == Data(text.utf8))
        #expect(pruned.errors.contains("rows         6\n"), "\(pruned.errors)")
    }

    @Test func `A sep= line stays with the rows that prune removes`() throws {
        let server = try LocalAPNs(["--unregistered", "1"])
        let campaign = try Campaign(rows: 1)
        let text = "sep=;\ntoken;name\n\(campaign.tokens.token(0));Ann\n"
        let list = try campaign.directory.write(text, to: "list.csv")
        #expect(try campaign.send(to: server.endpoint, ["--tokens", list]).exitCode == 0)
        let (out, removed) = ("\(campaign.directory.path)/out", "\(campaign.directory.path)/gone")
        let pruned = try Broadside.run(
            [
                "prune", "--ledger", campaign.ledger, "--tokens", list, "--output", out,
                "--removed", removed,
            ], in: campaign.directory, limit: 120)
        #expect(pruned.exitCode == 0, "\(pruned.errors)")
        #expect(try String(contentsOfFile: out, encoding: .utf8) == "sep=;\ntoken;name\n")
        #expect(try String(contentsOfFile: removed, encoding: .utf8) == text)
        _ = try server.finish()
    }

    @Test func `A line with two tokens is a warning with its line number`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        let tokens = (0..<12).map { DeviceTokens(count: 20).token($0) }
        let text = tokens.enumerated().map { $0.offset == 4 ? $0.element : $0.element + "\n" }
            .joined()
        let plain = try campaign.directory.write(text, to: "glued.txt")
        let members = try campaign.directory.write(
            try ["", "\n"].enumerated().flatMap { index, end in
                let half = tokens[(index * 5)...].prefix(index == 0 ? 5 : 7)
                let file = try Packing.gzip.write(
                    Array((half.joined(separator: "\n") + end).utf8), to: "m\(index)",
                    in: campaign.directory)
                return try Array(Data(contentsOf: URL(filePath: file)))
            }, to: "glued.gz")
        for list in [plain, members] {
            let ledger = list + ".ledger"
            for call in [
                ["tokens", "check", "--tokens", list],
                campaign.arguments(to: server.endpoint, ["--tokens", list, "--dry-run"]),
                campaign.arguments(to: server.endpoint, ["--tokens", list, "--ledger", ledger]),
            ] {
                let done = try Broadside.run(call, in: campaign.directory, limit: 120)
                #expect(done.exitCode == 0, "\(done.errors)")
                #expect(
                    done.errors.contains(
                        "the token on line 5 has 128 digits, as many as two tokens of 64: were files joined"
                    ),
                    "\(call[0]): \(done.errors)")
            }
        }
        // Tokens of several kinds are no two in one.
        let live = tokens.map { $0 + "\n" }.joined() + String(repeating: "ab", count: 80) + "\n"
        let list = try campaign.directory.write(live, to: "live.txt")
        let quiet = try Broadside.run(
            ["tokens", "check", "--tokens", list], in: campaign.directory, limit: 120)
        #expect(quiet.errors.isEmpty, "\(quiet.errors)")
        _ = try server.finish()
    }

    @Test func `Words for a missing value are a warning`() throws {
        let campaign = try Campaign(rows: 1, payload: #"{"aps":{"alert":"Hi {{name}}"}}"#)
        let tokens = (0..<20).map { DeviceTokens(count: 20).token($0) }
        let rows = tokens.enumerated().map {
            "\($0.element),\($0.offset % 7 == 2 ? "None" : "Ann")\n"
        }
        let list = try campaign.directory.write(
            "token,name\n\(rows.joined())NULL,Bo\n", to: "list.csv")
        let found = try Broadside.run(
            ["tokens", "check", "--tokens", list], in: campaign.directory, limit: 120)
        #expect(found.exitCode == 0, "\(found.errors)")
        for words in [
            "line 22 has the word 'NULL' in column 'token':",
            "line 4 has the word 'None' in column 'name', and so do 2 more rows:",
        ] { #expect(found.errors.contains(words), "\(found.errors)") }
        let dry = try campaign.send(to: "127.0.0.1:1", ["--tokens", list, "--dry-run"])
        #expect(
            dry.exitCode == 0 && dry.errors.contains("'None' in column 'name'"), "\(dry.errors)")
        let lines = try campaign.directory.write(
            tokens.map { $0 + "\n" }.joined() + "nan\n", to: "list.txt")
        let plain = try Broadside.run(
            ["tokens", "check", "--tokens", lines], in: campaign.directory, limit: 120)
        #expect(
            plain.errors.contains("line 21 has the word 'nan': such a word is sent as text"),
            "\(plain.errors)")
    }

    @Test func `Escapes in the values of a TSV list are a warning, in CSV they are text`() throws {
        let campaign = try Campaign(rows: 1, payload: #"{"aps":{"alert":"Hi {{name}}"}}"#)
        let names = ["Ann", #"Bo\nB"#, #"C:\\d"#, #"\N"#, #"tab\t"#, #"\d \"#]
        let rows = names.enumerated().map { (DeviceTokens(count: 20).token($0.offset), $0.element) }
        let list = try campaign.directory.write(
            "token\tname\n" + rows.map { "\($0.0)\t\($0.1)\n" }.joined(), to: "list.tsv")
        let words = #"line 3 has the escape '\n' in column 'name', and so do 2 more rows:"#
        let found = try Broadside.run(
            ["tokens", "check", "--tokens", list], in: campaign.directory, limit: 120)
        #expect(found.exitCode == 0 && found.errors.split(separator: "\n").count == 2)
        #expect(found.errors.contains("line 7 has a text that ends with a backslash:"))
        #expect(found.errors.contains(words), "\(found.errors)")
        let dry = try campaign.send(
            to: "127.0.0.1:1", ["--tokens", list, "--dry-run", "--max-invalid", "50"])
        #expect(dry.exitCode == 0 && dry.errors.contains(words), "\(dry.errors)")
        let csv = try campaign.directory.write(
            "token,name\n" + rows.map { "\($0.0),\($0.1)\n" }.joined(), to: "list.csv")
        let other = try Broadside.run(
            ["tokens", "check", "--tokens", csv], in: campaign.directory, limit: 120)
        #expect(other.exitCode == 0 && !other.errors.contains("escape"), "\(other.errors)")
        #expect(other.errors.contains(#"line 5 has the word '\N' in column 'name'"#))
    }

    @Test func `A value of the wrong type is reported with its column`() throws {
        let campaign = try Campaign(
            rows: 1,
            payload: #"{"aps":{"alert":"{{name}}","badge":"{{badge:int}}"},"vip":"{{vip:bool}}"}"#)
        let token = campaign.tokens.token(0)
        for (row, says) in [
            ("A,1,perhaps", "BadValue, because 'perhaps' in column 'vip' is not true or false"),
            ("A,7.5,t", "BadValue, because '7.5' in column 'badge' is not a whole number"),
            ("A,\u{1b}[2J,t", "BadValue, because '\\u{1b}[2J' in column 'badge'"),
            ("A,\(token),t", "because '\(token.prefix(8))…' in column 'badge'"),
            ("A,\(String(repeating: "y", count: 300)),t", "\(String(repeating: "y", count: 40))…'"),
            ("A", "line 2 has no 'badge', from which the payload is made"),
            ("\(String(repeating: "z", count: 5_000)),1,t", "PayloadTooLarge"),
        ] {
            let list = try campaign.directory.write(
                "token,name,badge,vip\n\(token),\(row)\n", to: "list.csv")
            for more in [["--dry-run"], []] {
                let sent = try campaign.send(to: "127.0.0.1:1", ["--tokens", list] + more)
                #expect(sent.exitCode == 2, "\(sent.errors)")
                #expect(
                    sent.errors.contains("line 2 is \(says)") || sent.errors.contains(says),
                    "\(sent.errors)")
                #expect(!sent.errors.contains(token), "\(sent.errors)")
            }
        }
        let rows = ["t,3.0", "F,2.00", "true,7", "0,0.0"].map { value in
            let (vip, badge) = (value.split(separator: ",")[0], value.split(separator: ",")[1])
            return "\(token),A,\(badge),\(vip)\n"
        }
        let list = try campaign.directory.write(
            "token,name,badge,vip\n" + rows.joined(), to: "list.csv")
        let shown = try campaign.send(
            to: "127.0.0.1:1", ["--tokens", list, "--preview", "4"], limit: 120)
        #expect(shown.exitCode == 0, "\(shown.errors)")
        for words in [
            "\"vip\":true", "\"vip\":false", "\"badge\":3", "\"badge\":2", "\"badge\":0",
        ] {
            #expect(shown.output.replacing(" ", with: "").contains(words), "\(shown.output)")
        }
    }

    @Test func `No key of a JSON row shows a device token`() throws {
        let directory = try TemporaryDirectory()
        let token = DeviceTokens(count: 9).token(0)
        for text in [
            "{\"a\":{\"\(token)\":{\"device\":1}}}\n", "{\"x\":1,\"\(token).token\":1}\n",
            "{\"\(token)\":1}\n", "{\"id\":1,\"ios:\(token)\":1}\n",
        ] {
            let file = try directory.write(text, to: "list.jsonl")
            let refused = try Broadside.run(
                ["tokens", "check", "--tokens", file], in: directory, limit: 120)
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(!refused.errors.contains(token.prefix(9)), "\(refused.errors)")
        }
    }
}
