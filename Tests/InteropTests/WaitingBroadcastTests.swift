import BroadsideTestSupport
import Foundation
import Testing

/// Broadcasts that wait for their next attempt, against `Tests/Servers/channels.py`.
@Suite(.timeLimit(.minutes(60)))
struct WaitingBroadcastTests {
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
        #expect(try started.wait(limit: 60).exitCode == -signal)
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
