import BroadsideTestSupport
import Foundation
import Testing

@Suite(.timeLimit(.minutes(60)))
struct TokensCommandTests {
    private func check(
        _ text: String, _ more: [String] = [], name: String = "list.txt"
    ) throws -> [String: Any] {
        let directory = try TemporaryDirectory()
        let file = try directory.write(text, to: name)
        let finished = try Broadside.run(
            ["tokens", "check", "--json", "--tokens", file] + more, in: directory, limit: 120)
        // Some lists have the word null in a token's place.
        let others = finished.errorLines.filter { !$0.contains("has the word 'null'") }
        guard finished.exitCode == 0, others.isEmpty else {
            throw TestFailure("exit \(finished.exitCode): \(finished.errors)")
        }
        let object = try JSONSerialization.jsonObject(with: Data(finished.output.utf8))
        return try #require(object as? [String: Any])
    }

    private func run(_ arguments: [String]) throws -> Finished {
        try Broadside.run(arguments, in: TemporaryDirectory(), limit: 120)
    }

    @Test(arguments: BrokenList.formats)
    func `tokens check finds the same broken rows in each format`(format: String) throws {
        let list = BrokenList(rowCount: 10_000)
        let found = try check(
            list.text(format), format == "txt" ? [] : ["--token-column", "device"],
            name: "list.\(format)")
        #expect(found["format"] as? String == (format == "txt" ? "lines" : format))
        #expect(found["rows"] as? Int == 10_000)
        #expect(found["invalid"] as? Int == 300)
        #expect(found["valid"] as? Int == 9_700)
        let bad = try #require(found["first_invalid"] as? [[String: Any]])
        let lines = bad.compactMap { $0["line"] as? Int }
        #expect(lines == list.firstBrokenLines(format))
    }

    @Test func `tokens check counts forms and lengths`() throws {
        let token = String(repeating: "ab", count: 32)
        let found = try check(
            "\(token)\n\n\(token.uppercased())\r\n  \(token) \n<abab cdcd>\nABcd\n\(token)\(token)\nxyz\n",
            ["--max-invalid", "20"])
        #expect(found["rows"] as? Int == 7 && found["valid"] as? Int == 6)
        #expect(found["with_capitals"] as? Int == 2)
        #expect(found["decorated"] as? Int == 2)
        #expect(found["shorter_than_64_digits"] as? Int == 2)
        #expect(found["digits"] as? [String: Int] == ["4": 1, "8": 1, "64": 3, "128": 1])
        let bad = try #require(found["first_invalid"] as? [[String: Any]])
        #expect(bad.first?["line"] as? Int == 8 && bad.first?["text"] as? String == "xyz")
    }

    @Test func `tokens check escapes the invisible characters of a token`() throws {
        let token = String(repeating: "ab", count: 32)
        let found = try check("\(token)\n\u{200b}\(token)\n", ["--max-invalid", "60"])
        let bad = try #require(found["first_invalid"] as? [[String: Any]])
        #expect((bad.first?["text"] as? String)?.hasPrefix("\\u{200b}abababab") == true, "\(bad)")
    }

    @Test func `tokens check counts duplicates in any form with their lines`() throws {
        let tokens = String(decoding: DeviceTokens(count: 1_000).list(), as: UTF8.self)
        let lines = tokens.split(separator: "\n").map(String.init)
        let copies = [lines[7].uppercased(), lines[3], " " + lines[7]]
        let text = tokens + copies.joined(separator: "\n") + "\n"
        let found = try check(text, ["--duplicates"])
        #expect(found["duplicates"] as? Int == 3)
        let places = try #require(found["first_duplicates"] as? [[String: Int]])
        #expect(
            places == [
                ["line": 1_001, "first_line": 8], ["line": 1_002, "first_line": 4],
                ["line": 1_003, "first_line": 8],
            ])
        #expect(try check(text)["duplicates"] == nil)
    }

    @Test func `tokens check prints what send would do`() throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            "id,token\n1,aabb\n2,zz\n3,z\u{1a}\n", to: "list.csv")
        let finished = try Broadside.run(
            ["tokens", "check", "--tokens", file, "--max-invalid", "70"], in: directory,
            limit: 120)
        #expect(finished.exitCode == 0 && finished.errors.isEmpty)
        #expect(finished.output.contains("csv, token in column 'token' of id, token"))
        #expect(finished.output.contains("line 3: MalformedToken 'zz'\n"))
        #expect(finished.output.contains("line 4: MalformedToken 'z\\u{1a}'\n"))
        #expect(finished.output.contains("1 would be sent, 2 recorded as invalid"))
    }

    @Test func `tokens check with missing or wrong options is exit 2`() throws {
        let directory = try TemporaryDirectory()
        let csv = try directory.write("id,device\n1,aabb\n", to: "list.csv")
        let open = try directory.write("\"token\naabb\n", to: "open.csv")
        for (arguments, says) in [
            (["tokens"], "check"), (["tokens", "chekc"], "did you mean check?"),
            (["tokens", "check"], "--tokens is missing"),
            (["tokens", "check", "--tokens", "/nowhere"], "/nowhere"),
            (["tokens", "check", "--tokens", csv], "its columns are id, device"),
            (["tokens", "check", "--tokens", open], "line 1 opens a quote that is never closed"),
            (["tokens", "check", "--tokens", csv, "--format", "xml"], "--format 'xml'"),
        ] {
            let finished = try run(arguments)
            #expect(finished.exitCode == 2 && finished.output.isEmpty)
            #expect(finished.errorLines.count == 1 && finished.errors.contains(says))
        }
    }
}

/// Rows of which some are broken, in each format that can say so.
struct BrokenList {
    static let formats = ["txt", "csv", "tsv", "jsonl"]

    /// What stands in a token's place; none is a token in any format.
    static let broken = [
        "xyz", "abc", "0x1234", String(repeating: "a", count: 202), "<aabb", "aa bb", "aabb-ccdd",
        "g" + String(repeating: "0", count: 63), "null", "ä",
    ]

    let rows: [String]

    init(rowCount: Int) {
        var rows = String(decoding: DeviceTokens(count: rowCount).list(), as: UTF8.self)
            .split(separator: "\n").map(String.init)
        for number in 0..<300 { rows[number * 33 + 5] = Self.broken[number % 10] }
        self.rows = rows
    }

    func text(_ format: String) -> String {
        switch format {
        case "csv":
            "id,device,note\n"
                + rows.enumerated().map { number, row in
                    number % 3 == 0 ? "\(number),\"\(row)\",\"a\nb\"\n" : "\(number),\(row),x\n"
                }.joined()
        case "jsonl":
            rows.enumerated().map { number, row in
                number % 99 == 5 && number < 9_900
                    ? "[\"\(row)\"]\n" : "{\"id\":[7],\"device\":\"\(row)\"}\n"
            }.joined()
        case "tsv": "id\tdevice\n" + rows.map { "7\t\($0)\n" }.joined()
        default: rows.map { $0 + "\n" }.joined()
        }
    }

    /// Where the first ten broken rows start.
    func firstBrokenLines(_ format: String) -> [Int] {
        (0..<10).map { number in
            let row = number * 33 + 5
            switch format {
            // Each third row goes over two lines.
            case "csv": return row + 2 + (row + 2) / 3
            case "tsv": return row + 2
            default: return row + 1
            }
        }
    }
}
