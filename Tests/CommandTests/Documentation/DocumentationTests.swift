import BroadsideTestSupport
import Foundation
import Synchronization
import Testing

/// What README and docs show is true: their commands run, their options and links exist.
///
/// How a document says what can't be run here: `docs/README.md`.
@Suite(.timeLimit(.minutes(60)))
struct DocumentationTests {
    /// What people wrote; `docs/reference.md` is written by the command.
    static let documents: [String] = {
        let files = FileManager.default
        let pages = ["docs", "docs/how-to"].flatMap { folder in
            let names = try? files.contentsOfDirectory(atPath: Tool.packageRoot + "/" + folder)
            return (names ?? []).sorted().map { "\(folder)/\($0)" }
        }
        return ["README.md", "CONTRIBUTING.md"]
            + pages.filter { $0.hasSuffix(".md") && $0 != "docs/reference.md" }
    }()

    private static func text(_ document: String) throws -> String {
        try String(contentsOfFile: "\(Tool.packageRoot)/\(document)", encoding: .utf8)
    }

    /// Those with pieces that need a rare program.
    static let rareDocuments = documents.filter { document in
        (try? Self.text(document).contains("\n<!-- needs: ")) ?? true
    }

    @Test(arguments: documents)
    func `Each page's commands run, exit and print as the page says`(of document: String) throws {
        let story = try DocumentedStory(
            name: document, text: Self.text(document), isWhole: false)
        for finding in try story.run() { Issue.record("\(finding)") }
    }

    @Test(
        .needs(
            .duckDB, .go, .java, .node, .pandas, .perl, .php, .postgreSQL, .ruby, .systemd),
        arguments: rareDocuments)
    func `Pages that need rare programs run, exit and print as they say`(of document: String) throws
    {
        let story = try DocumentedStory(name: document, text: Self.text(document))
        for finding in try story.run() { Issue.record("\(finding)") }
    }

