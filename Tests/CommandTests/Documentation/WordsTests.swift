import BroadsideTestSupport
import Foundation
import Testing

/// `tools/check-words`: what it finds, and how its counts become lower.
@Suite struct WordsTests {
    private static let tool = "\(Tool.packageRoot)/tools/check-words"

    /// A repository with the project's glossary, one module and these changes.
    private func tree(_ changes: [String: String]) throws -> TemporaryDirectory {
        let directory = try TemporaryDirectory()
        var files = [
            "docs/glossary.md": try String(
                contentsOfFile: "\(Tool.packageRoot)/docs/glossary.md", encoding: .utf8),
            "docs/page.md": "A response of 8 bytes.\n",
            "Sources/Low/Thing.swift": "/// What is wrong.\nlet message = \"it continues\"\n",
            "Tests/words.tsv": "# module, comments, identifiers\nSources/Low\t0\t0\n",
        ]
        files.merge(changes) { _, new in new }
        for (path, text) in files {
            let url = URL(filePath: "\(directory.path)/\(path)")
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: url, atomically: true, encoding: .utf8)
        }
        for arguments in [["init", "-q"], ["add", "."]] {
            let git = try Subprocess("git", ["-C", directory.path] + arguments, in: directory)
                .wait(limit: 60)
            #expect(git.exitCode == 0, "\(git.errors)")
        }
        return directory
    }

    private func check(
        _ directory: TemporaryDirectory, _ options: [String] = []
    ) throws -> Finished {
        try Subprocess("python3", [Self.tool] + options + [directory.path], in: directory)
            .wait(limit: 60)
    }

    @Test(
        arguments: [
            ("docs/page.md", "One\ntwo octets\n", "docs/page.md:2: \"octets\": write \"byte\""),
            (
                "Sources/Low/Thing.swift", "let a = 1\nlet b = \"it goes on\"\n",
                "Sources/Low/Thing.swift:2: \"goes on\": write \"continue\""
            ),
            (
                "Sources/Low/Thing.swift", "/// The answer.\n",
                "Sources/Low: words in comments: 1, at most 0"
            ),
            (
                "Sources/Low/Thing.swift", "precondition(a, \"the answer\")\n",
                "Sources/Low: words in comments: 1, at most 0"
            ),
            (
                "Sources/Low/Thing.swift", "let answerCount = 1\nlet b = answerCount\n",
                "Sources/Low: words in identifiers: 1, at most 0"
            ),
            (
                "Tests/LowTests/A.swift", "// Nobody reads.\n",
                "Tests/LowTests: words in comments: 1, at most 0"
            ),
        ])
    func `A word of the glossary is found in a page, a message, a comment and a name`(
        path: String, text: String, message: String
    ) throws {
        let found = try check(tree([path: text]))
        #expect(found.exitCode == 1)
        #expect(found.errors.contains(message), "\(found.errors)")
    }

    @Test func `A name that stays is not found in quotes, nor is code in a literal`()
        throws
    {
        let found = try check(
            tree([
                "docs/page.md":
                    "The key \"answer\", answers: {} and data_octets. A returned turn.\n",
                "Sources/Low/Thing.swift": "let text = \"the run \\(anew(1)) continues\"\n",
            ]))
        #expect(found.exitCode == 0 && found.errors.isEmpty, "\(found.errors)")
    }

    @Test func `Fewer words than a module's count fail until the count is lowered`() throws {
        let directory = try tree([
            "Sources/Low/Thing.swift": "/// The answer.\nlet answer = 1\n",
            "Tests/words.tsv": "Sources/Low\t3\t1\n",
        ])
        let before = try check(directory)
        #expect(before.exitCode == 1)
        #expect(before.errors.contains("words in comments: 1, but 3 in Tests/words.tsv"))
        #expect(try check(directory, ["--lower"]).exitCode == 0)
        let counts = try String(
            contentsOfFile: "\(directory.path)/Tests/words.tsv", encoding: .utf8)
        #expect(counts.hasSuffix("\nSources/Low\t1\t1\n"), "\(counts)")
        #expect(try check(directory).exitCode == 0)
        let list = try check(directory, ["--list", "Sources/Low"])
        #expect(list.output.contains("Sources/Low/Thing.swift:1: \"answer\""), "\(list.output)")
    }
}
