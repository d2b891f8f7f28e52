/// The faults and limits of a simulated APNs, from a built-in scenario or a file.
///
/// `docs/scenarios.md` describes the file. This type and those in it are values. The counts of a
/// running scenario are in `ScenarioRun` for all connections together, and in `ScenarioCounters`
/// for one connection.
struct Scenario: Sendable, Equatable {
    /// The built-in name, or the path of the file.
    var name: String
    /// The line shown by `--scenario list`.
    var summary = ""
    /// Seed of all random decisions.
    var seed: UInt64 = 0
    /// The first SETTINGS frame of each connection.
    var settings = SettingsChange()
    /// The rate at which window credit is returned; nil: nghttp2 returns credit once half a window
    /// is consumed.
    var window: Portion?
    /// The rate at which a connection is read; nil for no limit.
    var reading: Portion?
    /// How responses are divided into frames.
    var responses = ResponseShape()
    /// The distribution of response delays; nil for the value of `--latency`.
    var latency: Latency?
    /// Maximum time for which a connection may have no requests.
    var idleNanoseconds: UInt64?
    /// Maximum duration of a handshake.
    var handshakeNanoseconds: UInt64?
    /// The form of the debug data in a GOAWAY with IdleTimeout or Shutdown. A GOAWAY that a fault
    /// causes does not use it.
    var debug = DebugForm.json
    /// The limit on the rate of requests per device token. Requests beyond it are refused with
    /// TooManyRequests.
    var tokenRate: TokenRate?
    /// The limit on how often one source address changes its provider token; nil: only the rule for
    /// each connection applies.
    var tokenUpdates: TokenUpdateRule?
    /// How late and how irregularly APNs responds with 410; nil: immediately and always.
    var lateUnregistered: LateUnregistered?
    /// The effects of too many refusals on a connection.
    var refusals = RefusalLimits()
    /// Behavior of the legacy gateway.
    var gateway = GatewayScript()
    /// The faults, in order. If several apply to a request, the first one is used.
    var faults: [Fault] = []
}

/// A number of bytes per time interval.
struct Portion: Sendable, Equatable {
    var count: Int
    var intervalNanoseconds: UInt64
}

/// Settings to announce; nil leaves a setting unchanged.
struct SettingsChange: Sendable, Equatable {
    var maxStreams: UInt32?
    var headerTableSize: UInt32?
    var initialWindow: UInt32?
    var maxFrameSize: UInt32?
    var maxHeaderListSize: UInt32?
}

/// How a response is divided into frames.
struct ResponseShape: Sendable, Equatable {
    /// Number of frames per header block: HEADERS, followed by CONTINUATION.
    var headerFrames = 1
    /// Maximum payload of a DATA frame, bytes.
    var dataBytes = Int.max
    /// Bytes of padding in each HEADERS and DATA frame.
    var padding = 0

    /// Whether responses are plain: not divided in a special way, and not padded.
    var isPlain: Bool { headerFrames == 1 && padding == 0 }
}

/// The form of the debug data in a GOAWAY frame.
enum DebugForm: String, Sendable, CaseIterable {
    /// `{"reason":"Shutdown"}`.
    case json
    /// `Shutdown`, without JSON.
    case text
    /// No debug data.
    case none
}

/// A number of requests per time interval for each device token.
struct TokenRate: Sendable, Equatable {
    var requests: UInt32
    var intervalNanoseconds: UInt64
}

/// A limit on how often a source address changes its provider token, over all its connections.
///
/// Apple documents the limit for a connection. Field reports show that it applies across
/// connections.
struct TokenUpdateRule: Sendable, Equatable {
    /// Minimum time between two changes.
    var intervalNanoseconds: UInt64
    /// Whether a change to an invalid token counts as a change. If so, the change back to a valid
    /// token counts as another change.
    var countsInvalid: Bool
}

/// The effects of refusals on a connection. According to Apple, each 4xx response except 410
/// reduces the connection's allowance, and too many of them end the connection. BadDeviceToken
/// counts more than other reasons. The thresholds are not published.
struct RefusalLimits: Sendable, Equatable {
    /// Number of consecutive refusals that reduces the stream limit to 1 until a notification is
    /// accepted.
    var collapseAfter: UInt64?
    /// Total number of refusals that ends the connection. BadDeviceToken counts twice.
    var goAwayAfter: UInt64?
    /// The delay that each refusal adds to all later responses of the connection, nanoseconds; 0
    /// for none. BadDeviceToken adds it twice, and an accepted notification subtracts it once.
    var slowNanoseconds: UInt64 = 0

