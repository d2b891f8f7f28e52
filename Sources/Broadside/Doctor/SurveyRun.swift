import BroadsideAPNs
import BroadsideEngine
import BroadsideHTTP2
internal import BroadsideLedgers
public import BroadsideSupport

/// Runs `doctor --survey` and `doctor --compare`: sends requests that no device can receive, and
/// reports the differences between two surveys.
public enum SurveyRun {
    /// Maximum size of a response's body, in bytes.
    private static let bodyLimit = 4096
    /// Limit on requests per connection, because a server may slow down a connection with many
    /// refusals.
    private static let requestsAtOnce = 8
    /// Maximum length of a header field's value; longer values are shortened.
    private static let valueLimit = 200

    /// Sends the requests, writes the survey, and compares it with another one.
    ///
    /// - Parameters:
    ///   - options: Endpoint, credential and topic.
    ///   - output: File of the survey, `-` for standard output; nil: it is not written.
    ///   - compared: File of a survey to compare with; nil: none.
    ///   - asJSON: Whether differences are printed as JSON.
    /// - Returns: 0; 1 if there are differences.
    public static func run(
        _ options: SendOptions, output: String?, compared: String?, asJSON: Bool
    ) throws(BroadsideError) -> Int32 {
        // The file is read first, so that a wrong file is found before anything is sent.
        let other = try compared.map { path throws(BroadsideError) in
            try ResponseSurvey(path: path)
        }
        var warnings: [String] = []
        let server = try SingleRequestServer(
            options, host: Endpoints.host(options.environment),
            port: options.port ?? Endpoints.defaultPort, bodyLimit: bodyLimit, warnings: &warnings)
        for warning in warnings { standardErrorLine("broadside: warning: \(warning)") }
        let survey = try send(options, to: server)
        if let output {
            let file = try OutputFile(output, option: "survey")
            try file.write(Array(survey.json.utf8))
            try file.finish()
            if output != "-" {
                standardErrorLine(
                    "broadside: \(output) has the responses to \(survey.entries.count) harmless "
                        + "requests; --compare \(shellWord(output)) shows the differences")
            }
        }
        guard let other, let compared else { return 0 }
        return show(
            survey, other, names: (server.hostAndPort, compared), asJSON: asJSON)
    }

    /// Compares two files without connecting.
    ///
    /// - Returns: 0; 1 if there are differences.
    public static func compare(
        _ left: String, _ right: String, asJSON: Bool
    ) throws(BroadsideError) -> Int32 {
        show(
            try ResponseSurvey(path: left), try ResponseSurvey(path: right), names: (left, right),
            asJSON: asJSON)
    }

    private static func show(
        _ left: ResponseSurvey, _ right: ResponseSurvey, names: (String, String), asJSON: Bool
    ) -> Int32 {
        let differences = left.differences(from: right)
        var text = ""
        if asJSON {
            var line = JSONLine()
            line.add("requests", left.entries.count)
            let objects = differences.map { difference in
                var object = JSONLine()
                object.add("request", difference.name)
                object.add("what", difference.what)
                object.add("left", difference.left)
                object.add("right", difference.right)
                return object.object
            }
            line.addRaw("differences", "[\(objects.joined(separator: ","))]")
            text = line.object + "\n"
        } else if differences.isEmpty {
            text = "no differences in \(left.entries.count) requests\n"
        } else {
            text = "left: \(names.0), right: \(names.1)\n"
            for difference in differences {
                let subject = difference.name.map { "\($0): " } ?? ""
                text +=
                    ForeignText.escaped(
                        "\(subject)\(difference.what): \(difference.left) | \(difference.right)")
                    + "\n"
            }
            text += "\(differences.count) differences in \(left.entries.count) requests\n"
        }
        printText(text)
        return differences.isEmpty ? 0 : ExitCode.failure
    }

    // MARK: Requests

