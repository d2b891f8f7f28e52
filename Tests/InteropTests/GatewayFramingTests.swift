import BroadsideTestSupport
import Foundation
import Testing

/// What the simulator's gateway makes of bytes that are torn, odd or wrong.
@Suite(.timeLimit(.minutes(60)))
struct GatewayFramingTests {
    private static let token = DeviceTokens(seed: 78, count: 1).token(0)
    private static let payload = item(2, gatewayPayload)

    /// An item of a frame: number, length, bytes in hexadecimal.
    private static func item(_ number: Int, _ data: String) -> String {
        String(format: "%02x%04x", number, data.utf8.count / 2) + data
    }

    private static func frame(_ items: String...) -> String {
        let items = items.joined()
        return "raw:02" + String(format: "%08x", items.utf8.count / 2) + items
    }

    private static func spaces(_ count: Int) -> String { String(repeating: "20", count: count) }

    @Test(arguments: [1, 7, 100])
    func `The simulated gateway reads a stream that is torn at each byte`(piece: Int) throws {
        let bad = DeviceTokens(seed: 79, count: 1).token(0)
        let fixture = try GatewayFixture(
            scenario: "{gateway: {statuses: [{token: '\(bad)', status: 8}]}}")
        let good = (0..<4).map { fixture.campaign.tokens.token($0) }
        let reply = try fixture.provide(
            [
                gatewayNotification(1, 1, good[0]), gatewayNotification(2, 2, good[1]),
                gatewayNotification(0, 0, good[2]), gatewayNotification(2, 0x0102_0304, bad),
                gatewayNotification(2, 5, good[3]),
            ], ["--piece", "\(piece)"])
        #expect(reply.packet == [8, 8, 0x0102_0304] && reply.closed)
        let journal = try fixture.server.finish()
        #expect(journal.map { $0[4] } == Array(good[..<3]) + [bad])
        #expect(journal.map { $0[5] } == ["0", "0", "0", "8"])
        let totals = try fixture.server.totals()
        #expect(totals.contains("gateway: 3 accepted\ngateway: 8 BadDeviceToken: 1\n"), "\(totals)")
        #expect(!totals.contains("200:"))
    }

    @Test
    func `The simulated gateway reports each malformed notification with status and identifier`()
        throws
    {
        let fixture = try GatewayFixture()
        let token = Self.item(1, Self.token)
        let identifier = Self.item(3, "00000007")
        for (text, packet) in [
            // Items that no frame has, twice, too short, beyond the frame's end.
            (Self.frame(identifier, Self.item(9, "00"), token, Self.payload), [8, 128, 7]),
            (Self.frame(identifier, token, token, Self.payload), [8, 128, 7]),
            (Self.frame(identifier, token, Self.payload, Self.item(5, "07")), [8, 128, 7]),
            (Self.frame(identifier, token, Self.payload, Self.item(4, "0000")), [8, 128, 7]),
            (Self.frame(identifier, token, "020099aa"), [8, 128, 7]),
            (Self.frame(token, "0300"), [8, 128, 0]),
            // Nothing, and no command at all: there is no name.
            (Self.frame(), [8, 2, 0]), ("raw:03", [8, 128, 0]), ("raw:08080000", [8, 128, 0]),
            ("raw:02ffffffff", [8, 128, 0]),
            (Self.frame(identifier, Self.item(1, ""), Self.payload), [8, 2, 7]),
            (Self.frame(identifier, token, Self.item(2, "")), [8, 4, 7]),
            (Self.frame(identifier, token), [8, 4, 7]), (Self.frame(identifier), [8, 2, 7]),
            (Self.frame(identifier, token, Self.item(2, Self.spaces(2049))), [8, 7, 7]),
            (Self.frame(identifier, token, Self.item(2, Self.spaces(60_000))), [8, 7, 7]),
            (gatewayNotification(1, 0, ""), [8, 2, 0]),
            (gatewayNotification(1, 0xffff_ffff, ""), [8, 2, 0xffff_ffff]),
            (gatewayNotification(2, 0xffff_ffff, ""), [8, 2, 0xffff_ffff]),
            (gatewayNotification(1, 7, String(repeating: "ab", count: 101)), [8, 5, 7]),
            (gatewayNotification(1, 7, Self.token, payload: Self.spaces(257)), [8, 7, 7]),
        ] {
            let reply = try fixture.provide([text])
            #expect(reply.packet == packet, "\(text.prefix(80))")
            #expect(reply.closed)
        }
        // Command 0 has no name to say: its connection ends without a word.
        for text in [
            gatewayNotification(0, 0, ""),
            gatewayNotification(0, 0, Self.token, payload: Self.spaces(257)),
        ] {
            let reply = try fixture.provide([text])
            #expect(reply.packet == nil && reply.closed)
        }
        #expect(try fixture.server.finish().allSatisfy { $0[5] != "0" })
    }

