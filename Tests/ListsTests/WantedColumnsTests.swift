import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Testing

@testable import BroadsideLists

/// Files without columns, of which a payload needs one: the error names what the file is.
@Suite struct WantedColumnsTests {
    private let directory: TemporaryDirectory
    private let token = String(repeating: "ab", count: 32)

    init() throws { directory = try TemporaryDirectory() }

    private func refusal(
        _ content: String, named name: String = "tokens", isSpooled: Bool = true
    ) throws -> String? {
        let path = try directory.write(content, to: name)
        let failure = #expect(throws: BroadsideError.self) {
            _ = try TokenList(
                .file(path), format: nil, tokenColumn: nil,
                wanted: [("name", "--payload p.json, line 1")], isSpooled: isSpooled)
        }
        #expect(failure?.exitCode == 2)
        return failure?.message.replacing(path, with: name)
    }

    @Test(arguments: ["", "\n", " \r\n\n", "\u{FEFF}\n"])
    func `An input without text has no rows`(content: String) throws {
        let advice = "contains no rows: is it the right file?"
        #expect(try refusal(content) == "standard input \(advice)")
        for name in ["list.txt", "list.csv"] {
            #expect(
                try refusal(content, named: name, isSpooled: false) == "--tokens \(name) \(advice)")
        }
    }

    @Test func `A suppression list in CSV needs a header, but no rows`() throws {
        let directory = try TemporaryDirectory()
        for (content, isRefused) in [("", true), ("\n", true), ("token\n", false)] {
            let path = try directory.write(content, to: "opt-outs.csv")
            do throws(BroadsideError) {
                _ = try TokenList(
                    .file(path), format: nil, tokenColumn: nil, option: "suppress")
                #expect(!isRefused)
            } catch {
                #expect(isRefused && error.message.contains("write only the header"), "\(error)")
            }
        }
    }

    /// `send --suppress`, `ledger forget --tokens` and `report --receipts` have no option for a format.
    @Test(arguments: [
        ("a.csv", "token\tname\nT\tAnn\n", ", with tabs between them: ", "tsv", "tsv"),
        (
            "d.csv", "id\ttoken\tname, first\n1\tT\tAnn\n", ", with tabs between them: ", "tsv",
            "tsv"
        ),
        ("a.tsv", "token,name\nT,Ann\n", ", which are not tabs: ", "csv", "csv"),
        ("b.csv", "T\nT\n", ": add a first line with the word token, or ", "lines", "txt"),
        ("c.csv", "{\"token\":\"T\"}\n", ", not the names of columns: ", "jsonl", "jsonl"),
    ])
    func `Advice about a format names the option only of a list that has it`(
        name: String, content: String, beginning: String, format: String, ending: String
    ) throws {
        let path = try directory.write(content.replacing("T", with: token), to: name)
        for (option, hasFormatOption) in [
            ("tokens", true), ("tokens", false), ("suppress", true), ("receipts", true),
        ] {
            // Receipts need a second column.
            if option == "receipts", format == "lines" { continue }
            let failure = #expect(throws: BroadsideError.self) {
                _ = try TokenList(
                    .file(path), format: nil, tokenColumn: nil, option: option,
                    hasFormatOption: hasFormatOption)
            }
            let advice =
                option == "tokens" && hasFormatOption
                ? "add --format \(format)" : "let the file's name end in .\(ending)"
            #expect(failure?.message.hasSuffix(beginning + advice) == true, "\(option)")
        }
    }

    @Test func `Lines that are not objects get advice without an option that forget lacks`()
        throws
    {
        let path = try directory.write("\"\(token)\"\n\"\(token)\"\n", to: "strings.jsonl")
        for (hasFormatOption, advice) in [
            (true, "a list with one token per line needs --format lines"),
            (false, "let the name of a file with one token per line end in .txt"),
        ] {
            let failure = #expect(throws: BroadsideError.self) {
                _ = try TokenList(
                    .file(path), format: nil, tokenColumn: nil, hasFormatOption: hasFormatOption)
            }
            #expect(failure?.message.hasSuffix("; \(advice)") == true)
        }
    }

    @Test func `A table or tokens in base64 are named before the missing column`() throws {
        let table = "token|name\n\(token)|Ann\n\(token)|Bo\n(2 rows)\n"
        #expect(
            try refusal(table)?.hasPrefix("standard input holds rows of a table with '|'") == true)
        let base64 = "dGVzdHRlc3R0ZXN0dGVzdHRlc3R0ZXN0dGVzdHRlc3Q="
        #expect(try refusal(base64)?.contains("holds device tokens in base64") == true)
    }

    @Test func `A list of tokens lacks the column`() throws {
        let lines = "\(token)\n\(token)\n"
        #expect(
            try refusal(lines)
                == "--payload p.json, line 1: there is no column 'name', because standard input is "
                + "a plain list of lines, which has only the token: use a list with a header")
    }

    @Test func `A key that no path can name is named as such`() throws {
        let row = Array("{\"token\":\"\(token)\",\"u\":{\"k.l\":\"B\"}}\n".utf8)
        let list = try TokenList(
            lines: row, layout: RowLayout(format: .jsonl, names: ["token", "u.k.l"]))
        #expect(
            try list.keyAdvice(for: "u.k.l")
                == "a key inside an object can't be named if a key on its path contains a dot: rename "
                + "that key")
        #expect(try list.keyAdvice(for: "u.k")?.contains("has the keys token: name one") == true)
    }

    @Test func `Errors about a copy of standard input do not name the copy`() throws {
        #expect(
            try refusal("token,nme\n\(token),Ann\n")?.hasPrefix(
                "--payload p.json, line 1: standard input has no column 'name'") == true)
        #expect(try refusal("user,nme\n1,Ann\n")?.hasPrefix("standard input has no") == true)
    }
}
