/// The three forms in which the legacy binary gateway takes a notification.
///
/// Apple switched its gateways off on 31 March 2021; relays and test benches that speak them remain.
/// Source: Apple, "Binary Provider API" and "Legacy Notification Format" (archived).
public enum BinaryCommand: UInt8, Sendable, CaseIterable {
    /// Token and payload, nothing else: an error closes the connection without a word.
    case simple = 0
    /// With an identifier and an expiry (2010).
    case enhanced = 1
    /// A frame of items: priority too, and payloads of 2,048 bytes (2013).
    case frame = 2

    /// The most bytes of a payload.
    public var payloadLimit: Int {
        switch self {
        case .simple, .enhanced: 256
        case .frame: 2048
        }
    }

    /// True where errors name a notification, so that what followed it can be sent again.
    var hasIdentifier: Bool { self != .simple }

    /// The most bytes of a token in a frame's item.
    public static let tokenLimit = 100

    /// The bytes that a notification takes.
    ///
    /// - Parameters:
    ///   - tokenCount: Bytes of the token.
    ///   - payloadCount: Bytes of the payload.
    ///   - hasPriority: Whether the frame names a priority.
    public func count(tokenCount: Int, payloadCount: Int, hasPriority: Bool) -> Int {
        switch self {
        case .simple: 1 + 2 + tokenCount + 2 + payloadCount
        case .enhanced: 1 + 4 + 4 + 2 + tokenCount + 2 + payloadCount
        case .frame:
            1 + 4 + 3 + tokenCount + 3 + payloadCount + 7 + 7 + (hasPriority ? 4 : 0)
        }
    }
}

/// The numbers of a frame's items.
public enum BinaryItem: UInt8, Sendable {
    case token = 1
    case payload, identifier, expiration, priority
}
