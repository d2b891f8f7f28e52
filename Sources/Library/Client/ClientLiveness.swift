import BroadsideSupport

/// Evidence that the server of a client's connection still responds. All times are monotonic, and
/// in nanoseconds.
///
///     heard --silence, then PING--> asked --bytes--------------------> heard
///                                     '--no bytes for pingLimit--> dead
struct ClientLiveness {
    /// Time without received bytes after which a PING is due if requests are in flight, and before
    /// the next request if none are: the network may have forgotten the connection, and requests in
    /// it would be lost.
    static let silenceLimit: UInt64 = 10 * second
    /// Time without received bytes after which a PING is due if no requests are in flight.
    static let idlePingInterval: UInt64 = 600 * second
    /// Time after a PING within which bytes must arrive.
    static let pingLimit: UInt64 = 10 * second

    private var heardAt: UInt64
    private var pingedAt: UInt64?

    init(now: UInt64) { heardAt = now }

    /// Whether the response to a PING is awaited. No request may begin meanwhile.
    var isAsked: Bool { pingedAt != nil }

    /// Records that bytes arrived.
    mutating func recordReceived(now: UInt64) {
        heardAt = now
        pingedAt = nil
    }

    /// Records that a PING was sent.
    mutating func recordPing(now: UInt64) {
        assert(pingedAt == nil, "a second PING would extend the wait for the first")
        pingedAt = now
    }

    /// Whether a PING is due.
    ///
    /// - Parameter isAwaited: Whether requests are in flight, or about to begin.
    func needsPing(isAwaited: Bool, now: UInt64) -> Bool {
        let limit = isAwaited ? Self.silenceLimit : Self.idlePingInterval
        return pingedAt == nil && now - min(now, heardAt) >= limit
    }

    /// Whether no bytes arrived after a PING.
    func isDead(now: UInt64) -> Bool {
        pingedAt.map { now - min(now, $0) >= Self.pingLimit } ?? false
    }
}
