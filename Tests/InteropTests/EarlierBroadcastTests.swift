import BroadsideTestSupport
import Foundation
import Testing

/// What `broadcast` says about the earlier starts of its ledger.
@Suite(.timeLimit(.minutes(60)))
struct EarlierBroadcastTests {
    @Test func `A broadcast that another server accepted is not taken for one that Apple accepted`()
        throws
    {
        let server = try ChannelCommandTests.server("check")
        let caller = try ChannelCaller()
        #expect(try caller.broadcast(server.endpoint).exitCode == 0)
        let known = "the ledger records the broadcast as accepted"

        let rehearsed = try caller.broadcast("api-broadcast.push.apple.com", ["--dry-run"])
        #expect(rehearsed.exitCode == 2, "\(rehearsed.errors)")
        #expect(
            rehearsed.errors.contains("\(known), by \(server.endpoint), but this start goes to")
                && rehearsed.errors.contains("name another --ledger"), "\(rehearsed.errors)")

        let same = try caller.broadcast(server.endpoint, ["--dry-run"])
        #expect(same.exitCode == 0, "\(same.errors)")
        #expect(same.output.contains("a start would send nothing: \(known)\n"), "\(same.output)")
        #expect(try caller.broadcast(server.endpoint).errors.contains("\(known);"))

        // From one relay to another.
        let relay = try caller.broadcast("relay.invalid:9")
        #expect(relay.exitCode == 0, "\(relay.errors)")
        #expect(relay.errors.contains("\(known), by \(server.endpoint);"), "\(relay.errors)")
        #expect(try ChannelCommandTests.seen(server).count == 1)
    }

    @Test func `A broadcast whose expiration has passed is sent with a warning`() throws {
        let server = try ChannelCommandTests.server("429/retry-after=600,check")
        let caller = try ChannelCaller()
        let expiration = ["--expiration", "+1s"]
        #expect(try caller.broadcast(server.endpoint, expiration).exitCode == 3)
        let first = try ChannelCommandTests.seen(server)[0].fields["apns-expiration"]
        let seconds = try #require(first.flatMap { Double($0) })
        while Date().timeIntervalSince1970 <= seconds + 1 { usleep(100_000) }

        let preview = try caller.broadcast(server.endpoint, expiration + ["--preview", "1"])
        #expect(preview.output.contains("apns-expiration: \(first ?? "")\n"), "\(preview.output)")
        let warning = "warning: --expiration +1s passed at "
        let dry = try caller.broadcast(server.endpoint, expiration + ["--dry-run"])
        #expect(dry.exitCode == 0 && dry.errors.contains(warning), "\(dry.errors)")
        let sent = try caller.broadcast(server.endpoint, expiration)
        #expect(sent.exitCode == 0 && sent.errors.contains(warning), "\(sent.errors)")
        let again = try caller.broadcast(server.endpoint, expiration)
        #expect(again.exitCode == 0 && !again.errors.contains(warning), "\(again.errors)")
        #expect(try ChannelCommandTests.seen(server).count == 2)
    }
}
