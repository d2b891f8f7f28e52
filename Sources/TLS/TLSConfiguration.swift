/// The name that a client connects to, and that the server's certificate has to hold.
public enum ServerName: Equatable, Sendable {
    /// A DNS name: sent as SNI, compared with the certificate's DNS names.
    case host(String)
    /// A numeric IPv4 or IPv6 address, compared with the certificate's addresses. Never sent:
    /// RFC 6066 section 3 allows no addresses in SNI.
    case address(String)

    /// The name or address as text.
    var text: String {
        switch self {
        case .host(let text), .address(let text): text
        }
    }
}

/// TLS versions that are spoken; older ones are not (RFC 9113 section 9.2).
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

    /// PEM, leaf first.
    public var certificateChain: [UInt8]
    private let secret: Key

    /// Both as PEM text. Neither is read before a `TLSContext` is made from it.
    public init(certificateChain: [UInt8], privateKey: [UInt8]) {
        self.certificateChain = certificateChain
        secret = .pem(privateKey)
    }

    /// A chain as PEM text, and a key that was read already: no text of it is kept.
    init(certificateChain: [UInt8], key: PrivateKey) {
        self.certificateChain = certificateChain
        secret = .read(key)
    }

    /// PEM, not encrypted: to be stored.
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

/// How a client's sessions are made. Verification of the server cannot be turned off.
public struct ClientConfiguration: Sendable {
    /// Trust the authorities of the system.
    public var trustsSystemRoots = true
    /// PEM of further authorities to trust, `--ca-file`.
    public var additionalAuthorities: [UInt8]?
    /// What to answer a server that asks for a certificate; nil answers with none.
    public var identity: TLSIdentity?
    /// Offered by ALPN; one of them must be selected. Empty: nothing offered, nothing required.
    public var applicationProtocols = ["h2"]
    /// Sessions resume earlier ones of the same context and server name, if the server gave them tickets of
    /// TLS 1.3. Its certificate is then verified once in ten minutes. Off: in each session.
    public var resumesSessions = false
    /// Versions, both included.
    var versions: (lowest: TLSVersion, highest: TLSVersion) = (.tls12, .tls13)

    /// System roots, no client certificate, `h2`, TLS 1.2 and 1.3.
    public init() {}
}

/// How a server's sessions are made.
public struct ServerConfiguration: Sendable {
    /// Whether clients are asked for a certificate.
    public enum ClientCertificates: Sendable {
        /// Not asked for.
        case none
        /// Asked for and not required, as APNs does. With authorities (PEM) a certificate that
        /// they did not sign fails the handshake; without, any certificate is taken.
        case requested(authorities: [UInt8]?)
        /// A handshake without one fails.
        case required(authorities: [UInt8]?)
    }

    /// The certificate that clients see.
    var identity: TLSIdentity
    /// In order of preference. A client whose ALPN has none of them is refused
    /// (no_application_protocol); a client without ALPN gets none. Empty: ALPN is ignored.
    public var applicationProtocols = ["h2"]
    /// Whether clients are asked for a certificate.
    public var clientCertificates = ClientCertificates.none
    /// Each session gets a ticket, with which its client may resume it.
    public var issuesTickets = false
    /// Versions, both included.
    var versions: (lowest: TLSVersion, highest: TLSVersion) = (.tls12, .tls13)

    /// `h2`, no client certificates, TLS 1.2 and 1.3.
    public init(identity: TLSIdentity) { self.identity = identity }
}