    private static func send(
        _ options: SendOptions, to server: SingleRequestServer
    ) throws(BroadsideError) -> ResponseSurvey {
        var signs = false
        if case .key = server.credential { signs = true }
        let usesTokens = server.credential.kind == .providerToken
        var survey = ResponseSurvey(
            environment: options.environment.rawValue,
            credential: usesTokens ? "provider token" : "certificate")
        var connection: BlockingConnection?
        var count = 0
        for harmless in HarmlessRequest.all(
            topic: options.topic, signs: signs, usesTokens: usesTokens)
        {
            // The next request gets another connection, because a refused credential must not
            // influence its response.
            if count == requestsAtOnce || !harmless.usesCredential { connection = nil }
            if connection == nil {
                connection = try server.connect()
                count = 0
            }
            count += 1
            assert(count <= requestsAtOnce, "a connection carries a few requests only")
            var entry = try exchange(harmless, server, &connection)
            if entry == nil {
                // The connection had ended before the request.
                connection = try server.connect()
                entry = try exchange(harmless, server, &connection)
            }
            survey.add(
                harmless.name,
                entry ?? .init(request: harmless.purpose, ended: "the stream was refused"))
            if !harmless.usesCredential { connection = nil }
        }
        return survey
    }

    /// Sends one request and returns its entry in the survey; nil if the server did not act on the
    /// request. Sets `connection` to nil if it can serve no further request.
    private static func exchange(
        _ harmless: HarmlessRequest, _ server: SingleRequestServer,
        _ connection: inout BlockingConnection?
    ) throws(BroadsideError) -> ResponseSurvey.Entry? {
        guard let open = connection else { return nil }
        let authorization: [UInt8]? =
            switch harmless.authorization {
            case .credential: try server.credential.freshAuthorization()
            case .shifted(let seconds):
                try server.credential.freshAuthorization(shiftSeconds: seconds)
            case .text(let text): Array(text.utf8)
            case .none: nil
            }
        var entry = ResponseSurvey.Entry(request: harmless.purpose)
        do throws(BlockingConnection.Failure) {
            let response = try open.request(payload: harmless.request.body) { tableSize in
                harmless.request.headerBlock(
                    authority: server.authority, authorization: authorization,
                    tableSize: tableSize)
            }
            entry.status = response.status.map(Int.init)
            entry.reason = response.reasonText
            if !response.body.isEmpty {
                entry.body = ForeignText.escaped(String(decoding: response.body, as: UTF8.self))
            }
            let sent = harmless.request.fields.first { $0.name == "apns-id" }?.value
            for field in response.fields where !field.name.hasPrefix(":") {
                entry.headers[ForeignText.escaped(field.name)] = value(of: field, sent: sent)
            }
        } catch {
            connection = nil
            switch error {
            case .notProcessed:
                guard let reason = open.goAway?.reason else { return nil }
                entry.ended = "GOAWAY \(reason.text)"
            case .http2(let message): entry.ended = message
            default: entry.ended = "the connection ended"
            }
        }
        return entry
    }

    /// Whether a value is a UUID, in upper or lower case (RFC 9562 section 4).
    private static func isUUID(_ text: [UInt8]) -> Bool {
        let groups = text.split(
            separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        return groups.map(\.count) == [8, 4, 4, 4, 12]
            && groups.joined().allSatisfy { Character(UnicodeScalar($0)).isHexDigit }
    }

    /// The value of a header field. A value that differs from response to response is replaced by a
    /// description, such as `new, in lower case`.
    private static func value(of field: HeaderBlockReader.Field, sent: String?) -> String {
        let text = String(decoding: field.value, as: UTF8.self)
        if let sent, text == sent { return "as sent" }
        if let sent, text.lowercased() == sent.lowercased() { return "as sent, other letter case" }
        if isUUID(field.value) {
            return text == text.uppercased() ? "new, in upper case" : "new, in lower case"
        }
        switch field.name {
        case "content-type", "content-length", "content-encoding":
            return ForeignText.escaped(text, limit: valueLimit)
        default: return "present"
        }
    }
}

extension HarmlessRequest {
    /// Whether the request carries the usual credential.
    var usesCredential: Bool {
        if case .credential = authorization { return true }
        return false
    }
}
