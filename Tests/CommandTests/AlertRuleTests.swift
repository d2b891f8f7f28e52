import BroadsideTestSupport
import Foundation
import Testing

/// The alert rules of contrib/grafana.
@Suite(.timeLimit(.minutes(60)))
struct AlertRuleTests {
    private static let folder = Tool.packageRoot + "/contrib/grafana"

    @Test(.needs(.prometheus))
    func `promtool accepts the alert rules, which pass their tests`() throws {
        let directory = try TemporaryDirectory()
        let tests = ["alerts-test.yml", "alerts-nights-test.yml"]
        for file in ["alerts.yml"] + tests {
            try FileManager.default.copyItem(
                atPath: "\(Self.folder)/\(file)", toPath: "\(directory.path)/\(file)")
        }
        for arguments in [["check", "rules", "alerts.yml"], ["test", "rules"] + tests] {
            let paths = arguments.dropFirst(2).map { "\(directory.path)/\($0)" }
            let verdict = try Subprocess(
                "promtool", Array(arguments.prefix(2)) + paths, in: directory
            ).wait(limit: 60)
            #expect(verdict.exitCode == 0, "\(verdict.errors)\(verdict.output)")
        }
    }

    @Test
    func `Alert rules use metrics that a run has`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 20)
        let file = "\(campaign.directory.path)/broadside.prom"
        // Only a campaign with waves has their metrics.
        let waves = ["--deliver-at", "00:00", "--zone-default", "UTC"]
        let sent = try campaign.send(to: server.endpoint, ["--metrics", file] + waves)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let metrics = try String(contentsOfFile: file, encoding: .utf8)
        let rules = try String(contentsOfFile: "\(Self.folder)/alerts.yml", encoding: .utf8)
        let used = Set(rules.matches(of: /broadside_[a-z_]+(?:\{[a-z]+="[a-z]+"\})?/).map(\.output))
        #expect(used.count >= 6)
        for sample in used {
            #expect(metrics.contains("\n\(sample)"), "\(sample)")
        }
    }
}
