import BroadsideTestSupport
import Foundation
import Testing

/// `--content-length`: relays that insist on the header get it, in all forms of requests.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ContentLengthTests {
    /// A list whose rows' payloads have 30 to 1,300 bytes.
    private func templated(_ rows: Int) throws -> (campaign: Campaign, options: [String]) {
        let campaign = try Campaign(
            rows: rows, payload: #"{"aps":{"alert":"{{text}}"}}"#)
        var text = ""
        for row in 0..<rows {
            let length = [1, 71, 72, 73, 74, 971, 972, 973, 974, 1270][row % 10]
            let words = String(repeating: "x", count: length)
            text += #"{"token":"\#(campaign.tokens.token(row))","text":"\#(words)"}"# + "\n"
        }
        let list = try campaign.directory.write(text, to: "list.jsonl")
        return (campaign, ["--tokens", list])
    }

    @Test(arguments: ["strict", "compact"], [false, true])
    func `--content-length adds the payload's length under each indexing policy`(
        hpack: String, isTemplated: Bool
    ) throws {
        let server = try RecordingServer("insist", script: "relay.py")
        let (campaign, more) =
            isTemplated ? try templated(1200) : (try Campaign(rows: 1200), [])
        let sent = try campaign.send(
            to: server.endpoint,
            more + ["--content-length", "--hpack", hpack, "--connections", "1", "--summary", "-"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        try expectComplete(campaign, summary: SendSummary(json: sent.output))
        #expect(try server.tally(campaign.tokens).isExact)
        let forms = try server.events().compactMap(\.fields).map { fields in
            fields.filter { $0.name == "content-length" }.map(\.form)
        }
        let isInserted = hpack == "compact" && !isTemplated
        #expect(
            forms
                == (isInserted
                    ? [["incremental"], ["indexed"], ["indexed"]]
                    : [["without"], ["without"], ["without"]]))
    }

    @Test func `nghttpd accepts --content-length with payloads sent in parts`() throws {
        let server = try Nghttpd(["--window-bits=6", "--connection-window-bits=16"])
        for isTemplated in [false, true] {
            let (campaign, more) =
                isTemplated ? try templated(200) : (try Campaign(rows: 200), [])
            let sent = try campaign.send(
                to: server.endpoint,
                more + ["--content-length", "--connections", "1", "--summary", "-"])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            try expectComplete(campaign, summary: SendSummary(json: sent.output))
        }
    }

    @Test(arguments: ["strict", "compact"])
    func `The simulator's lint accepts --content-length`(profile: String) throws {
        let server = try LocalAPNs(["--hpack-lint", "refuse", "--hpack-lint-profile", profile])
        for isTemplated in [false, true] {
            let (campaign, more) =
                isTemplated ? try templated(500) : (try Campaign(rows: 500), [])
            let sent = try campaign.send(
                to: server.endpoint, more + ["--content-length", "--hpack", profile])
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
    }

    @Test(arguments: [5, 300])
    func `A server that requires content-length is reported with the option`(rows: Int) throws {
        let server = try RecordingServer("insist", script: "relay.py")
        let campaign = try Campaign(rows: rows)
        let sent = try campaign.send(to: server.endpoint, ["--summary", "-"])
        #expect(sent.exitCode == (rows == 5 ? 0 : 4))
        let words = sent.errors
        #expect(words.contains("411 LengthRequired") && words.contains("--content-length"))
        #expect(!words.contains("Unparsable"), "\(words)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.reasons == ["LengthRequired": summary.rejected], "\(summary)")
        #expect(try campaign.export().allSatisfy { $0.reason == "LengthRequired" })
        let doctor = try Broadside.run(
            [
                "doctor", "--endpoint", server.endpoint, "--ca-file", campaign.authority.caFile,
                "--topic", Campaign.topic, "--auth-key", campaign.authority.authKey, "--key-id",
                Campaign.keyID, "--team-id", Campaign.teamID,
            ], in: campaign.directory)
        #expect(doctor.exitCode == 4 && doctor.output.contains("--content-length"))
    }
}