    @Test func `A page with a failing command or other output is found`() throws {
        func findings(_ text: String) throws -> [String] {
            try DocumentedStory(name: "page", text: text).run().map {
                String($0.prefix { $0 != "\n" })
            }
        }
        let sound = "<!-- test\nx=3\n-->\n<!-- exit 3 -->\n```sh\necho a; (exit $x)\n```\n"
        #expect(try findings(sound + "```text\n...\na\n```") == [])
        #expect(try findings(sound + "```text\nb\n```") == ["page:9: not printed: b"])
        #expect(
            try findings("\n```sh\ntrue\nfalse\ntrue\n```") == ["page:3: exit code 1, not 0"])
        #expect(
            try findings("```sh\ntrue\n```\n```sh\nexit 7\n```")
                == ["page:5: the shell ended with 7"])
        #expect(
            try findings("<!-- exit 3 -->\n```sh\ntrue\n```") == ["page:3: exit code 0, not 3"])
        #expect(
            try findings("```sh\nbroadside send --tokns x\n```") == ["page:2: exit code 2, not 0"])
        let check = OptionCheck(directory: try TemporaryDirectory())
        #expect(try check.findings(inBlock: "broadside send \\\n  --shard 1/3 > x") == [])
        #expect(
            try check.findings(inBlock: "x\nbroadside send --shards 1/3\ntools/tests").count == 2)
        for text in [
            "<!-- exist 3 -->", "<!-- needs: COBOL -->", "    broadside send", "```\n```",
            "```sh\ntrue", "```json\n{}\n```",
        ] {
            #expect(throws: TestFailure.self) { try findings(text) }
        }
    }

    @Test
    func `A section that needs a rare program is left out unless the whole page runs`() throws {
        let text = """
            # A

            <!-- needs: Go, DuckDB -->
            <!-- test
            x=3
            -->
            ```sh
            # No heading.
            false
            ```
            ```text
            a
            ```
            ## B

            ```sh
            echo "${x-b}"; (exit 4)
            ```
            """
        func findings(isWhole: Bool) throws -> [String] {
            try DocumentedStory(name: "page", text: text, isWhole: isWhole).run().map {
                String($0.prefix { $0 != "\n" })
            }
        }
        #expect(try findings(isWhole: true) == ["page:8: exit code 1, not 0"])
        #expect(try findings(isWhole: false) == ["page:17: exit code 4, not 0"])
    }

    @Test func `An example file that its reader refuses is found`() throws {
        let file = "<!-- read by: broadside payload check --payload shown.json5 -->\n```json\n"
        func findings(_ text: String) throws -> [String] {
            try DocumentedStory(name: "page", text: file + text + "\n```").run().map {
                String($0.prefix { $0 != "\n" })
            }
        }
        #expect(try findings(#"{"aps":{"alert":"Hi"}}"#) == [])
        #expect(try findings(#"{"aps":{"alert":"Hi"}"#) == ["page:3: exit code 2, not 0"])

        let check = OptionCheck(directory: try TemporaryDirectory())
        let options = try check.options()
        for (span, count) in [
            ("--on-lost record", 0), ("--on-loss record", 1), ("tools/test --nightly", 0),
            ("tools/test --weekly", 1), ("tools/tests", 1), ("broadside send --rates 1", 1),
            ("broadside ledger stats --ledger x", 0), ("-O --what", 0),
        ] {
            #expect(
                try check.findings(inSpan: span[...], options: options).count == count, "\(span)")
        }
        let block = "tools/test      # all of them\ntools/demo"
        #expect(try check.findings(inBlock: block, runBy: [".ci/run", "tools/test"]) == [])
        #expect(
            try check.findings(inBlock: block + " --rows 7\nx y", runBy: ["tools/test"])
                == ["tools/test", "tools/demo --rows 7", "x y"].map {
                    "not run by tools/test: \($0)"
                })
    }

    @Test(arguments: documents)
    func `Each option in a page exists, in blocks that are not run too`(of document: String) throws
    {
        let text = try Self.text(document)
        let check = OptionCheck(directory: try TemporaryDirectory())
        for piece in try DocumentedPiece.all(in: text, name: document) {
            var findings: [String] = []
            if case .runElsewhere(let scripts) = piece.kind {
                findings = try check.findings(inBlock: piece.text, runBy: scripts)
            } else if piece.kind == .notRun {
                findings = try check.findings(inBlock: piece.text)
            }
            for finding in findings { Issue.record("\(document):\(piece.line): \(finding)") }
        }
        let options = try check.options()
        try #require(options.count > 80)
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false)
            .enumerated()
        {
            for span in line.matches(of: /`([^`]+)`/) {
                for finding in try check.findings(inSpan: span.1, options: options) {
                    Issue.record("\(document):\(number + 1): \(finding)")
                }
            }
        }
    }

    @Test func `Each type, file and test suite that a page names exists`() throws {
        // All words of the sources and of their paths. These tools read them a hundred times faster than Swift's characters.
        let list = """
            cd "$0"
            files() { find . -path './.*' -prune -o -name '*.swift' "$@"; }
            { files -print; files -exec cat {} +; } | tr -cs 'A-Za-z0-9+' '\\n' | sort -u
            """
        let found = try Subprocess.run(
            "sh", ["-c", "export LC_ALL=C; " + list, Tool.packageRoot], in: TemporaryDirectory())
        let words = Set(
            found.output.utf8.split(separator: UInt8(ascii: "\n"))
                .map { String(decoding: $0, as: UTF8.self) })
        try #require(words.contains("DocumentationTests"))
        for document in ["docs/architecture.md", "docs/where-to-add.md"] {
            let page = try Self.text(document)
            for name in page.matches(of: /`([A-Z][A-Za-z0-9]+[a-z][A-Za-z0-9]*)(?:\.[a-z]\w*)?`/) {
                #expect(words.contains(String(name.1)), "\(document): \(name.1)")
            }
        }
        let tour = try Self.text("docs/architecture.md")
        let told = Set(tour.matches(of: /(?m)^\| `(\+[A-Z][A-Za-z]+)`/).map { String($0.1) })
        let reactor = words.filter { $0.prefixMatch(of: /ReactorStateMachine\+[A-Z]/) != nil }
        #expect(told == Set(reactor.map { String($0.dropFirst("ReactorStateMachine".count)) }))
        for filter in try Self.text("docs/reliability.md").matches(of: /--filter '?([A-Za-z\\|]+)/)
        {
            for name in filter.1.split(whereSeparator: { $0 == "|" || $0 == "\\" }) {
                #expect(words.contains { $0.contains(name) && $0.hasSuffix("Tests") }, "\(name)")
            }
        }
    }

    @Test(arguments: documents)
    func `Each link leads to a file and heading that exists`(of document: String) throws {
        let folder = URL(filePath: "\(Tool.packageRoot)/\(document)").deletingLastPathComponent()
        for link in try Self.text(document).matches(of: /\]\(([^)\s]+)\)/) {
            let parts = link.1.split(separator: "#", maxSplits: 1, omittingEmptySubsequences: false)
            if link.1.contains("://") { continue }
            let file =
                parts[0].isEmpty
                ? "\(Tool.packageRoot)/\(document)" : folder.appending(path: String(parts[0])).path
            #expect(FileManager.default.fileExists(atPath: file), "\(document): \(link.1)")
            guard parts.count == 2, file.hasSuffix(".md") else { continue }
            let anchors = try Self.anchors(of: file)
            #expect(anchors.contains(String(parts[1])), "\(document): no heading for \(link.1)")
        }
    }

    @Test func `The index of how-to leads to every section of its pages`() throws {
        let index = try Self.text("docs/how-to/README.md")
        var count = 0
        for document in Self.documents where document.hasPrefix("docs/how-to/") {
            let page = document.dropFirst("docs/how-to/".count)
            for heading in try Self.text(document).matches(of: /(?m)^## (.*)$/) {
                let link = "](\(page)#\(Self.anchor(heading.1)))"
                #expect(index.contains(link), "docs/how-to/README.md lacks \(link)")
                count += 1
            }
        }
        #expect(count > 20)
    }

    /// Of files that were read already, by path.
    private static let knownAnchors = Mutex<[String: Set<String>]>([:])

    /// The names under which a file's headings can be linked to.
    private static func anchors(of file: String) throws -> Set<String> {
        let path = URL(filePath: file).standardized.path
        if let known = knownAnchors.withLock({ $0[path] }) { return known }
        let lines = try String(contentsOfFile: path, encoding: .utf8)
            .split(separator: "\n").filter { $0.hasPrefix("#") }
        let found = Set(lines.compactMap { $0.wholeMatch(of: /#+ (.*)/).map { anchor($0.1) } })
        knownAnchors.withLock { $0[path] = found }
        return found
    }

    /// The name under which a heading can be linked to.
    private static func anchor(_ heading: Substring) -> String {
        heading.lowercased().filter { $0.isLetter || $0.isNumber || " -_".contains($0) }
            .replacing(" ", with: "-")
    }
}