    @Test func `The simulated gateway accepts unusual but valid notifications`() throws {
        let fixture = try GatewayFixture()
        let identifier = Self.item(3, "ffffffff")
        let token = Self.item(1, Self.token)
        let tokens = [32, 33, 100].map { String(repeating: "5a", count: $0) }
        let reply = try fixture.provide(
            [
                // Items in any order, without those that may be left out, with each priority.
                Self.frame(Self.item(5, "05"), identifier, Self.payload, token),
                Self.frame(token, Self.payload),
                Self.frame(Self.item(4, "00000000"), Self.payload, token, Self.item(5, "0a")),
                Self.frame(token, Self.item(2, Self.spaces(2048)), Self.item(4, "ffffffff")),
                gatewayNotification(1, 0, Self.token, payload: Self.spaces(256)),
                gatewayNotification(0, 0, Self.token, payload: Self.spaces(256)),
            ] + tokens.map { gatewayNotification(2, 9, $0) }, staysOpen: true)
        #expect(reply.packet == nil && !reply.closed)
        let journal = try fixture.server.finish()
        #expect(journal.map { $0[4] } == Array(repeating: Self.token, count: 6) + tokens)
        #expect(journal.allSatisfy { $0[5] == "0" })
    }

    @Test
    func `The simulated gateway sends its error packet to a client that closed its side`() throws {
        let fixture = try GatewayFixture(
            ["--bad-token", "1"], scenario: "{gateway: {error_delay: '1m'}}")
        let reply = try fixture.provide(
            [gatewayNotification(2, 77, Self.token)], ["--half-close"])
        #expect(reply.packet == [8, 8, 77] && reply.closed)
    }

    @Test func `The gateway part of a scenario can be switched while the simulator runs`() throws {
        let control = try TemporaryDirectory()
        let socket = control.path + "/socket"
        let fixture = try GatewayFixture(["--control", socket])
        let notification = gatewayNotification(2, 3, Self.token)
        func say(_ line: String) throws {
            let answers = try ControlSocket.ask(socket, [line], in: control)
            #expect(try ControlSocket.object(answers[0])["ok"] as? Bool == true)
        }
        #expect(try fixture.provide([notification], staysOpen: true).packet == nil)
        let file = try control.write(
            "{gateway: {statuses: [{token: '\(Self.token)', status: 1}]}}", to: "mine.json5")
        try say("scenario \(file)")
        #expect(try fixture.provide([notification]).packet == [8, 1, 3])
        try say("scenario none")
        #expect(try fixture.provide([notification], staysOpen: true).packet == nil)
    }

    @Test
    func `The commands that simulate prints can be pasted, with blanks and quotes in paths`() throws
    {
        let directory = try TemporaryDirectory()
        let state = directory.path + "/the state's"
        let bin = directory.path + "/bin"
        try FileManager.default.createDirectory(atPath: bin, withIntermediateDirectories: true)
        try FileManager.default.createSymbolicLink(
            atPath: bin + "/broadside", withDestinationPath: try Broadside.path())
        let simulator = try Broadside.start(
            [
                "simulate", "--listen", "0.0.0.0:0", "--binary-listen", "127.0.0.1:0",
                "--feedback-listen", "[::1]:0", "--state", state, "--issue-tokens", "20",
                "--unregistered", "0.5",
            ], in: directory)
        defer { simulator.stop() }
        var lines: [String] = []
        for _ in 0..<6000 where lines.count < 7 {
            lines = try String(contentsOfFile: simulator.outputPath, encoding: .utf8)
                .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
            usleep(10_000)
        }
        try #require(lines.count == 7, "\(lines)")
        #expect(lines[0].hasPrefix("listening on 0.0.0.0:"))
        #expect(lines[2].hasPrefix("binary gateway on 127.0.0.1:"))
        #expect(lines[4].hasPrefix("feedback service on [::1]:"))
        let payload = try directory.write(#"{"aps":{"alert":"x"}}"#, to: "payload.json")
        for (place, ledger, word) in [
            (1, "provider", "accepted"), (3, "gateway", "accepted    20"),
            (5, "feedback", "tokens whose app was removed"),
        ] {
            let command = lines[place].replacing("PAYLOAD", with: payload)
                .replacing("TOKENS", with: "\"\(state)/tokens.txt\"")
                .replacing("LEDGER", with: "\(directory.path)/\(ledger)")
                .replacing("FEEDBACK", with: "\(directory.path)/\(ledger)")
            let pasted = try Subprocess(
                "sh", ["-c", "PATH=\(bin):$PATH; \(command)"], in: directory
            ).wait(limit: 120)
            #expect(pasted.exitCode == 0, "\(command): \(pasted.errors)")
            #expect(pasted.errors.contains(word), "\(command): \(pasted.errors)")
        }
    }
}
