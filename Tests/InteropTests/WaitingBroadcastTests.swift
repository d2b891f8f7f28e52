import BroadsideTestSupport
import Foundation
import Testing

/// Broadcasts that wait for their next attempt, against `Tests/Servers/channels.py`.
@Suite(.timeLimit(.minutes(60)))
struct WaitingBroadcastTests {
    /// The responses, the options, the exit code and the state.
    @Test(
        arguments: [
            ("503/retry-after=3", [], 3, "remaining", "later with the same --ledger"),
            (
                "close,503/retry-after=3", ["--retry", "unknown"], 6, "unknown",
                "later with the same --ledger and --retry unknown"
            ),
        ] as [(String, [String], Int32, String, String)])
    func `A broadcast whose server is gone after a wait is left to a later start`(
        _ responses: String, _ more: [String], _ code: Int32, _ state: String, _ advice: String
    ) throws {
        // It is gone once its last response is on its way.
        let count = responses.split(separator: ",").count
        let server = try ChannelCommandTests.server(responses, ["--ends-after", "\(count)"])
        let caller = try ChannelCaller()
        if !more.isEmpty { #expect(try caller.broadcast(server.endpoint).exitCode == 6) }
        let ended = try caller.broadcast(server.endpoint, more + ["--json"])
        #expect(try ChannelCommandTests.seen(server).count == count)
        #expect(ended.exitCode == code, "\(ended.errors)")
        #expect(try ChannelCommandTests.object(ended.output)["state"] as? String == state)
        #expect(ended.errors.contains("can't be reached"), "\(ended.errors)")
        #expect(ended.errors.hasSuffix("\(advice)\n"), "\(ended.errors)")
        let verified = try Broadside.run(
            ["ledger", "verify", "--ledger", caller.ledger], in: caller.directory)
        #expect(verified.exitCode == 0, "\(verified.errors)")
    }

    @Test(arguments: [SIGTERM, SIGKILL])
    func `A broadcast that ends while it waits remains, and a later start counts its requests`(
        signal: Int32
    ) throws {
        let server = try ChannelCommandTests.server("503/retry-after=60,503,check")
        let caller = try ChannelCaller()
        let started = try Broadside.start(
            [
                "broadcast", "--channel", ChannelCommandTests.channel, "--payload",
                caller.payload, "--ledger", caller.ledger,
            ] + caller.credential(server.endpoint), in: caller.directory)
        try started.wait { try !ChannelCommandTests.seen(server).isEmpty }
        try started.wait {
            let stats = try Broadside.run(
                ["ledger", "stats", "--ledger", caller.ledger, "--json"], in: caller.directory)
            return try ChannelCommandTests.object(stats.output)["in_doubt"] as? Int == 0
        }
        started.send(signal: signal)
        let ended = try started.wait(limit: 60)
        #expect(ended.exitCode == (signal == SIGTERM ? 3 : -signal), "\(ended.errors)")
        let sent = try caller.broadcast(server.endpoint, ["--json"])
        #expect(sent.exitCode == 0 && sent.errors.isEmpty, "\(sent.errors)")
        let outcome = try ChannelCommandTests.object(sent.output)
        #expect(outcome["state"] as? String == "accepted", "\(outcome)")
        #expect(outcome["attempts"] as? Int == 3, "\(outcome)")
        let verified = try Broadside.run(
            ["ledger", "verify", "--ledger", caller.ledger], in: caller.directory)
        #expect(verified.exitCode == 0, "\(verified.errors)")
    }
}
