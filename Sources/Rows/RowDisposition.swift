public import BroadsideAPNs

/// What a run does with one row of a chunk.
public enum RowDisposition: Hashable, Sendable {
    /// The row is sent.
    case send
    /// The run neither sends nor settles the row: the row is already settled, belongs to another
    /// shard, or stays in doubt because it is beyond the limit or not yet due. If the chunk's
    /// reservation reopens a settled row, the run records its verdict again (`RowChunk.kept`).
    case settled
    /// The row is settled as `unknown`, without being sent.
    case becomesUnknown
    /// The row is sent, although an earlier run may have sent it. The row stays in doubt until this
    /// run sends it.
    case sendAgain
    /// The row is settled as `skipped`, without being sent.
    case skipped(SkipReason)
    /// The run neither sends nor settles the row: the row is beyond the limit and provably unsent.
    /// The run reserves the row's chunk for other rows. It then has to release this row, so that
    /// the row is not in doubt.
    case beyondLimit
    /// The row is neither sent nor settled: it is due at a later time and provably unsent. Its
    /// chunk is reserved for other rows, so the row has to be released.
    case notDue
    /// The row is settled as `invalid` with this reason, for example because of a column other than
    /// the token's.
    case invalid(Reason)
    /// The device was erased by `ledger forget`. The row is settled without being sent, and without
    /// its token: as `unknown` if an earlier run may have sent it, otherwise as `skipped`.
    case erased(mayHaveBeenSent: Bool)

    /// Whether the run sends the row.
    public var isSent: Bool {
        switch self {
        case .send, .sendAgain: true
        case .settled, .becomesUnknown, .skipped, .beyondLimit, .notDue, .invalid, .erased: false
        }
    }

    /// Whether the run settles the row without sending it, because of earlier runs.
    public var settlesUnsent: Bool {
        switch self {
        case .becomesUnknown, .erased: true
        case .send, .sendAgain, .settled, .beyondLimit, .notDue, .skipped, .invalid: false
        }
    }

    /// Whether the run neither sends the row nor settles it.
    public var isPassedOver: Bool {
        switch self {
        case .settled, .beyondLimit, .notDue: true
        case .send, .becomesUnknown, .sendAgain, .skipped, .invalid, .erased: false
        }
    }
}
