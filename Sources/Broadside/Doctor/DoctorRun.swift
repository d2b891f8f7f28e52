import BroadsideAPNs
import BroadsideEngine
import BroadsideHPACK
import BroadsideHTTP2
import BroadsideRing
public import BroadsideSupport
import BroadsideTLS

/// Runs `doctor`: opens one connection with the credentials and reports what works and what does
/// not.
public enum DoctorRun {
    /// Time limit from the start of a connection to the response, seconds.
    private static let limitSeconds = 10
    /// Maximum number of addresses to try for a host name.
    private static let addressesLimit = 8
    /// A warning appears if this machine's clock differs from the server's by more than this,
    /// seconds.
    private static let clockTolerance: UInt64 = 120
    /// Token with an odd number of digits, which no device can have.
    private static let impossibleToken = "0"

    /// The inputs of the checks, already read and validated.
    private struct Subject {
        var credential: Credential
        var headers: NotificationHeaders
        var route: Route
        var context: TLSContext
        var sendsContentLength: Bool
        /// The other port that Apple's hosts offer; nil if the endpoint names a port.
        var otherPort: UInt16?
        var warnings: [String] = []

        init(_ options: SendOptions) throws(BroadsideError) {
            credential = try Credential.read(options, warnings: &warnings)
            headers = NotificationHeaders(
                topic: options.topic, pushType: options.pushType, priority: options.priority)
            for problem in headers.validate(credential: credential.kind) {
                if problem.isError { throw problem.asError }
                warnings.append(problem.asError.message)
            }
            try credential.check(headers, options)
            route = try Route.read(options, warnings: &warnings)
            let port = route.port
            if options.allowsPort { otherPort = Endpoints.ports.first { $0 != port } }
            sendsContentLength = options.sendsContentLength
            context = try CampaignRun.tlsContext(options, credential)
        }
    }

    /// Performs the checks and prints their results.
    ///
    /// - Returns: 0 if no check failed, 1 if APNs can't be reached or this machine can't run a
    ///   campaign, 2 if the key can't sign, 4 if APNs refuses the credential or the topic.
    /// - Throws: An error in the options. The results so far are printed even then.
    public static func run(_ options: SendOptions, asJSON: Bool) throws(BroadsideError) -> Int32 {
        let (host, port) = try Plan.endpoint(options)
        var report = DoctorReport(endpoint: Route.hostAndPort(host, port))
        func show() { print(asJSON ? report.json : report.text, terminator: "") }
        let subject: Subject
        do throws(BroadsideError) {
            subject = try Subject(options)
        } catch {
            report.add("files", .failed, error.message)
            show()
            throw error
        }
        report.add("files", .ok, subject.credential.summary)
        for warning in subject.warnings { report.add("files", .warning, warning) }
        let canRun = DoctorMachine.examine(&report, ledger: options.ledger)
        let code = examine(&report, subject)
        show()
        return code == 0 && !canRun ? 1 : code
    }

    /// Returns the provider token for use with other tools, without connecting.
    public static func token(_ options: SendOptions) throws(BroadsideError) -> String {
        var warnings: [String] = []
        let credential = try Credential.read(options, warnings: &warnings)
        for warning in warnings { standardErrorLine("broadside: warning: \(warning)") }
        guard let value = try credential.freshAuthorization() else {
            throw .usage(
                "print-token",
                "needs a signing key, which a certificate does not have: remove "
                    + "this option")
        }
        return String(decoding: value.dropFirst("bearer ".utf8.count), as: UTF8.self)
    }

    private static func examine(_ report: inout DoctorReport, _ subject: Subject) -> Int32 {
        let (name, port) = subject.route.nameToResolve
        let addresses: [SocketAddress]
        do {
            addresses = try Resolver.resolve(name, port: port)
        } catch {
            report.add(
                "name", .failed, (subject.route.proxy == nil ? "" : "the proxy: ") + "\(error)",
                advice: "check the host's spelling, and this machine's name server"
                    + Self.proxyHint(subject))
            return 1
        }
        report.add("name", .ok, addresses.map(\.description).joined(separator: ", "))
        let configuration = subject.route.tlsConfiguration(subject.context)
        guard
            let connection = connect(&report, addresses, configuration, subject.otherPort)
        else { return 1 }
        do {
            if let tunnel = configuration.tunnel {
                try connection.openTunnel(tunnel)
                report.add(
                    "proxy", .ok, "\(tunnel.proxy) opened a tunnel to \(tunnel.target)")
            }
            try converse(&report, connection)
            return try ask(&report, connection, subject)
        } catch let failure as BlockingConnection.Failure {
            if let ending = connection.goAway {
                return DoctorVerdict.judge(
                    ending, credential: subject.credential, subject.headers, isFast: false, &report)
            }
            report.add(
                failure, connection, legacyHint: Plan.legacyHint(port: subject.route.port))
        } catch let error as BroadsideError {
            report.add("credential", .failed, error.message)
            return error.exitCode
        } catch {
            report.add("connection", .failed, "the check failed: try again")
        }
        return 1
    }

