/// Parses a provider's byte stream to the legacy gateway, in pieces of any size.
public struct BinaryNotificationReader: Sendable {
    /// Result of parsing.
    public enum Event: Sendable, Equatable {
        case notification(BinaryNotification)
        /// A malformed notification: the status to report, and the notification's identifier if it
        /// was read.
        case malformed(BinaryStatus, identifier: UInt32?)
    }

    /// Maximum bytes of a frame's items; a larger frame is not a notification. The limit is above
    /// the maximum length of an item, 65,535 bytes. So an error about a payload that is too long
    /// names the payload, not the frame.
    static let frameLimit = 69_632
    /// Command of the latest event; nil if it was not one of the three known commands.
    public private(set) var command: BinaryCommand?

    private var pending: [UInt8] = []
    private var offset = 0

    /// Creates a reader at the start of a stream.
    public init() {}

    /// Appends received bytes.
    public mutating func append(_ bytes: some Sequence<UInt8>) {
        if offset > 0 {
            pending.removeFirst(offset)
            offset = 0
        }
        pending.append(contentsOf: bytes)
    }

    /// Returns the next complete notification; nil if more bytes are needed. After `malformed` the
    /// rest of the stream has no meaning.
    public mutating func next() -> Event? {
        guard offset < pending.count else { return nil }
        command = BinaryCommand(rawValue: pending[offset])
        guard let command else {
            return .malformed(.protocolError, identifier: nil)
        }
        switch command {
        case .simple: return plain(command, tokenAt: 1)
        case .enhanced: return plain(command, tokenAt: 9)
        case .frame: return frame()
        }
    }

    private func number(at position: Int, count: Int) -> UInt32? {
        guard offset + position + count <= pending.count else { return nil }
        let start = offset + position
        return pending[start..<(start + count)].reduce(0) { $0 << 8 | UInt32($1) }
    }

    private mutating func plain(_ command: BinaryCommand, tokenAt position: Int) -> Event? {
        guard let tokenCount = number(at: position, count: 2).map(Int.init) else { return nil }
        let identifier = command == .enhanced ? number(at: 1, count: 4) : nil
        let expiration = command == .enhanced ? number(at: 5, count: 4) : nil
        if tokenCount > BinaryCommand.tokenLimit {
            return .malformed(.invalidTokenSize, identifier: identifier)
        }
        guard let payloadCount = number(at: position + 2 + tokenCount, count: 2).map(Int.init)
        else {
            return nil
        }
        if payloadCount > command.payloadLimit {
            return .malformed(.invalidPayloadSize, identifier: identifier)
        }
        let payloadAt = offset + position + 4 + tokenCount
        guard payloadAt + payloadCount <= pending.count else { return nil }
        let tokenAt = offset + position + 2
        let notification = BinaryNotification(
            command: command, identifier: identifier, expiration: expiration,
            token: Array(pending[tokenAt..<(tokenAt + tokenCount)]),
            payload: Array(pending[payloadAt..<(payloadAt + payloadCount)]))
        assert(payloadAt + payloadCount <= pending.count && payloadAt > offset)
        offset = payloadAt + payloadCount
        return .notification(notification)
    }

    private mutating func frame() -> Event? {
        guard let count = number(at: 1, count: 4).map(Int.init) else { return nil }
        if count > Self.frameLimit { return .malformed(.protocolError, identifier: nil) }
        guard offset + 5 + count <= pending.count else { return nil }
        let items = pending[(offset + 5)..<(offset + 5 + count)]
        offset += 5 + count
        assert(offset <= pending.count)
        return Self.read(items: items)
    }

    private static func read(items: ArraySlice<UInt8>) -> Event {
        assert(items.count <= frameLimit)
        var rest = items
        var result = BinaryNotification(command: .frame, token: [], payload: [])
        var seen: Set<UInt8> = []
        var isWhole = true
        while !rest.isEmpty {
            guard rest.count >= 3 else {
                isWhole = false
                break
            }
            let start = rest.startIndex
            let count = Int(rest[start + 1]) << 8 | Int(rest[start + 2])
            let number = rest[start]
            rest = rest.dropFirst(3)
            guard count <= rest.count, seen.insert(number).inserted else {
                isWhole = false
                break
            }
            isWhole = take(number, Array(rest.prefix(count)), into: &result) && isWhole
            rest = rest.dropFirst(count)
        }
        let identifier = result.identifier
        if !isWhole { return .malformed(.protocolError, identifier: identifier) }
        if !seen.contains(BinaryItem.token.rawValue) {
            return .malformed(.missingDeviceToken, identifier: identifier)
        }
        if !seen.contains(BinaryItem.payload.rawValue) {
            return .malformed(.missingPayload, identifier: identifier)
        }
        if result.token.count > BinaryCommand.tokenLimit {
            return .malformed(.invalidTokenSize, identifier: identifier)
        }
        if result.payload.count > BinaryCommand.frame.payloadLimit {
            return .malformed(.invalidPayloadSize, identifier: identifier)
        }
        return .notification(result)
    }

    /// Stores one item of a frame in `result`.
    ///
    /// - Returns: False if the item is not valid in a frame.
    private static func take(
        _ number: UInt8, _ data: [UInt8], into result: inout BinaryNotification
    ) -> Bool {
        let value = data.count <= 4 ? data.reduce(0) { $0 << 8 | UInt32($1) } : 0
        switch BinaryItem(rawValue: number) {
        case .token: result.token = data
        case .payload: result.payload = data
        case .identifier where data.count == 4: result.identifier = value
        case .expiration where data.count == 4: result.expiration = value
        case .priority where data.count == 1 && (data[0] == 5 || data[0] == 10):
            result.priority = data[0]
        default: return false
        }
        return true
    }
}
