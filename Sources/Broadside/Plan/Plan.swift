internal import BroadsideAPNs
import BroadsideEngine
import BroadsideObservability
internal import BroadsidePayloads
internal import BroadsideRing
import BroadsideSupport
import BroadsideTLS
internal import Glibc

/// The checked plan of a send. All files are read and all values are known. It is created before
/// any output or connection, so that a wrong setting costs nothing.
struct Plan {
    var options: SendOptions
    var headers: NotificationHeaders
    var payloads: PayloadFiles
    var route: Route
    var credential: Credential
    var shape: RunShape
    var streamsPerConnection: Int
    /// Number of this process's first run in the ledger; nil if the process has made no run yet.
    /// `--retry` does not reopen rows that this run or a later one has settled.
    var reopenedSince: UInt32?
    /// Likely mistakes, which are reported but do not prevent the send.
    var warnings: [String] = []

    /// Maximum number of streams per connection, unless the user sets another limit or the server a
    /// lower one.
    static let streamsLimit = 1000

    /// Maximum number of streams that a connection can track.
    static let streamsMaximum = 16_384

    /// - Parameter listByteCount: Size of the list, which determines connections and reactors.
    init(
        _ options: SendOptions, payloads: PayloadFiles, listByteCount: UInt64
    ) throws(BroadsideError) {
        self.options = options
        if options.assumesCanary { self.options.canary = nil }
        self.payloads = payloads
        warnings = payloads.warnings
        try CampaignLabel.check(options.labels)
        if options.split != nil,
            let key = ["arm", "state"].first(where: { options.labels[$0] != nil })
        {
            throw .usage(
                "label", "'\(key)' is used by the metrics of a run with arms: use another key")
        }
        if let warning = try Self.checkExpiration(options, Clock.now()) { warnings.append(warning) }
        route = try Route.read(options, warnings: &warnings)
        headers = NotificationHeaders(
            topic: payloads.set.topic == nil ? options.topic : nil, pushType: options.pushType,
            priority: options.priority,
            expirationUnixSeconds: options.expiration?.fixedUnixSeconds,
            collapseID: payloads.collapseID)
        credential = try Credential.read(options, warnings: &warnings)
        if options.wireProtocol == .binary {
            try Self.checkBinary(options, credential: credential)
        } else {
            let namesTopics = payloads.set.topic != nil
            if namesTopics { try Self.checkRowTopics(options, credential) }
            for problem in headers.validate(credential: credential.kind) {
                if problem.kind == .topicMissing, namesTopics { continue }
                let error = problem.asError(of: options)
                if problem.isError { throw error }
                warnings.append(error.message)
            }
            warnings += try headers.checkArms(options, credential: credential.kind)
            try credential.check(headers, options)
        }
        let cores = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
        shape = RunShape(
            options, listByteCount: listByteCount, cores: cores,
            descriptors: options.host.map {
                $0.raisesLimits ? ResourceLimits.openFiles : ResourceLimits.openFilesNow
            } ?? ResourceLimits.openFiles)
        let streams = options.wireProtocol == .binary ? Self.gatewayWindow : Self.streamsLimit
        streamsPerConnection = min(options.maxStreams ?? streams, Self.streamsMaximum)
    }

    /// Whether each row names its own topic.
    var namesTopics: Bool { payloads.set.topic != nil }

    /// Topic or its template; nil: the certificate's topic.
    var topicText: String? { namesTopics ? options.topic : headers.topic }

    /// Maximum number of warnings about topics. A few warnings are enough to show the mistake.
    private static let topicWarningLimit = 4

    /// Warns about the topics that rows have named so far.
    func warnOfRowTopics() {
        let problems = (payloads.set.topic?.topics.names ?? []).flatMap { topic in
            NotificationHeaders(topic: topic, pushType: options.pushType)
                .validate(credential: credential.kind).filter { $0.field == .topic }
        }
        assert(problems.allSatisfy { !$0.isError }, "a row with a wrong topic is invalid")
        for problem in problems.prefix(Self.topicWarningLimit) {
            standardErrorLine("broadside: warning: \(problem.asError(of: options).message)")
        }
    }

    /// Refuses a certificate if each row names its own topic, because a certificate is valid only
    /// for the topics that the certificate names.
    private static func checkRowTopics(
        _ options: SendOptions, _ credential: Credential
    ) throws(BroadsideError) {
        guard credential.kind == .providerToken else {
            throw .usage(
                "topic",
                "'\(options.topic ?? "")' names a column, which works with a "
                    + "provider token only: add --auth-key, or name one topic")
        }
        try checkTopicLabels(options)
    }

