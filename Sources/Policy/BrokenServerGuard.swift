/// Detects a server whose protocol errors end one connection after another. Each such error may
/// lose the responses to the requests in flight, so the run has to stop before it sends the whole
/// list.
public struct BrokenServerGuard: Sendable {
    /// Limit on consecutive broken connections with no accepted notification between them.
    static let inARowLimit = 3
    /// Limit on broken connections within `span`, regardless of accepted rows.
    static let countLimit = 10
    /// Length of the period to which `countLimit` applies, nanoseconds.
    static let span: UInt64 = 60_000_000_000

    private var inARow = 0
    /// The times at which the latest broken connections ended, monotonic nanoseconds, oldest first.
    private var times: [UInt64] = []

    /// Creates a guard that has seen no connection.
    public init() {}

    /// Records an accepted row.
    public mutating func noteAccepted() { inARow = 0 }

    /// Records a connection that ended because of a protocol error.
    ///
    /// - Returns: Whether a limit is reached.
    public mutating func noteBroken(_ now: UInt64) -> Bool {
        inARow += 1
        if times.count == Self.countLimit { times.removeFirst() }
        // Reactors' clocks are read one after the other, so times may arrive out of order.
        times.append(max(now, times.last ?? 0))
        assert(times.count <= Self.countLimit)
        assert(times.count < 2 || times[times.count - 2] <= times[times.count - 1])
        return inARow >= Self.inARowLimit
            || (times.count == Self.countLimit
                && times[Self.countLimit - 1] - times[0] <= Self.span)
    }
}
