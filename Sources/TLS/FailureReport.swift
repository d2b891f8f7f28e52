internal import CBroadsideOpenSSL

/// Determines why a session failed and describes the remedy.
struct FailureReport {
    private let transfer: RecordTransfer
    private let isClient: Bool
    private let hasIdentity: Bool

    init(_ transfer: RecordTransfer, _ context: TLSContext) {
        self.transfer = transfer
        isClient = context.isClient
        hasIdentity = context.hasIdentity
    }

    private var peer: String { isClient ? "server" : "client" }
    private var server: String { transfer.serverName.map { " \($0.text)" } ?? "" }

    /// The error for a completed handshake that did not select a required protocol.
    var noApplicationProtocol: TLSError {
        TLSError(
            .noALPN,
            "the \(peer)\(server) does not speak HTTP/2 (it did not select h2 by ALPN): "
                + "check the host and port, and any proxy in between that decrypts TLS")
    }

    private var noCertificate: TLSError {
        TLSError(
            .clientCertificateRequired,
            "the server\(server) demands a client certificate: name a certificate and its "
                + "key, or connect to an endpoint that accepts provider tokens")
    }

    private var notTLS: TLSError {
        TLSError(
            .notTLS,
            "the \(peer)\(server) does not speak TLS on this port: check the host and port")
    }

    /// Returns the error for a connection that has ended.
    func end(established: Bool) -> TLSError {
        if let first = transfer.firstBytes, !Self.beginsRecord(first) { return notTLS }
        if established {
            return TLSError(
                .closed, "the \(peer)\(server) closed the connection without a TLS close_notify")
        }
        if transfer.certificateRequested { return noCertificate }
        return TLSError(
            .closed,
            "the \(peer)\(server) closed the connection during the TLS handshake: "
                + "check the host and port, and any firewall in between")
    }

    /// Returns the error for a failed OpenSSL call.
    func failure(
        _ error: (library: Int32, reason: Int32, text: String), established: Bool
    ) -> TLSError {
        if let verification = transfer.verification { return verification }
        if !established, let first = transfer.firstBytes, !Self.beginsRecord(first) {
            return notTLS
        }
        if error.library == ERR_LIB_SSL {
            // Reason codes from 1000 on are the peer's alerts by number (RFC 8446 section 6).
            let alert = error.reason - SSL_AD_REASON_OFFSET
            if alert >= 0 {
                return failure(alert: alert, error.text, established: established)
            }
            switch error.reason {
            case SSL_R_NO_APPLICATION_PROTOCOL:
                return TLSError(
                    .noALPN, "the client's ALPN list has no protocol that this server speaks")
            case SSL_R_UNSUPPORTED_PROTOCOL, SSL_R_WRONG_SSL_VERSION, SSL_R_VERSION_TOO_LOW:
                return noVersion
            case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
                return TLSError(
                    .clientCertificateRequired, "the client presented no certificate")
            default: break
            }
        }
        return TLSError(
            established ? .protocolViolation : .handshakeFailed,
            established
                ? "the \(peer)\(server) broke the TLS protocol: \(error.text)"
                : "the TLS handshake with the \(peer)\(server) failed: \(error.text)")
    }

    private var noVersion: TLSError {
        TLSError(
            .protocolVersion,
            "the \(peer)\(server) speaks neither TLS 1.2 nor TLS 1.3: update it, "
                + "or check the host and port")
    }

    private func failure(alert: Int32, _ text: String, established: Bool) -> TLSError {
        switch alert {
        case SSL_AD_NO_APPLICATION_PROTOCOL: return noApplicationProtocol
        case SSL_AD_PROTOCOL_VERSION: return noVersion
        case SSL_AD_CERTIFICATE_REQUIRED where isClient: return noCertificate
        // TLS 1.2 has no specific alert for a missing certificate (RFC 5246 section 7.4.6).
        case SSL_AD_HANDSHAKE_FAILURE where transfer.certificateRequested,
            SSL_AD_BAD_CERTIFICATE where transfer.certificateRequested:
            return noCertificate
        case SSL_AD_BAD_CERTIFICATE...SSL_AD_CERTIFICATE_UNKNOWN, SSL_AD_UNKNOWN_CA,
            SSL_AD_ACCESS_DENIED:
            guard isClient else {
                return TLSError(
                    .certificateRefused,
                    "the client does not accept this server's certificate: \(text)")
            }
            guard hasIdentity else { break }
            return TLSError(
                .clientCertificateRefused,
                "the server\(server) does not accept the client certificate (\(text)): "
                    + "check that it is valid, not revoked, and meant for this host")
        default: break
        }
        return TLSError(
            established ? .protocolViolation : .handshakeFailed,
            established
                ? "the \(peer)\(server) ended the TLS session: \(text)"
                : "the \(peer)\(server) refused the TLS handshake: \(text)")
    }

    /// Returns whether the bytes begin a handshake message or an alert of any TLS version (RFC 8446
    /// section 5.1).
    private static func beginsRecord(_ bytes: (UInt8, UInt8)) -> Bool {
        (bytes.0 == 22 || bytes.0 == 21) && bytes.1 == 3
    }
}
