internal import CBroadsideOpenSSL

/// AES-256-GCM (NIST SP 800-38D): what was sealed comes back as it was, or not at all.
public struct AuthenticatedCipher: Sendable {
    /// Bytes of a key.
    public static let keyCount = 32
    /// Bytes of a nonce, which no two different messages of a key may share.
    public static let nonceCount = 12
    /// Bytes that sealing adds.
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

    /// The ciphertext of a message, and its tag behind it.
    public func seal(_ message: [UInt8], nonce: [UInt8]) -> [UInt8] {
        precondition(nonce.count == Self.nonceCount && message.count <= 1 << 20)
        guard let context = Self.makeContext() else { preconditionFailure("no memory") }
        var sealed = [UInt8](repeating: 0, count: message.count + Self.tagCount)
        var count: Int32 = 0
        var ends: Int32 = 0
        var tag = [UInt8](repeating: 0, count: Self.tagCount)
        let isSealed = context.lend { context in
            // SAFETY: key and nonce were checked to have the bytes that AES-256-GCM reads. `sealed`
            // has more than the message's bytes, GCM's end writes none, and `tag` has the 16 that
            // are asked for.
            unsafe EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nil, key, nonce) == 1
                && EVP_EncryptUpdate(context, &sealed, &count, message, Int32(message.count)) == 1
                && EVP_EncryptFinal_ex(context, &tag, &ends) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_AEAD_GET_TAG, Int32(Self.tagCount), &tag) == 1
        }
        precondition(isSealed && Int(count) == message.count, "OpenSSL has no AES-256-GCM")
        sealed.replaceSubrange(message.count..., with: tag)
        return sealed
    }

    /// The message that was sealed with this key and nonce; nil where it was not.
    public func open(_ sealed: [UInt8], nonce: [UInt8]) -> [UInt8]? {
        guard nonce.count == Self.nonceCount, sealed.count >= Self.tagCount,
            sealed.count <= 1 << 20
        else { return nil }
        guard let context = Self.makeContext() else { return nil }
        let messageCount = sealed.count - Self.tagCount
        // One more, so that there is an address where the message is empty.
        var message = [UInt8](repeating: 0, count: messageCount + 1)
        var tag = Array(sealed[messageCount...])
        var count: Int32 = 0
        var ends: [UInt8] = Array(repeating: 0, count: 16)
        var endCount: Int32 = 0
        let isGenuine = context.lend { context in
            // SAFETY: key and nonce were checked to have the bytes that AES-256-GCM reads, `sealed`
            // to have `messageCount` and a tag. `message` has room for as many, and GCM's end
            // writes nothing.
            unsafe EVP_DecryptInit_ex(context, EVP_aes_256_gcm(), nil, key, nonce) == 1
                && EVP_DecryptUpdate(context, &message, &count, sealed, Int32(messageCount)) == 1
                && EVP_CIPHER_CTX_ctrl(
                    context, EVP_CTRL_AEAD_SET_TAG, Int32(Self.tagCount), &tag) == 1
                && EVP_DecryptFinal_ex(context, &ends, &endCount) == 1
        }
        ErrorQueue.clear()
        return isGenuine ? Array(message[..<messageCount]) : nil
    }
}
