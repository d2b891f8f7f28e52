import BroadsideTestSupport
import Foundation
import Testing

/// `tools/check-structure`: what it lets pass, and what it does not.
@Suite struct StructureTests {
    /// The second table is of folders, whose names are not modules.
    private static let page = """
        | Module | What it is |
        | --- | --- |
        | `Support` | below |
        | `Rows` | above |

        | `Sources/Rows` | Contents |
        | --- | --- |
        | `Upper` | `Support` |

        """

    private static let package = """
        func module(_ folder: String, _ uses: [String] = []) -> Target { }
        let package = Package(targets: [
            // A comment: module("Rows", ["Policy"]),
            module("Support"),
            module(
                "Rows",
                [
                    "Support",
                ]),
        ])

        """

    /// A tree of two modules, changed; the second has two folders, and must not import Glibc.
    private func check(
        _ changes: [String: String] = [:]
    ) throws -> Finished {
        let directory = try TemporaryDirectory()
        var files = [
            "docs/architecture.md": Self.page,
            "Package.swift": Self.package,
            "Sources/Support/Thing.swift": "import Glibc\n\npackage struct Thing {}\n",
            "Sources/Rows/Upper/First.swift":
                "import BroadsideSupport\n\nstruct First { var second: Second }\n",
            "Sources/Rows/Lower/Second.swift":
                "import Support\n\n/// What First has.\nstruct Second { let text = \"First \\(Thing())\" }\n",
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
            "Sources/Rows/Lower/Second.swift": second + "\n",
            "Sources/Rows/Upper/Start.swift": "func start() {}\n",
        ])
        #expect(found.exitCode == 1)
        #expect(found.output.contains("a cycle of 2 folders: Rows/Lower, Rows/Upper"))
        #expect(found.output.contains("Rows/Lower -> Rows/Upper: Sources/Rows/Lower/Second.swift"))
    }

    @Test(arguments: [
        ("Glibc", "tools/check-structure does not allow that in Rows"),
        ("Foundation", "tools/check-structure does not allow that in Rows"),
        ("FoundationEssentials", "tools/check-structure does not allow that in Rows"),
        ("Testing", "tools/check-structure does not allow that in Rows"),
        ("CNghttp2", "in Package.swift, Rows does not depend on it"),
        ("BroadsidePolicy", "in Package.swift, Rows does not depend on it"),
    ])
    func `check-structure finds an import that a module must not have`(
        name: String, reason: String
    ) throws {
        let found = try check(["Sources/Rows/Lower/More.swift": "internal import \(name)\n"])
        #expect(found.exitCode == 1)
        let module = name.replacing("Broadside", with: "")
        #expect(
            found.output.contains("Sources/Rows/Lower/More.swift imports \(module): \(reason)"))
    }

    @Test func `check-structure finds a declared dependency that no file imports`() throws {
        let package = Self.package.replacing("\"Support\",", with: "\"Support\", \"CZlib\",")
        let found = try check(["Package.swift": package])
        #expect(found.exitCode == 1)
        #expect(
            found.output
                == "Package.swift: Rows depends on CZlib, but no file in Sources/Rows imports it\n")
    }

    @Test func `check-structure finds a module that it cannot find in Package.swift`() throws {
        let package = Self.package.replacing("module(\"Support\")", with: "module(support)")
        let found = try check(["Package.swift": package])
        #expect(found.exitCode == 1)
        #expect(found.output.contains("Package.swift: no declaration of Support has the form"))
    }

    @Test(arguments: [
        ("| `Rows` | above |\n", "", "lacks the module Rows"),
        (
            "| `Rows` | above |\n", "| `Rows` | above |\n| `Ring` | away |\n",
            "names Ring, which is not a module in Sources"
        ),
        (
            "| `Support` | below |\n| `Rows` | above |\n",
            "| `Rows` | above |\n| `Support` | below |\n",
            "has Rows above Support, which Rows depends on"
        ),
    ])
    func `check-structure finds a wrong row in the table of modules`(
        row: String, wrong: String, finding: String
    ) throws {
        let found = try check(["docs/architecture.md": Self.page.replacing(row, with: wrong)])
        #expect(found.exitCode == 1)
        #expect(found.output == "docs/architecture.md: the table of modules \(finding)\n")
    }
}
