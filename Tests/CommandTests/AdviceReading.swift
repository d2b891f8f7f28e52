import BroadsideTestSupport
import Foundation
import Testing

/// Reads what a run's last line and its report advise, and follows it as a reader would.
protocol AdviceReading {}

extension AdviceReading {
    /// The command lines of a page's advice, as a reader copies them.
    func commands(_ page: String) -> [String] {
        let next = page.components(separatedBy: "<h2>What to do next</h2>").last ?? ""
        return next.matches(of: /<code>(.*?)<\/code>/).map { match in
            [
                ("<span class=\"o\">", ""), ("</span>", ""), ("&#39;", "'"), ("&quot;", "\""),
                ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"),
            ]
            .reduce(String(match.1)) { $0.replacingOccurrences(of: $1.0, with: $1.1) }
        }
    }

    func paste(_ command: String, _ campaign: Campaign) throws -> Finished {
        try Subprocess("bash", ["-c", command], in: campaign.directory).wait(limit: 120)
    }

    func report(_ campaign: Campaign) throws -> String {
        let made = try Broadside.run(
            ["report", "--ledger", campaign.ledger], in: campaign.directory)
        #expect(made.exitCode == 0, "\(made.errors)")
        return made.output
    }

    /// Looks at a run that ended, and gives the advised command line.
    ///
    /// - Parameters:
    ///   - line: The last line, without its advice.
    ///   - page: The page that the run wrote; nil: the one that is made of its ledger.
    func advised(
        _ sent: Finished, _ campaign: Campaign, exitCode: Int32, says line: String,
        page: String? = nil
    ) throws -> String {
        #expect(sent.exitCode == exitCode, "\(sent.errors)")
        let last = try #require(sent.errorLines.last)
        #expect(last.hasPrefix("broadside: ") && last.contains(line), "\(last)")
        let page = try page ?? report(campaign)
        let command = try #require(commands(page).first)
        // Both say the same.
        #expect(last.hasSuffix(": " + command), "\(last)\n\(command)")
        for secret in ["PRIVATE KEY", "bearer"] { #expect(!page.contains(secret)) }
        return command
    }
}
