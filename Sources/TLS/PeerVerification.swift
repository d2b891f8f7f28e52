internal import CBroadsideOpenSSL

/// OpenSSL's verification of the peer's chain, with the details that describe the remedy.
enum PeerVerification {
    /// Installs a callback in place of the plain `X509_verify_cert`.
    static func install(_ context: TLSContext) {
        // SAFETY: OpenSSL calls back during a handshake, with a store that holds the session; each
        // session has a transfer behind its BIO, and no other access to the transfer is in progress
        // while OpenSSL runs.
        unsafe SSL_CTX_set_cert_verify_callback(
            context.pointer,
            { store, _ in
                guard unsafe X509_verify_cert(store) != 1 else { return 1 }
                let session = unsafe OpaquePointer(
                    X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx())!)
                let transfer = unsafe SharedTransfer(of: session)
                if transfer.value.acceptsAnyCertificate {
                    unsafe X509_STORE_CTX_set_error(store, X509_V_OK)
                    ErrorQueue.clear()
                    return 1
                }
                transfer.value.verification = unsafe PeerVerification.error(
                    store!, transfer.value.serverName)
                return 0
            }, nil)
    }

    /// Makes the session compare the certificate with a name (RFC 6125: only alternative names
    /// count, and a wildcard represents one whole label).
    static func require(_ name: ServerName, _ session: OpaquePointer) throws(TLSError) {
        // SAFETY: the parameters belong to the session, which the caller keeps alive; OpenSSL
        // copies the names. The host was checked to contain no NUL, so its count equals that of the
        // C string.
        let parameters = unsafe SSL_get0_param(session)
        unsafe X509_VERIFY_PARAM_set_hostflags(
            parameters,
            UInt32(X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS))
        switch name {
        case .host(let host):
            // An empty name would disable the check.
            guard !host.isEmpty, !host.utf8.contains(0),
                unsafe X509_VERIFY_PARAM_set1_host(parameters, host, host.utf8.count) == 1,
                unsafe openssl_set_host_name(session, host) == 1
            else {
                ErrorQueue.clear()
                throw TLSError(.hostNameMismatch, "'\(host)' is not a host name to connect to")
            }
        case .address(let address):
            guard unsafe X509_VERIFY_PARAM_set1_ip_asc(parameters, address) == 1 else {
                ErrorQueue.clear()
                throw TLSError(.hostNameMismatch, "'\(address)' is not an IP address to connect to")
            }
        }
    }

    private static func error(_ store: OpaquePointer, _ name: ServerName?) -> TLSError {
        // SAFETY: the store outlives this call, which is made from its callback. Certificates
        // obtained from it are retained, or nil; OpenSSL has a constant text for every code.
        let code = unsafe X509_STORE_CTX_get_error(store)
        let peer = name == nil ? "client" : "server"
        let server = name.map { " of \($0.text)" } ?? ""
        let certificate = unsafe Certificate(retaining: X509_STORE_CTX_get_current_cert(store))
        let leaf = unsafe Certificate(retaining: X509_STORE_CTX_get0_cert(store))
        switch code {
        case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN,
            X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT,
            X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, X509_V_ERR_CERT_UNTRUSTED:
            let issuer = certificate?.issuer ?? leaf?.issuer ?? "an unknown issuer"
            let remedy =
                name == nil
                ? "configure the server with that authority's certificate"
                : "install the system's CA certificates"
            return TLSError(
                .certificateUnknownAuthority,
                "the \(peer) certificate\(server) is signed by an authority that is not trusted "
                    + "here (\(issuer)): \(remedy)")
        case X509_V_ERR_CERT_HAS_EXPIRED:
            return TLSError(
                .certificateExpired,
                "the \(peer) certificate\(server) (\(certificate?.subject ?? "unnamed")) expired on "
                    + "\(certificate?.lastDay ?? "an unknown day"): renew it, "
                    + "or correct this machine's clock")
        case X509_V_ERR_CERT_NOT_YET_VALID:
            return TLSError(
                .certificateNotYetValid,
                "the \(peer) certificate\(server) (\(certificate?.subject ?? "unnamed")) is valid "
                    + "only from \(certificate?.firstDay ?? "an unknown day"): "
                    + "correct this machine's clock")
        case X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH:
            let names = leaf?.alternativeNames ?? []
            let shown = names.prefix(5).joined(separator: ", ") + (names.count > 5 ? ", ..." : "")
            return TLSError(
                .hostNameMismatch,
                "the server certificate is for \(names.isEmpty ? "no name at all" : shown) and not "
                    + "for \(name?.text ?? ""): connect to a name that the certificate has, "
                    + "or give the server a certificate for this name")
        default:
            let reason = unsafe String(cString: X509_verify_cert_error_string(Int(code)))
            return TLSError(
                .certificateRefused, "the \(peer) certificate\(server) is refused: \(reason)")
        }
    }
}
