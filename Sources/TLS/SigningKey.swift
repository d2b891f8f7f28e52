internal import CBroadsideOpenSSL

/// An Apple `.p8` key: a P-256 private key that signs provider tokens with ES256.
public struct SigningKey: Sendable {
    private let key: PrivateKey
    /// Signer with a key in a PKCS#11 token; nil for other keys.
    private let token: TokenKey?

    /// Byte count of an ES256 signature (RFC 7518 section 3.4).
    public static let signatureByteCount = 64

    /// Decodes unencrypted PKCS#8, or SEC1, in PEM.
    ///
    /// - Throws: `.keyUnreadable`, `.keyIsPKCS12`, `.passphraseMissing`, `.keyNotEC` or
    ///   `.keyWrongCurve`.
    public init(pem: [UInt8]) throws(TLSError) {
        try self.init(PrivateKey(pem: pem))
        // APNs would refuse the provider tokens of the wrong key, without naming the cause.
        let publicKey = key.publicPEM
        var isOnlyKey = true
        KeyForm.forEachFurtherKey(pem) { text in
            guard let text, let other = try? PrivateKey(pem: text) else {
                // This may be the key that --key-id names.
                isOnlyKey = false
                return
            }
            guard (try? KeyKind.requireP256(other)) != nil, let common = try? other.inCommonForm()
            else { return }
            isOnlyKey = isOnlyKey && common.publicPEM == publicKey
        }
        guard isOnlyKey else {
            throw TLSError(
                .keyUnreadable,
                "the file contains several private keys: leave only the key that --key-id names")
        }
    }

    /// Creates a signing key from a private key, which must be a P-256 key.
    public init(_ key: PrivateKey) throws(TLSError) {
        try KeyKind.requireP256(key)
        // GnuTLS reads only this form.
        self.key = try key.inCommonForm()
        token = nil
    }

    /// Finds a key that stays in a PKCS#11 token, and logs in to the token.
    ///
    /// - Parameters:
    ///   - uri: URI of the key with the PIN (RFC 7512); ends with NUL.
    ///   - module: Path of the token's library; ends with NUL. If nil, the library that is
    ///     configured for OpenSSL is used.
    public init(tokenURI uri: [UInt8], module: [UInt8]?) throws(TLSError) {
        let (key, token) = try TokenKey.open(uri: uri, module: module)
        try KeyKind.requireP256(key)
        self.key = key
        self.token = token
    }

    /// Whether the key is in a PKCS#11 token. Such a token chooses the nonces, so two processes
    /// create different signatures of the same message.
    public var isInToken: Bool { token != nil }

    /// The public key, for verification.
    public var verifyingKey: VerifyingKey {
        get throws(TLSError) { try VerifyingKey(pem: key.publicPEM) }
    }

    /// The key as unencrypted PKCS#8 PEM.
    public var pem: [UInt8] { key.pem }

    /// Checks that this machine's libraries can sign with the key. A key in a PKCS#11 token is not
    /// tried, because the token may ask a person for each signature.
    public func checkThatItSigns() throws(TLSError) {
        guard token == nil else { return }
        _ = try signES256([])
    }

    /// Signs a message with SHA-256 and ECDSA. Returns 64 bytes: R and S, 32 bytes each,
    /// big-endian.
    ///
    /// The nonce is deterministic (RFC 6979), so that the same key and message produce the same
    /// bytes on every machine. OpenSSL signs if it supports this (3.2 and later), otherwise GnuTLS
    /// does.
    public func signES256(_ message: [UInt8]) throws(TLSError) -> [UInt8] {
        if let token {
            let signature = try token.sign(message)
            assert(signature.count == Self.signatureByteCount, "a signature is two numbers")
            return signature
        }
        if let signature = try signWithOpenSSL(message) { return signature }
        if let signature = signWithGnuTLS(message) { return signature }
        let remedy =
            ReproducibleSigner.shared == nil
            ? "install GnuTLS (Debian: libgnutls30), or use OpenSSL 3.2 or later"
            : "use OpenSSL 3.2 or later, or GnuTLS 3.7 or later outside of FIPS mode"
        throw TLSError(
            .noSigner, "neither OpenSSL nor GnuTLS can sign with the nonce of RFC 6979: \(remedy)")
    }

