import BroadsideTestSupport
import Foundation
import Testing

/// Results that would look right without a word: an export without rows or in another format, a list
/// that is not UTF-8, a placeholder in another spelling.
@Suite(.timeLimit(.minutes(60)))
struct UnnamedMistakeTests {
    @Test func `An export is in the format of its file's name, and says if it has no row`() throws {
        let server = try LocalAPNs(["--unregistered", "1"])
        let campaign = try Campaign(rows: 3)
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        let folder = campaign.directory.path
        for (name, more, start) in [
            ("a.jsonl", [], "{"), ("a.NDJSON", [], "{"), ("a.csv", [], "line,"),
            ("a.txt", [], "line,"),
            ("b.jsonl", ["--format", "csv"], "line,"), ("a.json", ["--format", "jsonl"], "{"),
        ] {
            let output = "\(folder)/\(name)"
            let exported = try campaign.ledger("export", ["--output", output] + more)
            #expect(exported.exitCode == 0 && exported.errors.isEmpty, "\(exported.errors)")
            #expect(try String(contentsOfFile: output, encoding: .utf8).hasPrefix(start), "\(name)")
        }
        for (more, says) in [
            (["--reason", "Foo"], "0 rows are exported: the ledger has 3 Unregistered"),
            (["--state", "failed"], "0 rows are exported: ledger stats"),
            (["--state", "failed", "--format", "jsonl"], "0 rows are exported"),
            (
                ["--reason", "Unregistered", "--state", "failed"],
                "the ledger has 3 Unregistered, but no row with this --reason meets --state failed"
            ),
        ] {
            let none = try campaign.ledger("export", more)
            #expect(none.exitCode == 0 && none.errors.contains(says), "\(none.errors)")
        }
        for name in ["--reason", "--state"] {
            let refused = try campaign.ledger("export", [name, ""])
            #expect(refused.exitCode == 2 && refused.output.isEmpty, "\(refused.output)")
            #expect(refused.errors.contains("\(name) is empty"), "\(refused.errors)")
        }
        _ = try server.finish()
    }