    /// Maximum delay of a response because of refusals, nanoseconds.
    static let maximumSlowNanoseconds: UInt64 = 1_000_000_000
}

/// A fault that applies to certain requests or at certain times.
struct Fault: Sendable, Equatable {
    enum Action: Sendable, Equatable {
        /// GOAWAY. The request is still accepted, but no later request is.
        case goAway(GoAway)
        /// RST_STREAM with REFUSED_STREAM: the request is not processed.
        case refuse
        /// RST_STREAM with a code: the request is processed, but its response is lost.
        case resetStream(UInt32)
        /// The TCP connection is reset, which loses responses in flight.
        case resetConnection
        /// The TCP connection is closed in an orderly way without GOAWAY.
        case close
        /// Reading and writing stop for this time; nil: forever.
        case stall(nanoseconds: UInt64?)
        /// A SETTINGS frame is sent. The response to the request does not change.
        case settings(SettingsChange)
        /// The request gets this response.
        case response(Response)
        /// The request's provider token expires.
        case expireToken
        /// Connections are reset, including new ones.
        case outage

        /// The name used in scenario files.
        var name: String {
            switch self {
            case .goAway: "goaway"
            case .refuse: "refuse"
            case .resetStream: "reset_stream"
            case .resetConnection: "reset_connection"
            case .close: "close"
            case .stall: "stall"
            case .settings: "settings"
            case .response: "answer"
            case .expireToken: "expire_token"
            case .outage: "outage"
            }
        }
    }

    var action: Action
    var trigger: Trigger
}

/// How a GOAWAY ends a connection.
struct GoAway: Sendable, Equatable {
    var code: UInt32 = 0
    var debug: [UInt8] = []
    /// The delay between two GOAWAY frames, nanoseconds. The first one has the highest stream
    /// number, so that requests in flight are still accepted (RFC 9113 section 6.8). The second one
    /// is final. With 0, only the final one is sent.
    var noticeNanoseconds: UInt64 = 0
    /// True if the request that triggers the fault and all later requests are not accepted.
    var isBeforeRequest = false
    /// True if the connection ends immediately, even with open streams.
    var isAbrupt = false
}

/// The condition under which a fault applies. All members that are present must be met.
struct Trigger: Sendable, Equatable {
    enum Scope: String, Sendable, CaseIterable {
        case connection, global
    }

    /// The set of requests that are numbered together, from 1.
    var scope = Scope.connection
    /// Number of the first request that the fault affects. nil: the value of `every`, or 1 if
    /// `every` is nil, too.
    var at: UInt64?
    /// Number of requests from the start of one affected group to the start of the next. Each group
    /// has `count` requests.
    var every: UInt64?
    /// Number of consecutive requests that the fault affects each time it applies.
    var count: UInt64 = 1
    /// Probability with which a request is affected.
    var share: Double?
    /// Maximum number of times that the fault is injected, over all connections.
    var limit: UInt64?
    /// Start of the period in which the fault is active, from the start of the scenario.
    var fromNanoseconds: UInt64 = 0
    /// Duration of the period in which the fault is active; nil: the period does not end.
    var forNanoseconds: UInt64?
    /// Time from the start of one active period to the start of the next; nil: there is only one.
    var againNanoseconds: UInt64?

    /// Returns whether the fault is active at a time relative to the start of the scenario.
    func holds(at elapsed: UInt64) -> Bool {
        guard elapsed >= fromNanoseconds else { return false }
        guard let length = forNanoseconds else { return true }
        var since = elapsed - fromNanoseconds
        if let again = againNanoseconds { since %= again }
        return since < length
    }

    /// Returns the next time after `elapsed` at which the fault becomes active or inactive; nil if
    /// there is none.
    func nextChange(after elapsed: UInt64) -> UInt64? {
        if elapsed < fromNanoseconds { return fromNanoseconds }
        guard let length = forNanoseconds else { return nil }
        guard let again = againNanoseconds else {
            return elapsed < fromNanoseconds + length ? fromNanoseconds + length : nil
        }
        let since = elapsed - fromNanoseconds
        let start = fromNanoseconds + since / again * again
        return elapsed < start + length ? start + length : start + again
    }

    /// Returns whether the request with this number, from 1, is affected.
    func holds(number: UInt64, chance: Double) -> Bool {
        if let share, chance >= share { return false }
        if let at {
            guard number >= at else { return false }
            guard let every else { return number - at < count }
            return (number - at) % every < count
        }
        guard let every else { return true }
        // Requests n, 2n and so on are the first of each group of affected requests.
        return number >= every && number % every < count
    }
}
