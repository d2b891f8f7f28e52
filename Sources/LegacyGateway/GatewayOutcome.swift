/// Effect of received bytes, or of elapsed time, on the notifications of a connection; a tag
/// identifies the row.
package enum GatewayOutcome {
    /// Notification that an error packet names.
    package enum Subject {
        /// A notification that was written and is not settled.
        case inFlight(UInt32)
        /// A notification that was already settled as accepted, because no error came in time.
        /// `refuted` is the number of notifications that were settled in this way although the
        /// gateway refused or discarded them.
        case settled(refuted: Int)
        /// No notification: the identifier is 0, or was never written.
        case nothing
    }

    /// Accepted, because no error came in time.
    case confirmed(UInt32)
    /// Named by an error packet.
    case refused(UInt32, BinaryErrorPacket)
    /// Written after the notification that ended the connection, so the gateway did not act on it.
    case discarded(UInt32)
    /// The gateway began to send an error packet and ignores all later writes.
    case errorPacketBegan
    /// The gateway ends the connection for this reason. Outcomes of the notifications in flight
    /// follow.
    case errorPacket(BinaryErrorPacket, Subject)
    /// All outcomes of the error packet were returned: the connection is over.
    case over
    /// The gateway sent something that is not an error packet.
    case unreadable
    /// The gateway stopped reading and did not send a reason within `GatewaySession.brokenLimit`.
    case unexplained
}
