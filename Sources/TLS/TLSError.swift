internal import CBroadsideOpenSSL

/// A failure of TLS, a key or a certificate.
public struct TLSError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds of errors that callers distinguish.
    public enum Code: Sendable {
        /// The peer's certificate was not signed by a trusted authority.
        case certificateUnknownAuthority
        /// The peer's certificate, or one above it, has expired.
        case certificateExpired
        /// The peer's certificate, or one above it, is not yet valid.
        case certificateNotYetValid
        /// The peer's certificate is valid for other names.
        case hostNameMismatch
        /// The peer's certificate is rejected for another reason (purpose, signature, chain).
        case certificateRefused
        /// No common application protocol was selected (RFC 7301).
        case noALPN
        /// The peer's first bytes are not a TLS record.
        case notTLS
        /// No common TLS version.
        case protocolVersion
        /// The peer requires a client certificate and none is configured.
        case clientCertificateRequired
        /// The peer rejected the client certificate.
        case clientCertificateRefused
        /// The connection ended during the handshake, or later without close_notify.
        case closed
        /// Any other failure before the session was established.
        case handshakeFailed
        /// Any other failure of an established session.
        case protocolViolation
        /// The private key's text is not PEM, or not a private key.
        case keyUnreadable
        /// A PKCS#12 file is given as a private key.
        case keyIsPKCS12
        /// The private key is encrypted, and no passphrase was given.
        case passphraseMissing
        /// The passphrase does not decrypt the private key.
        case passphraseWrong
        /// The private key is encrypted with a cipher that no installed provider has.
        case keyCipherMissing
        /// The private key is not an elliptic curve key.
        case keyNotEC
        /// The private key is not on the curve P-256.
        case keyWrongCurve
        /// A certificate cannot be read.
        case certificateUnreadable
        /// A certificate file is neither PEM nor PKCS#12.
        case certificateFormat
        /// A private key is given in addition to a PKCS#12 file, which contains its own.
        case keyTwice
        /// The certificate and the private key do not match.
        case keyMismatch
        /// No installed library makes reproducible signatures.
        case noSigner
        /// OpenSSL failed independently of any input: out of memory, or a damaged installation.
        case library
    }

    /// The kind of the error.
    public var code: Code
    /// A one-line description without a full stop. The description includes the remedy, unless the
    /// remedy is a setting of the caller.
    public var message: String
    /// True if the server refused the client's certificate, and certainly processed no application
    /// data before. False if data may have been processed, or if the client could not send any yet.
    public internal(set) var precedesData = false

    /// Creates an error with a one-line message.
    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}

/// OpenSSL's error queue of a thread. A caller of OpenSSL clears the queue before the call and
/// reads it afterwards, so that an error is never attributed to another call.
enum ErrorQueue {
    static func clear() { ERR_clear_error() }

    /// Returns the oldest entry, which names the cause, and clears the queue.
    static func take() -> (library: Int32, reason: Int32, text: String) {
        let code = ERR_peek_error()
        defer { ERR_clear_error() }
        guard code != 0 else { return (0, 0, "no reason given") }
        // SAFETY: OpenSSL's text is nil or constant, and is copied immediately.
        let text = unsafe String(openSSL: ERR_reason_error_string(code))
        return (ERR_GET_LIB(code), ERR_GET_REASON(code), text ?? "error \(code)")
    }

    /// Returns a `library` error with OpenSSL's own description.
    static func error(_ attempt: String) -> TLSError {
        TLSError(.library, "OpenSSL cannot \(attempt): \(take().text)")
    }
}
