internal import CBroadsideOpenSSL

/// Returns the SHA-256 digest of a message: 32 bytes.
public func sha256(_ message: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
    // SAFETY: the digest has the 32 bytes that are written, and the message has the byte count
    // passed.
    unsafe SHA256(message, message.count, &digest)
    return digest
}

/// Returns bytes from OpenSSL's random generator, suitable for identifiers and keys.
///
/// Traps if the system provides no randomness, because no safe continuation exists.
public func randomBytes(_ count: Int) -> [UInt8] {
    precondition(count >= 0 && count <= Int(Int32.max))
    var bytes = [UInt8](repeating: 0, count: count)
    // SAFETY: `bytes` has `count` bytes, which were checked to fit into 32 bits.
    let result = unsafe RAND_bytes(&bytes, Int32(count))
    precondition(result == 1, "no randomness")
    return bytes
}

/// An incremental SHA-256 computation.
@safe public struct SHA256Sum: ~Copyable {
    // SAFETY: an EVP_MD_CTX created in `init` and freed in `deinit`; the value cannot be copied.
    private let context: OpaquePointer

    /// Starts a computation with an empty message.
    public init() {
        // SAFETY: `context` is new, and only an initialized one is stored.
        guard let context = unsafe EVP_MD_CTX_new(),
            unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1
        else { preconditionFailure("OpenSSL has no memory") }
        unsafe self.context = unsafe context
    }

    deinit {
        // SAFETY: the context belongs to this value alone.
        unsafe EVP_MD_CTX_free(context)
    }

    /// Adds bytes to the message.
    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        // SAFETY: OpenSSL reads the caller's bytes only during the call.
        unsafe EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
    }

    /// Returns the digest, which has 32 bytes. Call exactly once, after all bytes were added.
    public mutating func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        // SAFETY: the digest has the 32 bytes that SHA-256 writes.
        unsafe EVP_DigestFinal_ex(context, &digest, nil)
        return digest
    }
}
