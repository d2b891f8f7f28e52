public import BroadsideAPNs
public import BroadsideRows

/// Options of `broadside broadcast`.
public struct BroadcastOptions: Sendable {
    /// Options for app, channel, credential and output. A broadcast to production must be
    /// confirmed.
    public var request = ChannelRequestOptions()
    /// File with the payload.
    public var payload: String?
    /// Whether a payload with errors is refused.
    public var payloadCheck = SendOptions.PayloadCheckMode.error
    /// Value of apns-priority.
    public var priority = Priority.high
    /// Time until which APNs keeps the broadcast for offline subscribers; 0: APNs does not keep it.
    public var expiration = Expiration.at(0)
    /// Directory of the ledger.
    public var ledger: String?
    /// Name for `status` and the report.
    public var name: String?
    /// If an earlier start left the broadcast in one of these states, it is sent again.
    public var retry: ReopenedStates = []
    /// Maximum number of attempts if APNs is overloaded.
    public var attemptsMax = 5

    /// Creates options with their defaults.
    public init() {}

    /// Whether a start sends a broadcast again that an earlier start left in a state.
    func sendsAgain(_ state: RowState) -> Bool {
        switch state {
        case .remaining: true
        case .inDoubt: retry.contains(RowState.unknown)
        default: retry.contains(state)
        }
    }

    /// Text of the expiration, as part of the broadcast's identity.
    var expirationText: String {
        switch expiration {
        case .at(let seconds): "\(seconds)"
        case .after(let seconds): "+\(seconds)s"
        }
    }
}
