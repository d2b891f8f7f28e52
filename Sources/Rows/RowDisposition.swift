public import BroadsideAPNs

/// Treatment of one row of a chunk by a run.
public enum RowDisposition: Hashable, Sendable {
    /// The row is sent.
    case send
    /// The row is passed over: it is settled, belongs to another shard, or is in doubt beyond the
    /// limit, and then stays in doubt.
    case settled
    /// The row is settled as `unknown`, without being sent.
    case becomesUnknown
    /// The row is sent although it may have been sent before. It stays in doubt until then.
    case sendAgain
    /// The row is settled as `skipped`, without being sent.
    case skipped(SkipReason)
    /// The row is passed over: it is provably unsent, and beyond the limit. Its chunk is reserved
    /// again for other rows, so the row has to be released again.
    case beyondLimit
    /// The row is passed over: it is provably unsent, and due at a later time. Its chunk is reserved
    /// for other rows, so the row has to be released.
    case notDue
    /// The row is settled as `invalid` with this reason, which its token does not show.
    case invalid(Reason)

    /// Whether the run sends the row.
    public var isSent: Bool {
        switch self {
        case .send, .sendAgain: true
        case .settled, .becomesUnknown, .skipped, .beyondLimit, .notDue, .invalid: false
        }
    }

    /// Whether the run neither sends the row nor settles it.
    public var isPassedOver: Bool {
        switch self {
        case .settled, .beyondLimit, .notDue: true
        case .send, .becomesUnknown, .sendAgain, .skipped, .invalid: false
        }
    }
}
