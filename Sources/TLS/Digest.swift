internal import CBroadsideOpenSSL

/// The SHA-256 of a message: 32 bytes.
public func sha256(_ message: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
    // SAFETY: the digest has the 32 bytes that are written, and the message those that are counted.
    unsafe SHA256(message, message.count, &digest)
    return digest
}

/// Bytes from OpenSSL's generator, fit for identifiers and keys.
///
/// Traps where the system gives no randomness: nothing sensible could go on.
public func randomBytes(_ count: Int) -> [UInt8] {
    precondition(count >= 0 && count <= Int(Int32.max))
    var bytes = [UInt8](repeating: 0, count: count)
    // SAFETY: `bytes` has `count` bytes, which were checked to fit into 32 bits.
    let result = unsafe RAND_bytes(&bytes, Int32(count))
    precondition(result == 1, "no randomness")
    return bytes
}

/// The SHA-256 of a message that comes by in pieces.
@safe public struct SHA256Sum: ~Copyable {
    // SAFETY: an EVP_MD_CTX that `init` makes and `deinit` frees; the sum can't be copied.
    private let context: OpaquePointer

    /// Of no bytes yet.
    public init() {
        // SAFETY: `context` was just made; no sum exists without one that has begun.
        guard let context = unsafe EVP_MD_CTX_new(),
            unsafe EVP_DigestInit_ex(context, EVP_sha256(), nil) == 1
        else { preconditionFailure("OpenSSL has no memory") }
        unsafe self.context = unsafe context
    }

    deinit {
        // SAFETY: the context is this value's alone.
        unsafe EVP_MD_CTX_free(context)
    }

    /// Takes more bytes in.
    public mutating func update(_ bytes: UnsafeRawBufferPointer) {
        // SAFETY: OpenSSL reads the caller's bytes during the call only.
        unsafe EVP_DigestUpdate(context, bytes.baseAddress, bytes.count)
    }

    /// The digest: 32 bytes. Call once, after all bytes.
    public mutating func finish() -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
        // SAFETY: the digest has the 32 bytes that SHA-256 writes.
        unsafe EVP_DigestFinal_ex(context, &digest, nil)
        return digest
    }
}
