/// Counts connections that end by the server's protocol errors: each may cost the rows in flight on it, so
/// a server that breaks one after the other must not get through the list.
public struct BrokenServerGuard: Sendable {
    /// So many in a row without an accepted row in between are enough.
    static let inARowLimit = 3
    /// So many are enough, whatever came between, ...
    static let countLimit = 10
    /// ... within so long, nanoseconds.
    static let span: UInt64 = 60_000_000_000

    private var inARow = 0
    /// When the last ones ended, monotonic nanoseconds, oldest first.
    private var times: [UInt64] = []

    /// Nothing has happened so far.
    public init() {}

    /// A row was accepted.
    public mutating func noteAccepted() { inARow = 0 }

    /// A connection ended by a protocol error.
    ///
    /// - Returns: Whether it was one too many.
    public mutating func noteBroken(_ now: UInt64) -> Bool {
        inARow += 1
        if times.count == Self.countLimit { times.removeFirst() }
        // Reactors' clocks are read one after the other: a later one may have come first.
        times.append(max(now, times.last ?? 0))
        return inARow >= Self.inARowLimit
            || (times.count == Self.countLimit
                && times[Self.countLimit - 1] - times[0] <= Self.span)
    }
}
