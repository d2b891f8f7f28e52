/// A connection's limit on concurrent streams, from its announcement to the client's
/// acknowledgement.
///
///     announce -> submitted -> written -> acknowledged
///
/// A client may use an old limit until it has received the new one, so the session enforces the
/// larger of the announced and the acknowledged limit.
struct StreamLimits {
    /// The limit of an authenticated connection that has no refusals.
    private(set) var full: UInt32
    /// The limit that was announced last.
    private(set) var announced: UInt32
    /// Whether the connection has a certificate or an accepted provider token. Without one, it has
    /// one stream.
    private(set) var isAuthenticated: Bool
    /// The limits in SETTINGS frames that are queued but not yet written, the oldest first.
    private var unwritten: [UInt32] = []
    /// The limits that the client has not acknowledged, the oldest first.
    private var unacknowledged: [UInt32] = []
    /// The limit that the client acknowledged last. Until the first acknowledgement, there is none
    /// (RFC 9113 section 6.5.3).
    private var acknowledged = UInt32.max

    init(full: UInt32, isAuthenticated: Bool) {
        self.full = full
        self.isAuthenticated = isAuthenticated
        announced = isAuthenticated ? full : min(1, full)
    }

    /// Number of streams that the client may have open.
    var allowed: UInt32 { max(acknowledged, announced) }

    mutating func announce(_ limit: UInt32) { announced = limit }

    /// Replaces the full limit, which a scenario has changed, and announces it.
    mutating func announce(full limit: UInt32) {
        full = limit
        announced = isAuthenticated ? limit : min(1, limit)
    }

    /// Handles a SETTINGS frame with the announced limit that is queued.
    mutating func submitted() {
        unwritten.append(announced)
        unacknowledged.append(announced)
    }

    /// Handles the writing of the oldest queued SETTINGS frame. Returns its limit.
    mutating func written() -> UInt32 { unwritten.removeFirst() }

    /// Handles the acknowledgement of the oldest SETTINGS frame.
    mutating func acknowledge() {
        if !unacknowledged.isEmpty { acknowledged = unacknowledged.removeFirst() }
    }

    /// Handles the first authenticated response: the full limit is announced.
    mutating func authenticate() {
        isAuthenticated = true
        announced = full
    }
}
