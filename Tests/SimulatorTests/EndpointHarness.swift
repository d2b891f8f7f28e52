import BroadsideAPNs
import BroadsideTLS
import Foundation
import Glibc

@testable import BroadsideSimulator

/// An endpoint on a free port, with a folder for its files, that is stopped after the test.
final class EndpointHarness {
    static let token = "00fc13adff785122b4ad28809a3420982341241421348097878e577c991de8f0"
    static let id = "eabeae54-14a8-11e5-b60b-1697f925ec7b"

    let folder = Folder()
    let endpoint: ProviderEndpoint
    private var isStopped = false

    init(_ change: (inout SimulatorOptions) -> Void = { _ in }) throws {
        var options = SimulatorOptions(state: folder.file("state"))
        options.listen = "127.0.0.1:0"
        change(&options)
        endpoint = try ProviderEndpoint(options)
    }

    deinit { if !isStopped { _ = endpoint.stop() } }

    func stop() -> SimulatorTotals {
        isStopped = true
        return endpoint.stop()
    }

    var state: StateDirectory { endpoint.state }

    /// A provider token signed with the state directory's key, or with the one for another use,
    /// issued some seconds from now.
    func providerToken(use: String? = nil, issued seconds: Int = 0) throws -> String {
        let other = state.config.other_keys?.first { $0.use == use && use != nil }
        precondition(use == nil || other != nil, "there is no such key")
        let file = other.map { state.file("other/AuthKey_\($0.key_id).p8") } ?? state.authKeyFile
        let pem = try Data(contentsOf: URL(fileURLWithPath: file))
        let key = try SigningKey(pem: Array(pem))
        let claims = ProviderTokenClaims(
            keyID: other?.key_id ?? state.keyID, teamID: other?.team_id ?? state.teamID,
            issuedAtUnixSeconds: UInt64(time(nil) + seconds))
        let compact = ProviderTokenClaims.compactToken(
            signingInput: claims.signingInput, signature: try key.signES256(claims.signingInput))
        return String(decoding: compact, as: UTF8.self)
    }

    func url(_ path: String) -> String { "https://127.0.0.1:\(endpoint.port)\(path)" }

    /// What curl is told in each request.
    func curl(
        _ path: String = "/3/device/\(token)", authorization: String?, topic: String? = "",
        body: String? = "{\"aps\":{}}", more: [String] = []
    ) throws -> Response {
        var words = [
            "curl", "-sS", "--http2", "--max-time", "10", "--cacert", state.file("ca.pem"), "-D",
            "-", "-w", "\n",
        ]
        if let authorization { words += ["-H", "authorization: bearer \(authorization)"] }
        if let topic { words += ["-H", "apns-topic: \(topic.isEmpty ? state.topic : topic)"] }
        if let body { words += ["--data-binary", body] }
        let result = try run(words + more + [url(path)])
        return Response(result)
    }

    struct Response {
        let status: Int?
        let headers: [String: String]
        let body: String
        let errors: String

        init(_ result: CommandResult) {
            // To Swift "\r\n" is one character.
            let lines = result.output.split(
                omittingEmptySubsequences: false, whereSeparator: \.isNewline
            ).map(String.init)
            status = lines.first.flatMap { line in
                line.hasPrefix("HTTP/2 ") ? Int(line.dropFirst(7).prefix(3)) : nil
            }
            var headers: [String: String] = [:]
            let end = lines.firstIndex(of: "") ?? lines.endIndex
            for line in lines[..<end].dropFirst() {
                guard let colon = line.firstIndex(of: ":") else { continue }
                headers[String(line[..<colon])] = line[line.index(after: colon)...]
                    .trimmingCharacters(in: .whitespaces)
            }
            self.headers = headers
            body = lines[min(end + 1, lines.endIndex)...].joined(separator: "\n")
                .trimmingCharacters(in: .whitespacesAndNewlines)
            errors = result.errors
        }
    }
}

/// Lines of a journal without its header, cut at commas.
func journalRows(_ path: String) throws -> [[String]] {
    let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
    var lines = text.split(separator: "\n")
    precondition(lines.removeFirst() == "t_us,connection,stream,apns_id,token,status,reason")
    return lines.map { line in
        line.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }
}
