import Foundation
import Testing

@testable import Simulator

/// aioapns, a Python client from PyPI, in a virtual environment of its own.
@Suite struct AioapnsTests {
    static let program = """
        import asyncio, json, sys
        from aioapns import APNs, NotificationRequest, PushType
        import aioapns.connection as connection
        import ssl

        host, port, ca, key, key_id, team_id, topic = sys.argv[1:8]
        tokens = sys.argv[8:]

        # Its endpoints are constants: point them at the local one, and trust that.
        for name in dir(connection):
            protocol = getattr(connection, name)
            if isinstance(protocol, type) and hasattr(protocol, "APNS_SERVER"):
                protocol.APNS_SERVER = host
                protocol.APNS_PORT = int(port)

        async def main():
            context = ssl.create_default_context(cafile=ca)
            client = APNs(key=open(key).read(), key_id=key_id, team_id=team_id, topic=topic,
                          ssl_context=context)
            async def send(token):
                request = NotificationRequest(
                    device_token=token, message={"aps": {"alert": "Hello"}},
                    push_type=PushType.ALERT)
                response = await client.send_notification(request)
                return [token, str(response.status), response.description or "",
                        str(response.timestamp or "")]
            print(json.dumps(await asyncio.gather(*[send(token) for token in tokens])))

        asyncio.run(main())
        """

    @Test(arguments: [false, true]) func sends(isFast: Bool) throws {
        guard let python = try Self.environment() else {
            print("aioapns can't be installed from PyPI here: its test is left out")
            return
        }
        let harness = try EndpointHarness {
            $0.isFast = isFast
            $0.badToken = 0.1
            $0.unregistered = 0.3
            $0.seed = 7
        }
        let program = try harness.folder.write("send.py", Self.program)
        let fillers = (0..<50).map { "ffffffffffffffff" + String(format: "%04x", $0) }
        let result = try run(
            [
                python, program, "127.0.0.1", "\(harness.endpoint.port)",
                harness.state.file("ca.pem"), harness.state.authKeyFile, harness.state.keyID,
                harness.state.teamID, harness.state.topic, EndpointHarness.token,
                "0123456789abcdef",
            ] + fillers, seconds: 60)
        let data = Data(result.output.utf8)
        let answers = try #require(
            try? JSONSerialization.jsonObject(with: data) as? [[String]], "\(result.errors)")
        try #require(answers.count == 52)
        #expect(answers[0] == [EndpointHarness.token, "410", "Unregistered", "1700012689224"])
        #expect(answers[1] == ["0123456789abcdef", "400", "BadDeviceToken", ""])
        #expect(answers[2...].allSatisfy { $0[1...] == ["200", "", ""] })
    }

    /// The environment's interpreter, made once; nil where PyPI is out of reach.
    private static func environment() throws -> String? { try made.get() }

    private static let made = Result { () throws -> String? in
        let path = FileManager.default.temporaryDirectory.path + "/broadside-aioapns-\(getuid())"
        let python = path + "/bin/python3"
        if try run([python, "-c", "import aioapns"]).status == 0 { return python }
        guard try run(["python3", "-m", "venv", path], seconds: 120).status == 0,
            try run(
                [python, "-m", "pip", "install", "--quiet", "aioapns==4.0"], seconds: 180
            ).status == 0
        else { return nil }
        return python
    }
}
