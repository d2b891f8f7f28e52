internal import COpenSSL

/// What many sessions share: trust, certificates, versions, protocols. An SSL_CTX.
///
/// Sessions of several threads may be made from one context.
@safe public final class TLSContext: Sendable {
    // Safe: OpenSSL locks what sessions share, and nothing here changes it after `init`.
    nonisolated(unsafe) let pointer: OpaquePointer
    /// Sessions are clients'.
    let isClient: Bool
    /// As the configuration says.
    let applicationProtocols: [String]
    /// The context answers a request for a client certificate.
    let hasIdentity: Bool
    /// A server takes certificates of any authority.
    let acceptsAnyCertificate: Bool
    /// ALPN's wire form for the server's choice.
    private let choice: ApplicationProtocolChoice

    /// A context for clients.
    public init(client configuration: ClientConfiguration) throws(TLSError) {
        let pointer = unsafe try Self.make(TLS_client_method(), configuration.versions)
        do throws(TLSError) {
            if configuration.trustsSystemRoots {
                unsafe SSL_CTX_set_default_verify_paths(pointer)
            }
            if let authorities = configuration.additionalAuthorities {
                unsafe try Self.trust(authorities, pointer)
            }
            if let identity = configuration.identity { unsafe try Self.use(identity, pointer) }
            let protocols = ApplicationProtocolChoice.wireForm(configuration.applicationProtocols)
            // Returns 0 for success, unlike its neighbours.
            if !protocols.isEmpty,
                unsafe SSL_CTX_set_alpn_protos(pointer, protocols, UInt32(protocols.count)) != 0
            {
                throw ErrorQueue.error("offer application protocols")
            }
        } catch {
            unsafe SSL_CTX_free(pointer)
            throw error
        }
        unsafe SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        unsafe SSL_CTX_set_client_cert_cb(pointer) { session, _, _ in
            unsafe RecordBIO.transfer(of: session!).pointee.certificateWanted = true
            return 0
        }
        unsafe self.pointer = pointer
        isClient = true
        applicationProtocols = configuration.applicationProtocols
        hasIdentity = configuration.identity != nil
        acceptsAnyCertificate = false
        choice = ApplicationProtocolChoice([])
        PeerVerification.install(self)
    }

    /// A context for servers.
    public init(server configuration: ServerConfiguration) throws(TLSError) {
        let pointer = unsafe try Self.make(TLS_server_method(), configuration.versions)
        var mode = SSL_VERIFY_NONE
        var authorities: [UInt8]?
        switch configuration.clientCertificates {
        case .none: break
        case .requested(let pem):
            mode = SSL_VERIFY_PEER
            authorities = pem
        case .required(let pem):
            mode = SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT
            authorities = pem
        }
        do throws(TLSError) {
            unsafe try Self.use(configuration.identity, pointer)
            if let authorities { unsafe try Self.trust(authorities, pointer) }
        } catch {
            unsafe SSL_CTX_free(pointer)
            throw error
        }
        unsafe SSL_CTX_set_verify(pointer, mode, nil)
        unsafe SSL_CTX_set_num_tickets(pointer, 0)
        unsafe self.pointer = pointer
        isClient = false
        applicationProtocols = configuration.applicationProtocols
        hasIdentity = true
        acceptsAnyCertificate = authorities == nil
        choice = ApplicationProtocolChoice(configuration.applicationProtocols)
        PeerVerification.install(self)
        if !configuration.applicationProtocols.isEmpty { unsafe choice.install(pointer) }
    }

    deinit { unsafe SSL_CTX_free(pointer) }

    private static func make(
        _ method: OpaquePointer?, _ versions: (lowest: TLSVersion, highest: TLSVersion)
    ) throws(TLSError) -> OpaquePointer {
        ErrorQueue.clear()
        guard let pointer = unsafe SSL_CTX_new(method) else {
            throw ErrorQueue.error("make a TLS context")
        }
        unsafe openssl_set_common_options(pointer)
        // Ten rounds before fourteen, where the server leaves the choice to us: both are good for
        // what lives an hour. RFC 9113 section 9.2.2 forbids TLS 1.2 suites without ephemeral keys
        // and AEAD.
        guard
            unsafe openssl_set_versions(
                pointer, number(versions.lowest), number(versions.highest)) == 1,
            unsafe SSL_CTX_set_ciphersuites(pointer, suites) == 1,
            unsafe SSL_CTX_set_cipher_list(pointer, olderSuites) == 1
        else {
            unsafe SSL_CTX_free(pointer)
            throw ErrorQueue.error("set the TLS versions and cipher suites")
        }
        return unsafe pointer
    }

    /// TLS 1.3's and TLS 1.2's cipher suites, the preferred first.
    private static let suites =
        "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    private static let olderSuites = "ECDHE+AES128+AESGCM:ECDHE+AESGCM:ECDHE+CHACHA20"

    private static func number(_ version: TLSVersion) -> Int32 {
        switch version {
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }

    private static func trust(_ pem: [UInt8], _ pointer: OpaquePointer) throws(TLSError) {
        let certificates = try Certificate.all(pem: pem)
        let store = unsafe SSL_CTX_get_cert_store(pointer)
        for certificate in certificates {
            ErrorQueue.clear()
            guard unsafe X509_STORE_add_cert(store, certificate.pointer) == 1 else {
                throw ErrorQueue.error("trust a certificate")
            }
        }
    }

    private static func use(_ identity: TLSIdentity, _ pointer: OpaquePointer) throws(TLSError) {
        let chain = try Certificate.all(pem: identity.certificateChain)
        let key = try identity.key
        ErrorQueue.clear()
        guard unsafe SSL_CTX_use_certificate(pointer, chain[0].pointer) == 1 else {
            throw TLSError(
                .certificateUnreadable, "the certificate cannot be used: \(ErrorQueue.take().text)")
        }
        guard unsafe SSL_CTX_use_PrivateKey(pointer, key.pointer) == 1 else {
            ErrorQueue.clear()
            throw TLSError(
                .keyMismatch,
                "the private key does not belong to the certificate \(chain[0].subject): "
                    + "name the key that it was issued for")
        }
        for certificate in chain.dropFirst() {
            guard unsafe openssl_add_chain_certificate(pointer, certificate.pointer) == 1 else {
                throw ErrorQueue.error("add a certificate to the chain")
            }
        }
    }
}
