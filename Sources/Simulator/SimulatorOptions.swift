/// How the HPACK lint goes about a deviation.
public enum HPACKLintMode: String, Sendable, CaseIterable {
    /// Count deviations and name them at the end.
    case report
    /// Answer the first deviation of a connection with GOAWAY.
    case refuse
    /// Do not look.
    case off
}

/// Which discipline the HPACK lint holds a client to.
public enum HPACKLintProfile: String, Sendable, CaseIterable {
    /// Names of the changing headers are inserted once, all else is never inserted.
    case strict
    /// Constant headers and the provider token are inserted once and referred to from then on.
    case compact
}

/// What is done about bodies that are compressed or are not JSON dictionaries.
public enum PayloadLintMode: String, Sendable, CaseIterable {
    /// Count them and name them at the end.
    case report
    /// Refuse them with 400 PayloadEmpty, on the legacy gateway with status 4.
    case refuse
    /// Do not look.
    case off
}

/// How many notifications are kept for a device that is offline.
public enum StoreRule: String, Sendable, CaseIterable {
    /// One for each app: the newest. Apple: "APNs stores only one notification per bundle ID."
    case app
    /// One for each app and collapse identifier.
    case collapseIdentifier = "collapse-id"
}

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
    /// Which discipline.
    public var lintProfile = HPACKLintProfile.strict
    /// What to do about bodies that APNs has no use for.
    public var payloadLint = PayloadLintMode.report

    /// Which environment this is: device tokens, keys and certificates of the other are refused.
    public var environment = SimulatorEnvironment.production
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

    /// The scenarios that ship, a line each with its name and what it does.
    public static var scenarioList: String { ScenarioLibrary.list }

    /// The defaults, with certificates and keys in `state`.
    public init(state: String) {
        self.state = state
    }
}

/// Limits of the simulator that no option moves.
enum SimulatorLimits {
    /// Connections a thread; more are closed as soon as they are accepted.
    static let connectionsPerThread = 4096
    /// SETTINGS_MAX_HEADER_LIST_SIZE, as APNs announces it.
    static let headerListSize = 8000
    /// Octets of one header block on the wire, all its frames together.
    static let headerBlockCount = 16_384
    /// Answers in octets that a client may leave unread, beside those of its open streams.
    static let unreadOutputCount = 1 << 20
    /// The largest frame that is taken, SETTINGS_MAX_FRAME_SIZE.
    static let frameSize = 16_384
    /// Verified provider tokens that a thread remembers.
    static let cachedTokens = 64
    /// For how long a connection may go without a request: about an hour was seen in the field.
    static let idleNanoseconds: UInt64 = 3_600_000_000_000
    /// How long a TLS handshake may take.
    static let handshakeNanoseconds: UInt64 = 15_000_000_000
    /// For how long answers that wait are still given once the endpoint is told to stop.
    static let stopNanoseconds: UInt64 = 1_000_000_000
    /// Octets that a connection holds back unread; the kernel holds the rest.
    static let heldInputCount = 1 << 18
    /// Device tokens that `--issue-tokens` makes at most.
    static let issuedTokens = 10_000_000
}
