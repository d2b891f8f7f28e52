import BroadsideEngine
import BroadsideLegacyGateway
import BroadsideRing
public import BroadsideSupport
import BroadsideTLS

/// Runs `feedback`: reads the list of a legacy feedback service to its end, into a ledger.
public enum FeedbackRun {
    /// Maximum time without data in the middle of the list, seconds.
    private static let silenceSeconds = 30

    /// Connects to the feedback service, reads its list, and records the tuples in the ledger.
    ///
    /// - Parameter options: Send options. Only `endpoint`, `caFile`, `certificate`, `privateKey`,
    ///   `passphraseFile` and `ledger` are used.
    /// - Returns: 0.
    /// - Throws: The error with its exit code. Tuples read before the error are in the ledger.
    public static func run(_ options: SendOptions) throws(BroadsideError) -> Int32 {
        guard let endpoint = options.endpoint else {
            throw .usage("endpoint", "is missing: add --endpoint HOST[:PORT]")
        }
        guard let (host, namedPort) = parseEndpoint(endpoint) else {
            throw .usage(
                "endpoint", "\(endpointProblem(endpoint)): write it like localhost:2196")
        }
        let port = namedPort ?? Plan.feedbackPort
        guard options.certificate != nil else {
            throw .usage(
                "certificate",
                "is missing: add --certificate FILE, the certificate of the list's app")
        }
        guard let path = options.ledger else {
            throw .usage(
                "ledger", "is missing: add --ledger DIR, a directory that does not exist yet")
        }
        var warnings: [String] = []
        let credential = try Credential.read(options, warnings: &warnings)
        for warning in warnings { standardErrorLine("broadside: warning: \(warning)") }
        let context = try CampaignRun.tlsContext(options, credential)
        // The ledger is opened before anything is read, because reading clears the service's list.
        let ledger = try FeedbackLedger(path: path, now: Clock.now())
        do {
            let stream = try connect(host: host, port: port, context: context)
            try read(stream, into: ledger, peer: "\(host):\(port)")
        } catch {
            if ledger.count == 0 {
                ledger.discard()
            } else {
                try ledger.finish()
            }
            throw error
        }
        try ledger.finish()
        standardError("\(ledger.count) tokens whose app was removed are in \(path)")
        return 0
    }

    private static func connect(
        host: String, port: UInt16, context: TLSContext
    ) throws(BroadsideError) -> BlockingStream {
        let addresses: [SocketAddress]
        do {
            addresses = try Resolver.resolve(host, port: port)
        } catch {
            throw BroadsideError(option: "endpoint", "\(host): \(error)", exitCode: 1)
        }
        let isAddress = SocketAddress(numeric: host, port: port) != nil
        var last = "the host has no address"
        var isOfCertificate = false
        for address in addresses {
            do {
                let stream = try BlockingStream(
                    to: address, context: context,
                    serverName: isAddress ? .address(host) : .host(host),
                    timeouts: .init(connecting: silenceSeconds, silence: silenceSeconds))
                try stream.handshake()
                return stream
            } catch {
                last = "\(address): \(error.message)"
                isOfCertificate = error.refusesCertificate
            }
        }
        throw BroadsideError(
            isOfCertificate
                ? "the feedback service refuses the connection: \(last)"
                : "the feedback service can't be reached: \(last): check --endpoint and --ca-file",
            exitCode: 1)
    }

    private static func read(
        _ stream: BlockingStream, into ledger: FeedbackLedger, peer: String
    ) throws(BroadsideError) {
        var reader = FeedbackReader()
        while true {
            var problem: String?
            var isOfCertificate = false
            var bytes: [UInt8] = []
            do {
                bytes = try stream.next()
            } catch {
                problem = error.message
                isOfCertificate = error.refusesCertificate
            }
            reader.append(bytes)
            var tuples: [FeedbackTuple] = []
            do throws(FeedbackReader.Problem) {
                while let tuple = try reader.next() { tuples.append(tuple) }
            } catch {
                problem =
                    "a tuple has a token of \(error.tokenCount) bytes, but no token has that length"
            }
            try ledger.append(tuples, now: Clock.now())
            if bytes.isEmpty, problem == nil, reader.pendingCount > 0 {
                problem =
                    "the list ends within a tuple, after its first \(reader.pendingCount) bytes"
            }
            if let problem {
                // The problem of a certificate has its own advice.
                guard !isOfCertificate || ledger.count > 0 else {
                    throw BroadsideError("\(peer): \(problem)", exitCode: 1)
                }
                throw BroadsideError(
                    "\(peer): \(problem): "
                        + (ledger.count == 0
                            ? "is this a feedback service? check --endpoint"
                            : "the first \(ledger.count) tokens are recorded: prune with "
                                + "this ledger, then read the list again into another --ledger"),
                    exitCode: 1)
            }
            if bytes.isEmpty {
                if let failure = stream.endFailure {
                    warn(failure, hasTuples: ledger.count > 0, peer: peer)
                }
                return
            }
        }
    }

    /// Warns of a list that ended without close_notify. Some services end each list so, and the
    /// bytes do not show whether tuples are missing (RFC 8446 section 6.1).
    private static func warn(_ failure: TLSError, hasTuples: Bool, peer: String) {
        let advice =
            hasTuples
            ? "the list may be incomplete: read it again into another --ledger"
            : "the list may be empty, or the service may refuse the certificate: check that the "
                + "certificate is valid, not revoked, and for this environment"
        standardErrorLine("broadside: warning: \(peer): \(failure.message): \(advice)")
    }
}
