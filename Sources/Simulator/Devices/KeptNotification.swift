/// A notification that waits for its device.
struct KeptNotification: Sendable {
    var envelope: Envelope
    var identifier: NotificationIDText
    /// When it was accepted, microseconds since the epoch.
    var takenMicroseconds: UInt64

    /// Whether its expiration has passed.
    func isOver(_ microseconds: UInt64) -> Bool {
        guard let expiration = envelope.expirationUnixSeconds else { return false }
        return expiration <= microseconds / 1_000_000
    }
}
