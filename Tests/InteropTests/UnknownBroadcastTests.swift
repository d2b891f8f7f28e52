import BroadsideTestSupport
import Foundation
import Testing

/// Broadcasts that an earlier start may have sent, against `Tests/Servers/channels.py`.
@Suite(.timeLimit(.minutes(60)))
struct UnknownBroadcastTests {
    /// The response to a repeat, its exit code, and a part of its message.
    @Test(
        arguments: [
            (
                "403:InvalidProviderToken", 4,
                "then start again with the same --ledger and --retry unknown"
            ),
            ("503", 6, "APNs refused the last attempt: 503"),
            ("goaway", 6, "start it again later with the same --ledger and --retry unknown"),
        ] as [(String, Int32, String)])
    func `A broadcast that may have been sent stays unknown if its repeat is not processed`(
        _ answer: String, _ code: Int32, _ words: String
    ) throws {
        let server = try ChannelCommandTests.server("close,\(answer),check")
        let caller = try ChannelCaller()
        #expect(try caller.broadcast(server.endpoint).exitCode == 6)
        let repeated = try caller.broadcast(
            server.endpoint, ["--retry", "unknown", "--max-attempts", "1"])
        #expect(repeated.exitCode == code, "\(repeated.errors)")
        #expect(repeated.errors.contains(words), "\(repeated.errors)")
        let count = try ChannelCommandTests.seen(server).count
        let again = try caller.broadcast(server.endpoint, ["--json"])
        #expect(again.exitCode == 6, "\(again.errors)")
        #expect(try ChannelCommandTests.object(again.output)["state"] as? String == "unknown")
        #expect(try ChannelCommandTests.seen(server).count == count)
        let sent = try caller.broadcast(server.endpoint, ["--retry", "unknown"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
    }

    @Test(
        arguments: [
            ("202", "the response 202 does not say", nil),
            ("502", "the response 502 does not say", nil),
            ("close", "the response was lost", "ConnectionLost"),
        ] as [(String, String, String?)])
    func `The message about an unknown broadcast names the status of the response`(
        answer: String, words: String, reason: String?
    ) throws {
        let server = try ChannelCommandTests.server(answer)
        let caller = try ChannelCaller()
        // The second start reads the outcome from the ledger.
        for _ in 1...2 {
            let sent = try caller.broadcast(server.endpoint, ["--json"])
            #expect(sent.exitCode == 6 && sent.errors.contains(words), "\(sent.errors)")
            let outcome = try ChannelCommandTests.object(sent.output)
            #expect(outcome["reason"] as? String == reason, "\(sent.output)")
            #expect(outcome["status"] as? Int == Int(answer), "\(sent.output)")
        }
    }

    @Test func `A broadcast whose segment was lost is in doubt after a repair`() throws {
        let server = try ChannelCommandTests.server("check")
        let caller = try ChannelCaller()
        #expect(try caller.broadcast(server.endpoint).exitCode == 0)
        try FileManager.default.removeItem(atPath: "\(caller.ledger)/segment-0001-00")
        let repaired = "\(caller.ledger)-repaired"
        let done = try Broadside.run(
            ["ledger", "repair", "--ledger", caller.ledger, "--output", repaired],
            in: caller.directory)
        #expect(done.exitCode == 0, "\(done.errors)")
        #expect(done.output.contains("broadside broadcast --retry unknown"), "\(done.output)")
        let again = try caller.broadcast(server.endpoint, ["--ledger", repaired, "--json"])
        #expect(again.exitCode == 6, "\(again.errors)")
        #expect(try ChannelCommandTests.object(again.output)["state"] as? String == "unknown")
        #expect(try ChannelCommandTests.seen(server).count == 1)
        let sent = try caller.broadcast(
            server.endpoint, ["--ledger", repaired, "--retry", "unknown"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try ChannelCommandTests.seen(server).count == 2)
    }
}
