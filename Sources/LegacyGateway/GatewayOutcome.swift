/// What received bytes, or time, mean to the notifications of a connection; a row is its tag.
package enum GatewayOutcome {
    /// What an error packet is about.
    package enum Subject {
        /// A notification that was written and not settled.
        case inFlight(UInt32)
        /// One that silence has settled before.
        case settled
        /// None: 0, or one that was never written.
        case nothing
    }

    /// The gateway said nothing against it.
    case confirmed(UInt32)
    /// An error packet names it.
    case refused(UInt32, BinaryErrorPacket)
    /// It was written behind the one that ended the connection: surely not acted on.
    case discarded(UInt32)
    /// The gateway began to say why it ends the connection: nothing that is written now counts.
    case errorPacketBegan
    /// It ends the connection for this reason. What that means for each notification that is in flight
    /// follows.
    case errorPacket(BinaryErrorPacket, Subject)
    /// All that the last word says was told: the connection is over.
    case over
    /// The last word is not one of the protocol.
    case unreadable
    /// The gateway reads no more, and did not say why within `GatewaySession.brokenLimit`.
    case unexplained
}
