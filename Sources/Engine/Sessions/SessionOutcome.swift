import BroadsideHTTP2
import BroadsideLegacyGateway

/// Event on a connection, caused by received bytes or elapsed time.
///
/// A session reports the event; the reactor decides what it means for rows, the connection and the
/// campaign.
enum SessionOutcome: Equatable {
    /// Requests may start. `streams` is the limit announced by the server; nil if the protocol has
    /// none.
    case ready(streams: Int?)
    /// A response of 200.
    case accepted(RowTag)
    /// A response of 200 with an apns-unique-id. The session's `copyResponse` refers to the ID's
    /// text until the next outcome.
    case identified(RowTag)
    /// Any other response. The session's `responseReason`, `copyResponse` and `retryAfter` refer to
    /// it until the next outcome.
    case response(RowTag, status: UInt16)
    /// The server did not act on the request, and perhaps will not act on the next one.
    case notProcessed(RowTag)
    /// A response arrived for a request that the server had reported as not processed. Its row is
    /// known no longer.
    case disownedResponse
    /// The request was written after the one that ended the connection, so the server did not act
    /// on this request.
    case discarded(RowTag)
    /// The request ended without a response, so it is in doubt.
    case lost(RowTag, StreamEnd)
    /// No response came in time, so the request is in doubt.
    case overdue(RowTag)
    /// The server's flow-control windows left no room for the rest of the payload in time, so the
    /// server did not act on the request.
    case starved(RowTag)
    /// The notification was accepted by silence (legacy gateway). Its latency is unknown.
    case confirmed(RowTag)
    /// An error packet names this notification.
    case refused(RowTag, BinaryErrorPacket)
    /// The server replied to a PING. Any received bytes are a sign of life, but after a stall of the
    /// process only this reply is one.
    case pong
    /// The server accepts no more requests. The session's `goAwayReason` has the reason.
    case goAway(ErrorCode)
    /// The server violated the protocol. Nothing is sent after the session's pending output.
    case violation(ConnectionError)
    /// The server began to send the reason for ending the connection. It ignores later writes.
    case errorPacketBegan
    /// The server ends the connection for this reason. Outcomes of the requests in flight follow;
    /// if the packet names no notification, these requests are in doubt.
    case errorPacket(BinaryErrorPacket, ErrorPacketSubject)
    /// All outcomes of the error packet were returned, and the connection is over.
    case over
    /// The server sent something that is not an error packet.
    case unreadable
    /// The server stopped reading and did not send a reason within `GatewaySession.brokenLimit`.
    case unexplained
}

/// A request without a response on a connection that ended.
struct RequestInFlight {
    /// Number of the request on its connection: requests from `Outbox.firstUnsent` on never left.
    var number: UInt32
    var tag: RowTag
    /// Whether all of it was written. If not, the server did not act on it.
    var isComplete: Bool
}

/// Cause for which a stream ended without a response.
enum StreamEnd: Equatable {
    /// The server reset the stream.
    case reset(ErrorCode)
    /// The server violated the protocol on the stream.
    case violation(StreamError)

    /// Number of the cause, below 64. All codes unknown to RFC 9113 have the same number.
    var number: Int {
        switch self {
        case .reset(let code): Int(min(code.rawValue, 15))
        case .violation(let error): 16 + Int(error.rawValue)
        }
    }
}

/// Notification that an error packet names.
enum ErrorPacketSubject: Equatable {
    /// A notification in flight.
    case inFlight
    /// A notification that was already settled by silence. `refuted` is the number of notifications
    /// that were settled in this way although the gateway refused or discarded them.
    case settled(refuted: Int)
    /// No notification: the identifier is 0, or belongs to a notification that never left the
    /// buffer.
    case nothing
}

/// Result of writing a row's request.
enum WriteOutcome {
    case written
    /// The request does not fit into the record.
    case recordFull
    /// The request exceeds the server's flow-control windows.
    case windowFull
}

/// State of a connection that a session needs to judge elapsed time.
struct SessionTimes {
    /// Monotonic nanoseconds, like all times here.
    var now: UInt64
    var phaseSince: UInt64
    /// Time since which bytes wait to be sent; nil if none do.
    var waitingSince: UInt64?
    /// Whether the buffer contains no unsent bytes.
    var isFlushed: Bool
    var requestTimeout: UInt64
}

/// The fill levels of a session's bounded tables, with their limits.
struct SessionOccupancy {
    var controlBytes = 0
    var controlLimit = 0
    var parts = 0
    var partsLimit = 0
    var bodies = 0
    var bodiesLimit = 0
}
