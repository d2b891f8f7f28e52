public import BroadsideAPNs
public import BroadsideRows

/// Options of `broadside broadcast`.
public struct BroadcastOptions: Sendable {
    /// Bundle ID of the app.
    public var app: String?
    /// ID of the channel.
    public var channel: String?
    /// File with the payload.
    public var payload: String?
    /// Whether errors of the payload are refused.
    public var payloadCheck = SendOptions.PayloadCheckMode.error
    /// Value of apns-priority.
    public var priority = Priority.high
    /// Time until which APNs keeps the broadcast for subscribers that are away; 0: not at all.
    public var expiration = Expiration.at(0)
    /// Directory of the ledger.
    public var ledger: String?
    /// Name for `status` and the report.
    public var name: String?
    /// States in which an earlier start left the broadcast, and from which it is sent again.
    public var retry: ReopenedStates = []
    /// Number of attempts if APNs is overloaded.
    public var attemptsMax = 5
    /// Credential, environment and endpoint.
    public var connection = SendOptions()
    /// Whether the outcome is printed as JSON.
    public var isJSON = false
    /// Whether the request is only checked; nothing is connected or written.
    public var isDryRun = false
    /// Number of requests to print instead of sending; nil: the request is sent.
    public var preview: Int?
    /// Whether a broadcast to production needs no confirmation.
    public var isConfirmed = false

    /// Creates options with their defaults.
    public init() {}

    /// Text of the expiration that identifies the broadcast.
    var expirationText: String {
        switch expiration {
        case .at(let seconds): "\(seconds)"
        case .after(let seconds): "+\(seconds)s"
        }
    }
}
