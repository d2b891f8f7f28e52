import BroadsideSupport

/// Evidence that a connection is alive and that its server lets it send.
struct Liveness {
    /// A PING is sent if no bytes arrive for this long while requests are open, and before the next
    /// request if none are. If no bytes arrive for the same time after that, the connection is dead. This second period starts when the
    /// PING is queued. It does not wait for the socket to accept the PING, so that unsent rows move
    /// to another connection sooner.
    static let silenceLimit: UInt64 = 10 * second
    /// Interval between PINGs on an idle connection.
    static let idlePingInterval: UInt64 = 600 * second
    /// Time after which a connection is replaced if it has no request in flight and the server's
    /// windows or stream limit permit no request.
    static let starvedLimit: UInt64 = 10 * second

    enum Verdict {
        case alive
        /// No bytes came for so long that a PING is needed.
        case silent
        /// No bytes came after the PING.
        case dead
    }

    /// Time of the last received bytes; monotonic nanoseconds, like all times here.
    private var lastReceived: UInt64
    private var pingSent: UInt64?
    /// Whether only the reply to a PING is a sign of life. True after a long stall of the process:
    /// bytes that arrive then may be older than the stall.
    private(set) var awaitsReply = false
    /// Time since which the server has permitted no request although no request is in flight; nil
    /// if this is not the case.
    private var starvedSince: UInt64?

    init(now: UInt64) { lastReceived = now }

    mutating func recordReceived(now: UInt64) {
        assert(now >= lastReceived, "time does not go back")
        lastReceived = now
    }

    /// Whether a PING was sent and its reply was not noticed yet.
    var isAsked: Bool { pingSent != nil }

    /// Whether no bytes have arrived for so long that requests must wait for a sign of life.
    func isSilent(now: UInt64) -> Bool { now - min(now, lastReceived) > Self.silenceLimit }

    mutating func recordPing(now: UInt64) {
        assert(pingSent == nil, "a second PING would extend the wait for the first")
        pingSent = now
    }

    /// Records a stall of the process that was longer than `silenceLimit`.
    ///
    /// - Returns: False if the reply to a PING has just arrived. No other one is needed then: if
    ///   each iteration takes so long, requests are still sent after every second one.
    mutating func recordStall() -> Bool {
        if let pinged = pingSent, lastReceived >= pinged, !awaitsReply {
            pingSent = nil
            return false
        }
        awaitsReply = true
        return true
    }

    /// Records the reply to a PING.
    mutating func recordReply() { awaitsReply = false }

    /// - Parameter isAwaited: Whether requests are open.
    mutating func verdict(isAwaited: Bool, now: UInt64) -> Verdict {
        if let pinged = pingSent {
            // A PING is sent only after a silence or a stall. Bytes that have the time of the PING,
            // or a later time, therefore arrived after the PING, except after a stall.
            if lastReceived >= pinged, !awaitsReply {
                pingSent = nil
                return .alive
            }
            return now - max(pinged, lastReceived) > Self.silenceLimit ? .dead : .alive
        }
        let silence = now - min(now, lastReceived)
        return silence > (isAwaited ? Self.silenceLimit : Self.idlePingInterval) ? .silent : .alive
    }

    /// Records whether the server prevents the connection from sending.
    ///
    /// - Returns: True if the server has prevented sending for longer than `starvedLimit`.
    mutating func updateStarvation(_ isStarved: Bool, now: UInt64) -> Bool {
        guard isStarved else {
            starvedSince = nil
            return false
        }
        let since = starvedSince ?? now
        starvedSince = since
        return now - since > Self.starvedLimit
    }
}
