import BroadsideTLS

/// TLS as the record layer of a connection, inside a proxy's tunnel if there is one.
struct TLSRecords: RecordLayer, ~Copyable {
    typealias Configuration = TLSConfigurationBox

    private var session: TLSSession
    private var tunnel: ProxyTunnelStateMachine?
    private(set) var closedEarly: RecordLayerError?

    init(configuration: Configuration) throws(RecordLayerError) {
        let configuration = configuration.current
        do {
            session = try TLSSession(
                context: configuration.context, serverName: configuration.serverName)
        } catch {
            throw RecordLayerError(error)
        }
        if let asked = configuration.tunnel {
            let machine = ProxyTunnelStateMachine(asked)
            closedEarly = machine.closedEarly
            tunnel = consume machine
        }
    }

    var isEstablished: Bool { session.isEstablished }

    mutating func receive(
        _ input: RawSpan, at offset: inout Int, plaintext: inout OutputRawSpan,
        ciphertext: inout OutputRawSpan
    ) -> RecordLayerResult {
        switch tunnel?.receive(input, at: &offset, output: &ciphertext) {
        case .wait: return .more
        case .refused(let error): return .failed(error)
        // From here on the peer is the server, and in TLS the client sends first.
        case .open, nil:
            tunnel = nil
            closedEarly = nil
        }
        switch session.receive(
            input, at: &offset, plaintext: &plaintext, ciphertext: &ciphertext)
        {
        case .more: return .more
        case .plaintextFull: return .plaintextFull
        case .ciphertextFull:
            return .failed(
                RecordLayerError(
                    message: "the server requests handshakes but does not read the replies",
                    isLasting: false))
        case .closed: return .closed
        case .failed(let error): return .failed(RecordLayerError(error))
        }
    }

    mutating func seal(_ plaintext: RawSpan, ciphertext: inout OutputRawSpan) -> Bool {
        assert(tunnel == nil, "plaintext before the proxy's tunnel is open")
        return session.seal(plaintext, ciphertext: &ciphertext)
    }

    mutating func close(ciphertext: inout OutputRawSpan) {
        session.close(ciphertext: &ciphertext)
    }

    static func sealedCount(_ plaintextCount: Int) -> Int {
        TLSSession.sealedCount(plaintextCount)
    }
}

extension RecordLayerError {
    init(_ error: TLSError) {
        let isLasting =
            switch error.code {
            case .certificateUnknownAuthority, .certificateExpired, .certificateNotYetValid,
                .hostNameMismatch, .certificateRefused, .noALPN, .notTLS, .protocolVersion,
                .clientCertificateRequired, .clientCertificateRefused:
                true
            default:
                false
            }
        self.init(message: error.sentence, isLasting: isLasting)
        precedesData = error.precedesData
    }
}

extension TLSError {
    /// The message, followed by the option that may help.
    package var sentence: String {
        code == .certificateUnknownAuthority
            ? "\(message), or name that authority's certificate with --ca-file" : message
    }
}
