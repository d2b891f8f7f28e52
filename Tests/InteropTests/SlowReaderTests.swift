import BroadsideTestSupport
import Foundation
import Testing

/// Whole campaigns to a server one of whose connections lives and is of no use
/// (`Tests/Servers/trouble.py`): it is closed for what it is, and every row arrives.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct SlowReaderTests {
    /// 3,855 bytes: 17 of them are the connection's first window, 65,535.
    private static let payload =
        #"{"aps":{"alert":"\#(String(repeating: "s", count: 3835))"}}"#

    private func failures(of campaign: Campaign) throws -> String {
        try String(contentsOfFile: "\(campaign.ledger)/telemetry.json", encoding: .utf8)
    }

    @Test func `A connection that takes 50 bytes a second is closed after 30 s`() throws {
        let server = try RecordingServer("read-slowly", script: "trouble.py")
        // Streams for more bytes than both kernels hold.
        let campaign = try Campaign(rows: 6000, payload: Self.payload)
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--connections", "1", "--max-streams", "4000", "--on-lost", "resend",
                "--request-timeout", "200s",
                "--give-up-after", "200s", "--summary", "-",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try SendSummary(json: sent.output).accepted == 6000)
        #expect(try failures(of: campaign).contains("was not sent within 30 s"))
        #expect(try server.tally(campaign.tokens).missing == 0)
    }

    @Test func `A connection whose window stays closed is replaced without losing a row`() throws {
        let server = try RecordingServer("closed-window", script: "trouble.py")
        let campaign = try Campaign(rows: 200, payload: Self.payload)
        let sent = try campaign.send(
            to: server.endpoint,
            ["--connections", "1", "--request-timeout", "200s", "--summary", "-"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try SendSummary(json: sent.output).accepted == 200)
        #expect(try failures(of: campaign).contains("limits allow no request"))
        let taken = try server.tally(campaign.tokens)
        #expect(taken.missing == 0 && taken.repeated == 0, "\(taken)")
    }
}
