internal import BroadsideAPNs
import BroadsidePrimitives
import BroadsideSupport

/// Responses of a server to the requests of `doctor --survey`, as a file. The file names no secret,
/// no address and no device, so that people with an Apple developer account can share it.
struct ResponseSurvey: Equatable {
    /// A server's response to one request.
    struct Entry: Equatable, Decodable {
        /// How the request differs from the usual one.
        var request: String
        /// HTTP status; nil without a response.
        var status: Int?
        var reason: String?
        /// Header fields by name. A value that differs from response to response is replaced by a
        /// description, such as `new, in lower case`.
        var headers: [String: String] = [:]
        /// The body as the server sent it; nil if there is none.
        var body: String?
        /// How the request ended, if it got no response.
        var ended: String?
    }

    /// Difference of two surveys.
    struct Difference: Equatable {
        /// Name of the request; nil for a difference that concerns all requests.
        var name: String?
        /// The part that differs, such as `status`, `reason` or `header apns-id`.
        var what: String
        var left: String
        var right: String
    }

    /// Version of the file format.
    static let format = 1
    /// Maximum size of a file, bytes.
    private static let sizeLimit = 4 << 20

    var environment: String
    /// Kind of the credential.
    var credential: String
    /// Entries in the order of the requests.
    private(set) var entries: [(name: String, entry: Entry)] = []

    init(environment: String, credential: String) {
        self.environment = environment
        self.credential = credential
    }

    mutating func add(_ name: String, _ entry: Entry) {
        assert(!entries.contains { $0.name == name }, "a request is sent once")
        entries.append((name, entry))
    }

    static func == (left: ResponseSurvey, right: ResponseSurvey) -> Bool {
        left.differences(from: right).isEmpty
    }

    // MARK: File

    private struct Content: Decodable {
        var format: Int
        var environment: String
        var credential: String
        var responses: [String: Entry]
    }

    /// Reads a file.
    init(path: String) throws(BroadsideError) {
        let text = try readFile(path, option: "compare", limit: Self.sizeLimit)
        let content: Content
        do {
            content = try JSONCoding.decode(Content.self, from: text)
        } catch {
            throw .usage(
                "compare",
                "\(path) is not a survey: write one with broadside doctor --survey FILE")
        }
        guard content.format == Self.format else {
            throw .usage(
                "compare",
                "\(path) has format \(content.format), but this version reads format "
                    + "\(Self.format): write the survey again with --survey")
        }
        environment = content.environment
        credential = content.credential
        let order = HarmlessRequest.all(topic: nil, signs: true, usesTokens: true).map(\.name)
        let known = order.filter { content.responses[$0] != nil }
        let others = content.responses.keys.filter { !order.contains($0) }.sorted()
        for name in known + others {
            if let entry = content.responses[name] { entries.append((name, entry)) }
        }
    }

    /// The text of the file, with a line for each request.
    var json: String {
        var lines = entries.map { name, entry in
            "    \(JSONLine.quoted(name)): \(Self.line(entry).object)"
        }.joined(separator: ",\n")
        if !lines.isEmpty { lines = "\n\(lines)\n  " }
        return """
            {
              "format": \(Self.format),
              "environment": \(JSONLine.quoted(environment)),
              "credential": \(JSONLine.quoted(credential)),
              "responses": {\(lines)}
            }

            """
    }

    private static func line(_ entry: Entry) -> JSONLine {
        var line = JSONLine()
        line.add("request", entry.request)
        if let status = entry.status { line.add("status", status) }
        if let reason = entry.reason { line.add("reason", reason) }
        var headers = JSONLine()
        for name in entry.headers.keys.sorted() { headers.add(name, entry.headers[name]) }
        line.add("headers", headers)
        if let body = entry.body { line.add("body", body) }
        if let ended = entry.ended { line.add("ended", ended) }
        return line
    }

    // MARK: Comparison

    /// Differences, in the order of the requests.
    func differences(from other: ResponseSurvey) -> [Difference] {
        var found: [Difference] = []
        func compare(_ name: String?, _ what: String, _ left: String?, _ right: String?) {
            guard left != right else { return }
            found.append(
                Difference(
                    name: name, what: what, left: left ?? "none", right: right ?? "none"))
        }
        compare(nil, "environment", environment, other.environment)
        compare(nil, "credential", credential, other.credential)
        let names = entries.map(\.name)
        let all = names + other.entries.map(\.name).filter { !names.contains($0) }
        for name in all {
            let left = entries.first { $0.name == name }?.entry
            let right = other.entries.first { $0.name == name }?.entry
            guard let left, let right else {
                compare(
                    name, "request", left == nil ? "not sent" : "sent",
                    right == nil ? "not sent" : "sent")
                continue
            }
            compare(
                name, "status", left.status.map(String.init), right.status.map(String.init))
            compare(name, "reason", left.reason, right.reason)
            compare(name, "end", left.ended, right.ended)
            for header in Set(left.headers.keys).union(right.headers.keys).sorted() {
                compare(name, "header \(header)", left.headers[header], right.headers[header])
            }
            if left.reason == right.reason { compare(name, "body", left.body, right.body) }
        }
        return found
    }
}