    /// Signs with OpenSSL, in the form that `signES256` returns. Returns nil if OpenSSL does not
    /// support deterministic nonces.
    func signWithOpenSSL(_ message: [UInt8]) throws(TLSError) -> [UInt8]? {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        // SAFETY: the context is new and is freed by its own function.
        guard let context = unsafe OpenSSLObject(EVP_MD_CTX_new(), freedBy: EVP_MD_CTX_free) else {
            throw ErrorQueue.error("sign")
        }
        var count = ES256Signature.maximumDERCount
        var der = [UInt8](repeating: 0, count: count)
        // SAFETY: `der` has room for the longest signature of a P-256 key, which `init` requires,
        // and `count` holds that size; OpenSSL sets it to the number of bytes written. The key
        // outlives the call. The inner context belongs to the outer one.
        var isReproducible = false
        let isSigned = context.lend { context in
            var inner: OpaquePointer?
            guard unsafe EVP_DigestSignInit(context, &inner, EVP_sha256(), nil, key.pointer) == 1
            else { return false }
            isReproducible = unsafe openssl_sign_reproducibly(inner) == 1
            return unsafe !isReproducible
                || EVP_DigestSign(context, &der, &count, message, message.count) == 1
        }
        guard isSigned else { throw ErrorQueue.error("sign") }
        guard isReproducible else { return nil }
        guard let raw = ES256Signature.raw(fromDER: Array(der.prefix(count)))
        else { throw ErrorQueue.error("sign") }
        return raw
    }

    /// Signs with GnuTLS, in the form that `signES256` returns. Returns nil if GnuTLS is
    /// unavailable or refuses.
    func signWithGnuTLS(_ message: [UInt8]) -> [UInt8]? {
        guard let signer = ReproducibleSigner.shared else { return nil }
        var encoded = key.der
        defer { encoded.cleanse() }
        return ES256Signature.raw(
            fromDER: signer.sign(
                message, key: encoded, maximumCount: ES256Signature.maximumDERCount))
    }
}

/// The public key of a P-256 key pair.
@safe public struct VerifyingKey: Sendable {
    private let key: PrivateKey

    /// Decodes a public key in PEM (`BEGIN PUBLIC KEY`).
    public init(pem: [UInt8]) throws(TLSError) {
        ErrorQueue.clear()
        // An EVP_PKEY holds a public key, a private key or both; this one holds only the public
        // key. SAFETY: the BIO is open in the closure, and ownership of the new key is taken.
        let key = PEMText.read(pem) { bio in
            unsafe PrivateKey(
                owningIfAny: PEM_read_bio_PUBKEY(bio, nil, { _, _, _, _ in -1 }, nil))
        }
        guard let key else {
            ErrorQueue.clear()
            throw TLSError(
                .keyUnreadable, "this is not a public key in PEM form (-----BEGIN PUBLIC KEY-----)")
        }
        try KeyKind.requireP256(key)
        self.key = key
    }

    /// The key as PEM.
    public var pem: [UInt8] { key.publicPEM }

    /// Verifies a signature over a message. Like APNs, accepts two forms: the raw form of RFC 7518,
    /// and the DER form, which `openssl dgst -sign` produces.
    public func verifies(_ signature: [UInt8], over message: [UInt8]) -> Bool {
        if signature.count == SigningKey.signatureByteCount,
            let der = ES256Signature.der(fromRaw: signature), verifies(der: der, over: message)
        {
            return true
        }
        return verifies(der: signature, over: message)
    }

