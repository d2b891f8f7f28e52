import BroadsideSupport

/// Evidence that a connection is alive and that its server lets it send.
struct Liveness {
    /// Silence with open requests after which a PING is sent; after the same silence again the
    /// connection is dead. The time counts from queueing the PING: if the socket accepts no bytes
    /// either, both directions have been silent for twice as long, and unsent rows are moved
    /// sooner.
    static let silenceLimit: UInt64 = 10 * second
    /// Interval between PINGs on an idle connection.
    static let idlePingInterval: UInt64 = 600 * second
    /// Time after which a connection is replaced if it has no request in flight and the server's
    /// windows or stream limit permit none: only a response would change that.
    static let starvedLimit: UInt64 = 10 * second

    enum Verdict {
        case alive
        /// Silent for so long that a PING is needed.
        case silent
        /// No bytes came after the PING.
        case dead
    }

    /// Monotonic nanoseconds, like all times here.
    private var lastReceived: UInt64
    private var pingSent: UInt64?
    /// Time since which no request is in flight and the server permits none; nil if it does.
    private var starvedSince: UInt64?

    init(now: UInt64) { lastReceived = now }

    mutating func recordReceived(now: UInt64) {
        assert(now >= lastReceived, "time does not go back")
        lastReceived = now
    }

    mutating func recordPing(now: UInt64) {
        assert(pingSent == nil, "a second PING would extend the wait for the first")
        pingSent = now
    }

    /// - Parameter isAwaited: Whether requests are open.
    mutating func verdict(isAwaited: Bool, now: UInt64) -> Verdict {
        if let pinged = pingSent {
            // Bytes before the PING arrived a while before it.
            if lastReceived >= pinged {
                pingSent = nil
                return .alive
            }
            return now - pinged > Self.silenceLimit ? .dead : .alive
        }
        let silence = now - min(now, lastReceived)
        return silence > (isAwaited ? Self.silenceLimit : Self.idlePingInterval) ? .silent : .alive
    }

    /// Records whether the server prevents the connection from sending.
    ///
    /// - Returns: True if it has for too long.
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
