internal import CBroadsideOpenSSL

/// A private key of any kind that TLS takes. An EVP_PKEY.
@safe public final class PrivateKey: Sendable {
    // SAFETY: an EVP_PKEY to which this object has a reference, given back in `deinit`. Nothing
    // changes a key after it was made; OpenSSL lets threads share it.
    nonisolated(unsafe) let pointer: OpaquePointer

    // SAFETY: the caller hands over its reference, which `deinit` gives back.
    init(owning pointer: OpaquePointer) { unsafe self.pointer = pointer }

    /// Takes over the key that OpenSSL made; nil where it made none.
    convenience init?(owningIfAny pointer: OpaquePointer?) {
        // SAFETY: the caller hands over a new object's only reference.
        guard let pointer = unsafe pointer else { return nil }
        unsafe self.init(owning: pointer)
    }

    // SAFETY: gives back the one reference that this object has.
    deinit { unsafe EVP_PKEY_free(pointer) }

    /// Reads the first private key of a file: PEM, in whatever form it was saved (`KeyForm`), or DER.
    ///
    /// - Parameter passphrase: Opens a protected key; ends in NUL.
    /// - Throws: `.passphraseMissing`, `.passphraseWrong` or `.keyUnreadable`.
    public convenience init(pem: [UInt8], passphrase: [UInt8]? = nil) throws(TLSError) {
        // SAFETY: the key that OpenSSL makes is this object's alone.
        var pointer = unsafe Self.read(pem, passphrase)
        if unsafe pointer == nil, !KeyForm.isServiceAccount(pem),
            var text = KeyForm.unwrapped(pem)
        {
            defer { text.cleanse() }
            unsafe pointer = Self.read(text, passphrase)
        }
        guard let pointer = unsafe pointer else {
            throw KeyForm.error(noKeyIn: pem, hasPassphrase: passphrase != nil)
        }
        unsafe self.init(owning: pointer)
    }

    /// Has OpenSSL read the first private key of a PEM text; nil if it finds none, or can't open it.
    private static func read(_ pem: [UInt8], _ passphrase: [UInt8]?) -> OpaquePointer? {
        ErrorQueue.clear()
        defer { ErrorQueue.clear() }
        // SAFETY: the BIO is open in the closure, and the key that OpenSSL makes is the caller's.
        // Without a callback the last argument is the passphrase, which ends in NUL, as checked, and is
        // only read.
        return PEMText.read(pem) { bio -> OpaquePointer? in
            guard let passphrase else {
                // Never asks the terminal for a passphrase: OpenSSL's own callback would.
                return unsafe PEM_read_bio_PrivateKey(bio, nil, { _, _, _, _ in -1 }, nil)
            }
            precondition(passphrase.last == 0, "OpenSSL reads up to the NUL")
            return unsafe passphrase.withUnsafeBytes {
                unsafe PEM_read_bio_PrivateKey(
                    bio, nil, nil, UnsafeMutableRawPointer(mutating: $0.baseAddress))
            }
        }
    }

    /// A new P-256 key.
    public static func generate() throws(TLSError) -> PrivateKey {
        ErrorQueue.clear()
        // SAFETY: EVP_EC_gen makes a key of its own, which the object takes over.
        guard let key = unsafe PrivateKey(owningIfAny: openssl_generate_key("P-256")) else {
            throw ErrorQueue.error("make a key")
        }
        return key
    }

    /// The key as unencrypted PKCS#8 PEM, the form of Apple's `.p8` files.
    var pem: [UInt8] {
        PEMText.write {
            // SAFETY: the BIO is open in the closure; nil stands for no cipher, passphrase and
            // callback.
            unsafe PEM_write_bio_PKCS8PrivateKey($0, pointer, nil, nil, 0, nil, nil)
        }
    }

    /// The public half as PEM.
    var publicPEM: [UInt8] {
        // SAFETY: the BIO is open in the closure.
        PEMText.write { unsafe PEM_write_bio_PUBKEY($0, pointer) }
    }
}
