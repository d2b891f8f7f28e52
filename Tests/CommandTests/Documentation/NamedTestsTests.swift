import BroadsideTestSupport
import Foundation
import Testing

/// Documents that promise something name the test that holds it; a test that is renamed must not
/// leave its name behind.
@Suite(.timeLimit(.minutes(60)))
struct NamedTestsTests {
    /// The suites of `Tests`, each with its test functions. A suite's are those of the files that
    /// declare or extend it.
    private static let suites: [String: Set<String>] = {
        var suites: [String: Set<String>] = [:]
        let root = Tool.packageRoot + "/Tests"
        let names = FileManager.default.enumerator(atPath: root)?.compactMap { $0 as? String }
        for name in names ?? [] where name.hasSuffix(".swift") {
            guard let text = try? String(contentsOfFile: "\(root)/\(name)", encoding: .utf8)
            else { continue }
            let functions = text.matches(of: /@Test\b[\s\S]*?\bfunc\s+`([^`\n]+)`/)
                .map { String($0.1) }
            for suite in text.matches(of: /\b(?:struct|class|extension)\s+(\w+Tests)\b/) {
                suites[String(suite.1), default: []].formUnion(functions)
            }
        }
        return suites
    }()

    private func lines(_ document: String) throws -> [(number: Int, text: Substring)] {
        let text = try String(
            contentsOfFile: "\(Tool.packageRoot)/docs/\(document).md", encoding: .utf8)
        return text.split(separator: "\n", omittingEmptySubsequences: false).enumerated()
            .map { ($0.offset + 1, $0.element) }
    }

    /// The tests that a line names: `Suite`, `Suite.Name of a test`, also after a folder.
    private func names(_ line: Substring) -> [(suite: String, function: String?)] {
        line.matches(of: /`(?:\w+\/)?(\w+Tests)(?:\.([^`]+))?`/).map {
            (String($0.1), $0.2.map(String.init))
        }
    }

    @Test(arguments: ["protocols", "reliability", "testing", "breaks", "simulation"])
    func `Each test that a document names exists`(document: String) throws {
        #expect(Self.suites.count > 100)
        var count = 0
        for (number, line) in try lines(document) {
            for (suite, function) in names(line) {
                count += 1
                let functions = Self.suites[suite]
                // A module's tests are a folder.
                let folder = "\(Tool.packageRoot)/Tests/\(suite)"
                if function == nil, FileManager.default.fileExists(atPath: folder) { continue }
                #expect(functions != nil, "docs/\(document).md:\(number): there is no \(suite)")
                if let functions, let function {
                    #expect(
                        functions.contains(function),
                        "docs/\(document).md:\(number): \(suite) has no test \(function)")
                }
            }
        }
        #expect(count > 5)
    }

    @Test func `Each line of a table in protocols.md names a test`() throws {
        var isInTable = false
        var count = 0
        for (number, line) in try lines("protocols") {
            let place = "docs/protocols.md:\(number)"
            guard line.hasPrefix("|") else {
                isInTable = false
                continue
            }
            if line.hasPrefix("| ---") {
                isInTable = true
            } else if isInTable {
                count += 1
                #expect(
                    !names(line).isEmpty || line.contains("the same") || line.contains("Tests/..."),
                    "\(place): no test is named")
            }
        }
        #expect(count > 80)
    }
}
