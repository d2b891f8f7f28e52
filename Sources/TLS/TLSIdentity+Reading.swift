internal import CBroadsideOpenSSL

extension TLSIdentity {
    /// Kind of file that an identity is read from.
    public enum Part: Sendable {
        case certificate
        case privateKey
    }

    /// An error in one of the files of an identity.
    public struct ReadingError: Error, Sendable {
        /// The invalid file.
        public var part: Part
        /// The error in the file.
        public var error: TLSError
    }

    /// Reads an identity from one or two files: a certificate in PEM or DER (.cer) and a private
    /// key, or a single PKCS#12 file. Each file may have any of the forms supported by `KeyForm`.
    ///
    /// - Parameters:
    ///   - certificate: PEM, DER, or PKCS#12. If PEM has several certificates, the one that belongs
    ///     to the key is the leaf, and the others are its chain.
    ///   - key: PEM; nil if the key is in the certificate file.
    ///   - passphrase: Decrypts a protected key; nil if none is given.
    public static func read(
        certificate: [UInt8], key: [UInt8]?, passphrase: [UInt8]?
    ) throws(ReadingError) -> TLSIdentity {
        // OpenSSL requires a text that ends with NUL.
        var secret = passphrase.map { $0 + [0] }
        defer { secret?.cleanse() }
        var file = certificate
        defer { file.cleanse() }
        if (try? Certificate.all(pem: file)) == nil, let text = KeyForm.unwrapped(certificate) {
            file = text
        }
        // Every relevant DER structure begins with SEQUENCE; no text does.
        if file.first == 0x30 {
            guard !KeyForm.isPKCS7(file) else {
                throw ReadingError(
                    part: .certificate, error: KeyForm.certificateBundle(" -inform DER"))
            }
            guard key == nil else {
                throw ReadingError(
                    part: .privateKey,
                    error: TLSError(
                        .keyTwice, "a PKCS#12 file contains its own key: leave out the separate key"
                    ))
            }
            do {
                return try readPKCS12(file, secret)
            } catch {
                throw ReadingError(part: .certificate, error: error)
            }
        }
        let chain: [Certificate]
        do {
            chain = try Certificate.all(pem: file)
        } catch {
            throw ReadingError(
                part: .certificate, error: KeyForm.error(noCertificateIn: certificate) ?? error)
        }
        let part: Part = key == nil ? .certificate : .privateKey
        do {
            let privateKey = try PrivateKey(pem: key ?? file, passphrase: secret)
            return TLSIdentity(
                certificateChain: leafFirst(chain, of: privateKey).flatMap(\.pem), key: privateKey)
        } catch {
            throw ReadingError(part: part, error: error)
        }
    }

    /// The leaf certificate.
    public var leaf: Certificate {
        get throws(TLSError) { try Certificate.all(pem: certificateChain)[0] }
    }

    /// The certificates after the leaf: usually the authorities that issued it.
    public var others: [Certificate] {
        get throws(TLSError) { Array(try Certificate.all(pem: certificateChain).dropFirst()) }
    }

    /// Returns the certificates, beginning with the one that belongs to the key; the others keep
    /// their order. If no certificate belongs to the key, the order is unchanged.
    private static func leafFirst(_ chain: [Certificate], of key: PrivateKey) -> [Certificate] {
        guard let index = chain.firstIndex(where: { $0.belongs(to: key) }) else { return chain }
        var chain = chain
        chain.insert(chain.remove(at: index), at: 0)
        return chain
    }

    /// Command that writes the private key of a PKCS#12 file to a file of its own, in PEM.
    public static let keyExtraction = "openssl pkcs12 -nocerts -nodes -in FILE -out NEWFILE"

    /// Reads PKCS#12. Old ciphers, such as RC2, which many tools still use, are in OpenSSL's legacy
    /// provider. This provider is loaded temporarily if the file uses such a cipher.
    private static func readPKCS12(
        _ file: [UInt8], _ passphrase: [UInt8]?
    ) throws(TLSError) -> TLSIdentity {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        // SAFETY: `d2i_PKCS12` creates a new object, which PKCS12_free frees. The legacy provider
        // is unloaded when no object decrypted by it is in use any more.
        let read = unsafe DERCoding.read(file, d2i_PKCS12)
        guard let bundle = unsafe OpenSSLObject(read, freedBy: PKCS12_free) else {
            throw TLSError(
                .certificateFormat,
                "the file is neither a certificate nor PKCS#12: name the file as you got it from "
                    + "Apple")
        }
        if let identity = try parse(bundle, passphrase) { return identity }
        if let legacy = unsafe OSSL_PROVIDER_try_load(nil, "legacy", 1) {
            defer { unsafe OSSL_PROVIDER_unload(legacy) }
            if let identity = try parse(bundle, passphrase) { return identity }
        }
        throw TLSError(
            .certificateUnreadable,
            "the file is encrypted with a cipher of OpenSSL's legacy provider, which is not "
                + "installed here: on a machine that has the provider, convert the file with "
                + "'openssl pkcs12 -legacy -in FILE -out ALL.pem' and name ALL.pem")
    }

