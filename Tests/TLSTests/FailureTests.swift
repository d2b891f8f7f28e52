import Testing

@testable import BroadsideTLS

@Suite("Failures and their fixes") struct FailureTests {
    private func failure(
        name: ServerName = World.host, client: (inout ClientConfiguration) -> Void = { _ in },
        server: (inout ServerConfiguration) -> Void = { _ in }
    ) throws -> (client: TLSError?, server: TLSError?) {
        let (client, server) = try World.pair(name: name, client: client, server: server)
        pump(client, server)
        for error in [client.error, server.error].compactMap({ $0 }) {
            #expect(!error.message.contains("\n") && !error.message.hasSuffix("."))
        }
        return (client.error, server.error)
    }

    @Test
    func `A server of an unknown authority fails with the authority's name and what to install`()
        throws
    {
        let other = try CertificateAuthority(commonName: "Another Authority")
        let errors = try failure(client: { $0.additionalAuthorities = other.certificate.pem })
        #expect(errors.client?.code == .certificateUnknownAuthority)
        #expect(errors.client?.message.contains("install the system's CA certificates") == true)
        #expect(errors.client?.message.contains("CN=Test Authority") == true)
        #expect(errors.server?.code == .certificateRefused)
    }

    @Test func `Without any authority the server is of an unknown one`() throws {
        let errors = try failure(client: { $0.additionalAuthorities = nil })
        #expect(errors.client?.code == .certificateUnknownAuthority)
    }

    @Test func `A self-signed server certificate is of an unknown authority`() throws {
        let lone = World.authority.identity
        let other = try CertificateAuthority(commonName: "Another Authority")
        let errors = try failure(
            client: { $0.additionalAuthorities = other.certificate.pem },
            server: { $0.identity = lone })
        #expect(errors.client?.code == .certificateUnknownAuthority)
    }

    @Test func `An expired server certificate fails with its date`() throws {
        let old = try World.authority.server(
            hosts: ["push.test"], validity: CertificateValidity(from: -86_400, until: -3600))
        let error = try failure(server: { $0.identity = old }).client
        #expect(error?.code == .certificateExpired)
        #expect(error?.message.contains("expired on ") == true)
        #expect(error?.message.contains("CN=push.test") == true)
    }

    @Test func `A server certificate that is not yet valid names the clock`() throws {
        let early = try World.authority.server(
            hosts: ["push.test"], validity: CertificateValidity(from: 86_400))
        let error = try failure(server: { $0.identity = early }).client
        #expect(error?.code == .certificateNotYetValid)
        #expect(error?.message.contains("clock") == true)
    }

    @Test(arguments: [
        ServerName.host("other.test"), .address("127.0.0.2"), .host("push.test.evil"),
        .host("ush.test"),
    ])
    func `A certificate without the server's name fails with the names it has`(name: ServerName)
        throws
    {
        let error = try failure(name: name).client
        #expect(error?.code == .hostNameMismatch)
        #expect(error?.message.contains("push.test, *.wild.test, 127.0.0.1, 0:0:") == true)
        #expect(error?.message.contains(name.text) == true)
    }

    /// RFC 6125 section 6.4.4 lets it count as a last resort; RFC 9110 section 4.3.4 does not.
    @Test func `A certificate whose only name is the common name fails`() throws {
        var request = CertificateRequest(
            subject: [("CN", "push.test")], validity: CertificateValidity())
        request.extensions = [.named("extendedKeyUsage", "serverAuth")]
        let nameless = try World.authority.issue(request)
        let error = try failure(server: { $0.identity = nameless }).client
        #expect(error?.code == .hostNameMismatch)
        #expect(error?.message.contains("is for no name at all") == true)
    }

    @Test func `A server with a client certificate fails`() throws {
        var request = CertificateRequest(
            subject: [("CN", "push.test")], validity: CertificateValidity())
        request.extensions = [
            .named("extendedKeyUsage", "clientAuth"), .named("subjectAltName", "DNS:push.test"),
        ]
        let client = try World.authority.issue(request)
        let error = try failure(server: { $0.identity = client }).client
        #expect(error?.code == .certificateRefused)
        #expect(error?.message.contains("purpose") == true)
    }