    /// Refuses labels that have the same names as labels in the metrics of topics.
    private static func checkTopicLabels(_ options: SendOptions) throws(BroadsideError) {
        guard let key = ["topic", "outcome"].first(where: { options.labels[$0] != nil }) else {
            return
        }
        throw .usage(
            "label",
            "'\(key)' is already a metric label of Broadside if rows name their topics: "
                + "use another key")
    }

    /// The labels of the campaign; nil: none.
    var labels: [String: String]? { options.labels.isEmpty ? nil : options.labels }

    /// Host and port that connections go to, for messages.
    var hostAndPort: String { Route.hostAndPort(route.host, route.port) }

    /// Value of `:authority`, with the port unless it is the scheme's default (RFC 9110, section
    /// 7.2).
    var authority: String {
        guard route.port == 443 else { return hostAndPort }
        return route.host.contains(":") ? "[\(route.host)]" : route.host
    }

    /// Whether the campaign goes to Apple's production devices.
    var goesToProduction: Bool { appleEnvironment == .production }

    /// Apple's environment that connections go to, by option or by host name; nil for other
    /// servers.
    var appleEnvironment: Endpoints.Environment? { options.appleEnvironment }

    // MARK: Files and names

    static func endpoint(
        _ options: SendOptions
    ) throws(BroadsideError) -> (host: String, port: UInt16) {
        let port =
            options.port
            ?? (options.wireProtocol == .binary ? gatewayPort : Endpoints.defaultPort)
        guard let endpoint = options.endpoint else {
            return (Endpoints.host(options.environment), port)
        }
        guard let parsed = parseEndpoint(endpoint) else {
            throw .usage(
                "endpoint",
                "\(endpointProblem(endpoint)): write it like localhost:2197 or [::1]:2197"
                    + (endpoint.contains("://") ? ", without the scheme" : "")
            )
        }
        guard !Endpoints.isSwitchedOff(parsed.host) else {
            throw .usage(
                "endpoint",
                "\(endpoint) is a legacy gateway, which Apple switched off in 2021: "
                    + (options.wireProtocol == .binary
                        ? "name the gateway that you run yourself"
                        : "leave --endpoint out to send to \(Endpoints.host(options.environment))"))
        }
        if let port = options.port, let named = parsed.port, named != port {
            throw .usage("port", "\(port) contradicts --endpoint \(endpoint): remove --port")
        }
        if let chosen = options.chosenEnvironment,
            let environment = Endpoints.environment(ofHost: parsed.host), environment != chosen
        {
            throw .usage(
                "environment",
                "\(chosen) contradicts --endpoint \(endpoint), which is Apple's "
                    + "\(environment): remove one of the two")
        }
        return (parsed.host, parsed.port ?? port)
    }
}

/// The problem of an endpoint that `parseEndpoint` does not accept. If the endpoint has a user, it
/// may have a password, too, so it is not shown.
func endpointProblem(_ endpoint: String) -> String {
    endpoint.contains("@")
        ? "contains a user, which is not shown here" : "'\(endpoint)' is not HOST[:PORT]"
}

/// Parses `HOST`, `HOST:PORT`, `[IPv6]` or `[IPv6]:PORT`. The port is nil if the text has none.
func parseEndpoint(_ text: String) -> (host: String, port: UInt16?)? {
    var host = text[...]
    var port: UInt16?
    if text.hasPrefix("[") {
        guard let end = text.firstIndex(of: "]") else { return nil }
        host = text[text.index(after: text.startIndex)..<end]
        let rest = text[text.index(after: end)...]
        if !rest.isEmpty {
            guard rest.hasPrefix(":"), let number = UInt16(rest.dropFirst()) else { return nil }
            port = number
        }
    } else if let colon = text.lastIndex(of: ":") {
        // An IPv6 address without brackets is ambiguous: its end could be a port.
        guard text.firstIndex(of: ":") == colon,
            let number = UInt16(text[text.index(after: colon)...])
        else { return nil }
        host = text[..<colon]
        port = number
    }
    guard !host.isEmpty, port != 0,
        host.utf8.allSatisfy({ byte in
            byte > 0x20 && byte < 0x7f && byte != UInt8(ascii: "/") && byte != UInt8(ascii: "@")
        })
    else { return nil }
    return (String(host), port)
}
