internal import CBroadsideOpenSSL

/// What went wrong with TLS, a key or a certificate.
public struct TLSError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The kinds that callers tell apart.
    public enum Code: Sendable {
        /// No authority that is trusted here signed the peer's certificate.
        case certificateUnknownAuthority
        /// The peer's certificate, or one above it, is past its last day.
        case certificateExpired
        /// The peer's certificate, or one above it, is before its first day.
        case certificateNotYetValid
        /// The peer's certificate is for other names.
        case hostNameMismatch
        /// The peer's certificate is refused for another reason (purpose, signature, chain).
        case certificateRefused
        /// The peer agreed on no application protocol of ours (RFC 7301).
        case noALPN
        /// The peer's first bytes are not TLS record.
        case notTLS
        /// No common TLS version.
        case protocolVersion
        /// The peer wants a client certificate and we have none.
        case clientCertificateRequired
        /// The peer does not accept our client certificate.
        case clientCertificateRefused
        /// The connection ended during the handshake, or later without close_notify.
        case closed
        /// Any other failure before the session was established.
        case handshakeFailed
        /// Any other failure of an established session.
        case protocolViolation
        /// The private key's text is not PEM, or not a private key.
        case keyUnreadable
        /// The private key is protected, and no passphrase was given.
        case passphraseMissing
        /// The passphrase does not open the private key.
        case passphraseWrong
        /// The private key is not an elliptic curve key.
        case keyNotEC
        /// The private key is not on the curve P-256.
        case keyWrongCurve
        /// Certificates that cannot be read.
        case certificateUnreadable
        /// A certificate's file that is neither PEM nor PKCS#12.
        case certificateFormat
        /// A private key beside a PKCS#12 file, which holds its own.
        case keyTwice
        /// A certificate and a private key that do not belong together.
        case keyMismatch
        /// OpenSSL refused something that does not depend on input: no memory, bad installation.
        case library
    }

    /// The kind.
    public var code: Code
    /// One line without a full stop; says how to fix it if that takes no setting of the caller's.
    public var message: String

    /// An error with its one line.
    init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// The message.
    public var description: String { message }
}

/// OpenSSL keeps a queue of errors a thread; whoever calls it clears the queue before and reads it
/// after, so that no error is taken for another call's.
enum ErrorQueue {
    static func clear() { ERR_clear_error() }

    /// The oldest entry, which names the cause; the queue is empty afterwards.
    static func take() -> (library: Int32, reason: Int32, text: String) {
        let code = ERR_peek_error()
        defer { ERR_clear_error() }
        guard code != 0 else { return (0, 0, "no reason given") }
        // SAFETY: OpenSSL's text is nil or constant, and is copied at once.
        let text = unsafe String(openSSL: ERR_reason_error_string(code))
        return (ERR_GET_LIB(code), ERR_GET_REASON(code), text ?? "error \(code)")
    }

    /// An error of the `library` kind with OpenSSL's own words.
    static func error(_ attempt: String) -> TLSError {
        TLSError(.library, "OpenSSL cannot \(attempt): \(take().text)")
    }
}
