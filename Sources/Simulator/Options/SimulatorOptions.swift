// A user of the library imports it alone: what its options are made of comes along.
@_exported public import enum BroadsideAPNs.Endpoints
@_exported public import enum BroadsideHPACK.IndexingPolicy

/// What a simulated APNs is asked to be.
public struct SimulatorOptions: Sendable {
    /// Where to listen, a numeric address and a port; port 0 lets the kernel choose.
    public var listen = "127.0.0.1:2197"
    /// The directory of certificates and keys, filled on first use.
    public var state: String
    /// From a request's end to its answer, nanoseconds.
    public var latencyNanoseconds: UInt64 = 0
    /// Answers come up to this much earlier or later, nanoseconds.
    public var latencyJitterNanoseconds: UInt64 = 0
    /// SETTINGS_MAX_CONCURRENT_STREAMS once a connection is authenticated.
    public var maxStreams: UInt32 = 1000
    /// The share of tokens that are unregistered, 0 to 1.
    public var unregistered = 0.0
    /// The share of tokens that are bad, 0 to 1.
    public var badToken = 0.0
    /// Turns the same tokens into other fates.
    public var seed: UInt64 = 0
    /// A file that gets a line for each request; nil for none.
    public var journal: String?
    /// Event-loop threads.
    public var threads = 1
    /// Answer as cheaply as possible: no journal, no stream limit before authentication.
    public var isFast = false
    /// What to do about deviations from the HPACK discipline.
    public var lint = HPACKLintMode.report
    /// Which discipline it holds a client to.
    public var lintProfile = IndexingPolicy.strict
    /// What to do about bodies that APNs has no use for.
    public var payloadLint = PayloadLintMode.report

    /// Which environment this is: device tokens, keys and certificates of the other are refused.
    public var environment = Endpoints.Environment.production
    /// The scenario that is played from the start: a name of the library or a file; nil for none.
    public var scenario: String?
    /// So many device tokens are issued, and only issued ones are good; nil: all are.
    public var issuedTokens: Int?
    /// The devices that are offline: a share from 0 to 1, or a file with a token a line; nil: none.
    public var offline: String?
    /// How many notifications are kept for each of them.
    public var storeRule = StoreRule.app
    /// The devices that save power: a share from 0 to 1, or a file with a token a line; nil: none.
    public var savingPower: String?
    /// How late such a device gets notifications of priority 5, together, nanoseconds.
    public var groupNanoseconds: UInt64 = 30_000_000_000
    /// A file that gets a line for each notification that a device got; nil for none.
    public var deliveries: String?
    /// For how long a notification is kept for a device that is offline, nanoseconds.
    public var storeNanoseconds: UInt64 = 30 * 86_400_000_000_000
    /// A socket that takes commands while the simulator runs; nil for none.
    public var control: String?

    /// Where the legacy binary gateway listens, a numeric address and a port; nil: nowhere.
    public var binaryListen: String?
    /// Where the feedback service listens; nil: nowhere.
    public var feedbackListen: String?

    /// The defaults, with certificates and keys in `state`.
    public init(state: String) {
        self.state = state
    }
}
