import BroadsideSupport

/// What shows that a connection is alive, and that its server lets it send.
struct Liveness {
    /// With requests open and nothing received for so long, a PING goes out; if nothing comes for as long
    /// again, the connection is dead. That counts from its queueing: where the socket takes nothing
    /// either, both directions have been still for twice as long, and what waits finds a way sooner.
    static let silenceLimit: UInt64 = 10 * second
    /// An idle connection is asked this often whether it still lives.
    static let idlePingInterval: UInt64 = 600 * second
    /// With no request in flight and no room for one so long, by the server's windows or its stream
    /// limit, a connection is replaced: what would move the server to make room is a response.
    static let starvedLimit: UInt64 = 10 * second

    enum Verdict {
        case alive
        /// It has been silent for so long that a PING has to ask.
        case silent
        /// Nothing came after the PING.
        case dead
    }

    /// Monotonic nanoseconds, as all times here.
    private var lastReceived: UInt64
    private var pingSent: UInt64?
    /// Since when nothing is in flight and the server gives no room for a request; nil while it does.
    private var starvedSince: UInt64?

    init(now: UInt64) { lastReceived = now }

    mutating func recordReceived(now: UInt64) { lastReceived = now }

    mutating func recordPing(now: UInt64) { pingSent = now }

    /// - Parameter isAwaited: Whether requests are open.
    mutating func verdict(isAwaited: Bool, now: UInt64) -> Verdict {
        if let pinged = pingSent {
            // What came before the PING came a while before it.
            if lastReceived >= pinged {
                pingSent = nil
                return .alive
            }
            return now - pinged > Self.silenceLimit ? .dead : .alive
        }
        let silence = now - min(now, lastReceived)
        return silence > (isAwaited ? Self.silenceLimit : Self.idlePingInterval) ? .silent : .alive
    }

    /// Notes whether the server keeps the connection from sending.
    ///
    /// - Returns: True once it has for too long.
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
