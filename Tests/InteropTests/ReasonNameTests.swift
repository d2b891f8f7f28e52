import BroadsideTestSupport
import Foundation
import Testing

/// A reason that nobody knows has one name: that of the ledger, which keeps 64 bytes, in all places.
@Suite(.timeLimit(.minutes(60)))
struct ReasonNameTests {
    /// What the server says, and its name; the last one is cut inside a character.
    static let reasons: [(said: String, name: String)] = [
        ("NewReason", "NewReason"),
        // A relay's own spelling is not a mistake in `--reason`, because the ledger has it.
        ("UnRegistered", "UnRegistered"),
        (String(repeating: "x", count: 64), String(repeating: "x", count: 64)),
        (String(repeating: "x", count: 65), String(repeating: "x", count: 64)),
        (String(repeating: "Reason", count: 40), "\(String(repeating: "Reason", count: 10))Reas"),
        (String(repeating: "\u{e9}", count: 40), String(repeating: "\u{e9}", count: 32)),
        (
            "x" + String(repeating: "\u{e9}", count: 40),
            "x" + String(repeating: "\u{e9}", count: 31) + "\u{fffd}"
        ),
    ]

    @Test(arguments: reasons.indices)
    func `A reason has the same name in summary, stats, export, find, report and metrics`(
        _ index: Int
    ) throws {
        let (said, name) = Self.reasons[index]
        let server = try RecordingServer("reason", ["--reason", said, "--status", "400"])
        let campaign = try Campaign(rows: 20)
        let path = campaign.directory.path
        let sent = try campaign.send(
            to: server.endpoint,
            ["--summary", "-", "--metrics", "\(path)/metrics", "--report", "\(path)/page.html"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.rejected == 20 && summary.reasons == [name: 20], "\(summary)")
        #expect(try campaign.statistics().reasons == [name: 20])
        let rows = try campaign.export()
        #expect(rows.count == 20 && rows.allSatisfy { $0.reason == name }, "\(rows[0])")
        let lines = try campaign.ledger("export", ["--format", "jsonl"]).output
        let objects = try lines.split(separator: "\n").map {
            try JSONDecoder().decode([String: Reason].self, from: Data($0.utf8))["reason"]?.text
        }
        #expect(objects == Array(repeating: name, count: 20))
        #expect(try campaign.export(["--reason", said]).count == 20)
        let found = try campaign.ledger("find", ["--token", campaign.tokens.token(7)])
        #expect(found.output.contains(name), "\(found.output)")
        for file in ["page.html", "metrics"] {
            let text = try String(contentsOfFile: "\(path)/\(file)", encoding: .utf8)
            // Neither has it, or both have it whole, and no more of it.
            #expect(text.contains(name), "\(file)")
            #expect(said == name || !text.contains(said), "\(file)")
        }
        #expect(said == name || !(sent.output + sent.errors).contains(said))
    }

    /// A value of an export's object, where it is a text.
    private struct Reason: Decodable {
        var text: String?

        init(from decoder: any Decoder) throws {
            text = try? decoder.singleValueContainer().decode(String.self)
        }
    }
}
