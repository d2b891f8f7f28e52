import BroadsideTestSupport
import Foundation
import Testing

/// Files that are not lists of device tokens, and lists with something wrong in them: what each
/// command that reads lists says, before anything else is done.
@Suite(.timeLimit(.minutes(60)))
struct ListKindTests {
    private static let token = String(repeating: "ab", count: 32)
    private static let firebase =
        "dGhpc2lzYWRldmlj:APA91b" + String(repeating: "Hx-9_", count: 28)

    /// A file's name, its bytes, the words of the error.
    private static let foreign: [(name: String, bytes: [UInt8], says: [String])] = [
        ("a.xlsx", Array("PK\u{3}\u{4}....[Content_Types].xml".utf8), ["Excel", "CSV"]),
        ("a.zip", Array("PK\u{3}\u{4}....list.csv".utf8), ["zip archive"]),
        ("a.parquet", Array("PAR1\u{15}\u{4}".utf8), ["Parquet"]),
        ("a.csv.xz", [0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00, 0x00], ["xz"]),
        ("a.txt.bz2", Array("BZh91AY&SY".utf8), ["bzip2"]),
        ("mark.csv", [0xff, 0xfe] + wide("token\nabcd\n"), ["UTF-16", "iconv"]),
        ("wide.csv", wide("token\nabcd\n"), ["UTF-16", "iconv"]),
        (
            "array.json", Array(" [{\"token\":\"\(token)\"}]\n".utf8),
            ["JSON array", "one object per line, such as python3"]
        ),
        ("object.json", Array("{\n \"tokens\": [\"\(token)\"]\n}\n".utf8), ["JSON document"]),
        ("empty.json", Array("{\n \"a\": 1\n}\n".utf8), ["JSON document over several lines"]),
        ("fcm.txt", Array("\(firebase)\n\(firebase)\n".utf8), ["FCM", "APNs", "line 1"]),
        ("fcm.csv", Array("id,token\n1,\(firebase)\n".utf8), ["FCM", "'token'", "line 2"]),
        ("expo.txt", Array("ExponentPushToken[xxxxxxxxxxxxxxxxxxxxxx]\n".utf8), ["Expo"]),
        (
            "base64.txt", Array("q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=\n".utf8),
            ["base64", "hex"]
        ),
        (
            "base64.csv", Array("token,n\nq6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=,1\n".utf8),
            ["base64 in column 'token'", "write that column in hexadecimal"]
        ),
        ("quoted.txt", Array("\"\(token)\"\n'\(token)'\n".utf8), ["in quotes", "line 1"]),
        (
            "strings.jsonl", Array("\"\(token)\"\n\"\(token)\"\n".utf8),
            [
                "in quotes, the first on line 1, but each line of JSON Lines must be an object: "
                    + "remove the quotes; ", "one token per line",
            ]
        ),
        (
            "quoted.jsonl", Array("{\"token\":\"'\(token)'\"}\n".utf8),
            ["in quotes in column 'token'", "from that column"]
        ),
        (
            "firehose.jsonl", Array("{\"token\":\"\(token)\"}{\"token\":\"\(token)\"}".utf8),
            ["several JSON objects on the first line: write one per line, such as perl"]
        ),
        ("prefix.txt", Array("0x\(token)\n".utf8), ["0x"]),
        ("uuid.txt", Array("123E4567-E89B-12D3-A456-426614174000\n".utf8), ["UUID"]),
        (
            "psql.txt",
            Array(
                " token | country\n-------+-------\n \(token) | FR\n \(token) | DE\n(2 rows)\n".utf8
            ),
            ["a table with '|' between its columns", "psql --csv and bq query --format=csv"]
        ),
        (
            "psql.csv", Array("token|country\n\(token)|FR\n".utf8),
            ["a table with '|' between its columns", "psql --csv"]
        ),
        (
            "bq.csv",
            Array("+---+---+\n| token | c |\n+---+---+\n| \(token) | FR |\n+---+---+\n".utf8),
            ["a table with '|' between its columns", "bq query --format=csv"]
        ),
        (
            "rounded.csv", Array("token,n\n1.23457E+63,1\n".utf8),
            ["rounded ('1.23457E+63') in column 'token'", "column as text"]
        ),
        ("excel.csv", Array("token,n\n'\(token),1\n".utf8), ["texts of a spreadsheet", "line 2"]),
        (
            "numbers.csv", Array("Table 1\nid,device\n1,\(token)\n".utf8),
            ["column names on line 2 (id, device)", "--token-column", "tail -n +2"]
        ),
        ("headless.csv", Array("7,\(token)\n8,\(token)\n".utf8), ["no header", "column1,token"]),
        (
            "single.csv", Array("\(token)\n".utf8),
            ["no header", "add a first line with the word token, or "]
        ),
        ("twice.csv", Array("token,name,name\n\(token),a,b\n".utf8), ["two columns named 'name'"]),
        ("spoiled.csv", Array("token,\"a\"b\n\(token),x\n".utf8), ["header is malformed"]),
        (
            "lines.csv", Array("{\"id\":1,\"token\":\"\(token)\"}\n".utf8),
            ["has a JSON object on its first line, not the names of columns: ", "jsonl"]
        ),
        (
            "lines.tsv", Array("{\"token\": \"\(token)\"}\n".utf8),
            ["has a JSON object on its first line, not the names of columns: ", "jsonl"]
        ),
        ("near.csv", Array("id,tokn\n1,\(token)\n".utf8), ["did you mean 'tokn'?"]),
        ("cases.csv", Array("Token,TOKEN\n\(token),\(token)\n".utf8), ["Token, TOKEN"]),
    ]