    /// Text to append to advice if this machine has a configured proxy that Broadside does not use;
    /// empty otherwise.
    private static func proxyHint(_ subject: Subject) -> String {
        guard subject.route.proxy == nil, let variable = ProxyAddress.unusedVariable else {
            return ""
        }
        return "; \(ProxyAddress.hint(of: variable))"
    }

    /// Connects to the first address that accepts a connection; reports each address that does not.
    ///
    /// - Parameter otherPort: Value of `--port` to try; nil if the option can't change the port.
    private static func connect(
        _ report: inout DoctorReport, _ addresses: [SocketAddress],
        _ configuration: TLSConfigurationBox.Value, _ otherPort: UInt16?
    ) -> BlockingConnection? {
        var failures: [String] = []
        var lastCode: Int32 = 0
        let whose = configuration.tunnel == nil ? "" : "the proxy "
        for address in addresses.prefix(addressesLimit) {
            do {
                let connection = try BlockingConnection(
                    to: address, configuration: configuration, limitSeconds: limitSeconds)
                if !failures.isEmpty {
                    report.add(
                        "connect", .warning, failures.joined(separator: "; "),
                        advice: "other addresses work, and a run uses those")
                }
                report.add("connect", .ok, "\(whose)\(address)")
                return connection
            } catch .connect(let code) {
                failures.append("\(whose)\(address): \(describe(errno: code))")
                lastCode = code
            } catch .network(let message) {
                failures.append("\(whose)\(address): \(message)")
            } catch {
                failures.append("\(whose)\(address): \(error)")
            }
        }
        report.add(
            "connect", .failed, failures.joined(separator: "; "),
            advice: ConnectAdvice.text(
                errno: lastCode, isProxy: configuration.tunnel != nil, otherPort: otherPort))
        return nil
    }

    /// Sends a request with `impossibleToken` to APNs and judges the response.
    private static func ask(
        _ report: inout DoctorReport, _ connection: BlockingConnection, _ subject: Subject
    ) throws -> Int32 {
        let route = subject.route
        let hostAndPort = Route.hostAndPort(route.host, route.port)
        let authority = route.port == 443 ? String(hostAndPort.dropLast(4)) : hostAndPort
        let payload = Array("{\"aps\":{}}".utf8)
        func response(shiftSeconds: Int64) throws -> BlockingConnection.Response {
            let authorization = try subject.credential.freshAuthorization(
                shiftSeconds: shiftSeconds)
            var fields = fields(
                authority: authority, authorization: authorization, subject.headers)
            if subject.sendsContentLength {
                fields.append(
                    RequestField(.contentLength, .constant(Array("\(payload.count)".utf8))))
            }
            return try connection.request(fields, payload: payload)
        }
        let first = try response(shiftSeconds: 0)
        if let finding = clock(connection.serverDate.unixSeconds) {
            report.add("clock", finding.state, finding.detail, advice: finding.advice)
            if finding.state == .failed { return 4 }
        }
        var isFast = false
        if first.reason == .invalidProviderToken, case .key = subject.credential {
            // APNs gives the same reason for a token from the future and for a token signed with a
            // wrong key. A token issued two hours ago is valid if this machine's clock is one to
            // three hours fast.
            let second = try? response(shiftSeconds: -7200)
            isFast = second.map { $0.reason.map { !$0.refusesToken } ?? false } ?? false
        }
        return DoctorVerdict.judge(
            first, credential: subject.credential, subject.headers, isFast: isFast, &report)
    }

