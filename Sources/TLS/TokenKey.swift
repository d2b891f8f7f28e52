internal import CBroadsideOpenSSL
internal import Synchronization

/// Signer with a key that stays in a PKCS#11 token (a smart card or a hardware security module).
///
/// The PKCS#11 token chooses the nonce of each signature, so signing a message twice gives
/// different signatures. The latest signatures are kept, so that one process always sends the same
/// provider token for the same issue time. Other processes send different tokens.
@safe final class TokenKey: Sendable {
    /// Number of signatures that are kept: for the current provider token, the previous one, the
    /// next one, and one in reserve.
    static let keptMax = 4

    private let key: PrivateKey
    // SAFETY: nil, or the library context in which the key was created; it is never freed.
    private nonisolated(unsafe) let library: OpaquePointer?
    private let kept = Mutex<[(message: [UInt8], signature: [UInt8])]>([])

    /// Finds the key through OpenSSL's provider `pkcs11`, or through the engine with that name.
    ///
    /// - Parameters:
    ///   - uri: URI of the key with the PIN (RFC 7512); ends with NUL.
    ///   - module: Path of the token's library; ends with NUL. If nil, the library that is
    ///     configured for OpenSSL is used.
    /// - Returns: The key, for reading its public part, and the signer.
    static func open(uri: [UInt8], module: [UInt8]?) throws(TLSError) -> (PrivateKey, TokenKey) {
        precondition(uri.last == 0 && module?.last ?? 0 == 0, "OpenSSL reads up to the NUL")
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        var library: OpaquePointer?
        var hasProvider: Int32 = 0
        var hasEngine: Int32 = 0
        // SAFETY: both texts end with a zero and are only read during the calls, which set the
        // three locals. A returned key is new, and the object takes ownership of it.
        let found = unsafe uri.withUnsafeBytes { uri -> PrivateKey? in
            let text = unsafe uri.assumingMemoryBound(to: CChar.self).baseAddress
            let key = unsafe openssl_token_key_of_provider(text, &library, &hasProvider)
            if let key = unsafe PrivateKey(owningIfAny: key) { return key }
            // The engine is not tried in addition. With a wrong PIN, trying both would use up two
            // of the few attempts that a token permits.
            guard hasProvider == 0 else { return nil }
            ErrorQueue.clear()
            guard let module else {
                return unsafe PrivateKey(
                    owningIfAny: openssl_token_key_of_engine(text, nil, &hasEngine))
            }
            return unsafe module.withUnsafeBytes { module in
                let module = unsafe module.assumingMemoryBound(to: CChar.self).baseAddress
                return unsafe PrivateKey(
                    owningIfAny: openssl_token_key_of_engine(text, module, &hasEngine))
            }
        }
        guard hasProvider == 1 || hasEngine == 1 else {
            throw TLSError(
                .library,
                "OpenSSL has neither a provider nor an engine for PKCS#11 here: install pkcs11-provider "
                    + "(Debian 13) or libengine-pkcs11-openssl (Debian 12)")
        }
        guard let found else {
            let (_, reason, text) = ErrorQueue.take()
            throw TLSError(
                .keyUnreadable,
                "no private key was found in the token\(reason == 0 ? "" : " (\(text))"): check the URI with pkcs11-tool "
                    + "--list-objects, the PIN in the file that pin-source names, and the token's "
                    + "library (module-path or PKCS11_MODULE_PATH)")
        }
        return (found, unsafe TokenKey(found, library: library))
    }

    /// Creates the signer of a key. Tests use a key in memory.
    // SAFETY: the library context is the key's, or nil, and is never freed.
    init(_ key: PrivateKey, library: OpaquePointer?) {
        self.key = key
        unsafe self.library = library
    }

    /// Returns the ES256 signature of a message, in the form of RFC 7518.
    func sign(_ message: [UInt8]) throws(TLSError) -> [UInt8] {
        if let before = kept.withLock({ kept in kept.first { $0.message == message } }) {
            return before.signature
        }
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        // SAFETY: the context is new, and its own free function ends it.
        guard let context = unsafe OpenSSLObject(EVP_MD_CTX_new(), freedBy: EVP_MD_CTX_free) else {
            throw ErrorQueue.error("sign")
        }
        var count = ES256Signature.maximumDERCount
        var der = [UInt8](repeating: 0, count: count)
        // SAFETY: `der` has room for the longest signature of a P-256 key, which `SigningKey`
        // requires; `count` is its size, and OpenSSL sets it to the bytes written. Key and library
        // outlive the calls.
        let isSigned = context.lend { context in
            unsafe openssl_begin_signature(context, library, key.pointer) == 1
                && EVP_DigestSign(context, &der, &count, message, message.count) == 1
        }
        guard isSigned, let signature = ES256Signature.raw(fromDER: Array(der.prefix(count)))
        else { throw ErrorQueue.error("sign with the PKCS#11 token") }
        kept.withLock { kept in
            if kept.count == Self.keptMax { kept.removeFirst() }
            kept.append((message, signature))
            assert(kept.count <= Self.keptMax, "few signatures are kept")
        }
        return signature
    }
}
