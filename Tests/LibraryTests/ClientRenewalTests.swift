import Broadside
import BroadsideSimulatorTesting
import BroadsideTestSupport
import Foundation
import Testing

/// Clients whose credential is replaced, and clients behind a proxy.
@Suite(.timeLimit(.minutes(10)))
struct ClientRenewalTests {
    private let directory: TemporaryDirectory
    private let authority: TestAuthority

    init() throws {
        directory = try TemporaryDirectory()
        authority = try TestAuthority.shared()
    }

    private func options(port: Int) -> ClientOptions {
        var options = ClientOptions(
            server: .other(host: "localhost", port: UInt16(port), authorities: authority.caFile))
        options.connectionsLimit = 1
        return options
    }

    private func push(_ number: Int = 7) -> Push {
        let row = String(number, radix: 16)
        return Push(
            token: String(repeating: "0", count: 16 - row.count) + row
                + String(repeating: "a", count: 48),
            topic: Campaign.topic, payload: Data(#"{"aps":{"alert":"Hello"}}"#.utf8))
    }

    private func key(_ file: String) -> APNsCredential {
        .keyFile(URL(filePath: file), keyID: Campaign.keyID, teamID: Campaign.teamID)
    }

    /// A key that no server knows.
    private func strangeKey() throws -> String {
        let path = "\(directory.path)/strange.p8"
        try Subprocess.run(
            "openssl",
            ["genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", path],
            in: directory)
        return path
    }

    private func copy(_ file: String, to path: String) throws {
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.copyItem(atPath: file, toPath: path)
    }

    @Test
    func `A key file that was changed is read again when the credential is replaced`() async throws
    {
        let server = try LocalAPNs()
        let file = "\(directory.path)/key.p8"
        try copy(try strangeKey(), to: file)
        let client = try await Client(
            credential: key(file), options: options(port: server.port))
        let refused = try await client.send(push())
        #expect(refused.meaning == .refusedCredential && refused.reason == "InvalidProviderToken")
        try copy(authority.authKey, to: file)
        #expect(try await client.send(push()).meaning == .refusedCredential, "not read again yet")
        try await client.replaceCredential(key(file))
        #expect(try await client.send(push()).isAccepted)
        await client.close()
    }

    @Test
    func `Another key signs for a connection of its own, and the old one ends in order`()
        async throws
    {
        let server = try RecordingServer()
        let client = try await Client(
            credential: key(authority.authKey), options: options(port: server.port))
        #expect(try await client.send(push()).isAccepted)
        try await client.replaceCredential(
            .keyFile(
                URL(filePath: try strangeKey()), keyID: "NEWKEY0000", teamID: Campaign.teamID))
        #expect(try await client.send(push()).isAccepted)
        let foreign = await #expect(throws: CampaignError.self) {
            try await client.replaceCredential(
                .keyFile(
                    URL(filePath: authority.authKey), keyID: Campaign.keyID, teamID: "OTHERTEAM0"))
        }
        #expect(foreign?.code == .invalid && foreign?.message.contains("OTHERTEAM0") == true)
        await client.close()
        let events = try server.events()
        #expect(events.filter { $0.event == "answer" }.map(\.connection) == [1, 2])
        let keys = try events.compactMap(\.fields).map { fields in
            let value = try #require(fields.first { $0.name == "authorization" }?.value)
            return try keyID(inToken: String(value.dropFirst("bearer ".count)))
        }
        #expect(keys == [Campaign.keyID, "NEWKEY0000"])
        // GOAWAY: no error.
        #expect(events.contains { $0.kind == 7 && $0.connection == 1 })
    }

    private func keyID(inToken token: String) throws -> String? {
        let coded = String(token.prefix { $0 != "." })
        var header = coded.replacing("-", with: "+").replacing("_", with: "/")
        while header.utf8.count % 4 != 0 { header += "=" }
        let json = try JSONSerialization.jsonObject(with: #require(Data(base64Encoded: header)))
        return (json as? [String: Any])?["kid"] as? String
    }

    @Test
    func `A renewed certificate is used once the credential is replaced`() async throws {
        let server = try LocalAPNs()
        let old = try authority.clientCertificate(
            userID: "com.example.stranger", in: directory, name: "old")
        let renewed = try authority.clientCertificate(in: directory, name: "renewed")
        let (file, keyFile) = ("\(directory.path)/push.pem", "\(directory.path)/push.key")
        try copy(old.certificate, to: file)
        try copy(old.key, to: keyFile)
        let credential = APNsCredential.certificate(
            URL(filePath: file), privateKey: URL(filePath: keyFile))
        let client = try await Client(
            credential: credential, options: options(port: server.port))
        #expect(try await client.send(push()).isAccepted == false)
        try copy(renewed.certificate, to: file)
        try copy(renewed.key, to: keyFile)
        try await client.replaceCredential(credential)
        #expect(try await client.send(push()).isAccepted)

        // What can't be used changes nothing.
        try copy(old.key, to: keyFile)
        for wrong in [credential, key(authority.authKey)] {
            let error = await #expect(throws: CampaignError.self) {
                try await client.replaceCredential(wrong)
            }
            #expect(error?.code == .invalid)
        }
        #expect(try await client.send(push()).isAccepted)
        await client.close()
    }

    @Test func `Pushes on their way get their responses while the credential is replaced`()
        async throws
    {
        let server = try LocalAPNs(["--latency", "200ms"])
        let client = try await Client(
            credential: key(authority.authKey), options: options(port: server.port))
        let accepted = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<400 {
                let push = push(number)
                group.addTask { (try? await client.send(push))?.isAccepted == true }
                if number % 50 == 49 {
                    try? await Task.sleep(for: .milliseconds(20))
                    try? await client.replaceCredential(key(authority.authKey))
                }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(accepted == 400 && client.pushesAwaited == 0)
        await client.close()
    }

    @Test
    func `All pushes whose provider token expired while they were in flight are sent again`()
        async throws
    {
        let apns = try SimulatedAPNs { $0.latencyNanoseconds = 300_000_000 }
        guard case .keyFile(let signer, let keyID, let teamID) = apns.credential else {
            throw TestFailure("the simulator's credential is a key file")
        }
        func writeToken(minutesAgo minutes: Int) throws -> URL {
            let token = try authority.providerToken(
                issuedAt: Int(Date().timeIntervalSince1970) - minutes * 60, keyID: keyID,
                teamID: teamID, key: signer.path(percentEncoded: false), in: directory)
            return URL(filePath: try directory.write(token, to: "token"))
        }
        func push(_ number: Int) -> Push {
            Push(token: token(number), topic: apns.topic, payload: Data(#"{"aps":{}}"#.utf8))
        }
        var options = ClientOptions(server: apns.server)
        options.connectionsLimit = 1
        let client = try await Client(
            credential: .providerTokenFile(try writeToken(minutesAgo: 30)), options: options)
        #expect(try await client.send(push(0)).isAccepted)
        _ = try writeToken(minutesAgo: 1)
        apns.control("expire-token")
        let accepted = await withTaskGroup(of: Bool.self) { group in
            for number in 1...50 {
                let push = push(number)
                group.addTask { (try? await client.send(push))?.isAccepted == true }
            }
            return await group.reduce(into: 0) { $0 += $1 ? 1 : 0 }
        }
        #expect(accepted == 50)
        await client.close()
    }

    // MARK: Proxy

    private func error(_ options: ClientOptions) async throws -> CampaignError? {
        var options = options
        options.timeout = .seconds(6)
        let client = try await Client(credential: key(authority.authKey), options: options)
        let error = await #expect(throws: CampaignError.self) { try await client.send(push()) }
        await client.close()
        return error
    }

    @Test func `A client reaches its server through a proxy that asks for a login`() async throws {
        let server = try LocalAPNs()
        let proxy = try Tinyproxy(login: "user word")
        var options = options(port: server.port)
        let login = try directory.write("user:word\n", to: "login")
        options.proxy = APNsProxy(
            host: "127.0.0.1", port: UInt16(proxy.port), loginFile: URL(filePath: login))
        let client = try await Client(credential: key(authority.authKey), options: options)
        for number in 0..<20 { #expect(try await client.send(push(number)).isAccepted) }
        await client.close()
        #expect(try proxy.tunnels() == 1)

        options.proxy?.loginFile = nil
        let stranger = try await error(options)
        #expect(stranger?.code == .unavailable)
        #expect(stranger?.message.contains("407") == true, "\(stranger?.message ?? "")")
        #expect(stranger?.message.contains("add APNsProxy.loginFile") == true)
        try directory.write("user:wrong\n", to: "login")
        options.proxy?.loginFile = URL(filePath: login)
        #expect(try await error(options)?.message.contains("APNsProxy.loginFile") == true)
    }

    @Test func `A proxy that is none, or is not there, fails the push and is named`() async throws {
        let server = try RecordingServer()
        var options = options(port: server.port)
        options.proxy = APNsProxy(host: "localhost", port: UInt16(try Ports.free()))
        let absent = try await error(options)
        #expect(absent?.code == .unavailable)
        // A server that speaks TLS closes the connection.
        options.proxy = APNsProxy(host: "localhost", port: UInt16(server.port))
        let wrong = try await error(options)
        #expect(wrong?.code == .unavailable)
        #expect(wrong?.message.contains("--") == false, "\(wrong?.message ?? "")")
        options.proxy = APNsProxy(host: "local host", port: 1)
        let invalid = await #expect(throws: CampaignError.self) {
            try await Client(credential: key(authority.authKey), options: options)
        }
        #expect(invalid?.code == .invalid && invalid?.property == "APNsProxy")
    }
}
