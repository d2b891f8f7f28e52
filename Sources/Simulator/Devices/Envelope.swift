internal import BroadsideHPACK
internal import BroadsideSupport

/// The header fields that decide what happens to a notification for an unavailable device. The
/// payload does not matter.
struct Envelope: Sendable, Equatable {
    /// The bundle ID, without a push type's suffix.
    var topic: [UInt8]
    /// `apns-collapse-id`, or nil if absent.
    var collapseIdentifier: [UInt8]?
    /// `apns-expiration` in Unix seconds. 0 means a single attempt without storage; nil means that
    /// APNs decides how long it stores the notification.
    var expirationUnixSeconds: UInt64?
    /// `apns-priority`: 10, 5 or 1.
    var priority: UInt8 = 10
}

extension Envelope {
    /// Creates an envelope from a request's validated header fields.
    init(_ head: borrowing RequestHead, topics: TopicTable) {
        topic = topics.bundle(of: head[.topic])
        if let identifier = head[.collapseIdentifier] { collapseIdentifier = Array(identifier) }
        if let expiration = head[.expiration] {
            expirationUnixSeconds = UInt64(String(decoding: expiration))
        }
        if let text = head[.priority] { priority = UInt8(String(decoding: text)) ?? 10 }
    }
}
