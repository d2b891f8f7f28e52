internal import BroadsideAPNs
internal import BroadsideHPACK

/// A request about broadcast channels, parsed from its header block.
struct ChannelRequest: Sendable {
    enum Operation: String, Sendable {
        case create, read, list, delete, broadcast
    }

    var operation: Operation
    /// The bundle ID in the path.
    var app: [UInt8]
    /// `apns-channel-id`; empty if absent.
    var channel: [UInt8] = []
    /// `apns-expiration` in Unix seconds; 0 if absent.
    var expirationUnixSeconds: UInt64 = 0
    /// `apns-priority`.
    var priority: UInt8 = 10

    /// The beginning of the paths of requests about channels.
    private static let managementPrefix: StaticString = "/1/apps/"
    private static let broadcastPrefix: StaticString = "/4/broadcasts/apps/"

    /// Returns whether a path belongs to a request about channels, even if the path is malformed.
    static func owns(_ path: RawSpan?) -> Bool {
        guard let path else { return false }
        return [managementPrefix, broadcastPrefix].contains { prefix in
            path.byteCount >= prefix.utf8CodeUnitCount
                && path.extracting(first: prefix.utf8CodeUnitCount).matches(prefix)
        }
    }

    /// Parses method and path.
    ///
    /// - Throws: The reason for refusing the request.
    init(method: RawSpan?, path: RawSpan?) throws(Refusal) {
        let method = Self.text(method)
        let text = Self.text(path)
        let prefix = Self.managementPrefix.description
        if text.hasPrefix(prefix) {
            let parts = text.dropFirst(prefix.count).split(
                separator: "/", omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else { throw Refusal(.badPath) }
            app = Array(parts[0].utf8)
            switch (parts[1], method) {
            case ("channels", "POST"): operation = .create
            case ("channels", "GET"): operation = .read
            case ("channels", "DELETE"): operation = .delete
            case ("all-channels", "GET"): operation = .list
            case ("channels", _), ("all-channels", _): throw Refusal(.methodNotAllowed)
            default: throw Refusal(.badPath)
            }
            return
        }
        let rest = text.dropFirst(Self.broadcastPrefix.description.count)
        guard !rest.isEmpty, !rest.contains("/") else { throw Refusal(.badPath) }
        guard method == "POST" else { throw Refusal(.methodNotAllowed) }
        app = Array(rest.utf8)
        operation = .broadcast
    }

    private static func text(_ span: RawSpan?) -> String {
        guard let span else { return "" }
        return String(decoding: span)
    }

    /// The reason for refusing a request.
    struct Refusal: Error {
        let reason: Reason

        init(_ reason: Reason) { self.reason = reason }
    }

    /// Checks the header fields of the operation in this order: push type, channel ID, expiration,
    /// priority, request ID. Apple's tables have the same order, but some of these fields are
    /// missing in them.
    mutating func readFields(_ head: borrowing RequestHead) throws(Refusal) {
        if operation == .broadcast {
            guard let type = head[.pushType] else { throw Refusal(.missingPushType) }
            // Apple's own command-line sample has the value with a capital letter.
            guard String(decoding: type).lowercased() == PushType.liveActivity.rawValue else {
                throw Refusal(.invalidPushType)
            }
        }
        if operation != .create, operation != .list {
            guard let named = head.channelID else { throw Refusal(.missingChannelID) }
            guard Self.isBase64(named) else { throw Refusal(.badChannelID) }
            channel = named
        }
        if operation == .broadcast {
            if let text = head[.expiration] {
                guard RequestChecks.isDecimal(text), let seconds = UInt64(String(decoding: text))
                else { throw Refusal(.badExpirationDate) }
                expirationUnixSeconds = seconds
            }
            if let text = head[.priority] {
                guard let named = RequestChecks.priority(text) else { throw Refusal(.badPriority) }
                priority = named.rawValue
            }
        }
        // One of Apple's listings uses the name `apns-id` for the request's ID, as for a device
        // push.
        if let named = head.requestID, !RequestChecks.isUUID(named.span.rawBytes) {
            throw Refusal(.badMessageID)
        }
        if let other = head[.identifier], !RequestChecks.isUUID(other) {
            throw Refusal(.badMessageID)
        }
    }

    private static func isBase64(_ text: [UInt8]) -> Bool {
        guard text.count % 4 == 0, BroadcastChannel.isID(text) else { return false }
        let digits = text.reversed().drop { $0 == UInt8(ascii: "=") }
        return text.count - digits.count <= 2
            && digits.allSatisfy {
                $0 != UInt8(ascii: "=") && $0 != UInt8(ascii: "-") && $0 != UInt8(ascii: "_")
            }
    }
}
