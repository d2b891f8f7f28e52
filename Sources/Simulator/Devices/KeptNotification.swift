/// A notification stored or held for its device.
struct KeptNotification: Sendable {
    var envelope: Envelope
    var identifier: NotificationIDText
    /// Time of acceptance, microseconds since the epoch.
    var takenMicroseconds: UInt64

    /// Returns whether the expiration has passed.
    func isOver(_ microseconds: UInt64) -> Bool {
        guard let expiration = envelope.expirationUnixSeconds else { return false }
        return expiration <= microseconds / 1_000_000
    }
}
