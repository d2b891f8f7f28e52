/// A notification in the legacy gateway's protocol.
///
///     simple    00 | token length 2 | token | payload length 2 | payload
///     enhanced  01 | identifier 4 | expiry 4 | token length 2 | token | payload length 2 | payload
///     frame     02 | frame length 4 | items: id 1, length 2, data
///
/// Numbers are big-endian. Source: Apple, "Binary Provider API" (archived).
public struct BinaryNotification: Sendable, Equatable {
    /// Form of the notification.
    public var command: BinaryCommand
    /// Identifier by which error packets name the notification; nil if the form or the frame has
    /// none.
    public var identifier: UInt32?
    /// Expiration in Unix seconds. With 0, the notification is not stored. nil if the form or the
    /// frame has no expiration.
    public var expiration: UInt32?
    /// Priority, 10 or 5; nil means 10.
    public var priority: UInt8?
    /// The token as bytes, not as digits.
    public var token: [UInt8]
    /// JSON of the payload.
    public var payload: [UInt8]

    /// Creates a notification. `encoded` omits values for which the command has no field.
    public init(
        command: BinaryCommand, identifier: UInt32? = nil, expiration: UInt32? = nil,
        priority: UInt8? = nil, token: [UInt8], payload: [UInt8]
    ) {
        self.command = command
        self.identifier = identifier
        self.expiration = expiration
        self.priority = priority
        self.token = token
        self.payload = payload
    }

    /// The bytes on the wire.
    public var encoded: [UInt8] {
        var bytes: [UInt8] = [command.rawValue]
        switch command {
        case .simple:
            break
        case .enhanced:
            bytes += Self.bigEndian(identifier ?? 0) + Self.bigEndian(expiration ?? 0)
        case .frame:
            let items = self.items
            return bytes + Self.bigEndian(UInt32(items.count)) + items
        }
        return bytes + Self.counted(token) + Self.counted(payload)
    }

    private var items: [UInt8] {
        var items: [UInt8] = []
        func add(_ item: BinaryItem, _ data: [UInt8]?) {
            guard let data else { return }
            items.append(item.rawValue)
            items += Self.counted(data)
        }
        add(.token, token)
        add(.payload, payload)
        add(.identifier, identifier.map(Self.bigEndian))
        add(.expiration, expiration.map(Self.bigEndian))
        add(.priority, priority.map { [$0] })
        return items
    }

    private static func counted(_ data: [UInt8]) -> [UInt8] {
        [UInt8(data.count >> 8), UInt8(data.count & 0xff)] + data
    }

    static func bigEndian(_ value: UInt32) -> [UInt8] {
        [
            UInt8(value >> 24), UInt8(value >> 16 & 0xff), UInt8(value >> 8 & 0xff),
            UInt8(value & 0xff),
        ]
    }
}
