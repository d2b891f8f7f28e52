// Re-exported so that a user of the library can set the options with a single import.
@_exported public import enum BroadsideAPNs.Endpoints
@_exported public import enum BroadsideHPACK.IndexingPolicy

/// The configuration of a simulated APNs.
public struct SimulatorOptions: Sendable {
    /// The numeric address and port to listen on; port 0 lets the kernel choose.
    public var listen = "127.0.0.1:2197"
    /// The directory of certificates and keys, filled on first use.
    public var state: String
    /// Host names that the server's certificate has besides localhost, in lower case. They are used
    /// when the certificate is created in `state`.
    public var serverNames: [String] = []
    /// The delay from the end of a request to its response, nanoseconds.
    public var latencyNanoseconds: UInt64 = 0
    /// Maximum deviation of the response delay in either direction, nanoseconds.
    public var latencyJitterNanoseconds: UInt64 = 0
    /// SETTINGS_MAX_CONCURRENT_STREAMS of an authenticated connection.
    public var maxStreams: UInt32 = 1000
    /// The share of all tokens that are unregistered, 0 to 1.
    public var unregistered = 0.0
    /// The share of all tokens that are bad, 0 to 1.
    public var badToken = 0.0
    /// The time at which unregistered tokens became unregistered. nil: right after the device
    /// tokens were issued, or on a day in November 2023 if no tokens were issued.
    public var goneAt: GoneAt?
    /// The seed that varies the outcome of each token.
    public var seed: UInt64 = 0
    /// The output file with one line per request; nil for none.
    public var journal: String?
    /// Number of event-loop threads.
    public var threads = 1
    /// Whether to respond as cheaply as possible: without a journal, and without a stream limit
    /// before authentication.
    public var isFast = false
    /// What to do with deviations from the HPACK indexing policy.
    public var lint = HPACKLintMode.report
    /// The indexing policy against which clients are checked.
    public var lintProfile = IndexingPolicy.strict
    /// What to do with bodies that are compressed or are not JSON dictionaries.
    public var payloadLint = PayloadLintMode.report

    /// The simulated environment. Device tokens, keys and certificates of the other environment are
    /// refused.
    public var environment = Endpoints.Environment.production
    /// The scenario with which the simulator starts: a built-in name or a file; nil for none.
    public var scenario: String?
    /// Number of device tokens to issue. All other tokens are then refused. nil: every token is
    /// accepted.
    public var issuedTokens: Int?
    /// The devices that are offline: a share of all devices from 0 to 1, or a file with one token
    /// per line; nil for none.
    public var offline: String?
    /// The limit on notifications stored for a device that is offline.
    public var storeRule = StoreRule.app
    /// The devices that save power: a share of all devices from 0 to 1, or a file with one token
    /// per line; nil for none.
    public var savingPower: String?
    /// The delay after which a power-saving device receives its grouped notifications of priority
    /// 5, nanoseconds.
    public var groupNanoseconds: UInt64 = 30_000_000_000
    /// The output file with one line per notification delivered to a device; nil for none.
    public var deliveries: String?
    /// Maximum time for which a notification is stored for an offline device, nanoseconds.
    public var storeNanoseconds: UInt64 = 30 * 86_400_000_000_000
    /// Path of a socket that accepts commands while the simulator runs; nil for none.
    public var control: String?
    /// The numeric address and port of an HTTP endpoint for the same commands; nil disables it.
    public var controlListen: String?
    /// Whether the program gives commands through `ProviderEndpoint.control`. No socket is needed
    /// for this.
    public var isControlledHere = false
    /// Maximum number of requests kept for the command `received`. If the simulator accepts no
    /// commands, it keeps no requests.
    public var keptRequests = 10_000
    /// The output file with one line per response, from which `replay` can repeat the responses;
    /// nil for none.
    public var record: String?
    /// File with responses of an earlier run; nil for none. The simulator repeats these responses
    /// for the device tokens in the file.
    public var replay: String?

    /// Whether commands may be given while the simulator runs.
    var isControllable: Bool { control != nil || controlListen != nil || isControlledHere }

    /// Whether to raise this process's limits on open files and locked memory to the permitted
    /// maximum.
    public var raisesProcessLimits = true

    /// The numeric address and port of the legacy binary gateway; nil disables it.
    public var binaryListen: String?
    /// The numeric address and port of the feedback service; nil disables it.
    public var feedbackListen: String?

    /// Creates default options, with `state` as the directory of certificates and keys.
    public init(state: String) {
        self.state = state
    }
}
