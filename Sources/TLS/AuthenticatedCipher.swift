internal import CBroadsideOpenSSL

/// AES-256-GCM (NIST SP 800-38D): authenticated encryption, so that a modified ciphertext does not
/// decrypt.
public struct AuthenticatedCipher: Sendable {
    /// Number of bytes of a key.
    public static let keyCount = 32
    /// Number of bytes of a nonce. Two different messages must not have the same key and nonce.
    public static let nonceCount = 12
    /// Number of bytes that encryption adds.
    static let tagCount = 16

    private let key: [UInt8]

    /// - Parameter key: `keyCount` bytes.
    public init(key: [UInt8]) {
        precondition(key.count == Self.keyCount)
        self.key = key
    }

    private static func makeContext() -> OpenSSLObject? {
        // SAFETY: the context is new, and its own free function ends it.
        unsafe OpenSSLObject(EVP_CIPHER_CTX_new(), freedBy: EVP_CIPHER_CTX_free)
    }

    /// Returns the ciphertext of a message, followed by its tag.
    public func seal(_ message: [UInt8], nonce: [UInt8]) -> [UInt8] {
        precondition(nonce.count == Self.nonceCount && message.count <= 1 << 20)
        guard let context = Self.makeContext() else { preconditionFailure("no memory") }
        var sealed = [UInt8](repeating: 0, count: message.count + Self.tagCount)
        var count: Int32 = 0
        var ends: Int32 = 0
        var tag = [UInt8](repeating: 0, count: Self.tagCount)
        let isSealed = context.lend { context in
            // SAFETY: key and nonce were checked to have the byte counts that AES-256-GCM reads.
            // `sealed` is larger than the message, finalization of GCM writes no bytes, and `tag`
            // has the 16 bytes requested.
            unsafe EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nil, key, nonce) == 1
                && EVP_EncryptUpdate(context, &sealed, &count, message, Int32(message.count)) == 1
                && EVP_EncryptFinal_ex(context, &tag, &ends) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagCount), &tag) == 1
        }
        precondition(isSealed && Int(count) == message.count, "OpenSSL has no AES-256-GCM")
        sealed.replaceSubrange(message.count..., with: tag)
        assert(open(sealed, nonce: nonce) == message, "what is sealed can be opened")
        return sealed
    }

    /// Decrypts a message that `seal` encrypted with this key and nonce. Returns nil if
    /// authentication fails.
    public func open(_ sealed: [UInt8], nonce: [UInt8]) -> [UInt8]? {
        guard nonce.count == Self.nonceCount, sealed.count >= Self.tagCount,
            sealed.count <= 1 << 20
        else { return nil }
        guard let context = Self.makeContext() else { return nil }
        let messageCount = sealed.count - Self.tagCount
        // One extra byte, so that the buffer has an address even for an empty message.
        var message = [UInt8](repeating: 0, count: messageCount + 1)
        var tag = Array(sealed[messageCount...])
        var count: Int32 = 0
        var ends: [UInt8] = Array(repeating: 0, count: 16)
        var endCount: Int32 = 0
        let isGenuine = context.lend { context in
            // SAFETY: key and nonce were checked to have the byte counts that AES-256-GCM reads,
            // and `sealed` to have `messageCount` bytes and a tag. `message` has room for as many,
            // and finalization of GCM writes nothing.
            unsafe EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), nil, key, nonce) == 1
                && EVP_DecryptUpdate(context, &message, &count, sealed, Int32(messageCount)) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagCount), &tag) == 1
                && EVP_DecryptFinal_ex(context, &ends, &endCount) == 1
        }
        ErrorQueue.clear()
        assert(
            !isGenuine || Int(count + endCount) == messageCount, "a message is opened as a whole")
        return isGenuine ? Array(message[..<messageCount]) : nil
    }
}