    private static func wide(_ text: String) -> [UInt8] { text.utf8.flatMap { [$0, 0] } }

    /// The calls that read a list, of which nothing is left where it is refused.
    private static func calls(_ campaign: Campaign, _ file: String) -> [[String]] {
        [
            ["tokens", "check", "--tokens", file],
            ["tokens", "dedupe", "--tokens", file, "--output", "\(campaign.directory.path)/out"],
            [
                "prune", "--ledger", "none", "--tokens", file, "--output",
                "\(campaign.directory.path)/out",
            ],
            campaign.arguments(to: "127.0.0.1:1", ["--tokens", file, "--dry-run"]),
            campaign.arguments(to: "127.0.0.1:1", ["--tokens", file]),
            campaign.arguments(to: "127.0.0.1:1", ["--suppress", file]),
        ]
    }

    @Test(arguments: foreign.indices)
    func `A file that is not a list of tokens is refused and named by each command`(index: Int)
        throws
    {
        let (name, bytes, words) = Self.foreign[index]
        let campaign = try Campaign(rows: 1)
        let file = try campaign.directory.write(bytes, to: name)
        for arguments in Self.calls(campaign, file) {
            let finished = try Broadside.run(arguments, in: campaign.directory, limit: 120)
            #expect(finished.exitCode == 2, "\(arguments): \(finished.errors)")
            #expect(finished.errorLines.count == 1, "\(finished.errors)")
            for word in words { #expect(finished.errors.contains(word), "\(finished.errors)") }
            #expect(!finished.errors.contains(Self.token), "a token is shown: \(finished.errors)")
            #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
            #expect(!FileManager.default.fileExists(atPath: "\(campaign.directory.path)/out"))
        }
    }

    @Test func `The printed command for base64 tokens converts each alphabet and padding`() throws {
        let campaign = try Campaign(rows: 1)
        let letters = String(repeating: "q", count: 39)
        let file = try campaign.directory.write("_--_\(letters)\n/++/\(letters)=\n", to: "b64")
        let refused = try Broadside.run(
            ["tokens", "check", "--tokens", file], in: campaign.directory)
        let command = try #require(refused.errors.split(separator: ", such as ").last)
        let converted = try Subprocess.run(
            "bash", ["-c", "cd '\(campaign.directory.path)' && \(command)\ncat b64.fixed.txt"],
            in: campaign.directory)
        let bytes = try #require(Data(base64Encoded: "/++/\(letters)="))
        let token = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        #expect(converted.output == "\(token)\n\(token)\n", "\(command)")
    }

    @Test func `The printed command for objects on one line keeps strings and large numbers`()
        throws
    {
        let campaign = try Campaign(rows: 1)
        let first = #"{"token":"aa","name":"}{ \"} {","id":1234567890123456789}"#
        let second = #"{"token":"bb","more":{"a":{}}}"#
        let file = try campaign.directory.write("\(first)\(second) \(first)", to: "f.jsonl")
        let refused = try Broadside.run(
            ["tokens", "check", "--tokens", file], in: campaign.directory)
        let command = try #require(refused.errors.split(separator: ", such as ").last)
        let converted = try Subprocess.run(
            "bash", ["-c", "cd '\(campaign.directory.path)' && \(command)\ncat f.fixed.jsonl"],
            in: campaign.directory)
        #expect(converted.output == "\(first)\n\(second)\n\(first)", "\(command)")
    }

    @Test func `A URL as list is refused with the pipe that reads it`() throws {
        let campaign = try Campaign(rows: 1)
        for (address, says) in [
            ("s3://bucket/list.csv.gz", "aws s3 cp s3://bucket/list.csv.gz - |"),
            ("https://host/list?a=1&b", "curl -fsS 'https://host/list?a=1&b' |"),
            ("gs://bucket/list", "gcloud storage cat gs://bucket/list |"),
            ("hdfs://x/y", "copy it here first"),
            ("file:///tmp/list.csv", "is a URL: write the file's path, without file://"),
        ] {
            for arguments in Self.calls(campaign, address).dropLast() {
                let finished = try Broadside.run(arguments, in: campaign.directory, limit: 120)
                #expect(finished.exitCode == 2 && finished.errors.contains(says), "\(finished)")
            }
        }
    }

    @Test func `A pipe that is named as a file is refused with the way to read it`() throws {
        let directory = try TemporaryDirectory()
        let refused = try Subprocess(
            "bash",
            ["-c", "\"$0\" tokens check --tokens <(echo \(Self.token))", Broadside.path()],
            in: directory
        ).wait(limit: 120)
        #expect(refused.exitCode == 2, "\(refused.errors)")
        #expect(refused.errors.contains("is a pipe: use standard input, as in COMMAND | broadside"))
        let pipe = directory.fresh("pipe")
        #expect(mkfifo(pipe, 0o600) == 0)
        let unwritten = try Broadside.run(["tokens", "check", "--tokens", pipe], in: directory)
        #expect(unwritten.exitCode == 2 && unwritten.errors.contains("is a pipe: use standard"))
    }

    @Test func `Semicolons, a column name in another case and a JSON path are accepted`() throws {
        let directory = try TemporaryDirectory()
        for (name, text, more, says) in [
            ("a.csv", "\u{feff}Id;Token\r\n1;\(Self.token)\r\n", [], "';' between columns"),
            (
                "b.csv", "id,Device Token\n1,\(Self.token)\n", ["--token-column", "device token"],
                ""
            ),
            (
                "c.jsonl", "{\"device\":{\"token\":\"\(Self.token)\"}}\n",
                ["--token-column", "device.token"], ""
            ),
            ("d.jsonl", "{\"t\\u006fken\":\"\\u0061\(Self.token.dropFirst())\"}\n", [], ""),
        ] as [(String, String, [String], String)] {
            let file = try directory.write(text, to: name)
            let finished = try Broadside.run(
                ["tokens", "check", "--tokens", file] + more, in: directory, limit: 120)
            #expect(finished.exitCode == 0, "\(finished.errors)")
            #expect(finished.output.contains("valid        1\n"), "\(finished.output)")
            #expect(says.isEmpty || finished.output.contains(says), "\(finished.output)")
        }
    }

    @Test func `Zero bytes beyond a list's first rows are one warning, and an event in the report`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        var text = Array((0..<3_000).map { "\(hexToken($0))\n" }.joined().utf8)
        for index in (2_000 * 65 + 20)..<(2_060 * 65) { text[index] = 0 }
        let list = try campaign.directory.write(text, to: "hole.txt")
        let page = "\(campaign.directory.path)/page.html"
        let sent = try campaign.send(to: server.endpoint, ["--tokens", list, "--report", page])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let says = "hole.txt: the row on line 2001 contains zero bytes: the file is damaged, and"
        #expect(sent.errors.ranges(of: says).count == 1, "\(sent.errors)")
        #expect(try campaign.statistics().accepted == 2_939)
        let report = try String(contentsOfFile: page, encoding: .utf8)
        #expect(report.contains("line 2001 of the list contains zero bytes"))
        #expect(try server.finish().count == 2_939)
    }

