import Broadside
import BroadsideSimulatorTesting
import BroadsideTestSupport
import Foundation
import Testing

/// Clients whose server is in trouble, ends connections, or does not respond.
@Suite(.timeLimit(.minutes(10)))
struct ClientTroubleTests {
    /// Simulated APNs with a scenario of its own.
    private func apns(_ scenario: String) throws -> SimulatedAPNs {
        let directory = try TemporaryDirectory()
        let file = try directory.write(scenario, to: "scenario.json5")
        return try withExtendedLifetime(directory) {
            try SimulatedAPNs { $0.scenario = file }
        }
    }

    private func client(
        _ apns: SimulatedAPNs, timeout: Duration, connections: Int = 4
    ) async throws -> Client {
        var options = ClientOptions(server: apns.server)
        options.timeout = timeout
        options.connectionsLimit = connections
        return try await Client(credential: apns.credential, options: options)
    }

    /// Sends pushes at once; returns their outcomes by token.
    private func send(
        _ numbers: Range<Int>, topic: String, _ client: Client
    ) async -> [String: Result<PushResponse, CampaignError>] {
        await withTaskGroup(of: (String, Result<PushResponse, CampaignError>).self) { group in
            for number in numbers {
                group.addTask {
                    let push = Push(
                        token: token(number), topic: topic,
                        payload: Data(#"{"aps":{"alert":"Hello"}}"#.utf8))
                    do throws(CampaignError) {
                        return (push.token, .success(try await client.send(push)))
                    } catch {
                        return (push.token, .failure(error))
                    }
                }
            }
            return await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
    }

    private func messages(_ outcomes: [String: Result<PushResponse, CampaignError>]) -> [String] {
        outcomes.values.compactMap { outcome in
            if case .failure(let error) = outcome, error.code == .unavailable {
                return error.message
            }
            return nil
        }
    }

    @Test
    func `After a 503, pushes wait as long as the server asks, and their error names the 503`()
        async throws
    {
        let apns = try apns(
            #"{faults:[{do:"answer",reason:"ServiceUnavailable",retry_after:60,every:1}]}"#)
        let client = try await client(apns, timeout: .seconds(10))
        let outcomes = await send(0..<300, topic: apns.topic, client)
        await client.close()
        let messages = messages(outcomes)
        #expect(messages.count == 299)
        #expect(messages.allSatisfy { $0.contains("503 ServiceUnavailable") })
        let totals = apns.stop()
        #expect(totals.requests == 1 && totals.connections == 1)
    }

    @Test
    func `After TooManyProviderTokenUpdates, a push without a previous token may be tried later`()
        async throws
    {
        let apns = try apns(
            #"{faults:[{do:"answer",reason:"TooManyProviderTokenUpdates",every:1}]}"#)
        let client = try await client(apns, timeout: .seconds(30))
        let outcomes = await send(0..<2, topic: apns.topic, client)
        await client.close()
        #expect(outcomes.values.allSatisfy { (try? $0.get())?.meaning == .tryLater })
        #expect(outcomes.count == 2 && apns.stop().requests == 2)
    }

    @Test
    func `A server that ends each connection gets few of them`() async throws {
        let apns = try apns(
            #"{faults:[{do:"goaway",every:1,before_request:true,reason:"Shutdown"}]}"#)
        let client = try await client(apns, timeout: .seconds(10))
        let messages = messages(await send(0..<300, topic: apns.topic, client))
        await client.close()
        #expect(messages.count == 300 && messages.allSatisfy { $0.contains("Shutdown") })
        #expect(apns.stop().connections < 10)
    }

    @Test(.simulatedAPNs { $0.scenario = "goaway" })
    func `No push fails because GOAWAYs refuse its streams`() async throws {
        let apns = try #require(SimulatedAPNs.current)
        let client = try await client(apns, timeout: .seconds(60))
        for _ in 0..<3 {
            let outcomes = await send(0..<3_000, topic: apns.topic, client)
            #expect(outcomes.count == 3_000)
            #expect(outcomes.values.allSatisfy { (try? $0.get())?.isAccepted == true })
        }
        await client.close()
    }

    @Test
    func `A push waits for its response from when it was sent`() async throws {
        let apns = try SimulatedAPNs { $0.latencyNanoseconds = 2_000_000_000 }
        let client = try await client(apns, timeout: .seconds(12), connections: 1)
        // The connection takes 1,000 pushes every two seconds.
        let outcomes = await send(0..<8_000, topic: apns.topic, client)
        await client.close()
        let failed = messages(outcomes).count
        #expect(failed > 0)
        #expect(outcomes.values.count { (try? $0.get()) != nil } == 8_000 - failed)
        #expect(apns.stop().requests == 8_000 - failed)
    }

    @Test
    func `A push whose server never responds to the handshake says that no connection was opened`()
        async throws
    {
        let server = try RecordingServer("plain", ["--answer", "silence"])
        let authority = try TestAuthority.shared()
        var options = ClientOptions(
            server: .other(
                host: "localhost", port: UInt16(server.port), authorities: authority.caFile))
        options.timeout = .seconds(2)
        let client = try await Client(
            credential: .keyFile(
                URL(filePath: authority.authKey), keyID: "ABC123DEFG", teamID: "DEF123GHIJ"),
            options: options)
        let outcomes = await send(0..<1, topic: "com.example.App", client)
        #expect(messages(outcomes).first?.contains("no connection to localhost") == true)
        await client.close()
    }

    @Test
    func `After a reset, pushes are accepted or lost, and what was never sent is sent again`()
        async throws
    {
        let authority = try TestAuthority.shared()
        for _ in 0..<3 {
            let server = try RecordingServer("reset")
            let client = try await Client(
                credential: .keyFile(
                    URL(filePath: authority.authKey), keyID: "ABC123DEFG", teamID: "DEF123GHIJ"),
                options: ClientOptions(
                    server: .other(
                        host: "localhost", port: UInt16(server.port),
                        authorities: authority.caFile)))
            let outcomes = await send(0..<3_000, topic: "com.example.App", client)
            await client.close()
            let accepted = outcomes.values.count { (try? $0.get())?.isAccepted == true }
            let taken = try server.answers().filter { $0.action == "taken" }
            // The reset may discard responses of the first connection.
            let others = taken.count { $0.connection != 1 }
            // At most 1,000 pushes were open on the first connection, after 20 responses.
            #expect(accepted >= others && others >= 1_980)
            #expect(Set(taken.compactMap(\.path)).count == taken.count)
            #expect(outcomes.count == 3_000 && messages(outcomes).isEmpty)
        }
    }
}
