/// Verdict of an earlier run that a run records again, because its reservation reopens the row but
/// the run does not send the row.
public struct KeptVerdict: Sendable, Equatable {
    /// What the ledger has of the row's token.
    public enum Token: Sendable, Equatable {
        /// The digits of the token; empty if the ledger has none.
        case digits([UInt8])
        /// Text of the list that is not a token.
        case text([UInt8])
        /// The hash that replaces the token of an erased device.
        case erased([UInt8])
    }

    /// Number of the row.
    public var row: UInt64
    /// Settled state of the row.
    public var state: RowState
    /// HTTP status; 0 if there was no response.
    public var status: UInt16
    /// Stable code of the reason; 0 if there is none.
    public var reason: UInt8
    /// Text of a reason without a code; empty if there is none.
    public var reasonText: [UInt8]
    /// Number of attempts.
    public var attempts: UInt16
    /// Number of the row's arm; 0 if there is none.
    public var arm: UInt8
    /// Topic that the row was sent with; empty if none was recorded.
    public var topic: [UInt8]
    /// Time of the verdict in milliseconds since 1970.
    public var milliseconds: UInt64
    /// Timestamp from APNs, in milliseconds since 1970.
    public var timestamp: UInt64?
    /// The row's token.
    public var token: Token

    /// Creates a verdict.
    public init(
        row: UInt64, state: RowState, status: UInt16, reason: UInt8, reasonText: [UInt8],
        attempts: UInt16, arm: UInt8, topic: [UInt8], milliseconds: UInt64, timestamp: UInt64?,
        token: Token
    ) {
        precondition(state.isSettled, "only a settled row has a verdict")
        self.row = row
        self.state = state
        self.status = status
        self.reason = reason
        self.reasonText = reasonText
        self.attempts = attempts
        self.arm = arm
        self.topic = topic
        self.milliseconds = milliseconds
        self.timestamp = timestamp
        self.token = token
    }
}