    private func verifies(der: [UInt8], over message: [UInt8]) -> Bool {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        // SAFETY: the context is new and is freed by its own function. Signature and message have
        // the byte counts passed, and the key outlives the call.
        guard let context = unsafe OpenSSLObject(EVP_MD_CTX_new(), freedBy: EVP_MD_CTX_free) else {
            return false
        }
        return context.lend { context in
            unsafe EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, key.pointer) == 1
                && EVP_DigestVerify(context, der, der.count, message, message.count) == 1
        }
    }
}

/// The two forms of an ES256 signature.
enum ES256Signature {
    /// Maximum byte count of the DER form, a SEQUENCE of two INTEGERs of at most 33 bytes each.
    static let maximumDERCount = 72

    /// Returns R and S, each padded to 32 bytes; nil if the input is not a DER signature.
    static func raw(fromDER der: [UInt8]) -> [UInt8]? {
        // SAFETY: `d2i_ECDSA_SIG` creates a new signature with both numbers; `r` and `s` have the
        // 32 bytes passed to BN_bn2binpad.
        let read = unsafe DERCoding.read(der, d2i_ECDSA_SIG)
        guard let signature = unsafe OpenSSLObject(read, freedBy: ECDSA_SIG_free) else {
            return nil
        }
        var r = [UInt8](repeating: 0, count: 32)
        var s = [UInt8](repeating: 0, count: 32)
        let isWhole = signature.lend { signature in
            unsafe BN_bn2binpad(ECDSA_SIG_get0_r(signature), &r, 32) == 32
                && BN_bn2binpad(ECDSA_SIG_get0_s(signature), &s, 32) == 32
        }
        return isWhole ? r + s : nil
    }

    /// Returns the DER form of a 64-byte signature.
    static func der(fromRaw raw: [UInt8]) -> [UInt8]? {
        precondition(raw.count == SigningKey.signatureByteCount)
        // SAFETY: the signature is new and is freed by its own function. Both halves have the 32
        // bytes that are read; ECDSA_SIG_set0 transfers the new numbers to the signature.
        guard let signature = unsafe OpenSSLObject(ECDSA_SIG_new(), freedBy: ECDSA_SIG_free) else {
            return nil
        }
        let der = signature.lend { signature -> [UInt8] in
            let r = unsafe BN_bin2bn(Array(raw[..<32]), 32, nil)
            let s = unsafe BN_bin2bn(Array(raw[32...]), 32, nil)
            guard unsafe ECDSA_SIG_set0(signature, r, s) == 1 else { return [] }
            return unsafe DERCoding.write(signature, i2d_ECDSA_SIG)
        }
        return der.isEmpty ? nil : der
    }
}

/// The type of an EVP_PKEY.
enum KeyKind {
    /// Requires P-256, because ES256 is defined only for ECDSA on that curve (RFC 7518 section
    /// 3.4).
    static func requireP256(_ key: PrivateKey) throws(TLSError) {
        defer { ErrorQueue.clear() }
        // SAFETY: the key is a parameter and outlives the calls. OpenSSL's names are constant; the
        // curve's name is written into `name`, whose size is passed, and `count` is below that.
        guard unsafe EVP_PKEY_is_a(key.pointer, "EC") == 1 else {
            let identifier = unsafe EVP_PKEY_get_base_id(key.pointer)
            let kind = unsafe String(openSSL: OBJ_nid2sn(identifier))
            throw TLSError(
                .keyNotEC,
                "the key is not an elliptic curve key (\(kind ?? "unknown kind")): "
                    + "name the .p8 file of an APNs key, not the key of a certificate")
        }
        var name = [CChar](repeating: 0, count: 80)
        var count = 0
        guard unsafe EVP_PKEY_get_group_name(key.pointer, &name, name.count, &count) == 1 else {
            throw TLSError(.keyWrongCurve, "the key does not name its curve: use a P-256 key")
        }
        let curve = String(decoding: name.prefix(count).map(UInt8.init), as: UTF8.self)
        guard curve == "prime256v1" || curve == "P-256" else {
            throw TLSError(
                .keyWrongCurve,
                "the key is on the curve \(curve), but APNs accepts only P-256: "
                    + "name the .p8 file of an APNs key")
        }
    }
}
