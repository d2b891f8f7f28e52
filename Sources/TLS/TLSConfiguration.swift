/// The server name for which the server's certificate must be valid.
public enum ServerName: Equatable, Sendable {
    /// A DNS name: sent as SNI and compared with the certificate's DNS names.
    case host(String)
    /// A numeric IPv4 or IPv6 address, compared with the certificate's addresses. Never sent,
    /// because RFC 6066 section 3 permits no addresses in SNI.
    case address(String)

    /// The name or address as text.
    var text: String {
        switch self {
        case .host(let text), .address(let text): text
        }
    }
}

/// The supported TLS versions; older ones are prohibited (RFC 9113 section 9.2).
enum TLSVersion: Sendable {
    case tls12
    case tls13
}

/// A certificate chain, leaf first, with the leaf's private key.
public struct TLSIdentity: Sendable {
    private enum Key {
        case pem([UInt8])
        case read(PrivateKey)
    }

    /// The chain in PEM, leaf first.
    public var certificateChain: [UInt8]
    private let secret: Key

    /// Creates an identity from PEM texts, which are not decoded until a `TLSContext` uses them.
    public init(certificateChain: [UInt8], privateKey: [UInt8]) {
        self.certificateChain = certificateChain
        secret = .pem(privateKey)
    }

    /// Creates an identity from a chain in PEM and a decoded key. The text of the key is not kept.
    init(certificateChain: [UInt8], key: PrivateKey) {
        self.certificateChain = certificateChain
        secret = .read(key)
    }

    /// The unencrypted key in PEM, for storage.
    public var privateKey: [UInt8] {
        switch secret {
        case .pem(let text): text
        case .read(let key): key.pem
        }
    }

    /// The key.
    var key: PrivateKey {
        get throws(TLSError) {
            switch secret {
            case .pem(let text): try PrivateKey(pem: text)
            case .read(let key): key
            }
        }
    }
}

/// The configuration of a client's sessions. Verification of the server cannot be disabled.
public struct ClientConfiguration: Sendable {
    /// Whether the system's certificate authorities are trusted.
    public var trustsSystemRoots = true
    /// Additional trusted authorities in PEM, `--ca-file`.
    public var additionalAuthorities: [UInt8]?
    /// The certificate sent to a server that requests a client certificate; nil if none is sent.
    public var identity: TLSIdentity?
    /// The protocols offered by ALPN, one of which must be selected. If empty, none is offered or
    /// required.
    public var applicationProtocols = ["h2"]
    /// Whether sessions resume earlier sessions of the same context and server name, if the server
    /// issued TLS 1.3 tickets. The server's certificate is then verified once every ten minutes
    /// instead of in each session.
    public var resumesSessions = false
    /// The lowest and highest permitted versions, inclusive.
    var versions: (lowest: TLSVersion, highest: TLSVersion) = (.tls12, .tls13)

    /// Creates the default configuration: system roots, no client certificate, `h2`, TLS 1.2 and
    /// 1.3.
    public init() {}
}

/// The configuration of a server's sessions.
public struct ServerConfiguration: Sendable {
    /// Whether clients must present a certificate.
    public enum ClientCertificates: Sendable {
        /// No certificate is requested.
        case none
        /// A certificate is requested but not required, as by APNs. If authorities are given (PEM),
        /// the handshake fails for a certificate that they did not sign. Otherwise, any certificate
        /// is accepted.
        case requested(authorities: [UInt8]?)
        /// The handshake fails without a certificate.
        case required(authorities: [UInt8]?)
    }

    /// The certificate presented to clients.
    var identity: TLSIdentity
    /// The protocols in order of preference. A client whose ALPN list contains none of them is
    /// refused (no_application_protocol). For a client without ALPN, none is selected. If empty,
    /// ALPN is ignored.
    public var applicationProtocols = ["h2"]
    /// Whether clients must present a certificate.
    public var clientCertificates = ClientCertificates.none
    /// Whether each session issues a ticket that lets its client resume it.
    public var issuesTickets = false
    /// The lowest and highest permitted versions, inclusive.
    var versions: (lowest: TLSVersion, highest: TLSVersion) = (.tls12, .tls13)

    /// Creates the default configuration: `h2`, no client certificates, TLS 1.2 and 1.3.
    public init(identity: TLSIdentity) { self.identity = identity }
}