    @Test func `A list that was cut in its last row is a warning`() throws {
        let campaign = try Campaign(rows: 5)
        let tokens = (0..<5).map { campaign.tokens.token($0) }
        let whole = tokens.joined(separator: "\n")
        let table = "token,name\n" + tokens.map { "\($0),Ann" }.joined(separator: "\n")
        let second = "n,token\n" + tokens.map { "1,\($0)" }.joined(separator: "\n")
        let zeros = whole + "\n" + String(repeating: "\0", count: 40)
        let lists: [(name: String, text: String, problem: String)] = [
            ("a.txt", whole, ""), ("b.txt", String(whole.dropLast(20)), "fewer digits than"),
            ("c.csv", table, ""), ("d.csv", String(table.dropLast(2)), ""),
            ("e.csv", String(table.dropLast(10)), "fewer fields than"),
            ("f.csv", String(second.dropLast(8)), "fewer digits"), ("g.txt", zeros, "zero bytes"),
            ("h.csv", table + "\n", ""),
            // Tokens of two lengths, the shorter one at the end.
            (
                "i.txt",
                tokens[0] + "\n" + tokens.map { $0 + tokens[1] }.joined(separator: "\n") + "\n"
                    + tokens.joined(separator: "\n"), ""
            ),
        ]
        for (name, text, problem) in lists {
            let list = try campaign.directory.write(text, to: name)
            let sent = try campaign.send(
                to: "127.0.0.1:1",
                ["--tokens", list, "--give-up-after", "1s", "--max-invalid", "50"])
            let checked = try Broadside.run(
                ["tokens", "check", "--tokens", list], in: campaign.directory, limit: 120)
            for errors in [sent.errors, checked.errors] {
                let count = errors.ranges(of: "the last row has no line end and ").count
                #expect(count == (problem.isEmpty ? 0 : 1), "\(name): \(errors)")
                #expect(problem.isEmpty || errors.contains(problem), "\(name): \(errors)")
            }
        }
    }

