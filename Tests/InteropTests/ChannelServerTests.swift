import BroadsideTestSupport
import Testing

/// `channel` and `broadcast` with servers whose connections have other limits, or end.
@Suite(.timeLimit(.minutes(60)))
struct ChannelServerTests {
    private typealias Caller = ChannelCommandTests.Caller

    /// Python's `hpack` checks the size update, and refuses a larger table.
    @Test(arguments: ["1=0", "1=100"])
    func `A server with a smaller header table gets channel and broadcast requests`(
        settings: String
    ) throws {
        let server = try ChannelCommandTests.server("check", ["--settings", settings])
        let caller = try Caller()
        let sent = try caller.broadcast(server.endpoint)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let list = try caller.channel(server.endpoint, ["list"])
        #expect(list.exitCode == 0, "\(list.errors)")
        let seen = try ChannelCommandTests.seen(server)
        #expect(seen.map(\.operation) == ["broadcast", "list"])
        #expect(seen.flatMap(\.problems) == [])
    }
}
