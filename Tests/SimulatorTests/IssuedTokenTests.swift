import Foundation
import Glibc
import Testing

@testable import BroadsideSimulator

/// Device tokens that the simulator issued: for which topic, and since when they are dead.
@Suite(.enabled(if: IndependentClient.isThere, "python3-h2 is not installed"))
struct IssuedTokenTests {
    typealias Client = IndependentClient

    /// The lines of a list in the state directory.
    private func tokens(_ name: String, _ harness: EndpointHarness) throws -> [String] {
        try String(contentsOfFile: harness.state.file(name), encoding: .utf8)
            .split(separator: "\n").map(String.init)
    }

    /// Status and reason of one request each.
    private func responses(
        _ harness: EndpointHarness, certificate: String? = nil,
        _ requests: [(token: String, topic: String, type: String)]
    ) throws -> [String] {
        let bearer = certificate == nil ? try harness.providerToken() : nil
        let events = try Client.converse(
            harness, certificate: certificate,
            requests.map { request in
                .request(
                    Client.fields(
                        harness, bearer: bearer, token: request.token,
                        [("apns-topic", request.topic), ("apns-push-type", request.type)]),
                    body: "{}")
            })
        return events.filter { $0.kind == "answer" }.map { event in
            let body = try? JSONDecoder().decode(
                [String: String].self, from: Data((event.body ?? "").utf8))
            return body?["reason"] ?? "\(event.status ?? 0)"
        }
    }

    /// PushKit hands out a token of its own.
    @Test func `A VoIP push needs the device's VoIP token, and other pushes do not accept it`()
        throws
    {
        let harness = try EndpointHarness { $0.issuedTokens = 3 }
        let topic = harness.state.topic
        let plain = try tokens("tokens.txt", harness)
        let voip = try tokens("tokens-voip.txt", harness)
        #expect(plain.count == 3 && voip.count == 3 && Set(plain + voip).count == 6)
        #expect(
            try responses(
                harness,
                [
                    (plain[0], topic, "alert"), (voip[0], topic + ".voip", "voip"),
                    (plain[0], topic + ".voip", "voip"), (voip[0], topic, "alert"),
                    (plain[0], topic + ".push-type.accessory", "accessory"),
                ]) == ["200", "200", "DeviceTokenNotForTopic", "DeviceTokenNotForTopic", "200"])
    }

    @Test func `The certificate for device management sends mdm pushes to its topic's tokens`()
        throws
    {
        let harness = try EndpointHarness { $0.issuedTokens = 2 }
        let topic = try #require(harness.state.config.mdm_topic)
        #expect(topic.wholeMatch(of: /com\.apple\.mgmt\.External\.[0-9a-f-]{36}/) != nil)
        let managed = try tokens("tokens-mdm.txt", harness)
        let plain = try tokens("tokens.txt", harness)
        #expect(
            try responses(
                harness, certificate: "client-mdm",
                [
                    (managed[0], topic, "mdm"), (plain[0], topic, "mdm"),
                    (managed[0], topic, "alert"), (managed[0], harness.state.topic, "alert"),
                ]) == ["200", "DeviceTokenNotForTopic", "TopicDisallowed", "TopicDisallowed"])
        // A provider token is not for device management.
        #expect(try responses(harness, [(managed[0], topic, "mdm")]) == ["TopicDisallowed"])
    }

    /// The timestamp of a 410, and the milliseconds before and after its request.
    private func timestamp(
        _ harness: EndpointHarness, token: String
    ) throws -> (before: UInt64, timestamp: UInt64, after: UInt64) {
        let before = ClockStart.now().microseconds / 1000
        let events = try Client.converse(
            harness,
            [
                .request(
                    Client.fields(harness, bearer: try harness.providerToken(), token: token),
                    body: "{}")
            ])
        let answer = try #require(events.first { $0.status == 410 }, "\(events)")
        let body = try JSONSerialization.jsonObject(with: Data((answer.body ?? "").utf8))
        let time = try #require(((body as? [String: Any])?["timestamp"] as? NSNumber)?.uint64Value)
        return (before, time, ClockStart.now().microseconds / 1000)
    }

    @Test func `The 410 of an issued token is dated after its issue and before the request`() throws
    {
        let harness = try EndpointHarness {
            $0.issuedTokens = 1
            $0.unregistered = 1
        }
        let found = try timestamp(harness, token: try tokens("tokens.txt", harness)[0])
        var information = stat()
        try #require(stat(harness.state.file("tokens.txt"), &information) == 0)
        let issued =
            UInt64(information.st_mtim.tv_sec) * 1000
            + UInt64(information.st_mtim.tv_nsec) / 1_000_000
        #expect(issued < found.timestamp && found.timestamp <= found.before)
    }

    @Test func `The 410 of any token is dated in the second of goneAt, if it is given`() throws {
        let harness = try EndpointHarness {
            $0.unregistered = 1
            $0.goneAt = .second(1_790_000_000)
        }
        let found = try timestamp(harness, token: EndpointHarness.token)
        #expect(found.timestamp / 1000 == 1_790_000_000)
    }

    @Test(arguments: [false, true])
    func `With goneAt request, a 410 is dated at its request`(isFast: Bool) throws {
        let harness = try EndpointHarness {
            $0.unregistered = 1
            $0.goneAt = .request
            $0.isFast = isFast
        }
        // A token that was registered between two requests is dead again for the second one.
        for _ in 0..<2 {
            let found = try timestamp(harness, token: EndpointHarness.token)
            #expect(found.before <= found.timestamp && found.timestamp <= found.after)
            usleep(5000)
        }
    }

    @Test func `With goneAt start, every 410 is dated at the simulator's start`() throws {
        let before = ClockStart.now().microseconds / 1000
        let harness = try EndpointHarness {
            $0.unregistered = 1
            $0.goneAt = .start
        }
        let after = ClockStart.now().microseconds / 1000
        usleep(5000)
        let found = try (0..<2).map { _ in
            try timestamp(harness, token: EndpointHarness.token).timestamp
        }
        #expect(before <= found[0] && found[0] <= after && found[0] == found[1])
    }

    @Test func `A scenario's 410 is dated at its request`() throws {
        let folder = Folder()
        let file = try folder.write(
            "gone.json5", "{ faults: [{ do: 'answer', at: 1, reason: 'ExpiredToken' }] }")
        let harness = try EndpointHarness { $0.scenario = file }
        let found = try timestamp(harness, token: EndpointHarness.token)
        #expect(found.before <= found.timestamp && found.timestamp <= found.after)
    }
}
