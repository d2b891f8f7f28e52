import BroadsideTestSupport
import Foundation

/// What the provider heard.
struct GatewayReply: Decodable {
    var packet: [Int]?
    var tuples: [Tuple]?
    /// How the connection ended, `fin` or `rst`; nil where it stands.
    var end: String?
    var closed: Bool { end != nil }

    struct Tuple: Decodable {
        var seconds: Int
        var token: String

        init(from decoder: any Decoder) throws {
            var values = try decoder.unkeyedContainer()
            seconds = try values.decode(Int.self)
            token = try values.decode(String.self)
        }
    }
}

/// A simulator with a gateway and a feedback service, a campaign for it, and a provider that was
/// written from the documents' listings.
final class GatewayFixture {
    let campaign: Campaign
    let server: LocalAPNs
    let gateway: Int
    let feedback: Int
    let client: ServerIdentity

    init(rows: Int = 100, _ more: [String] = [], scenario: String? = nil) throws {
        campaign = try Campaign(rows: rows)
        gateway = try Ports.free()
        feedback = try Ports.free()
        client = try campaign.authority.clientCertificate(in: campaign.directory)
        var options = [
            "--binary-listen", "127.0.0.1:\(gateway)", "--feedback-listen",
            "127.0.0.1:\(feedback)",
        ]
        if let scenario {
            options += [
                "--scenario", try campaign.directory.write(scenario, to: "scenario.json5"),
            ]
        }
        server = try LocalAPNs(options + more)
    }

    /// What the provider of the documents hears.
    ///
    /// - Parameter staysOpen: The gateway is not expected to end the connection: it is not waited for.
    func provide(
        _ notifications: [String], identity: ServerIdentity? = nil, feedback: Bool = false,
        staysOpen: Bool = false, _ options: [String] = []
    ) throws -> GatewayReply {
        let identity = identity ?? client
        let finished = try Subprocess(
            "python3",
            [
                "-B", "\(Tool.packageRoot)/Tests/Servers/legacy_provider.py", "--port",
                "\(feedback ? self.feedback : gateway)", "--ca", campaign.authority.caFile,
                "--certificate", identity.certificate, "--key", identity.key, "--wait",
                staysOpen ? "3" : "60",
            ] + options + (feedback ? ["--feedback"] : notifications), in: campaign.directory
        ).wait()
        guard finished.exitCode == 0 else { throw TestFailure(finished.errors) }
        return try JSONDecoder().decode(GatewayReply.self, from: Data(finished.output.utf8))
    }

    var binary: [String] {
        [
            "--protocol", "binary", "--certificate", client.certificate, "--private-key",
            client.key, "--request-timeout", "30s",
        ]
    }

    func send(_ more: [String] = []) throws -> Finished {
        try Broadside.run(
            campaign.arguments(
                to: "localhost:\(gateway)", binary + more,
                without: ["auth-key", "key-id", "team-id", "topic"]),
            in: campaign.directory)
    }
}

let gatewayPayload = Array(#"{"aps":{"alert":"x"}}"#.utf8).map {
    String(format: "%02x", $0)
}.joined()

/// A notification as `legacy_provider.py` is told of it.
func gatewayNotification(
    _ command: Int, _ identifier: Int, _ token: String, expiry: Int = 2_000_000_000,
    payload: String = gatewayPayload
) -> String {
    "\(command):\(identifier):\(expiry):10:\(token):\(payload)"
}

/// Where a token falls among the simulated fates, by the documented formula.
func fateShare(_ token: String) -> Double {
    var z = UInt64(token.prefix(16), radix: 16)! &+ 0x9e37_79b9_7f4a_7c15
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return Double(z ^ (z >> 31)) * 0x1p-64
}
