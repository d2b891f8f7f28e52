/// What became of one row of the list.
///
/// At any instant a row is in one of three conditions: not sent (`remaining`), in doubt, or
/// answered (all other states). The raw values are stored in the ledger and never change meaning.
public enum RowState: UInt8, CaseIterable, Sendable {
    /// Never sent, or handed back unsent: a resume sends it.
    case remaining = 0
    /// APNs answered 200.
    case accepted = 1
    /// Refused for good, with a status and a reason.
    case rejected = 2
    /// Never sent, because the row itself is unusable.
    case invalid = 3
    /// Never sent, because the row is suppressed or a duplicate.
    case skipped = 4
    /// Given up after all attempts.
    case failed = 5
    /// Sent, and the answer was lost.
    case unknown = 6
    /// Reserved by a run that says nothing more about it: it may have been sent.
    case inDoubt = 7

    /// The states of rows that are settled, in the order in which they are told.
    public static let settledStates: [RowState] = [
        .accepted, .rejected, .invalid, .skipped, .failed, .unknown,
    ]

    /// Whether the row has its final answer, or what stands for it.
    public var isSettled: Bool {
        switch self {
        case .remaining, .inDoubt: false
        case .accepted, .rejected, .invalid, .skipped, .failed, .unknown: true
        }
    }

    /// The name used in options, exports and summaries.
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

    /// The state of that name, as `--state` and `--retry` give it.
    ///
    /// - Parameter name: a name as `name` returns it.
    public init?(name: some StringProtocol) {
        guard let state = RowState.allCases.first(where: { $0.name == name }) else { return nil }
        self = state
    }
}

/// The settled states whose rows a later run opens again (`--retry failed,unknown`).
public struct ReopenedStates: OptionSet, Hashable, Sendable {
    /// The bits as they stand in a reservation on disk; only the lower four are stored.
    public let rawValue: UInt8

    /// Takes the bits as stored.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Rows given up after all attempts.
    public static let failed = ReopenedStates(rawValue: 1)
    /// Rows whose answer was lost.
    public static let unknown = ReopenedStates(rawValue: 2)

    /// Whether a row in `state` is opened again.
    @inlinable
    public func contains(_ state: RowState) -> Bool {
        switch state {
        case .failed: contains(ReopenedStates.failed)
        case .unknown: contains(ReopenedStates.unknown)
        default: false
        }
    }
}
