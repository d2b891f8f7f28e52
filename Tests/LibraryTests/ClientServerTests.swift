import Broadside
import BroadsideTestSupport
import Foundation
import Testing

/// A client with a server that has none of Broadside's own code.
@Suite(.timeLimit(.minutes(10)))
struct ClientServerTests {
    private static func client(_ server: RecordingServer) async throws -> Client {
        let authority = try TestAuthority.shared()
        var options = ClientOptions(
            server: .other(
                host: "localhost", port: UInt16(server.port), authorities: authority.caFile))
        options.connectionsLimit = 1
        return try await Client(
            credential: .keyFile(
                URL(filePath: authority.authKey), keyID: "ABC123DEFG", teamID: "DEF123GHIJ"),
            options: options)
    }

    private static func push(_ number: Int) -> Push {
        let row = String(number, radix: 16)
        return Push(
            token: "00000000" + String(repeating: "0", count: 8 - row.count) + row
                + String(repeating: "a", count: 48),
            topic: "com.example.App", payload: Data(#"{"aps":{"alert":"Hello"}}"#.utf8))
    }

    /// Sends pushes at once; returns how often each outcome was seen.
    private static func send(_ numbers: Range<Int>, _ client: Client) async -> [String: Int] {
        await withTaskGroup(of: String.self) { group in
            for number in numbers {
                group.addTask {
                    do throws(CampaignError) {
                        return try await client.send(push(number)).meaning.rawValue
                    } catch {
                        return error.code.rawValue
                    }
                }
            }
            return await group.reduce(into: [:]) { $0[$1, default: 0] += 1 }
        }
    }

    @Test
    func `A push has each header and its payload, and the second one refers to the first`()
        async throws
    {
        let server = try RecordingServer()
        let client = try await Self.client(server)
        var push = Self.push(7)
        push.pushType = .background
        push.payload = Data(#"{"aps":{"content-available":1}}"#.utf8)
        push.expiration = Date(timeIntervalSince1970: 2_000_000_000)
        push.collapseID = "one-of-many"
        #expect(try await client.send(push).isAccepted)
        push.id = UUID()
        #expect(try await client.send(push).isAccepted)
        await client.close()
        let requests = try server.answers()
        #expect(requests.count == 2 && requests.allSatisfy { $0.connection == 1 })
        let blocks = try server.events().compactMap(\.fields)
        let fields = try #require(blocks.first)
        var values: [String: String] = [:]
        for field in fields where field.form != "size" { values[field.name] = field.value }
        #expect(values["authorization"]?.hasPrefix("bearer eyJ") == true)
        #expect(values["apns-id"]?.count == 36)
        values["authorization"] = nil
        values["apns-id"] = nil
        #expect(
            values == [
                ":method": "POST", ":scheme": "https", ":path": "/3/device/\(push.token)",
                ":authority": "localhost:\(server.port)", "apns-topic": "com.example.App",
                "apns-push-type": "background", "apns-priority": "5",
                "apns-expiration": "2000000000", "apns-collapse-id": "one-of-many",
            ])
        #expect(requests[0].body == #"{"aps":{"content-available":1}}"#)
        let second = try #require(blocks.last?.first { $0.name == "apns-id" })
        #expect(second.value == push.id.uuidString.lowercased())
        #expect(second.form == "without" && second.index > 61)
    }

    @Test(arguments: ["refused", "goaway-above", "goaway-twice"])
    func `Pushes that the server did not process are sent once more, and taken once`(
        behaviour: String
    ) async throws {
        let server = try RecordingServer(behaviour)
        let client = try await Self.client(server)
        // The first response opens the gate for the others.
        #expect(await Self.send(0..<1, client) == ["accepted": 1])
        #expect(await Self.send(1..<19, client) == ["accepted": 18])
        await client.close()
        let taken = try server.answers().filter { $0.action == "taken" }
        #expect(taken.count == 19)
        #expect(Set(taken.compactMap(\.path)).count == 19)
    }

    @Test
    func `Pushes whose connection breaks off are lost, and the next ones use another one`()
        async throws
    {
        let server = try RecordingServer("lost")
        let client = try await Self.client(server)
        #expect(await Self.send(0..<1, client) == ["responseLost": 1])
        #expect(await Self.send(1..<30, client) == ["accepted": 29])
        await client.close()
    }

    @Test
    func `After 10 s of silence, a push waits for the response to a PING, or goes elsewhere`()
        async throws
    {
        let servers = [try RecordingServer(), try RecordingServer("forgotten")]
        let clients = [try await Self.client(servers[0]), try await Self.client(servers[1])]
        for client in clients { #expect(await Self.send(0..<1, client) == ["accepted": 1]) }
        try await Task.sleep(for: .seconds(11))
        for client in clients { #expect(await Self.send(1..<9, client) == ["accepted": 8]) }
        for client in clients { await client.close() }
        let events = try servers[0].events()
        let ping = try #require(events.firstIndex { $0.kind == 6 && $0.flags == 0 })
        #expect(events[..<ping].count { $0.event == "request" } == 1)
        #expect(events.count { $0.event == "preface" } == 1)
        let requests = try servers[1].events().filter { $0.event == "request" }
        #expect(requests.map(\.connection) == [1] + Array(repeating: 2, count: 8))
    }

    @Test
    func `Windows that are smaller than a payload only make its frames smaller`() async throws {
        // SETTINGS_INITIAL_WINDOW_SIZE, and updates of each stream's window.
        let server = try RecordingServer(
            "plain", ["--setting", "4=10", "--stream-updates", "--bodies"])
        let client = try await Self.client(server)
        #expect(await Self.send(0..<30, client) == ["accepted": 30])
        await client.close()
        let answers = try server.answers()
        #expect(answers.count == 30)
        #expect(answers.allSatisfy { $0.body == #"{"aps":{"alert":"Hello"}}"# })
    }
}
