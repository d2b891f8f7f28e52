import BroadsideTestSupport
import Foundation

/// A notification as the gateway recorded it.
struct GatewayNotification {
    var connection: Int
    var command: Int
    var identifier: Int?
    var expiry: Int?
    var priority: Int?
    var token: String
    var payload: String
}

/// `gateway.py`, and the options that send a campaign to it.
final class PythonGateway {
    let server: PythonServer
    let record: String
    let options: [String]

    init(_ campaign: Campaign, _ more: [String] = [], bad: [(String, Int)] = []) throws {
        let directory = campaign.directory
        let client = try campaign.authority.clientCertificate(in: directory)
        let identity = campaign.authority.localhost
        record = "\(directory.path)/record"
        let list = try directory.write(
            bad.map { "\($0.0) \($0.1)\n" }.joined(), to: "bad")
        server = try PythonServer(
            "gateway.py",
            [
                "--certificate", identity.certificate, "--key", identity.key, "--record",
                record, "--client-ca", campaign.authority.caFile, "--bad", list,
            ] + more, in: directory)
        options = [
            "--protocol", "binary", "--certificate", client.certificate, "--private-key",
            client.key,
        ]
    }

    func taken() throws -> [GatewayNotification] {
        try String(contentsOfFile: record, encoding: .utf8).split(separator: "\n").map { line in
            let fields = line.split(separator: " ").map(String.init)
            return GatewayNotification(
                connection: Int(fields[0])!, command: Int(fields[1])!,
                identifier: Int(fields[2]), expiry: Int(fields[3]), priority: Int(fields[4]),
                token: fields[5], payload: fields[6])
        }
    }

    /// Lets the error packets go that `--hold-errors` holds back.
    func goOn() throws { try Data().write(to: URL(filePath: record + ".go")) }

    /// - Parameter timeout: A sixth of it is the silence that is waited for; nil: as without the option.
    func send(
        _ campaign: Campaign, _ more: [String] = [], timeout: String? = "24s"
    ) throws -> Finished {
        try start(campaign, more, timeout: timeout).wait()
    }

    /// Starts a send.
    func start(
        _ campaign: Campaign, _ more: [String] = [], timeout: String? = "24s"
    ) throws -> Subprocess {
        let waits = timeout.map { ["--request-timeout", $0] } ?? []
        return try Broadside.start(
            campaign.arguments(
                to: "localhost:\(server.port)", options + waits + more,
                without: ["auth-key", "key-id", "team-id", "topic"]), in: campaign.directory)
    }
}
