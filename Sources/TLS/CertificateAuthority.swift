internal import CBroadsideOpenSSL

/// A private certificate authority for tests and local simulators, which signs server and client
/// certificates with P-256 keys. No system trusts it unless its certificate is configured
/// explicitly.
public struct CertificateAuthority: Sendable {
    /// The authority's own certificate, which clients must trust.
    public let certificate: Certificate
    private let key: PrivateKey

    /// Creates a new authority.
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

    /// Restores an authority from its stored identity.
    init(identity: TLSIdentity) throws(TLSError) {
        certificate = try Certificate.all(pem: identity.certificateChain)[0]
        key = try identity.key
    }

    /// The authority's certificate and key in PEM, for storage.
    var identity: TLSIdentity {
        TLSIdentity(certificateChain: certificate.pem, key: key)
    }

    /// Issues a server certificate with its key.
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

    /// Issues a client certificate with its key, such as an APNs provider certificate.
    ///
    /// - Parameters:
    ///   - subject: Attributes by OpenSSL's short names: `UID`, `CN`, `OU`, `C`.
    ///   - extensions: Dotted object identifiers with the DER content of each extension.
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

/// The validity period of a certificate, in seconds relative to now.
public struct CertificateValidity: Equatable, Sendable {
    /// The first second of the validity period, relative to now; negative in the past.
    var from: Int
    /// The last second of the validity period, relative to now.
    var until: Int

    /// Creates a period. By default, it begins an hour ago, to tolerate clock differences, and ends
    /// in 365 days.
    public init(from: Int = -3600, until: Int = 365 * 86_400) {
        self.from = from
        self.until = until
    }
}
