internal import CBroadsideOpenSSL

/// The state that many sessions share: trusted authorities, certificates, versions and protocols.
///
/// Several threads may create sessions from one context.
@safe public final class TLSContext: Sendable {
    // SAFETY: an SSL_CTX created in `init` and released in `deinit`. OpenSSL locks the state that
    // sessions share, and this type does not modify it after `init`.
    nonisolated(unsafe) let pointer: OpaquePointer
    /// Whether the sessions are clients.
    let isClient: Bool
    /// The configured ALPN protocols.
    let applicationProtocols: [String]
    /// Whether the context has a certificate to present on request.
    let hasIdentity: Bool
    /// Whether a server accepts certificates of any authority.
    let acceptsAnyCertificate: Bool
    /// The server's ALPN selection.
    private let choice: ApplicationProtocolChoice
    /// The tickets for session resumption; nil if sessions are never resumed.
    let tickets: SessionTickets?

    /// Creates a context for clients.
    public init(client configuration: ClientConfiguration) throws(TLSError) {
        // SAFETY: the SSL_CTX is created here, and OpenSSL copies the protocols. In the callback
        // the session belongs to a `TLSSession`, whose transfer has no other access in progress
        // while OpenSSL runs.
        unsafe pointer = try Self.make(TLS_client_method())
        isClient = true
        applicationProtocols = configuration.applicationProtocols
        hasIdentity = configuration.identity != nil
        acceptsAnyCertificate = false
        choice = ApplicationProtocolChoice([])
        tickets = configuration.resumesSessions ? SessionTickets() : nil
        try setCommonOptions(configuration.versions)
        if configuration.trustsSystemRoots {
            unsafe SSL_CTX_set_default_verify_paths(pointer)
        }
        if let authorities = configuration.additionalAuthorities { try trust(authorities) }
        if let identity = configuration.identity { try use(identity) }
        let protocols = ApplicationProtocolChoice.wireForm(configuration.applicationProtocols)
        // This function returns 0 on success, unlike the neighboring ones.
        if !protocols.isEmpty,
            unsafe SSL_CTX_set_alpn_protos(pointer, protocols, UInt32(protocols.count)) != 0
        {
            throw ErrorQueue.error("offer application protocols")
        }
        unsafe SSL_CTX_set_verify(pointer, SSL_VERIFY_PEER, nil)
        unsafe SSL_CTX_set_client_cert_cb(pointer) { session, _, _ in
            unsafe SharedTransfer(of: session!).value.certificateRequested = true
            return 0
        }
        PeerVerification.install(self)
        if tickets != nil { unsafe SessionTickets.install(pointer) }
    }

    /// Creates a context for servers.
    public init(server configuration: ServerConfiguration) throws(TLSError) {
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
        // SAFETY: the SSL_CTX is created here; it keeps a pointer to `choice`, which lives as long
        // as the SSL_CTX.
        unsafe pointer = try Self.make(TLS_server_method())
        isClient = false
        applicationProtocols = configuration.applicationProtocols
        hasIdentity = true
        acceptsAnyCertificate = authorities == nil
        choice = ApplicationProtocolChoice(configuration.applicationProtocols)
        tickets = nil
        try setCommonOptions(configuration.versions)
        try use(configuration.identity)
        if let authorities { try trust(authorities) }
        unsafe SSL_CTX_set_verify(pointer, mode, nil)
        guard
            unsafe configuration.issuesTickets
                ? openssl_issue_tickets(pointer) == 1 : SSL_CTX_set_num_tickets(pointer, 0) == 1
        else { throw ErrorQueue.error("set the number of tickets") }
        PeerVerification.install(self)
        if !configuration.applicationProtocols.isEmpty { unsafe choice.install(pointer) }
    }

    // SAFETY: releases the one reference of this object; sessions hold their own.
    deinit { unsafe SSL_CTX_free(pointer) }

    private static func make(_ method: OpaquePointer?) throws(TLSError) -> OpaquePointer {
        ErrorQueue.clear()
        // SAFETY: OpenSSL's methods are constant, and the caller takes ownership of the new
        // SSL_CTX.
        guard let pointer = unsafe SSL_CTX_new(method) else {
            throw ErrorQueue.error("make a TLS context")
        }
        return unsafe pointer
    }

    private func setCommonOptions(
        _ versions: (lowest: TLSVersion, highest: TLSVersion)
    ) throws(TLSError) {
        // SAFETY: called only by `init`, so no session uses the context yet; OpenSSL copies the
        // texts.
        unsafe openssl_set_common_options(pointer)
        // If the server leaves the choice to the client, AES-128 (ten rounds) comes before AES-256
        // (fourteen). Both are adequate for data that is confidential for an hour. RFC 9113 section
        // 9.2.2 prohibits TLS 1.2 suites without ephemeral keys and AEAD.
        let (lowest, highest) = (Self.number(versions.lowest), Self.number(versions.highest))
        guard unsafe openssl_set_versions(pointer, lowest, highest) == 1,
            unsafe SSL_CTX_set_ciphersuites(pointer, Self.suites) == 1,
            unsafe SSL_CTX_set_cipher_list(pointer, Self.olderSuites) == 1
        else { throw ErrorQueue.error("set the TLS versions and cipher suites") }
    }

    /// The cipher suites of TLS 1.3 in order of preference; `olderSuites` has those of TLS 1.2.
    private static let suites =
        "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
    private static let olderSuites = "ECDHE+AES128+AESGCM:ECDHE+AESGCM:ECDHE+CHACHA20"

    private static func number(_ version: TLSVersion) -> Int32 {
        switch version {
        case .tls12: TLS1_2_VERSION
        case .tls13: TLS1_3_VERSION
        }
    }

    private func trust(_ pem: [UInt8]) throws(TLSError) {
        let certificates = try Certificate.all(file: pem)
        // SAFETY: the store belongs to the context and retains each certificate.
        let store = unsafe SSL_CTX_get_cert_store(pointer)
        for certificate in certificates {
            ErrorQueue.clear()
            guard unsafe X509_STORE_add_cert(store, certificate.pointer) == 1 else {
                throw ErrorQueue.error("trust a certificate")
            }
        }
    }

    private func use(_ identity: TLSIdentity) throws(TLSError) {
        let chain = try Certificate.all(pem: identity.certificateChain)
        let key = try identity.key
        ErrorQueue.clear()
        // SAFETY: the context retains the certificates and the key. `Certificate.all` returns at
        // least one certificate.
        guard unsafe SSL_CTX_use_certificate(pointer, chain[0].pointer) == 1 else {
            throw TLSError(
                .certificateUnreadable, "the certificate cannot be used: \(ErrorQueue.take().text)")
        }
        // OpenSSL stores RSA and EC in separate places, and compares only a certificate and a key of
        // the same type.
        guard chain[0].belongs(to: key) else {
            throw TLSError(
                .keyMismatch,
                "the private key does not belong to the certificate "
                    + "\(chain[0].subject): name the key for which the certificate was issued")
        }
        guard unsafe SSL_CTX_use_PrivateKey(pointer, key.pointer) == 1 else {
            throw ErrorQueue.error("use the private key")
        }
        for certificate in chain.dropFirst() {
            guard unsafe openssl_add_chain_certificate(pointer, certificate.pointer) == 1 else {
                throw ErrorQueue.error("add a certificate to the chain")
            }
        }
    }
}
