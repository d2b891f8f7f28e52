import APNs
import HPACK
import HTTP2
import Ring
import TLS

/// `doctor`: one connection with these credentials, and in words what works and what does not.
public enum DoctorRun {
    /// From the start of a connection to the answer.
    private static let limitSeconds = 10
    /// An odd number of digits: no device ever had such a token.
    private static let impossibleToken = "0"

    /// Goes through the checks and prints what they found.
    ///
    /// - Returns: 0 where all is in order, 1 where APNs can't be reached, 4 where it refuses.
    /// - Throws: What is wrong with the request itself.
    public static func run(_ options: SendOptions, asJSON: Bool) throws(BroadsideError) -> Int32 {
        var warnings: [String] = []
        let credential = try Credential.read(options, warnings: &warnings)
        let headers = NotificationHeaders(
            topic: options.topic, pushType: options.pushType, priority: options.priority)
        for problem in headers.validate(credential: credential.kind) {
            let message = "--\(problem.option) \(problem.message)"
            if problem.isError { throw .request(message) }
            warnings.append(message)
        }
        try credential.check(headers, options)
        let (host, port) = try Plan.endpoint(options)
        let context = try CampaignRun.tlsContext(options, credential)
        let shownHost = host.contains(":") ? "[\(host)]" : host
        var report = DoctorReport(endpoint: "\(shownHost):\(port)")
        report.add("files", .ok, credential.summary)
        for warning in warnings { report.add("files", .warning, warning) }
        let code = examine(
            &report, host: host, port: port, context: context, headers: headers,
            credential: credential)
        print(asJSON ? report.json : report.text, terminator: "")
        return code
    }

    /// The provider token, for use with other tools; connects nowhere.
    public static func token(_ options: SendOptions) throws(BroadsideError) -> String {
        var warnings: [String] = []
        let credential = try Credential.read(options, warnings: &warnings)
        for warning in warnings { standardError("broadside: warning: \(warning)") }
        guard let value = try credential.freshAuthorization() else {
            throw .request("--print-token: a certificate needs no provider token: leave it out")
        }
        return String(decoding: value.dropFirst("bearer ".utf8.count), as: UTF8.self)
    }

    private static func examine(
        _ report: inout DoctorReport, host: String, port: UInt16, context: TLSContext,
        headers: NotificationHeaders, credential: Credential
    ) -> Int32 {
        let addresses: [SocketAddress]
        do {
            addresses = try Resolver.resolve(host, port: port)
        } catch {
            report.add(
                "name", .failed, "\(error)",
                advice: "check the host's spelling, and this machine's name server")
            return 1
        }
        report.add("name", .ok, addresses.map(\.description).joined(separator: ", "))
        let isAddress = SocketAddress(numeric: host, port: port) != nil
        let recipe = TLSRecords.Recipe(
            context: context, serverName: isAddress ? .address(host) : .host(host))
        guard let connection = connect(&report, addresses, recipe) else { return 1 }
        do {
            try converse(&report, connection)
            let authority =
                port == 443 ? (host.contains(":") ? "[\(host)]" : host) : report.endpoint
            let fields = fields(
                authority: authority, authorization: try credential.freshAuthorization(), headers)
            let answer = try connection.request(fields, payload: Array("{\"aps\":{}}".utf8))
            return DoctorVerdict.judge(answer, credential: credential, headers, &report)
        } catch BlockingConnection.Failure.tls(let error) {
            report.add(
                error.code == .noALPN ? "ALPN" : "TLS", .failed, error.message,
                advice: "nothing was asked: mend this first")
        } catch BlockingConnection.Failure.http2(let message) {
            report.add("HTTP/2", .failed, message, advice: "is this APNs? check --endpoint")
        } catch BlockingConnection.Failure.network(let message) {
            report.add(
                "connection", .failed, message,
                advice: "something between breaks the connection: look for a firewall or proxy")
        } catch {
            report.add("credential", .failed, "\(error)")
        }
        return 1
    }

    /// The first address that takes a connection; each that does not is named.
    private static func connect(
        _ report: inout DoctorReport, _ addresses: [SocketAddress], _ recipe: TLSRecords.Recipe
    ) -> BlockingConnection? {
        var failures: [String] = []
        for address in addresses {
            do {
                let connection = try BlockingConnection(
                    to: address, recipe: recipe, limitSeconds: limitSeconds)
                if !failures.isEmpty {
                    report.add(
                        "connect", .warning, failures.joined(separator: "; "),
                        advice: "other addresses work, these are passed over")
                }
                report.add("connect", .ok, "\(address)")
                return connection
            } catch .network(let message) {
                failures.append("\(address): \(message)")
            } catch {
                failures.append("\(address): \(error)")
            }
        }
        report.add(
            "connect", .failed, failures.joined(separator: "; "),
            advice: "the port is closed or a firewall blocks it: open it, or try --port 2197")
        return nil
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
            "\(connection.http.streamLimit) streams at first, header table "
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
