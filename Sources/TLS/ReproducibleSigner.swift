internal import CBroadsideGnuTLS

/// Signer that uses GnuTLS. The library is loaded for the first signature.
@safe struct ReproducibleSigner: @unchecked Sendable {
    // SAFETY: static memory that is no longer changed; the library stays loaded until the process
    // ends.
    private let functions: UnsafePointer<gnutls_functions>

    /// The signer; nil if GnuTLS is not installed.
    static let shared = ReproducibleSigner()

    private init?() {
        // SAFETY: called once, for `shared`; all functions are set when it returns.
        guard let functions = unsafe gnutls_load() else { return nil }
        unsafe self.functions = functions
    }

    /// Signs by ECDSA with SHA-256 and the nonce of RFC 6979.
    ///
    /// - Parameters:
    ///   - key: PKCS#8 in DER.
    ///   - maximumCount: Maximum byte count of the signature.
    /// - Returns: The signature in DER; empty if GnuTLS refuses.
    func sign(_ message: [UInt8], key: [UInt8], maximumCount: Int) -> [UInt8] {
        var der = [UInt8](repeating: 0, count: maximumCount)
        // SAFETY: each array has the byte count passed with it; key and message are only read, and
        // at most that many bytes of `der` are written.
        let count = unsafe gnutls_sign_reproducibly(
            functions, key, key.count, message, message.count, &der, der.count)
        assert(count <= der.count, "no more is written than there is room for")
        return Array(der.prefix(count))
    }
}
