internal import BroadsideAPNs
import BroadsideEngine
import BroadsideHTTP2
import BroadsideRing
import BroadsideSupport
import BroadsideTLS

/// A server to which requests are sent one at a time, each over a connection of its own.
struct SingleRequestServer {
    /// Result of a request that was sent.
    enum Outcome {
        case response(BlockingConnection.Response)
        /// The server did not act on the request, or it was not sent: a repeat is safe. `refusal`
        /// is the reason of a GOAWAY that refuses the credential; nil otherwise.
        case notProcessed(refusal: Reason?, cause: String)
        /// The connection ended before the response: the request may have been processed.
        case lost(String)
    }

    /// Time limit from the start of a connection to the response, seconds.
    private static let limitSeconds = 30
    /// Maximum number of addresses to try for a host name.
    private static let addressesLimit = 8

    let route: Route
    let credential: Credential
    private let context: TLSContext
    private let bodyLimit: Int
    /// Whether the server is Apple's production server.
    let isProduction: Bool

    /// Reads the credential and checks the options.
    ///
    /// - Parameters:
    ///   - options: Send options. Only the options for credential, environment and endpoint are
    ///     used.
    ///   - host: Apple's host for the environment, used if the options name no endpoint.
    ///   - port: Port of Apple's host, and of an endpoint that names no port.
    ///   - bodyLimit: Maximum size of a response's body, in bytes.
    ///   - warnings: Receives likely mistakes.
    init(
        _ options: SendOptions, host: String, port: UInt16, bodyLimit: Int,
        warnings: inout [String]
    ) throws(BroadsideError) {
        credential = try Credential.read(options, warnings: &warnings)
        isProduction = options.appleEnvironment == .production
        var options = options
        if let endpoint = options.endpoint {
            if let named = parseEndpoint(endpoint) {
                options.endpoint = Route.hostAndPort(named.host, named.port ?? port)
            }
        } else {
            options.endpoint = Route.hostAndPort(host, port)
        }
        route = try Route.read(options, warnings: &warnings)
        context = try CampaignRun.tlsContext(options, credential)
        self.bodyLimit = bodyLimit
    }

    var hostAndPort: String { Route.hostAndPort(route.host, route.port) }

    /// Value of `:authority`, without the default port of https.
    var authority: String {
        guard route.port == 443 else { return hostAndPort }
        assert(hostAndPort.hasSuffix(":443"), "the port follows the host")
        return String(hostAndPort.dropLast(4))
    }

    /// Returns a request as text, as it would be sent. A description of the credential replaces the
    /// provider token.
    func preview(_ request: SingleRequest) -> String {
        request.text(
            authority: authority,
            credential: credential.kind == .providerToken ? credential.summary : nil)
    }

    /// Opens a connection and waits for the server's SETTINGS.
    ///
    /// - Throws: Exit code 1; no request was sent.
    func connect() throws(BroadsideError) -> BlockingConnection {
        let (name, port) = route.nameToResolve
        let addresses: [SocketAddress]
        do {
            addresses = try Resolver.resolve(name, port: port)
        } catch {
            throw unreachable("\(error): check the host's spelling, and this machine's name server")
        }
        let configuration = route.tlsConfiguration(context)
        var failures: [String] = []
        var lastCode: Int32 = 0
        for address in addresses.prefix(Self.addressesLimit) {
            do throws(BlockingConnection.Failure) {
                let connection = try BlockingConnection(
                    to: address, configuration: configuration, limitSeconds: Self.limitSeconds,
                    bodyLimit: bodyLimit)
                try begin(connection, configuration)
                return connection
            } catch {
                if case .connect(let code) = error {
                    lastCode = code
                    failures.append("\(address): \(describe(errno: code))")
                } else {
                    throw unreachable(Self.description(of: error))
                }
            }
        }
        throw unreachable(
            failures.joined(separator: "; ") + ": "
                + ConnectAdvice.text(
                    errno: lastCode, isProxy: route.proxy != nil, otherPort: nil))
    }

    private func begin(
        _ connection: BlockingConnection, _ configuration: TLSConfigurationBox.Value
    ) throws(BlockingConnection.Failure) {
        if let tunnel = configuration.tunnel { try connection.openTunnel(tunnel) }
        try connection.handshake()
        try connection.begin()
    }

    private func unreachable(_ problem: String) -> BroadsideError {
        BroadsideError("\(hostAndPort) can't be reached: \(problem)", exitCode: ExitCode.failure)
    }

    /// Sends a request over an open connection and waits for the response.
    ///
    /// - Throws: If the credential can't be used. In that case, nothing was sent.
    func exchange(
        _ request: SingleRequest, over connection: BlockingConnection
    ) throws(BroadsideError) -> Outcome {
        let authorization = try credential.freshAuthorization()
        do throws(BlockingConnection.Failure) {
            return .response(
                try connection.request(payload: request.body) { tableSize in
                    request.headerBlock(
                        authority: authority, authorization: authorization, tableSize: tableSize)
                })
        } catch {
            if case .notProcessed(let cause) = error {
                return .notProcessed(refusal: connection.goAway?.reason?.asRefusal, cause: cause)
            }
            return .lost(Self.description(of: error))
        }
    }

    private static func description(of failure: BlockingConnection.Failure) -> String {
        switch failure {
        case .network(let message): message
        case .connect(let code): describe(errno: code)
        case .proxy(let error): "the proxy: \(error.message): nothing reached APNs"
        case .tls(let error):
            "\(error.sentence): check --endpoint, --ca-file and any proxy in between"
        case .http2(let message): "\(message): is this APNs? check --endpoint"
        case .notProcessed(let cause): cause
        }
    }
}

extension Reason {
    /// The reason, if a GOAWAY with it refuses the credential; nil if a repeat may succeed.
    var asRefusal: Reason? {
        ResponseClass.classify(goAwayReason: self) == .none ? nil : self
    }
}

extension BlockingConnection.Response {
    /// Value of a header field as text; nil if it is absent, or longer than any of Apple's fields.
    func field(_ name: String) -> String? {
        guard let field = fields.first(where: { $0.name == name }),
            field.value.count <= Self.fieldCountMax
        else { return nil }
        return String(decoding: field.value, as: UTF8.self)
    }

    /// Maximum size of a header field's value, in bytes. Apple's values are shorter.
    private static let fieldCountMax = 4096

    /// Status and reason, for messages.
    var summary: String {
        let words = reason?.text ?? reasonText.map { printable($0, limit: 64) }
        return "\(status.map { "\($0)" } ?? "GOAWAY") \(words ?? "without a reason")"
    }

    /// Whether the server stated a reason that this version does not know.
    var hasUnknownReason: Bool { reason == nil && reasonText != nil }
}
