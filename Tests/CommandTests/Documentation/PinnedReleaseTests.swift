import BroadsideTestSupport
import Foundation
import Testing

/// The release that the workflow for GitHub Actions checks out.
@Suite struct PinnedReleaseTests {
    private func text(_ path: String) throws -> String {
        try String(contentsOfFile: "\(Tool.packageRoot)/\(path)", encoding: .utf8)
    }

    /// An option that no section names is older than the oldest section.
    @Test func `The workflow names a release only if that release has the options that it uses`()
        throws
    {
        let workflow = try text("contrib/github-actions/apns.yml")
        let pinned = try #require(
            workflow.firstMatch(of: /\n +BROADSIDE_RELEASE: v(.*)\n/)
        ).1
        let words = try #require(workflow.firstMatch(of: /broadside-simulate (--.*)\n/)).1
        let options = words.matches(of: /--[a-z-]+/).map { String($0.0) }
        #expect(options.contains("--control-listen"), "\(words)")
        // The newest comes first.
        let sections = try text("CHANGELOG.md").components(separatedBy: "\n## ").dropFirst()
        try #require(sections.first?.hasPrefix("Unreleased\n") == true)
        let firstSections = options.compactMap { option in
            sections.lastIndex { $0.contains("\(option)`") || $0.contains("\(option) ") }
        }
        let needed = firstSections.min() ?? sections.endIndex
        guard pinned == "VERSION" else {
            let own = try #require(sections.firstIndex { $0.hasPrefix("\(pinned) - ") })
            #expect(own <= needed, "\(pinned) lacks an option of: \(words)")
            return
        }
        let first = sections[needed].split(separator: "\n").first ?? ""
        #expect(first == "Unreleased", "name the release \(first) in place of VERSION")
        let newest = try #require(sections.dropFirst().first?.split(separator: " ").first)
        #expect(workflow.contains("newer than \(newest)"), "\(newest) lacks an option of: \(words)")
    }
}
