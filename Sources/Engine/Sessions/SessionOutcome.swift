import BroadsideHTTP2
import BroadsideLegacyGateway

/// What received bytes, or time, mean to the requests of a connection.
///
/// A session tells what happened; what it means for rows, for the connection and for the campaign is
/// the reactor's to say.
enum SessionOutcome: Equatable {
    /// Requests may start. `streams` is the limit that the server announced; nil if its protocol has
    /// no such word.
    case ready(streams: Int?)
    /// A response of 200.
    case accepted(RowTag)
    /// Any other response: the session's `responseReason`, `copyResponse` and `retryAfter` belong to
    /// it until the next outcome.
    case response(RowTag, status: UInt16)
    /// The server surely did not act on the request, and may not act on the next.
    case notProcessed(RowTag)
    /// The request was written behind the one that ended the connection: surely not acted on.
    case discarded(RowTag)
    /// The request ended without a response: in doubt.
    case lost(RowTag)
    /// No response came in time: in doubt.
    case overdue(RowTag)
    /// Taken without a word, nobody knows how fast.
    case confirmed(RowTag)
    /// An error packet names it.
    case refused(RowTag, BinaryErrorPacket)
    /// The server wants no more requests; `goAwayReason` belongs to it.
    case goAway(ErrorCode)
    /// The server broke the protocol: what waits in the session is the last thing that it gets.
    case violation(ConnectionError)
    /// The server began to say why it ends the connection: nothing that is written now counts.
    case errorPacketBegan
    /// It ends the connection for this reason. What that means for each request that is in flight
    /// follows, unless it names none: then they are in doubt.
    case errorPacket(BinaryErrorPacket, ErrorPacketSubject)
    /// All that the last word says was told: the connection is over.
    case over
    /// The server's last word is not one of its protocol.
    case unreadable
    /// The server reads no more, and did not say why within `GatewaySession.brokenLimit`.
    case unexplained
}

/// What an error packet is about.
enum ErrorPacketSubject {
    /// A notification that is in flight.
    case inFlight
    /// One that silence has settled before.
    case settled
    /// None: 0, or one that never left.
    case nothing
}

/// What became of a row whose request was to be written.
enum WriteOutcome {
    case written
    /// The record has no room for it.
    case recordFull
    /// The server's windows have none.
    case windowFull
}

/// What a session has to know of its connection to say what time has settled.
struct SessionTimes {
    /// Monotonic nanoseconds, as all of them.
    var now: UInt64
    var phaseSince: UInt64
    /// Since when bytes wait to go out; nil if none does.
    var waitingSince: UInt64?
    /// Nothing that was written waits in our buffer.
    var isFlushed: Bool
    var requestTimeout: UInt64
}

/// How full is what a session owns, and the most of it.
struct SessionOccupancy {
    var controlBytes = 0
    var controlLimit = 0
    var parts = 0
    var partsLimit = 0
    var bodies = 0
    var bodiesLimit = 0
}