    @Test func `A placeholder in another spelling is a warning, and the plan names both headers`()
        throws
    {
        let campaign = try Campaign(rows: 1, payload: #"{"aps":{"alert":"Hi {name}"}}"#)
        let token = campaign.tokens.token(0)
        for (name, text) in [
            ("people.csv", "token,Name,match\n\(token),Ann,7\n"),
            ("people.jsonl", "{\"token\":\"\(token)\",\"Name\":\"Ann\",\"match\":7}\n"),
        ] {
            let list = try campaign.directory.write(text, to: name)
            let dry = try campaign.send(
                to: "127.0.0.1:1",
                [
                    "--tokens", list, "--collapse-id", "{match}", "--expiration", "+2h",
                    "--dry-run",
                ])
            #expect(dry.exitCode == 0, "\(dry.errors)")
            #expect(dry.errors.contains("'{name}' is sent as it is"), "\(dry.errors)")
            #expect(dry.errors.contains("write {{Name}} for"), "\(dry.errors)")
            #expect(dry.errors.contains("--collapse-id: '{match}' is sent as it is"))
            #expect(dry.output.contains("\ncollapse ID  {match}\n"), "\(dry.output)")
            #expect(dry.output.contains("\nexpiration   2 h 00 m after the first start\n"))
        }
        let plain = try campaign.send(to: "127.0.0.1:1", ["--dry-run"])
        #expect(plain.exitCode == 0 && plain.errors.isEmpty, "\(plain.errors)")
        #expect(!plain.output.contains("collapse ID") && !plain.output.contains("expiration"))
    }

    @Test func `A list in a spreadsheet's encoding is named with the command that converts it`()
        throws
    {
        let campaign = try Campaign(rows: 1, payload: #"{"aps":{"alert":"Hi {{name}}"}}"#)
        let token = Array(campaign.tokens.token(0).utf8)
        let rows = Array("token,name\n".utf8) + token + Array(",Ren".utf8) + [0xe9, 0x0a]
        let list = try campaign.directory.write(rows, to: "excel.csv")
        let command = "iconv -f ENCODING -t UTF-8 < \(list) > excel.fixed.csv"
        let checked = try Broadside.run(
            ["tokens", "check", "--tokens", list], in: campaign.directory)
        #expect(checked.exitCode == 0 && checked.errors.contains(command), "\(checked.errors)")
        #expect(checked.errors.contains("the row on line 2 is not UTF-8"), "\(checked.errors)")
        let sent = try campaign.send(to: "127.0.0.1:1", ["--tokens", list, "--dry-run"])
        #expect(sent.exitCode == 2 && sent.errors.contains("(\(command))"), "\(sent.errors)")
        try Subprocess.run(
            "bash",
            [
                "-c",
                "cd '\(campaign.directory.path)' && "
                    + command.replacing("ENCODING", with: "WINDOWS-1252"),
            ], in: campaign.directory)
        let fixed = try Broadside.run(
            ["tokens", "check", "--tokens", "\(campaign.directory.path)/excel.fixed.csv"],
            in: campaign.directory)
        #expect(fixed.exitCode == 0 && fixed.errors.isEmpty, "\(fixed.errors)")
    }

    @Test func `Damaged texts are named wherever they are in the list`() throws {
        let campaign = try Campaign(rows: 1, payload: #"{"aps":{"alert":"Hi {{name}}"}}"#)
        let names = ["Ann", "O&#39;Hara", "J\u{fffd}rg", "[object Object]", "D&#39;Arcy"]
        let rows = names.enumerated().map { "\(hexToken($0.offset)),\($0.element)\n" }
        let list = try campaign.directory.write("token,name\n\(rows.joined())", to: "list.csv")
        let entity = "line 3 has '&#39;' in column 'name', and so does 1 more row: devices show"
        let lost = ["line 4 has U+FFFD", "line 5 has '[object Object]' in column 'name': "]
        let sent = try campaign.send(to: "127.0.0.1:1", ["--tokens", list, "--dry-run"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        for words in lost + [entity] { #expect(sent.errors.contains(words), "\(sent.errors)") }
        let checked = try Broadside.run(
            ["tokens", "check", "--tokens", list], in: campaign.directory)
        for words in lost { #expect(checked.errors.contains(words), "\(checked.errors)") }
        #expect(!checked.errors.contains("&#39;"), "\(checked.errors)")
    }

    @Test func `A description without quotes, arrays and an error of a storage service are named`()
        throws
    {
        let campaign = try Campaign(rows: 1)
        let token = hexToken(1)
        for (text, words) in [
            (
                "user,token,country\n1,{length = 32, bytes = 0x79ceeab9 ... 679c8c66 },DE\n",
                "such rows have descriptions of NSData ({length = ..., bytes = 0x... ... }) without "
                    + "their middle, which are not in quotes: their digits are lost"
            ),
            ("user,token\n1,\"{\(token),\(token)}\"\n", "arrays of device tokens ({...} or [...])"),
            (
                "user,token\n1,\"\(token)\n\(token)\"\n2,\(token)\n",
                "rows of several device tokens, the first on line 2"
            ),
            (
                "<?xml version=\"1.0\"?>\n<Error><Code>NoSuchKey</Code></Error>",
                " is the error NoSuchKey of a storage service, in XML: download the list again"
            ),
            ("<!DOCTYPE html><html><body>Log in</body></html>\n", " is an HTML page: "),
        ] {
            let list = try campaign.directory.write(text, to: "list.csv")
            let sent = try campaign.send(to: "127.0.0.1:1", ["--tokens", list, "--dry-run"])
            #expect(sent.exitCode == 2 && sent.errors.contains(words), "\(sent.errors)")
        }
    }

    @Test func `A token with a digit too few is shown with the number of its digits`() throws {
        let campaign = try Campaign(rows: 1)
        let cut = campaign.tokens.token(0).dropLast()
        let list = try campaign.directory.write("\(cut)\n\(cut)\n", to: "cut.txt")
        let sent = try campaign.send(to: "127.0.0.1:1", ["--tokens", list, "--dry-run"])
        #expect(sent.exitCode == 2 && sent.errors.contains("has 63 digits"), "\(sent.errors)")
        #expect(!sent.errors.contains(cut), "a token is shown")
    }
}
