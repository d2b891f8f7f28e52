import BroadsideCampaigns
internal import BroadsidePrimitives
import BroadsideSupport

/// Address of a simulator, and the credentials that it made in its state directory.
struct BenchSimulator {
    private struct Config: Decodable {
        var key_id: String
        var team_id: String
        var topic: String
    }

    let address: String
    private let state: String
    private let config: Config

    init(state: String, address: String) throws(BroadsideError) {
        self.state = state
        self.address = address
        let bytes = Array(BenchFiles.text("\(state)/config.json").utf8)
        guard let config = try? JSONCoding.decode(Config.self, from: bytes) else {
            throw BroadsideError(
                "\(state)/config.json can't be read: start the benchmark again",
                exitCode: 5)
        }
        self.config = config
    }

    var key: String { "\(state)/AuthKey_\(config.key_id).p8" }
    var keyID: String { config.key_id }
    var teamID: String { config.team_id }
    var topic: String { config.topic }

    /// Options of `send` for this simulator.
    var arguments: [String] {
        [
            "--endpoint", address, "--ca-file", "\(state)/ca.pem", "--auth-key", key,
            "--key-id", keyID, "--team-id", teamID, "--topic", topic,
        ]
    }
}
