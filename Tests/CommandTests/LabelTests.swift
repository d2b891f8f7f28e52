import BroadsideTestSupport
import Foundation
import Testing

/// `--label`: on each metric, in summary, log and `status`, and in a campaign file.
@Suite(.timeLimit(.minutes(60)))
struct LabelTests {
    private func object(_ text: String) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    @Test
    func `Labels are in summary, log and metrics, and a resume without labels keeps them`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 20)
        let metrics = "\(campaign.directory.path)/metrics.prom"
        let labels = ["country": "de", "team": "news"]
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--label", "country=de", "--label", "team=news", "--summary", "-", "--metrics",
                metrics, "--log", "json", "--limit", "10",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try object(sent.output)["labels"] as? [String: String] == labels)
        let log = sent.errorLines.filter { $0.hasPrefix("{") }
        #expect(!log.isEmpty)
        for line in log {
            #expect(try object(line)["labels"] as? [String: String] == labels, "\(line)")
        }
        let samples = try String(contentsOfFile: metrics, encoding: .utf8)
            .split(separator: "\n").filter { !$0.hasPrefix("#") }
        #expect(samples.count > 30)
        for sample in samples { #expect(sample.contains(#"country="de","#), "\(sample)") }

        let resumed = try campaign.send(
            to: server.endpoint, ["--resume", "--summary", "-", "--limit", "15"])
        #expect(try object(resumed.output)["labels"] as? [String: String] == labels)
        let changed = try campaign.send(
            to: server.endpoint, ["--resume", "--summary", "-", "--label", "country=at"])
        #expect(changed.exitCode == 0, "\(changed.errors)")
        let status = try Broadside.run(
            ["status", campaign.ledger, "--json"], in: campaign.directory)
        #expect(status.output.contains(#""labels":{"country":"#), "\(status.output)")
        let stats = try campaign.ledger("stats", ["--json"]).output
        #expect(try object(stats)["labels"] as? [String: String] != [:])
        let page = try Broadside.run(
            ["report", "--ledger", campaign.ledger], in: campaign.directory)
        #expect(page.output.contains("country=at"))
    }

    @Test func `A campaign file takes one label or an array and prints an equal one`() throws {
        let campaign = try Campaign(rows: 1)
        let words = ["--print-campaign", "--label", "a=1", "--label", "b=2"]
        let printed = try campaign.send(to: "localhost:1", words)
        #expect(printed.output.contains(#""label": ["a=1", "b=2"]"#), "\(printed.output)")
        let file = try campaign.directory.write(printed.output, to: "campaign.json5")
        let again = try Broadside.run(
            ["send", "--campaign", file, "--print-campaign"], in: campaign.directory)
        #expect(again.output == printed.output, "\(again.errors)")
        let overridden = try Broadside.run(
            ["send", "--campaign", file, "--print-campaign", "--label", "c=3"],
            in: campaign.directory)
        #expect(overridden.output.contains(#""label": "c=3""#), "\(overridden.output)")
        for (text, words) in [
            (#"{label: [1]}"#, "must be a string or an array of strings"),
            (#"{label: []}"#, "'label' is an empty array: remove 'label'"),
            (#"{topic: ["a", "b"]}"#, "is an array: it must be a string"),
        ] {
            let wrong = try campaign.directory.write(text, to: "wrong.json5")
            let refused = try Broadside.run(
                ["send", "--campaign", wrong, "--print-campaign"], in: campaign.directory)
            #expect(refused.exitCode == 2 && refused.errors.contains(words), "\(refused.errors)")
        }
    }

    @Test(arguments: [
        (["--label", "country"], "write KEY=VALUE"), (["--label", "le=1"], "is reserved"),
        (["--label", "a=1", "--label", "a=2"], "a is given twice"),
        ((1...17).flatMap { ["--label", "k\($0)=v"] }, "16 are allowed"),
    ])
    func `A malformed or reserved label is refused with one line`(words: [String], says: String)
        throws
    {
        let campaign = try Campaign(rows: 1)
        let refused = try campaign.send(to: "localhost:1", words)
        #expect(refused.exitCode == 2 && refused.errorLines.count == 1, "\(refused.errors)")
        #expect(refused.errors.contains("--label") && refused.errors.contains(says))
    }
}
