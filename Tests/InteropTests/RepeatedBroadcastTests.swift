import BroadsideTestSupport
import Testing

/// Which responses and losses make `broadcast` send its request again, in the same start or in another one.
@Suite(.timeLimit(.minutes(60)))
struct RepeatedBroadcastTests {
    /// Responses, further options, the exit code, the state, and the number of requests.
    private static let calls: [(String, [String], Int32, String, Int)] =
        [
            ("503:Shutdown,check", [], 0, "accepted", 2),
            ("500:InternalServerError,429:TooManyRequests,check", [], 0, "accepted", 3),
            ("503", ["--max-attempts", "2"], 6, "failed", 2),
            ("close", [], 6, "unknown", 1), ("502", [], 6, "unknown", 1),
            ("204", [], 6, "unknown", 1), ("524", [], 6, "unknown", 1),
            ("400:ChannelNotRegistered", [], 4, "rejected", 1),
            ("413:PayloadTooLarge", [], 4, "rejected", 1),
            ("400:NewReason", [], 4, "rejected", 1),
            ("403:ExpiredProviderToken", [], 4, "remaining", 1),
            ("302/location=x", [], 4, "remaining", 1), ("401", [], 4, "remaining", 1),
            ("407", [], 4, "remaining", 1), ("404", [], 4, "remaining", 1),
            ("429/retry-after=600", [], 3, "remaining", 1),
        ]

    @Test func `A broadcast is repeated only if APNs certainly did not process it`() throws {
        let server = try ChannelCommandTests.server(for: Self.calls.map { ($0.0, $0.4) })
        let second = try ChannelCommandTests.server("check")
        for call in Self.calls { try expect(call, from: server, then: second) }
    }

    /// How many requests the server sees depends on when its GOAWAY arrives.
    @Test func `A broadcast that GOAWAY leaves out is sent again`() throws {
        let server = try ChannelCommandTests.server("refuse,goaway,check")
        try expect(
            ("refuse,goaway,check", [], 0, "accepted", 2), from: server,
            then: ChannelCommandTests.server("check"))
    }

    private func expect(
        _ call: (responses: String, more: [String], code: Int32, state: String, requests: Int),
        from server: RecordingServer, then second: RecordingServer
    ) throws {
        let (before, earlier) = try (
            ChannelCommandTests.seen(server).count, ChannelCommandTests.seen(second).count
        )
        func later() throws -> Int { try ChannelCommandTests.seen(second).count - earlier }
        let caller = try ChannelCaller()
        let ended = try caller.broadcast(server.endpoint, call.more + ["--json"])
        let name: Comment = "\(call): \(ended.errors)"
        #expect(ended.exitCode == call.code, name)
        let seen = try ChannelCommandTests.seen(server).dropFirst(before)
        // GOAWAY comes before the server has a request. The next call would get the responses of this one.
        try #require(seen.count == call.requests || call.responses.contains("goaway"), name)
        #expect(seen.flatMap(\.problems) == [], name)
        #expect(
            Set(seen.map { $0.fields["apns-request-id"] }).count == 1, "the same in each attempt")
        let state = try ChannelCommandTests.object(ended.output)["state"] as? String
        #expect(state == call.state, name)
        // A second start sends what remains, and nothing else.
        let remains = call.state == "remaining"
        let again = try caller.broadcast(second.endpoint, ["--json"])
        #expect(again.exitCode == (remains ? 0 : call.code), "\(call): \(again.errors)")
        #expect(try later() == (remains ? 1 : 0), name)
        #expect(try ChannelCommandTests.seen(server).count == before + seen.count, name)
        guard ["failed", "unknown"].contains(call.state) else { return }
        let retried = try caller.broadcast(second.endpoint, ["--retry", call.state])
        #expect(retried.exitCode == 0, "\(call): \(retried.errors)")
        #expect(try later() == 1, name)
        let verified = try Broadside.run(
            ["ledger", "verify", "--ledger", caller.ledger], in: caller.directory)
        #expect(verified.exitCode == 0, "\(call): \(verified.errors)")
    }
}
