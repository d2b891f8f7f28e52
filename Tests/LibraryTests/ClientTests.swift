import Broadside
import BroadsideSimulator
import BroadsideSimulatorTesting
import Foundation
import Testing

@Suite(.timeLimit(.minutes(10)))
struct ClientTests {
    private static func client(
        _ apns: SimulatedAPNs, _ change: (inout ClientOptions) -> Void = { _ in }
    ) async throws -> Client {
        var options = ClientOptions(server: apns.server)
        change(&options)
        return try await Client(credential: apns.credential, options: options)
    }

    private static func push(_ number: Int, _ apns: SimulatedAPNs) -> Push {
        Push(
            token: token(number), topic: apns.topic,
            payload: Data(#"{"aps":{"alert":"Hello"}}"#.utf8))
    }

    @Test(.simulatedAPNs)
    func `A push gets its response, and the server has its token and identifier`() async throws {
        let apns = try #require(SimulatedAPNs.current)
        let client = try await Self.client(apns)
        let push = Self.push(7, apns)
        let response = try await client.send(push)
        #expect(response.status == 200 && response.isAccepted && response.id == push.id)
        await client.close()
        apns.stop()
        let line = try #require(try apns.journal.first)
        #expect(line.contains(push.id.uuidString.lowercased() + "," + token(7) + ",200"))
    }

    @Test(.simulatedAPNs { $0.unregistered = 0.5 })
    func `Pushes to dead tokens get their reason and time`() async throws {
        let apns = try #require(SimulatedAPNs.current)
        let client = try await Self.client(apns)
        var dead = 0
        for number in 0..<40 {
            let response = try await client.send(Self.push(number, apns))
            guard !response.isAccepted else { continue }
            dead += 1
            #expect(response.status == 410 && response.reason == "Unregistered")
            #expect(response.meaning == .deadToken && response.unregisteredAt != nil)
        }
        #expect((5..<36).contains(dead))
        await client.close()
    }

    @Test(.simulatedAPNs)
    func `Thousands of pushes at once share few connections and keep their responses apart`()
        async throws
    {
        let apns = try #require(SimulatedAPNs.current)
        let client = try await Self.client(apns)
        let responses = try await withThrowingTaskGroup(of: (UUID, PushResponse).self) { group in
            for number in 0..<5_000 {
                let push = Self.push(number, apns)
                group.addTask { (push.id, try await client.send(push)) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(responses.count == 5_000)
        #expect(responses.allSatisfy { $0.0 == $0.1.id && $0.1.isAccepted })
        await client.close()
        let totals = apns.stop()
        #expect(totals.accepted == 5_000 && totals.connections <= 4)
        #expect(totals.violations == 0 && totals.lintFindings.isEmpty)
    }

    @Test(.simulatedAPNs { $0.latencyNanoseconds = 60_000_000_000 })
    func `A push ends with its task, its time or its connection`() async throws {
        let apns = try #require(SimulatedAPNs.current)
        let client = try await Self.client(apns)
        let cancelled = Task { try await client.send(Self.push(1, apns)) }
        try await Task.sleep(for: .milliseconds(300))
        cancelled.cancel()
        let stopped = await #expect(throws: CampaignError.self) { try await cancelled.value }
        #expect(stopped?.code == .stopped)

        let hasty = try await Self.client(apns) { $0.timeout = .seconds(5) }
        let late = await #expect(throws: CampaignError.self) {
            try await hasty.send(Self.push(2, apns))
        }
        #expect(late?.code == .responseLost)
        await hasty.close()

        let other = try await Self.client(apns)
        let cut = Task { try await other.send(Self.push(3, apns)) }
        while !apns.control("received token=\(token(3))").contains("\"number\":") {
            try await Task.sleep(for: .milliseconds(10))
        }
        apns.stop()
        let lost = await #expect(throws: CampaignError.self) { try await cut.value }
        #expect(lost?.code == .responseLost)
        #expect(other.pushesAwaited == 0)
        await other.close()
        await client.close()
        let closed = await #expect(throws: CampaignError.self) {
            try await client.send(Self.push(4, apns))
        }
        #expect(closed?.code == .stopped)
    }

    @Test(.simulatedAPNs { $0.latencyNanoseconds = 8_000_000_000 })
    func `More pushes than the limit are refused at once`() async throws {
        let apns = try #require(SimulatedAPNs.current)
        let client = try await Self.client(apns) { $0.pushesLimit = 10 }
        let codes = await withTaskGroup(of: CampaignError.Code?.self) { group in
            for number in 0..<30 {
                let push = Self.push(number, apns)
                group.addTask {
                    do throws(CampaignError) {
                        _ = try await client.send(push)
                        return nil
                    } catch {
                        return error.code
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(codes.count { $0 == .busy } == 20 && codes.count { $0 == nil } == 10)
        await client.close()
    }

    @Test
    func `A push to a server that is not there says so`() async throws {
        let apns = try SimulatedAPNs()
        apns.stop()
        let client = try await Self.client(apns) { $0.timeout = .seconds(8) }
        let error = await #expect(throws: CampaignError.self) {
            try await client.send(Self.push(1, apns))
        }
        #expect(error?.code == .unavailable)
        #expect(error?.message.contains("refused") == true)
        await client.close()
    }

    @Test(.simulatedAPNs)
    func `A push that APNs would refuse for its form is not sent`() async throws {
        let apns = try #require(SimulatedAPNs.current)
        let client = try await Self.client(apns)
        func property(_ change: (inout Push) -> Void) async -> String? {
            var push = Self.push(1, apns)
            change(&push)
            return await #expect(throws: CampaignError.self) { try await client.send(push) }?
                .property
        }
        #expect(await property { $0.token = "abc" } == "Push.token")
        #expect(await property { $0.payload = Data(count: 5_000) } == "Push.payload")
        #expect(await property { $0.topic = "a b" } == "Push.topic")
        let longTopic = String(repeating: "a", count: 20_000)
        #expect(await property { $0.topic = longTopic } == "Push.topic")
        for seconds in [Double.infinity, .nan, 1e20] {
            let date = Date(timeIntervalSince1970: seconds)
            #expect(await property { $0.expiration = date } == "Push.expiration")
        }
        #expect(
            await property { $0.collapseID = String(repeating: "c", count: 65) }
                == "Push.collapseID")
        await client.close()
        #expect(apns.stop().requests == 0)
    }
}
