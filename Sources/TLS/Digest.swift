internal import COpenSSL

/// The SHA-256 of a message: 32 octets.
public func sha256(_ message: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
    unsafe SHA256(message, message.count, &digest)
    return digest
}

/// Octets from OpenSSL's generator, fit for identifiers and keys.
///
/// Traps where the system gives no randomness: nothing sensible could go on.
public func randomBytes(_ count: Int) -> [UInt8] {
    precondition(count >= 0 && count <= Int(Int32.max))
    var bytes = [UInt8](repeating: 0, count: count)
    let result = unsafe RAND_bytes(&bytes, Int32(count))
    precondition(result == 1, "no randomness")
    return bytes
}
