import BroadsideSupport

/// Pause after trouble with a server. After an outage, one request alone then tests the server.
///
///     good --trouble--> paused, 1 to 60 s --time--> on trial --response--> good
///                        ^                             |
///                        '---------- trouble ----------'
struct ServerPause {
    /// End of the pause, monotonic nanoseconds.
    private(set) var end: UInt64 = 0
    /// Description of the last trouble; nil if the server has responded since.
    private(set) var trouble: String?
    /// Whether the server itself reported the trouble, in a response. If so, open connections
    /// pause, too.
    private(set) var isOutage = false
    /// Number of pauses since the last good response.
    private var count: UInt64 = 0

    /// Limits on a pause whose length the server does not choose, nanoseconds.
    static let limits = second...(60 * second)
    /// Limit on a pause that the server asks for, nanoseconds.
    static let askedLimit = 3600 * second

    /// Begins a pause, or extends it if Retry-After asks for that.
    ///
    /// - Parameters:
    ///   - retryAfter: Nanoseconds that the server asked for; nil: none.
    ///   - draw: Random number for the jitter, so that clients do not return at the same moment.
    mutating func begin(
        after trouble: String, isOutage: Bool, retryAfter: UInt64? = nil, now: UInt64, draw: UInt64
    ) {
        self.trouble = trouble
        self.isOutage = self.isOutage || isOutage
        let asked = retryAfter.map { min(max($0, Self.limits.lowerBound), Self.askedLimit) }
        // Several troubles during one pause count as one.
        guard now >= end else {
            end = max(end, now + (asked ?? 0))
            return
        }
        let doubled = min(Self.limits.lowerBound << min(count, 6), Self.limits.upperBound)
        count += 1
        end = now + (asked.map { $0 + draw % ($0 / 4) } ?? doubled - draw % (doubled / 4))
    }

    /// Ends the trouble after a good response, unless the pause continues.
    mutating func succeed(now: UInt64) {
        if trouble != nil, now >= end { self = ServerPause() }
    }
}
