import Foundation
import Testing

@testable import BroadsideSimulator

/// Keys of several teams, each for the topics of its own.
@Suite(.enabled(if: isInstalled("curl"), "curl is not installed"))
struct TeamTests {
    private static let topic = "com.acme.App"
    private let folder = Folder()

    /// Fills a state directory, and adds a key of another team for these topics to its config.json.
    private func register(_ topics: [String]?) throws -> String {
        let state = try StateDirectory(path: folder.file("state"))
        let other = try StateDirectory(path: folder.file("other"))
        for (name, copy) in [
            (other.authKeyFile, "other/AuthKey_\(other.keyID).p8"),
            (other.file("AuthKey_\(other.keyID).pub.pem"), "acme.pem"),
        ] { try FileManager.default.copyItem(atPath: name, toPath: state.file(copy)) }
        let file = URL(fileURLWithPath: state.file("config.json"))
        var config = try #require(
            try JSONSerialization.jsonObject(with: Data(contentsOf: file)) as? [String: Any])
        var key: [String: Any] = [
            "key_id": other.keyID, "team_id": other.teamID, "public_key": "acme.pem",
            "use": "acme",
        ]
        key["topics"] = topics
        config["other_keys"] = (config["other_keys"] as? [Any] ?? []) + [key]
        try JSONSerialization.data(withJSONObject: config).write(to: file)
        return state.path
    }

    /// Each request is the first one of its connection.
    @Test func `A registered key of another team pushes to its own topics, and no other key does`()
        throws
    {
        let state = try register([Self.topic])
        let harness = try EndpointHarness { $0.state = state }
        for (use, topic, answer) in [
            ("acme", harness.state.topic, "TopicDisallowed"),
            ("acme", "com.example.Other", "TopicDisallowed"), ("acme", Self.topic, ""),
            ("acme", "\(Self.topic).voip", ""), (nil, Self.topic, "TopicDisallowed"),
            ("second key of the team", Self.topic, "TopicDisallowed"),
            ("key of another team", Self.topic, "TopicDisallowed"),
            (nil, harness.state.topic, ""), ("second key of the team", harness.state.topic, ""),
            (nil, "com.example.Other", "DeviceTokenNotForTopic"),
        ] as [(String?, String, String)] {
            let response = try harness.curl(
                authorization: try harness.providerToken(use: use), topic: topic)
            let expected = answer.isEmpty ? "" : "{\"reason\":\"\(answer)\"}"
            #expect(response.body == expected, "\(use ?? "first key"), \(topic)")
            #expect(response.status == (answer.isEmpty ? 200 : 400))
        }
    }

    @Test func `A registered key of another team without topics may push to none`() throws {
        let state = try register(nil)
        let harness = try EndpointHarness { $0.state = state }
        for topic in [harness.state.topic, "com.example.Other", Self.topic] {
            let response = try harness.curl(
                authorization: try harness.providerToken(use: "acme"), topic: topic)
            #expect(response.body == "{\"reason\":\"TopicDisallowed\"}", "\(topic)")
        }
    }

    @Test func `A topic of one team in the topics of another team's key is exit 2`() throws {
        let state = try StateDirectory(path: try register([Self.topic, "com.example.Broadside"]))
        let error = try #require(throws: SimulatorError.self) { _ = try state.credentials() }
        #expect(error.exitCode == 2 && error.message.contains("com.example.Broadside belongs to"))
    }
}
