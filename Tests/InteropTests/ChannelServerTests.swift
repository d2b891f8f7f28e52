import BroadsideTestSupport
import Testing

/// `channel` and `broadcast` with servers whose connections have other limits, or end.
@Suite(.timeLimit(.minutes(60)))
struct ChannelServerTests {
    private typealias Caller = ChannelCaller

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

    /// A window of less than the payload, and a first limit of no streams.
    @Test(arguments: ["4=20", "4=0,4=50", "3=0,3=1"])
    func `A broadcast waits until the server's windows and stream limit permit it`(
        settings: String
    ) throws {
        let server = try ChannelCommandTests.server("check", ["--settings", settings])
        let caller = try Caller()
        let sent = try caller.broadcast(server.endpoint)
        #expect(sent.exitCode == 0 && sent.errors.isEmpty, "\(sent.errors)")
        let seen = try ChannelCommandTests.seen(server)
        #expect(seen.map(\.body) == [ChannelCommandTests.minified])
        #expect(seen.flatMap(\.problems) == [])
    }

    @Test func `A broadcast reads its payload from a pipe, and sends four opening braces as two`()
        throws
    {
        let server = try ChannelCommandTests.server("check")
        let text = ChannelCommandTests.update.replacing(": 74", with: ": \"{{{{x}}\"")
        let caller = try Caller(payload: text)
        let words =
            [
                try Broadside.path(), "broadcast", "--channel", ChannelCommandTests.channel,
                "--payload", "/dev/stdin", "--ledger", caller.ledger,
            ] + caller.credential(server.endpoint)
        let sent = try Subprocess(
            "sh", ["-c", #"cat "$0" | "$@""#, caller.payload] + words, in: caller.directory
        ).wait(limit: 60)
        #expect(sent.exitCode == 0 && sent.errors.isEmpty, "\(sent.errors)")
        let expected = ChannelCommandTests.minified.replacing(":74", with: ":\"{{x}}\"")
        #expect(try ChannelCommandTests.seen(server).map(\.body) == [expected])
    }

    @Test func `A broadcast that a server refuses in each attempt remains, and the cause is named`()
        throws
    {
        let server = try ChannelCommandTests.server("refuse")
        let caller = try Caller()
        let ended = try caller.broadcast(server.endpoint, ["--max-attempts", "2", "--json"])
        #expect(ended.exitCode == 3, "\(ended.errors)")
        let outcome = try ChannelCommandTests.object(ended.output)
        #expect(outcome["state"] as? String == "remaining", "\(outcome)")
        let words = "did not process the broadcast in 2 attempts: the server refused the stream"
        #expect(ended.errors.contains(words), "\(ended.errors)")
        let second = try ChannelCommandTests.server("check")
        #expect(try caller.broadcast(second.endpoint).exitCode == 0)
    }

    @Test func `After GOAWAY with Shutdown, channel and broadcast send the request again`() throws {
        let server = try ChannelCommandTests.server("goaway:Shutdown,check,goaway:Shutdown,check")
        let caller = try Caller()
        let sent = try caller.broadcast(server.endpoint)
        #expect(sent.exitCode == 0 && sent.errors.isEmpty, "\(sent.errors)")
        let created = try caller.channel(server.endpoint, ["create"])
        #expect(created.exitCode == 0 && created.errors.isEmpty, "\(created.errors)")
        let answers = try ChannelCommandTests.seen(server).map(\.answer)
        #expect(answers == ["goaway:Shutdown", "check", "goaway:Shutdown", "check"])
    }

    @Test
    func `After a GOAWAY, a broadcast remains; one that refuses the credential is exit 4`()
        throws
    {
        for (reason, broadcastCode, code, words) in [
            ("Shutdown", 3, 1, "the server ended the connection (Shutdown): start it again later"),
            (
                "BadCertificateEnvironment", 4, 4,
                "GOAWAY BadCertificateEnvironment: the credential is for the other environment"
            ),
        ] as [(String, Int32, Int32, String)] {
            let server = try ChannelCommandTests.server("goaway:\(reason)")
            let caller = try Caller()
            let sent = try caller.broadcast(server.endpoint, ["--max-attempts", "1"])
            #expect(sent.exitCode == broadcastCode, "\(sent.errors)")
            #expect(sent.errors.contains(words), "\(sent.errors)")
            let doctor = try Broadside.run(
                [
                    "doctor", "--json", "--topic", Campaign.topic, "--endpoint", server.endpoint,
                    "--ca-file", caller.authority.caFile, "--auth-key", caller.authority.authKey,
                    "--key-id", Campaign.keyID, "--team-id", Campaign.teamID,
                ], in: caller.directory, limit: 60)
            #expect(doctor.exitCode == code, "\(doctor.output)")
            #expect(doctor.output.contains("GOAWAY \(reason)"), "\(doctor.output)")
        }
    }
}