    @Test(arguments: ["", "a\0b"])
    func `An empty server name, or one with NUL, is refused`(name: String) throws {
        let context = try World.clientContext()
        let error = #expect(throws: TLSError.self) {
            _ = try Endpoint(context, .host(name))
        }
        #expect(error?.code == .hostNameMismatch)
        #expect(throws: TLSError.self) { _ = try Endpoint(context, .address("push.test")) }
    }

    @Test(arguments: [
        "HTTP/1.1 400 Bad Request\r\n\r\n", "SSH-2.0-OpenSSH\r\n", "\0\0\u{c}\u{4}\0\0\0\0\0\0\0",
        "220 smtp.test ESMTP\r\n",
    ])
    func `A server that speaks no TLS is reported as such`(text: String) throws {
        let client = try Endpoint(World.clientContext(), World.host)
        client.receive([])
        for byte in text.utf8 where client.error == nil { client.receive([byte]) }
        #expect(client.error?.code == .notTLS)
        #expect(client.error?.message.contains("push.test does not speak TLS on this port") == true)
    }

    @Test func `A plaintext server that closes after a few bytes is reported as one without TLS`()
        throws
    {
        let client = try Endpoint(World.clientContext(), World.host)
        client.receive([])
        client.receive(Array("no".utf8))
        #expect(client.error == nil)
        #expect(client.receiveEnd()?.code == .notTLS)
    }

    @Test func `A client that speaks no TLS is reported as such`() throws {
        let server = try Endpoint(World.serverContext())
        server.receive(Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8))
        #expect(server.error?.code == .notTLS)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A server that offers only HTTP/1.1 fails without ALPN on both sides`(version: TLSVersion)
        throws
    {
        let errors = try failure(
            client: { $0.versions = (version, version) },
            server: { $0.applicationProtocols = ["http/1.1"] })
        #expect(errors.client?.code == .noALPN)
        #expect(errors.client?.message.contains("does not speak HTTP/2") == true)
        #expect(errors.server?.code == .noALPN)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A server that selects no protocol fails`(version: TLSVersion) throws {
        let (client, server) = try World.pair(
            client: { $0.versions = (version, version) },
            server: { $0.applicationProtocols = [] })
        pump(client, server)
        #expect(client.error?.code == .noALPN && !client.isEstablished)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A server that requires a client certificate and gets none fails on both sides`(
        version: TLSVersion
    ) throws {
        let errors = try failure(
            client: { $0.versions = (version, version) },
            server: { $0.clientCertificates = .required(authorities: nil) })
        #expect(errors.client?.code == .clientCertificateRequired)
        #expect(errors.client?.precedesData == (version == .tls13))
        #expect(errors.server?.code == .clientCertificateRequired)
    }

    @Test(arguments: [TLSVersion.tls12, .tls13])
    func `A client certificate of another authority is refused`(version: TLSVersion) throws {
        let other = try CertificateAuthority(commonName: "Another Authority")
        let identity = try other.client(subject: [("CN", "stranger")])
        let errors = try failure(
            client: {
                $0.versions = (version, version)
                $0.identity = identity
            },
            server: {
                $0.clientCertificates = .requested(authorities: World.authority.certificate.pem)
            })
        #expect(errors.client?.code == .clientCertificateRefused)
        // In TLS 1.2, the client can send no data before the server has verified the certificate.
        #expect(errors.client?.precedesData == (version == .tls13))
        #expect(errors.server?.code == .certificateUnknownAuthority)
        #expect(errors.server?.message.contains("install the system's CA certificates") == false)
    }

    /// OpenSSL itself compares only a certificate and a key of the same type.
    @Test(arguments: [0, 1, 2])
    func `A certificate with another's private key is refused, whatever the types of the keys`(
        pair: Int
    ) throws {
        let folder = Folder()
        let (status, key) = try Command.run([
            "genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048",
        ])
        #expect(status == 0)
        let certificate = try Command.run([
            "req", "-x509", "-subj", "/CN=push", "-key", try folder.file("key", key),
        ]).1
        let pairs = [
            (certificate, World.server.privateKey), (World.server.certificateChain, key),
            (World.server.certificateChain, try PrivateKey.generate().pem),
        ]
        let other = TLSIdentity(certificateChain: pairs[pair].0, privateKey: pairs[pair].1)
        for make in [
            { _ = try World.clientContext { $0.identity = other } },
            { _ = try World.serverContext { $0.identity = other } },
        ] {
            let error = #expect(throws: TLSError.self) { try make() }
            #expect(error?.code == .keyMismatch)
            #expect(error?.message.contains("does not belong to the certificate") == true)
        }
        let own = TLSIdentity(certificateChain: certificate, privateKey: key)
        _ = try World.clientContext { $0.identity = own }
    }

    @Test func `Sides without a common TLS version fail`() throws {
        let errors = try failure(
            client: { $0.versions = (.tls13, .tls13) }, server: { $0.versions = (.tls12, .tls12) })
        #expect(errors.client?.code == .protocolVersion)
        #expect(errors.server?.code == .protocolVersion)
    }

    @Test func `A server that closes during the handshake is reported once`() throws {
        let (client, server) = try World.pair()
        client.receive([])
        #expect(client.receiveEnd()?.code == .closed)
        server.receive(client.takeOutgoing())
        let (half, _) = try World.pair()
        half.receive([])
        half.receive(Array(server.takeOutgoing().prefix(0)))
        let error = half.receiveEnd()
        #expect(error?.message.contains("during the TLS handshake") == true)
        #expect(half.receiveEnd() == error)
    }
}
