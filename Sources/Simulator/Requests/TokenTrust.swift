internal import BroadsideAPNs
internal import BroadsideTLS

/// Verification of the device tokens that this simulator issued. Decrypting and authenticating a
/// token yields its device, topic and environment (Apple, "Local and Remote Notification
/// Programming Guide", "Token Trust").
///
///     token   = nonce (12), ciphertext of the message (20), tag (16)
///     message = device (8, big-endian), environment (1), hash of the topic (11)
///     nonce   = hash of key and message (12)
///
/// The numbers are byte counts. The cipher is AES-256-GCM. A hash is the beginning of a SHA-256
/// hash. The nonce is not random, so a device always has the same token for a topic.
struct TokenTrust: Sendable {
    /// Byte count of an issued token.
    static let tokenCount = 48
    private static let messageCount = 20
    private static let topicCount = 11

    enum Judgement: Equatable {
        case good(device: UInt64)
        /// The token was not issued by this simulator, or it was issued for the other environment.
        case bad
        /// The token was issued for another topic.
        case otherTopic
    }

    private let key: [UInt8]
    private let cipher: AuthenticatedCipher
    private let environment: Endpoints.Environment

    init(key: [UInt8], environment: Endpoints.Environment) {
        self.key = key
        cipher = AuthenticatedCipher(key: key)
        self.environment = environment
    }

    /// Returns the token of a device for a bundle ID.
    func issue(
        device: UInt64, topic: [UInt8], environment: Endpoints.Environment
    ) -> [UInt8] {
        var message: [UInt8] = []
        for shift in stride(from: 56, through: 0, by: -8) {
            message.append(UInt8(truncatingIfNeeded: device >> UInt64(shift)))
        }
        message.append(environment.byte)
        message += sha256(topic).prefix(Self.topicCount)
        let nonce = Array(sha256(key + message).prefix(AuthenticatedCipher.nonceCount))
        let token = nonce + cipher.seal(message, nonce: nonce)
        assert(self.device(of: token) == device, "a token leads to its device")
        return token
    }

    /// Verifies a token for a topic without a push type's suffix.
    func judge(_ token: [UInt8], topic: [UInt8]) -> Judgement {
        guard let message = open(token), message[8] == environment.byte else { return .bad }
        guard message[9...].elementsEqual(sha256(topic).prefix(Self.topicCount)) else {
            return .otherTopic
        }
        return .good(device: Self.device(of: message))
    }

    /// Returns the device of a token that was issued with this key, for any topic and environment;
    /// nil for any other token.
    func device(of token: [UInt8]) -> UInt64? { open(token).map(Self.device) }

    private func open(_ token: [UInt8]) -> [UInt8]? {
        guard token.count == Self.tokenCount else { return nil }
        let nonce = Array(token[..<AuthenticatedCipher.nonceCount])
        let sealed = Array(token[AuthenticatedCipher.nonceCount...])
        guard let message = cipher.open(sealed, nonce: nonce), message.count == Self.messageCount
        else { return nil }
        return message
    }

    private static func device(of message: [UInt8]) -> UInt64 {
        message[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Returns the bytes of hexadecimal digits, or nil if they are invalid.
    static func bytes(ofDigits digits: RawSpan) -> [UInt8]? {
        guard digits.byteCount.isMultiple(of: 2) else { return nil }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(digits.byteCount / 2)
        for position in stride(from: 0, to: digits.byteCount, by: 2) {
            guard let high = TokenOutcome.hexValue(digits[position]),
                let low = TokenOutcome.hexValue(digits[position + 1])
            else { return nil }
            bytes.append(high << 4 | low)
        }
        return bytes
    }
}

extension Endpoints.Environment {
    /// The environment's byte in a token's message.
    fileprivate var byte: UInt8 { self == .production ? 1 : 2 }
}
