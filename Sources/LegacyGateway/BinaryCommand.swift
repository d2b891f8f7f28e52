/// The three forms of a notification in the legacy binary gateway's protocol.
///
/// Apple switched its gateways off on 31 March 2021; relays and test benches that use the protocol
/// remain. Source: Apple, "Binary Provider API" and "Legacy Notification Format" (archived).
public enum BinaryCommand: UInt8, Sendable, CaseIterable {
    /// Only token and payload: after an error the connection closes without an error packet.
    case simple = 0
    /// Token and payload, with an identifier and an expiration (2010).
    case enhanced = 1
    /// A frame of items, with a priority and payloads of 2,048 bytes (2013).
    case frame = 2

    /// Maximum bytes of a payload.
    public var payloadLimit: Int {
        switch self {
        case .simple, .enhanced: 256
        case .frame: 2048
        }
    }

    /// Whether an error names its notification, so that later notifications can be sent again.
    var hasIdentifier: Bool { self != .simple }

    /// Maximum bytes of a token in a frame's item.
    public static let tokenLimit = 100

    /// Size of a notification in bytes.
    ///
    /// - Parameters:
    ///   - tokenCount: Bytes of the token.
    ///   - payloadCount: Bytes of the payload.
    ///   - hasPriority: Whether the frame has a priority.
    public func count(tokenCount: Int, payloadCount: Int, hasPriority: Bool) -> Int {
        switch self {
        case .simple: 1 + 2 + tokenCount + 2 + payloadCount
        case .enhanced: 1 + 4 + 4 + 2 + tokenCount + 2 + payloadCount
        case .frame:
            1 + 4 + 3 + tokenCount + 3 + payloadCount + 7 + 7 + (hasPriority ? 4 : 0)
        }
    }
}

/// The kinds of items in a frame, with their numbers on the wire.
public enum BinaryItem: UInt8, Sendable {
    case token = 1
    case payload, identifier, expiration, priority
}
