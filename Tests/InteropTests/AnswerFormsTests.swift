import BroadsideTestSupport
import Testing

/// Answers and ends in every form that a server may choose, from a server of our own: what it did
/// about each request is compared with what the ledger says.
@Suite(.timeLimit(.minutes(60)))
struct AnswerFormsTests {
    @Test(arguments: ["plain", "empty-data", "body", "size-update", "no-size-update", "in-pieces"])
    func `A 200 is accepted in each form of its frames`(behaviour: String) throws {
        let server = try RecordingServer(behaviour)
        let campaign = try Campaign(rows: 300)
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "2", "--summary", "-"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == 300)
        #expect(summary.reconnects == 0)
        #expect(try server.tally(campaign.tokens).isExact)
        // A stream that ends with an empty DATA frame is taken whole, never reset.
        #expect(
            try server.events().allSatisfy { $0.kind != 3 && $0.kind != 7 || $0.payload == goodbye }
        )
    }

    /// GOAWAY with no error and stream 0: how a client that is done says so.
    private let goodbye = "0000000000000000"

    @Test func `Refusals, resends and unknown reasons settle rows as documented`() throws {
        let server = try RecordingServer("verdicts")
        let campaign = try Campaign(rows: 100)
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "2", "--summary", "-"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == 70)
        #expect(summary.rejected == 30)
        #expect(summary.retries == 10)
        #expect(
            summary.reasons
                == ["BadDeviceToken": 10, "Unregistered": 10, "SomethingNobodyKnowsYet": 10])
        for (row, exported) in try campaign.export().enumerated() {
            #expect(exported.line == row + 1)
            #expect(exported.token == campaign.tokens.token(row))
            #expect(exported.attempts == (row % 10 == 3 ? 2 : 1))
            let expected: (Int, String, String) =
                switch row % 10 {
                case 1: (400, "BadDeviceToken", "")
                case 2: (410, "Unregistered", "\(1_700_000_000_000 + row)")
                case 4: (400, "SomethingNobodyKnowsYet", "")
                default: (200, "", "")
                }
            #expect(exported.state == (expected.0 == 200 ? "accepted" : "rejected"))
            #expect((exported.status, exported.reason, exported.timestamp) == expected)
        }
        let rejected = try campaign.export(["--state", "rejected"])
        #expect(rejected.count == 30)
    }

    @Test func `A server that refuses every request ends the campaign early`() throws {
        let server = try RecordingServer("forbidden")
        let campaign = try Campaign(rows: 2000)
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "2", "--abort-after", "20"])
        #expect(sent.exitCode == 4)
        #expect(sent.errorLines.count == 1)
        #expect(sent.errorLines.first?.contains("InvalidProviderToken") == true, "\(sent.errors)")
        // At most 20 in flight until the first 200, and each row sent at most twice.
        #expect(try server.answers().count <= 60)
        let summary = try campaign.statistics()
        #expect(summary.accepted == 0 && summary.rejected == 0 && summary.outcome == "aborted")
    }

    @Test(arguments: [
        "refused", "goaway-above", "goaway-twice", "goaway-calm",
    ])
    func `A refused stream and one above GOAWAY's last are sent again, and only those`(
        behaviour: String
    ) throws {
        // So few streams at a time (SETTINGS_MAX_CONCURRENT_STREAMS) that rows are left when a connection
        // is to be replaced.
        let server = try RecordingServer(behaviour, ["--setting", "3=50"])
        let campaign = try Campaign(rows: 300)
        let sent = try campaign.send(
            to: server.endpoint,
            ["--connections", "2", "--summary", "-", "--max-attempts", "1", "--retry-for", "0s"],
            limit: 120)
        let taken = try server.tally(campaign.tokens)
        #expect(taken.repeated == 0 && taken.strangers == 0)
        let summary = try SendSummary(json: sent.output)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(taken.missing == 0, "missing \(taken.missing)")
        #expect(summary.accepted == 300 && summary.unknown == 0)
        #expect(summary.reconnects > 0 || behaviour == "refused")
    }

    @Test func `A reset connection leaves its requests unknown`() throws {
        let server = try RecordingServer("reset")
        let campaign = try Campaign(rows: 300)
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "1", "--summary", "-"], limit: 120)
        #expect(sent.exitCode == 6, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        let taken = try server.tally(campaign.tokens)
        #expect(taken.repeated == 0)
        #expect(summary.unknown > 0)
        #expect(summary.accepted + summary.unknown == 300)
        #expect(summary.reasons["ConnectionLost"] == summary.unknown)
        for (row, exported) in try campaign.export(["--state", "unknown"]).enumerated() {
            #expect(exported.reason == "ConnectionLost", "row \(row)")
        }

        let again = try campaign.send(
            to: server.endpoint, ["--resume", "--retry", "unknown", "--summary", "-"])
        #expect(again.exitCode == 0, "\(again.errors)")
        #expect(try SendSummary(json: again.output).accepted == 300)
        #expect(try server.tally(campaign.tokens).missing == 0)
    }

    @Test func `Requests to a silent server time out, and the others are accepted`() throws {
        let server = try RecordingServer("stall")
        let campaign = try Campaign(rows: 300)
        // The first connection is the one that stalls. With a second one, it might get fewer than 20 rows.
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--connections", "1", "--summary", "-", "--request-timeout", "6s",
                "--max-streams", "30",
            ], limit: 120)
        let summary = try SendSummary(json: sent.output)
        let taken = try server.tally(campaign.tokens)
        let swallowed = try server.tally(campaign.tokens, ["swallowed"])
        #expect(taken.repeated == 0)
        #expect(summary.accepted == taken.total)
        #expect(summary.unknown == swallowed.total)
        #expect(summary.unknown > 0 && sent.exitCode == 6, "\(sent.errors)")
        #expect(summary.reasons["Timeout"] == summary.unknown)
    }

    @Test func `The server's stream limit and windows are respected`() throws {
        // MAX_CONCURRENT_STREAMS = 3, INITIAL_WINDOW_SIZE = 10.
        let server = try RecordingServer(
            "plain", ["--setting", "3=3", "--setting", "4=10", "--stream-updates"])
        let campaign = try Campaign(rows: 200)
        // A second connection might open after the last row.
        let sent = try campaign.send(to: server.endpoint, ["--connections", "1"], limit: 120)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try server.tally(campaign.tokens).isExact)
        #expect(try server.answers().allSatisfy { $0.body == Campaign.payload })
        let most = try server.events().compactMap(\.most_open)
        #expect(most.count == 1 && most.allSatisfy { $0 <= 3 })
    }
}