    @Test func `Files that were joined without a line break are named as such`() throws {
        let campaign = try Campaign(rows: 0)
        let rows = (0..<20).map { "\(hexToken($0)),Ann,Rome" }
        for (header, code, says) in [
            ("token,name,city", 0, "line 11 ends with the header and is invalid, because files"),
            (
                "token,city,name", 2,
                "line 11 ends with another header, with the columns token, city"
            ),
        ] as [(String, Int32, String)] {
            let first = "token,name,city\n" + rows[..<10].joined(separator: "\n")
            let list = try campaign.directory.write(
                "\(first)\(header)\n" + rows[10...].joined(separator: "\n") + "\n", to: "list.csv")
            for call in [
                ["tokens", "check", "--tokens", list],
                campaign.arguments(to: "127.0.0.1:1", ["--tokens", list, "--dry-run"]),
            ] {
                let finished = try Broadside.run(call, in: campaign.directory, limit: 120)
                #expect(finished.exitCode == code, "\(finished.errors)")
                #expect(finished.errors.contains(says), "\(finished.errors)")
            }
        }
    }

    @Test func `A list on standard input that was cut in its last row is a warning`() throws {
        let campaign = try Campaign(rows: 5)
        let list = try campaign.directory.write(
            String(decoding: campaign.tokens.list().dropLast(21), as: UTF8.self), to: "cut.txt")
        let piped = ["--tokens", "-", "--give-up-after", "1s", "--max-invalid", "50"]
        for arguments in [
            campaign.arguments(to: "127.0.0.1:1", piped + ["--dry-run"]),
            campaign.arguments(to: "127.0.0.1:1", piped),
            ["tokens", "check", "--tokens", "-"],
        ] {
            let done = try Broadside.run(
                arguments, in: campaign.directory, input: list, limit: 120)
            let count = done.errors.ranges(of: "the last row has no line end and fewer digits")
                .count
            #expect(count == 1, "\(arguments): \(done.errors)")
        }
    }

    /// A suppression list, the exit code of a dry run with it, and what it says.
    private static let suppressions: [(name: String, text: String, code: Int32, says: String)] = [
        ("a.txt", "", 0, "contains no rows"), ("b.csv", "token\n", 0, "contains no rows"),
        ("c.txt", "\(token)\nnone\nnor this\n", 2, "2 of 3 rows"),
        ("d.txt", "none\n", 2, "no device token"), ("e.jsonl", "{\"x\":1}\n", 2, "MissingColumn"),
        ("f.csv", "name,token\n\"Bob\nB,\(token)\nC,\"Di\"\n", 2, "line 2"),
        ("g.csv", "name,token\nA,\(token)\nB,\"\(token)\n", 2, "line 3"),
        ("h.csv", "name,token\nA,\(token)\n\"B\"x,\(token)\n", 2, "line 3"),
        ("i.txt", "\(token)\n", 0, ""),
    ]

