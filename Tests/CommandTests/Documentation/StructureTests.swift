import BroadsideTestSupport
import Foundation
import Testing

/// `tools/check-structure`: what it lets pass, and what it does not.
@Suite struct StructureTests {
    private static let table = """
        | Module | What it is | May import |
        | --- | --- | --- |
        | `Low` | below | `Glibc` |
        | `High` | above | `Low` |

        """

    /// A tree of two modules; the second has two folders.
    private func check(
        _ changes: [String: String] = [:]
    ) throws -> Finished {
        let directory = try TemporaryDirectory()
        var files = [
            "docs/architecture.md": Self.table,
            "Sources/Low/Thing.swift": "import Glibc\n\npackage struct Thing {}\n",
            "Sources/High/Upper/First.swift": "import Low\n\nstruct First { var second: Second }\n",
            "Sources/High/Lower/Second.swift":
                "import Low\n\n/// What First has.\nstruct Second { let text = \"First \\(Thing())\" }\n",
        ]
        files.merge(changes) { _, new in new }
        for (path, text) in files {
            let url = URL(filePath: "\(directory.path)/\(path)")
            try FileManager.default.createDirectory(
                at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try text.write(to: url, atomically: true, encoding: .utf8)
        }
        return try Subprocess(
            "python3", ["\(Tool.packageRoot)/tools/check-structure", directory.path], in: directory
        ).wait(limit: 60)
    }

    @Test func `check-structure accepts this tree and a small one`() throws {
        let directory = try TemporaryDirectory()
        let here = try Subprocess(
            "python3", ["\(Tool.packageRoot)/tools/check-structure"], in: directory
        ).wait(limit: 120)
        #expect(here.exitCode == 0, "\(here.output)")
        let small = try check()
        #expect(small.exitCode == 0 && small.output.isEmpty, "\(small.output)\(small.errors)")
    }

    @Test(arguments: [
        "struct Second { var first: First? }",
        "struct Second { let text = \"\\(First.self)\" }",
        "struct Second {}\nextension First {}",
        "struct Second { func make() { start() } }",
    ])
    func `check-structure finds a folder that uses one above it`(second: String) throws {
        let found = try check([
            "Sources/High/Lower/Second.swift": second + "\n",
            "Sources/High/Upper/Start.swift": "func start() {}\n",
        ])
        #expect(found.exitCode == 1)
        #expect(found.output.contains("a cycle of 2 folders: High/Lower, High/Upper"))
        #expect(found.output.contains("High/Lower -> High/Upper: Sources/High/Lower/Second.swift"))
    }

    @Test(arguments: ["Glibc", "Foundation", "CNghttp2"])
    func `check-structure finds an import that its table does not name`(name: String) throws {
        let found = try check(["Sources/High/Lower/More.swift": "internal import \(name)\n"])
        #expect(found.exitCode == 1)
        #expect(found.output.contains("Sources/High/Lower/More.swift imports \(name)"))
    }
}
