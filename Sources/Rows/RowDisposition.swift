/// What a resume does with one row of a chunk.
public enum RowDisposition: UInt8, Sendable {
    /// It is sent.
    case send = 0
    /// It is passed over: it is settled, or no row of this run's shard, or in doubt behind the
    /// limit, where it stays so.
    case settled = 1
    /// It is passed over and settled as `unknown`.
    case becomesUnknown = 2
    /// It is sent although it may have been sent before: while it isn't, it stays in doubt.
    case sendAgain = 3
    /// It is settled as `skipped`, its token is on the list of opt-outs.
    case suppressed = 4
    /// It is settled as `skipped`, its token occurred before.
    case duplicate = 5
    /// It is passed over: it is provably unsent, and behind the limit. Its chunk is reserved again
    /// for other rows, so it has to be released again.
    case beyondLimit = 6

    /// Whether the run sends the row.
    public var isSent: Bool { self == .send || self == .sendAgain }

    /// Whether the run neither sends the row nor settles it.
    public var isPassedOver: Bool { self == .settled || self == .beyondLimit }
}