    @Test(arguments: suppressions.indices)
    func `A suppression list that cannot be read is refused with its cause`(index: Int) throws {
        let (name, text, code, words) = Self.suppressions[index]
        let campaign = try Campaign(rows: 3)
        let file = try campaign.directory.write(text, to: name)
        let finished = try campaign.send(
            to: "127.0.0.1:1", ["--suppress", file, "--dry-run"], limit: 120)
        #expect(finished.exitCode == code, "\(finished.errors)")
        #expect(words.isEmpty || finished.errors.contains(words), "\(finished.errors)")
        #expect(words.isEmpty == finished.errors.isEmpty, "\(finished.errors)")
    }

    @Test func `Only a row that can be sent makes later ones duplicates`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(
            rows: 0, payload: #"{"aps":{"alert":"x","badge":"{{badge:int}}"}}"#)
        let (one, two) = (String(repeating: "11", count: 32), String(repeating: "22", count: 32))
        let others = (0..<20).map { "\(String(repeating: String(33 + $0), count: 32)),0\n" }
            .joined()
        let file = try campaign.directory.write(
            "token,badge\n\(one),many\n\(two),1\n\(one),2\n\(two),x\n\(one),3\n" + others,
            to: "list.csv")
        let sent = try campaign.send(
            to: server.endpoint, ["--tokens", file, "--duplicates", "skip"])
        let rows = try campaign.export()
        #expect(
            rows.prefix(6).map(\.reason) == ["BadValue", "", "", "Duplicate", "Duplicate", ""],
            "\(sent.errors)")
    }

    @Test
    func `A registered column that the list lacks is refused, and nothing is written`() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            "{\"token\":\"\(Self.token)\",\"since\":\"1\"}\n"
                + "{\"token\":\"\(Self.token)\",\"since\":\"2024-01-01T00:00:00\\u002B02:00\"}\n",
            to: "list.jsonl")
        let out = "\(directory.path)/out"
        let call = ["tokens", "dedupe", "--tokens", file, "--output", out, "--registered-column"]
        let refused = try Broadside.run(call + ["sinc"], in: directory, limit: 120)
        #expect(refused.exitCode == 2 && refused.errors.contains("did you mean since?"))
        #expect(!FileManager.default.fileExists(atPath: out))
        // Escapes in a value count: the newer row stays.
        let finished = try Broadside.run(call + ["since"], in: directory, limit: 120)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let kept = try String(contentsOfFile: out, encoding: .utf8)
        #expect(kept.contains("2024-01-01") && kept.split(separator: "\n").count == 1)
    }

    @Test func `A malformed record is invalid in each command and swallows no other row`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(
            rows: 0, payload: #"{"aps":{"alert":"Hi {{name|friend}}"}}"#)
        func token(_ number: Int) -> String { String(repeating: String(10 + number), count: 32) }
        let sound = (2..<32).map { "\"Di\",\(token($0))\n" }.joined()
        let file = try campaign.directory.write(
            "name,token\n\"Bob\"B,\(token(1))\n\(sound)Ann,\(token(40)),more", to: "list.csv")
        let checked = try Broadside.run(
            ["tokens", "check", "--json", "--tokens", file], in: campaign.directory, limit: 120)
        #expect(checked.output.contains("\"rows\":32,\"valid\":30,\"invalid\":2"), "\(checked)")
        #expect(checked.output.contains("\"malformed_row\":2"), "\(checked.output)")
        _ = try campaign.send(to: server.endpoint, ["--tokens", file])
        let rows = try campaign.export()
        #expect(rows.map(\.line) == Array(2...33))
        #expect(rows.filter { $0.reason == "MalformedRow" }.map(\.line) == [2, 33])
        let paths = try server.answers().compactMap(\.path).sorted()
        #expect(paths == (2..<32).map { "/3/device/" + token($0) })
        #expect(try campaign.ledger("verify").exitCode == 0)
    }
}
