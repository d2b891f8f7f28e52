internal import BroadsideHPACK
internal import BroadsideSupport

/// What becomes of a notification for a device that is away depends on this, not on its payload.
struct Envelope: Sendable, Equatable {
    /// The bundle ID: a push type's suffix is not part of it.
    var topic: [UInt8]
    /// `apns-collapse-id`; nil where there is none.
    var collapseIdentifier: [UInt8]?
    /// `apns-expiration`, Unix seconds; 0: one attempt, never stored; nil: as long as APNs likes.
    var expirationUnixSeconds: UInt64?
    /// `apns-priority`: 10, 5 or 1.
    var priority: UInt8 = 10
}

extension Envelope {
    /// Of a request's header fields, which were found in order.
    init(_ head: borrowing RequestHead, topics: TopicTable) {
        topic = topics.bundle(of: head[.topic])
        if let identifier = head[.collapseIdentifier] { collapseIdentifier = Array(identifier) }
        if let expiration = head[.expiration] {
            expirationUnixSeconds = UInt64(String(decoding: expiration))
        }
        if let text = head[.priority] { priority = UInt8(String(decoding: text)) ?? 10 }
    }
}
