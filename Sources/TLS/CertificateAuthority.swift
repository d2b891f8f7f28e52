internal import CBroadsideOpenSSL

/// A private authority for tests and local simulators: it signs server and client certificates with
/// keys on P-256. Nothing that it signs is trusted anywhere unless its certificate is named.
public struct CertificateAuthority: Sendable {
    /// The authority's own certificate, what clients have to trust.
    public let certificate: Certificate
    private let key: PrivateKey

    /// A new authority.
    public init(
        commonName: String, validity: CertificateValidity = CertificateValidity()
    ) throws(TLSError) {
        let key = try PrivateKey.generate()
        var request = CertificateRequest(subject: [("CN", commonName)], validity: validity)
        request.extensions = [
            .named("basicConstraints", "critical,CA:TRUE"),
            .named("keyUsage", "critical,keyCertSign,cRLSign"),
            .named("subjectKeyIdentifier", "hash"),
        ]
        certificate = try request.issue(for: key, signedBy: nil)
        self.key = key
    }

    /// An authority from what was stored of one.
    init(identity: TLSIdentity) throws(TLSError) {
        certificate = try Certificate.all(pem: identity.certificateChain)[0]
        key = try identity.key
    }

    /// The authority as PEM, to be stored.
    var identity: TLSIdentity {
        TLSIdentity(certificateChain: certificate.pem, key: key)
    }

    /// A server's certificate and key.
    ///
    /// - Parameters:
    ///   - hosts: DNS names.
    ///   - addresses: Numeric IPv4 and IPv6 addresses.
    public func server(
        hosts: [String], addresses: [String] = [],
        validity: CertificateValidity = CertificateValidity()
    ) throws(TLSError) -> TLSIdentity {
        let name = hosts.first ?? addresses.first ?? "server"
        var request = CertificateRequest(subject: [("CN", name)], validity: validity)
        request.extensions = [.named("extendedKeyUsage", "serverAuth")]
        let names = hosts.map { "DNS:\($0)" } + addresses.map { "IP:\($0)" }
        if !names.isEmpty {
            request.extensions.append(.named("subjectAltName", names.joined(separator: ",")))
        }
        return try issue(request)
    }

    /// A client's certificate and key, such as APNs provider certificates.
    ///
    /// - Parameters:
    ///   - subject: Attributes by OpenSSL's short names: `UID`, `CN`, `OU`, `C`.
    ///   - extensions: Object identifiers in dots with the DER that each extension holds.
    public func client(
        subject: [(name: String, value: String)],
        extensions: [(identifier: String, der: [UInt8])] = [],
        validity: CertificateValidity = CertificateValidity()
    ) throws(TLSError) -> TLSIdentity {
        var request = CertificateRequest(subject: subject, validity: validity)
        request.extensions = [.named("extendedKeyUsage", "clientAuth")]
        request.extensions += extensions.map { .der($0.identifier, $0.der) }
        return try issue(request)
    }

    func issue(_ request: CertificateRequest) throws(TLSError) -> TLSIdentity {
        var request = request
        request.extensions.insert(.named("basicConstraints", "critical,CA:FALSE"), at: 0)
        request.extensions.append(.named("keyUsage", "critical,digitalSignature"))
        let subjectKey = try PrivateKey.generate()
        let issued = try request.issue(for: subjectKey, signedBy: (certificate, key))
        return TLSIdentity(certificateChain: issued.pem, key: subjectKey)
    }
}

/// From when to when a certificate is valid, in seconds from now.
public struct CertificateValidity: Equatable, Sendable {
    /// The first second; negative lies in the past.
    var from: Int
    /// The last second.
    var until: Int

    /// From an hour ago, against clocks that differ, for 365 days.
    public init(from: Int = -3600, until: Int = 365 * 86_400) {
        self.from = from
        self.until = until
    }
}
