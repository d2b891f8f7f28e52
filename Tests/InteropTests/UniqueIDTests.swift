import BroadsideTestSupport
import Foundation
import Testing

/// The apns-unique-id of responses in the development environment, from a server of our own that
/// writes down which it gave to whom.
@Suite(.timeLimit(.minutes(60)))
struct UniqueIDTests {
    /// The ID of each token, as the server recorded it; empty if it gave none.
    private func given(_ server: RecordingServer) throws -> [String: String] {
        Dictionary(
            uniqueKeysWithValues: try server.answers().map { event in
                let token = String(try #require(event.path).dropFirst("/3/device/".count))
                let id = try #require(event.action)
                return (token, id == "none" ? "" : id)
            })
    }

    private func cells(_ line: Substring) -> [String] {
        line.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    @Test(
        arguments: [
            [], ["--keep-tokens", "no"], ["--split", "a=50,b=50", "--split-salt", "s"],
        ] as [[String]])
    func `An export with +unique_id has the ID that the server gave to each device`(
        more: [String]
    ) throws {
        let server = try RecordingServer("identified")
        let campaign = try Campaign(rows: 300)
        let sent = try campaign.send(to: server.endpoint, more)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let given = try given(server)
        #expect(given.count == 300 && given.values.contains("") && Set(given.values).count > 200)
        let usual = try campaign.ledger("export").output.split(separator: "\n")
        let exported = try campaign.ledger("export", ["--columns", "+unique_id"])
        let lines = exported.output.split(separator: "\n")
        #expect(lines.count == 301 && lines[0] == usual[0] + ",unique_id")
        for (plain, line) in zip(usual, lines).dropFirst() {
            let cells = cells(line)
            #expect(cells[2] == "accepted" && cells[4].isEmpty)
            #expect(cells.last == given[cells[1]] && line == plain + "," + (cells.last ?? ""))
        }
        #expect(try campaign.ledger("verify").exitCode == 0)
        let output = "\(campaign.directory.path)/rows.csv"
        let following = ["--follow", "--output", output, "--cursor", output + ".cursor"]
        let followed = try campaign.ledger("export", following + ["--columns", "+unique_id"])
        #expect(followed.exitCode == 0, "\(followed.errors)")
        let rows = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
        #expect(rows.first == lines.first && Set(rows) == Set(lines))
        let other = try campaign.ledger("export", following)
        #expect(other.exitCode == 2 && other.errors.contains("--columns +unique_id"))
    }

    @Test func `ledger find and send --to show the ID`() throws {
        let server = try RecordingServer("identified")
        let campaign = try Campaign(rows: 20)
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        let given = try given(server)
        for row in 0..<20 {
            let token = campaign.tokens.token(row)
            let id = try #require(given[token])
            let text = try campaign.ledger("find", ["--token", token]).output
            let json = try campaign.ledger("find", ["--token", token, "--json"]).output
            if id.isEmpty {
                #expect(!text.contains("unique") && !json.contains("unique"))
            } else {
                #expect(text.contains(", apns-unique-id \(id),"), "\(text)")
                #expect(json.contains("\"unique_id\":\"\(id)\""), "\(json)")
            }
        }
        let known = try #require(given.first { !$0.value.isEmpty })
        let one = try Broadside.run(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--to", known.key, "--ledger", "\(campaign.directory.path)/one", "--summary",
                    "-",
                ],
                without: ["tokens", "progress"]), in: campaign.directory)
        #expect(one.exitCode == 0, "\(one.errors)")
        let summary = try JSONSerialization.jsonObject(with: Data(one.output.utf8))
        #expect((summary as? [String: Any])?["unique_id"] as? String == known.value)
        #expect(one.errors.contains("unique id   \(known.value)"), "\(one.errors)")
    }

    @Test func `Each row that the simulator accepts in development has an ID of its own`() throws {
        for (environment, count) in [("development", 200), ("production", 0)] {
            let server = try LocalAPNs(["--environment", environment])
            let campaign = try Campaign(rows: 200)
            let sent = try campaign.send(to: server.endpoint, ["--environment", environment])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let exported = try campaign.ledger(
                "export", ["--columns", "+unique_id", "--format", "jsonl"]
            ).output.split(separator: "\n")
            let ids = exported.compactMap { line in
                line.firstRange(of: #/"unique_id":"[0-9a-f-]{36}"/#).map { line[$0] }
            }
            #expect(exported.count == 200 && ids.count == count && Set(ids).count == count)
        }
    }

    @Test func `A column that an export does not have is refused`() throws {
        let campaign = try Campaign(rows: 1)
        for columns in ["unique_id", "+topic_id", ""] {
            let refused = try campaign.ledger("export", ["--columns", columns])
            #expect(refused.exitCode == 2 && refused.errors.contains("--columns"))
        }
    }
}