    /// Decrypts and parses PKCS#12; nil if a cipher is unavailable.
    private static func parse(
        _ bundle: borrowing OpenSSLObject, _ passphrase: [UInt8]?
    ) throws(TLSError) -> TLSIdentity? {
        ErrorQueue.clear()
        var key: OpaquePointer?
        var leaf: OpaquePointer?
        var others: OpaquePointer?
        // SAFETY: the three are local variables that PKCS12_parse sets to new objects on success.
        // `read` appends a NUL to the passphrase.
        func parse(_ secret: UnsafePointer<CChar>?) -> Int32 {
            bundle.lend { unsafe PKCS12_parse($0, secret, &key, &leaf, &others) }
        }
        // SAFETY: UInt8 and CChar have the same layout; the pointer is used only in the closure.
        let parsed =
            passphrase.map { bytes in
                // Reinterprets the bytes as characters in place, so that no copy of the secret
                // remains.
                unsafe bytes.withUnsafeBytes {
                    unsafe parse($0.assumingMemoryBound(to: CChar.self).baseAddress)
                }
            } ?? parse(nil)
        // SAFETY: the list is nil or owned here; certificates taken from it are retained.
        defer { unsafe openssl_free_certificates(others) }
        guard parsed == 1 else {
            if openssl_lacks_algorithm() == 1 { return nil }
            let hasMAC = bundle.lend { unsafe PKCS12_mac_present($0) } == 1
            throw passphraseError(given: passphrase != nil, hasMAC: hasMAC)
        }
        // SAFETY: PKCS12_parse succeeded, so both are nil or owned here; after a failure both are
        // nil.
        let privateKey = unsafe PrivateKey(owningIfAny: key)
        let certificate = unsafe Certificate(owningIfAny: leaf)
        guard let privateKey else {
            throw TLSError(
                .certificateUnreadable,
                "the PKCS#12 file has no private key: export the certificate together with its key")
        }
        guard let certificate else {
            throw TLSError(
                .certificateUnreadable,
                "the PKCS#12 file has no certificate of its private key: export both together, or "
                    + "write the key to NEWFILE with '\(keyExtraction)', name NEWFILE with "
                    + "--private-key, and name the certificate's own file with --certificate")
        }
        var chain = certificate.pem
        for index in 0..<(unsafe openssl_certificate_count(others)) {
            let other = unsafe Certificate(retaining: openssl_certificate(others, index))
            chain += other?.pem ?? []
        }
        return TLSIdentity(certificateChain: chain, key: privateKey)
    }

    private static func passphraseError(given: Bool, hasMAC: Bool) -> TLSError {
        let reason = ErrorQueue.take()
        // OpenSSL looks for the MAC only if a passphrase is given. A file without a MAC that is not
        // readable without a passphrase is most likely encrypted.
        let lacksMAC = reason.library == ERR_LIB_PKCS12 && reason.reason == PKCS12_R_MAC_ABSENT
        if lacksMAC || (!given && !hasMAC) {
            return TLSError(
                .certificateUnreadable,
                "the PKCS#12 file has no checksum (MAC), so it can't be read with a passphrase: "
                    + "convert it with 'openssl pkcs12 -nomacver -in FILE -out ALL.pem' and "
                    + "name ALL.pem")
        }
        guard reason.library == ERR_LIB_PKCS12, reason.reason == PKCS12_R_MAC_VERIFY_FAILURE else {
            // OpenSSL checks the file's integrity with either encoding of a passphrase, but decrypts
            // with the bytes that it gets.
            return given
                ? TLSError(
                    .passphraseWrong,
                    "the PKCS#12 file can't be decrypted (\(reason.text)): the passphrase may be in "
                        + "another encoding (UTF-8, Latin-1)")
                : TLSError(.certificateUnreadable, "the PKCS#12 file is damaged: \(reason.text)")
        }
        return given
            ? TLSError(.passphraseWrong, "the passphrase does not open the PKCS#12 file")
            : TLSError(.passphraseMissing, "the PKCS#12 file is protected by a passphrase")
    }
}
