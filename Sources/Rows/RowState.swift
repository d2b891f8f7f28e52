/// State of one row of the list.
///
/// At any instant a row is unsent (`remaining`), in doubt, or settled (all other states). The
/// ledger stores the raw values, which never change meaning.
public enum RowState: UInt8, CaseIterable, Sendable {
    /// Never sent, or provably unsent after a reservation. A resume sends the row.
    case remaining = 0
    /// APNs responded with 200.
    case accepted = 1
    /// Permanently refused, with a status and a reason.
    case rejected = 2
    /// Never sent, because the row itself is unusable.
    case invalid = 3
    /// Never sent, for a `SkipReason`: for example, the row is suppressed or a duplicate.
    case skipped = 4
    /// All attempts failed.
    case failed = 5
    /// Sent, but the response was lost.
    case unknown = 6
    /// Reserved by a run that recorded no verdict: the row may have been sent.
    case inDoubt = 7

    /// The states of settled rows, in the order in which they are reported.
    public static let settledStates: [RowState] = [
        .accepted, .rejected, .invalid, .skipped, .failed, .unknown,
    ]

    /// Whether the row has a final state.
    public var isSettled: Bool {
        switch self {
        case .remaining, .inDoubt: false
        case .accepted, .rejected, .invalid, .skipped, .failed, .unknown: true
        }
    }

    /// Name in options, exports and summaries.
    public var name: String {
        switch self {
        case .remaining: "remaining"
        case .accepted: "accepted"
        case .rejected: "rejected"
        case .invalid: "invalid"
        case .skipped: "skipped"
        case .failed: "failed"
        case .unknown: "unknown"
        case .inDoubt: "in-doubt"
        }
    }

    /// Creates a state from its name, as used by `--state` and `--retry`.
    ///
    /// - Parameter name: A name as returned by `name`.
    public init?(name: some StringProtocol) {
        guard let state = RowState.allCases.first(where: { $0.name == name }) else { return nil }
        self = state
    }
}

/// Settled states whose rows a later run reopens (`--retry failed,unknown`).
public struct ReopenedStates: OptionSet, Hashable, Sendable {
    /// Bits as a reservation stores them on disk: only the lower four.
    public let rawValue: UInt8

    /// Creates a set from its stored bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Rows for which all attempts failed.
    public static let failed = ReopenedStates(rawValue: 1)
    /// Rows whose response was lost.
    public static let unknown = ReopenedStates(rawValue: 2)

    /// Whether a row in `state` is reopened.
    @inlinable
    public func contains(_ state: RowState) -> Bool {
        switch state {
        case .failed: contains(ReopenedStates.failed)
        case .unknown: contains(ReopenedStates.unknown)
        default: false
        }
    }
}
