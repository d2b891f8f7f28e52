internal import CBroadsideOpenSSL

/// A private key of any type supported by TLS.
@safe public final class PrivateKey: Sendable {
    // SAFETY: an EVP_PKEY to which this object holds a reference, released in `deinit`. The key is
    // not modified after its creation, and OpenSSL permits threads to share it.
    nonisolated(unsafe) let pointer: OpaquePointer

    // SAFETY: the caller transfers its reference, which `deinit` releases.
    init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

    /// Takes ownership of a key created by OpenSSL; nil if there is none.
    convenience init?(owningIfAny pointer: OpaquePointer?) {
        // SAFETY: the caller transfers the only reference to a new object.
        guard let pointer = unsafe pointer else { return nil }
        unsafe self.init(owning: pointer)
    }

    // SAFETY: releases the one reference of this object.
    deinit { unsafe EVP_PKEY_free(pointer) }

    /// Reads the first private key of a file: PEM in any of the forms supported by `KeyForm`, or
    /// DER.
    ///
    /// - Parameter passphrase: Decrypts a protected key; ends with NUL.
    /// - Throws: `.passphraseMissing`, `.passphraseWrong`, `.keyCipherMissing` or `.keyUnreadable`.
    public convenience init(pem: [UInt8], passphrase: [UInt8]? = nil) throws(TLSError) {
        var lacksCipher = false
        // SAFETY: the new key belongs to this object alone. It is an object of the default provider,
        // so that it does not need the legacy provider, which is unloaded here.
        var pointer = unsafe Self.readAnyForm(pem, passphrase, &lacksCipher)
        if unsafe pointer == nil, passphrase != nil, lacksCipher {
            guard let legacy = unsafe OSSL_PROVIDER_try_load(nil, "legacy", 1) else {
                ErrorQueue.clear()
                throw KeyForm.cipherMissing
            }
            defer { unsafe OSSL_PROVIDER_unload(legacy) }
            unsafe pointer = Self.readAnyForm(pem, passphrase, &lacksCipher)
        }
        guard let pointer = unsafe pointer else {
            throw KeyForm.error(noKeyIn: pem, hasPassphrase: passphrase != nil)
        }
        unsafe self.init(owning: pointer)
    }

    /// Reads the first private key of a file in any of the forms supported by `KeyForm`; nil if there
    /// is none or it cannot be decrypted.
    ///
    /// - Parameter lacksCipher: Set to true if no loaded provider has the cipher of the key.
    private static func readAnyForm(
        _ file: [UInt8], _ passphrase: [UInt8]?, _ lacksCipher: inout Bool
    ) -> OpaquePointer? {
        // SAFETY: the new key belongs to the caller.
        if let key = unsafe read(file, passphrase, &lacksCipher) { return unsafe key }
        guard !KeyForm.isServiceAccount(file), var text = KeyForm.unwrapped(file) else {
            return nil
        }
        defer { text.cleanse() }
        return unsafe read(text, passphrase, &lacksCipher)
    }

    /// Decodes the first private key of a PEM text with OpenSSL; nil if there is none or it cannot
    /// be decrypted.
    private static func read(
        _ pem: [UInt8], _ passphrase: [UInt8]?, _ lacksCipher: inout Bool
    ) -> OpaquePointer? {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        // SAFETY: the BIO is open in the closure, and the new key belongs to the caller. Without a
        // callback the last argument is the passphrase, which was checked to end with NUL and is
        // only read.
        let key = PEMText.read(pem) { bio -> OpaquePointer? in
            guard let passphrase else {
                // OpenSSL's default callback would prompt for a passphrase on the terminal; this
                // one never does.
                return unsafe PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
            }
            precondition(passphrase.last == 0, "OpenSSL reads up to the NUL")
            return unsafe passphrase.withUnsafeBytes {
                unsafe PEM_read_bio_PrivateKey(
                    bio, nil, nil, UnsafeMutableRawPointer(mutating: $0.baseAddress))
            }
        }
        if unsafe key == nil, openssl_lacks_cipher() == 1 { lacksCipher = true }
        return unsafe key
    }

    /// Generates a new P-256 key.
    public static func generate() throws(TLSError) -> PrivateKey {
        ErrorQueue.clear()
        // SAFETY: EVP_EC_gen creates a new key, of which the object takes ownership.
        guard let key = unsafe PrivateKey(owningIfAny: openssl_generate_key("P-256")) else {
            throw ErrorQueue.error("make a key")
        }
        return key
    }

    /// Copies an elliptic curve key. The copy is written with the curve's name, and with the public
    /// key as an uncompressed point, also if the key was read from a file that has neither.
    func inCommonForm() throws(TLSError) -> PrivateKey {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        // SAFETY: EVP_PKEY_dup creates a new key, of which the object takes ownership. Nothing else
        // has the copy yet when its form is set.
        guard let copy = unsafe PrivateKey(owningIfAny: EVP_PKEY_dup(pointer)),
            unsafe openssl_use_common_form(copy.pointer) == 1
        else { throw ErrorQueue.error("copy the key") }
        return copy
    }

    /// The key as unencrypted PKCS#8 PEM, the form of Apple's `.p8` files.
    var pem: [UInt8] {
        PEMText.write {
            // SAFETY: the BIO is open in the closure; nil means no cipher, no passphrase and no
            // callback.
            unsafe PEM_write_bio_PKCS8PrivateKey($0, pointer, nil, nil, 0, nil, nil)
        }
    }

    /// The key as unencrypted PKCS#8 in DER.
    var der: [UInt8] {
        PEMText.write {
            // SAFETY: the BIO is open in the closure; nil stands for no cipher, passphrase and
            // callback.
            unsafe i2d_PKCS8PrivateKey_bio($0, pointer, nil, nil, 0, nil, nil)
        }
    }

    /// The public key in PEM.
    var publicPEM: [UInt8] {
        // SAFETY: the BIO is open in the closure.
        PEMText.write { unsafe PEM_write_bio_PUBKEY($0, pointer) }
    }
}