    /// Compares this machine's clock with the server's; nil if the server sends no date, or if the
    /// clocks agree.
    private static func clock(
        _ serverSeconds: UInt64?
    ) -> (state: DoctorReport.State, detail: String, advice: String)? {
        guard let serverSeconds else { return nil }
        let seconds = Clock.now().wallMilliseconds / 1000
        let isFast = seconds > serverSeconds
        let difference = isFast ? seconds - serverSeconds : serverSeconds - seconds
        guard difference > clockTolerance else { return nil }
        // If the clock is slow, the token in use may already have this age.
        let age = isFast ? 0 : ProviderTokenAge.windowSeconds + ProviderTokenAge.changeSeconds
        let isTooMuch = difference + age >= ProviderTokenAge.expirySeconds
        return (
            isTooMuch ? .failed : .warning,
            "\(difference / 60) minutes \(isFast ? "ahead of" : "behind") the server's date",
            "set this machine's clock: APNs refuses provider tokens that are "
                + "over an hour old or dated over an hour ahead"
        )
    }

    private static func converse(
        _ report: inout DoctorReport, _ connection: BlockingConnection
    ) throws(BlockingConnection.Failure) {
        try connection.handshake()
        let peer = connection.session.peerCertificate
        report.add(
            "TLS", .ok, "\(connection.session.versionName), \(connection.session.cipherName)")
        if let peer {
            report.add(
                "server", .ok,
                "\(peer.subject), signed by \(peer.issuer), valid until \(peer.lastDay)")
        }
        report.add("ALPN", .ok, connection.session.applicationProtocol ?? "none")
        try connection.begin()
        report.add(
            "SETTINGS", .ok,
            "\(connection.http.streamLimit) \(connection.http.streamLimit == 1 ? "stream" : "streams") at first, header table "
                + "\(connection.http.headerTableSize), frames of \(connection.http.maxFrameSize)")
    }

    private static func fields(
        authority: String, authorization: [UInt8]?, _ headers: NotificationHeaders
    ) -> [RequestField] {
        var fields = [
            RequestField(.method, "POST"),
            RequestField(.scheme, "https"),
            RequestField(.path, .constant(Array("/3/device/\(impossibleToken)".utf8))),
            RequestField(.authority, .constant(Array(authority.utf8))),
        ]
        if let authorization {
            fields.append(RequestField(.authorization, .constant(authorization)))
        }
        if let topic = headers.topic {
            fields.append(RequestField(.topic, .constant(Array(topic.utf8))))
        }
        fields.append(RequestField(.pushType, .constant(Array(headers.pushType.rawValue.utf8))))
        fields.append(
            RequestField(.priority, .constant(Array("\(headers.priority.rawValue)".utf8))))
        return fields
    }
}

extension DoctorReport {
    /// Adds the failure that ended the connection without a GOAWAY.
    ///
    /// - Parameter legacyHint: Advice for a server without HTTP/2 at a port of the legacy services.
    fileprivate mutating func add(
        _ failure: BlockingConnection.Failure, _ connection: BlockingConnection,
        legacyHint: String?
    ) {
        switch failure {
        case .tls(let error) where connection.hasSentRequest:
            add(
                "connection", .failed, error.sentence,
                advice: "it ended after the request was sent: check --endpoint and any proxy in "
                    + "between")
        case .tls(let error):
            let legacy = error.code == .noALPN ? legacyHint : nil
            add(
                error.code == .noALPN ? "ALPN" : "TLS", .failed, error.sentence,
                advice: "no request was sent: "
                    + (legacy ?? "check --endpoint, --ca-file and any proxy in between"))
        case .notProcessed(let message) where connection.hasSentRequest:
            add("request", .warning, message, advice: DoctorVerdict.notProcessedAdvice)
        case .http2(let message), .notProcessed(let message):
            add("HTTP/2", .failed, message, advice: "is this APNs? check --endpoint")
        case .proxy(let error):
            add(
                "proxy", .failed, error.message,
                advice: "nothing reached APNs: this is the proxy's own response")
        case .network(let message) where connection.unsentCount > 0:
            add(
                "HTTP/2", .failed, "\(message): the server's windows leave no room for the payload",
                advice: "is this APNs? check --endpoint")
        case .network(let message):
            add(
                "connection", .failed, message,
                advice: "something in between breaks the connection: look for a firewall or proxy")
        case .connect(let code):
            add("connect", .failed, describe(errno: code))
        }
    }
}
