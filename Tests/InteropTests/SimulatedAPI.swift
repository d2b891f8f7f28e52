import BroadsideTestSupport
import Foundation

/// `broadside simulate` as curl sees it.
final class SimulatedAPI {
    let simulation: Simulation
    let directory: TemporaryDirectory
    private let authority: TestAuthority
    let token = DeviceTokens(count: 1).token(0)

    init(_ options: [String] = []) throws {
        directory = try TemporaryDirectory()
        authority = try TestAuthority.shared()
        simulation = try Simulation(options)
    }

    /// The value of an option in the line that the simulator prints.
    func value(_ option: String) throws -> String { try simulation.options([option])[1] }

    /// A provider token that its key signed.
    ///
    /// - Parameter issueTime: `iat` as JSON; nil: now.
    func providerToken(issueTime: String? = nil) throws -> String {
        try authority.providerToken(
            issueTime: issueTime, keyID: value("key-id"), teamID: value("team-id"),
            key: value("auth-key"), in: directory)
    }

    /// What it answers.
    struct Response: Equatable {
        /// curl's exit code; 0 if there was a whole response.
        var code: Int32
        var status: Int
        var reason: String
    }

    /// Sends one request with a topic and a small payload, unless told otherwise.
    func curl(
        _ options: [String] = [], bearer: String? = nil, certificate: String? = nil,
        topic: String? = "", payload: [UInt8]? = Array(#"{"aps":{"alert":"x"}}"#.utf8)
    ) throws -> Response {
        let output = directory.fresh("response")
        var words = [
            "-sS", "--http2", "--max-time", "20", "--cacert", try value("ca-file"), "-o", output,
            "-w", "%{http_code}",
        ]
        if let bearer { words += ["-H", "authorization: bearer \(bearer)"] }
        if let certificate {
            words += ["--cert", "\(simulation.state)/\(certificate).pem"]
            words += ["--key", "\(simulation.state)/\(certificate).key"]
        }
        if let topic {
            words += ["-H", "apns-topic: \(topic.isEmpty ? try value("topic") : topic)"]
        }
        if let payload {
            let file = directory.fresh("payload")
            try Data(payload).write(to: URL(filePath: file))
            words += ["--data-binary", "@\(file)"]
        }
        words += options + ["https://\(simulation.endpoint)/3/device/\(token)"]
        let ended = try Subprocess("curl", words, in: directory).wait(limit: 60)
        let body = FileManager.default.contents(atPath: output) ?? Data()
        let object = try? JSONSerialization.jsonObject(with: body) as? [String: Any]
        return Response(
            code: ended.exitCode, status: Int(ended.output) ?? 0,
            reason: object?["reason"] as? String ?? "")
    }
}
