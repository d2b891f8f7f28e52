/// What a simulated APNs does beside answering: faults and limits, by name or from a file.
///
/// `docs/scenarios.md` describes the file. Everything here is a value; what has been counted while
/// it runs is kept by `ScenarioRun`, for all connections, and `ScenarioCounters`, for one.
struct Scenario: Sendable, Equatable {
    /// The name of the library, or the file's path.
    var name: String
    /// One line for `--scenario list`.
    var summary = ""
    /// Turns everything that is left to chance into something else.
    var seed: UInt64 = 0
    /// The first SETTINGS of each connection.
    var settings = SettingsChange()
    /// How window credit is given back; nil: by nghttp2, once half a window is consumed.
    var window: Portion?
    /// How fast a connection is read; nil: as fast as it comes.
    var reading: Portion?
    /// How answers are laid out in frames.
    var responses = ResponseShape()
    /// How long answers take; nil: as `--latency` says.
    var latency: Latency?
    /// How long a connection may be without a request before it is ended.
    var idleNanoseconds: UInt64?
    /// How long a handshake may take.
    var handshakeNanoseconds: UInt64?
    /// What GOAWAY carries when the endpoint ends a connection by itself.
    var debug = DebugForm.json
    /// The most requests for one device token in a time; more are TooManyRequests.
    var tokenRate: TokenRate?
    /// What too many refusals do to a connection.
    var refusals = RefusalLimits()
    /// What the legacy gateway does.
    var gateway = GatewayScript()
    /// What strikes, the first that applies to a request decides.
    var faults: [Fault] = []
}

/// So many bytes, each time that so much time has passed.
struct Portion: Sendable, Equatable {
    var count: Int
    var intervalNanoseconds: UInt64
}

/// Settings to announce; nil: the one of before.
struct SettingsChange: Sendable, Equatable {
    var maxStreams: UInt32?
    var headerTableSize: UInt32?
    var initialWindow: UInt32?
    var maxFrameSize: UInt32?
    var maxHeaderListSize: UInt32?
}

/// How a response is cut into frames.
struct ResponseShape: Sendable, Equatable {
    /// Frames of a header block: HEADERS, and CONTINUATION for the rest.
    var headerFrames = 1
    /// The most bytes of a DATA frame.
    var dataBytes = Int.max
    /// Bytes of padding in each HEADERS and DATA frame.
    var padding = 0

    /// Nothing out of the ordinary.
    var isPlain: Bool { headerFrames == 1 && padding == 0 }
}

/// What stands behind a GOAWAY's error code.
enum DebugForm: String, Sendable, CaseIterable {
    /// `{"reason":"Shutdown"}`.
    case json
    /// `Shutdown`, no JSON.
    case text
    /// Nothing.
    case none
}

/// So many requests for one device token in so much time.
struct TokenRate: Sendable, Equatable {
    var requests: UInt32
    var intervalNanoseconds: UInt64
}

/// Apple: each 4xx reduces what a connection is granted, too many end it, BadDeviceToken sooner;
/// a 410 does not count. The figures are not published.
struct RefusalLimits: Sendable, Equatable {
    /// So many in a row bring the stream limit down to 1, until a notification is accepted.
    var collapseAfter: UInt64?
    /// So many in all end the connection; BadDeviceToken counts twice.
    var goAwayAfter: UInt64?
}

/// Something that strikes at certain requests or times.
struct Fault: Sendable, Equatable {
    enum Action: Sendable, Equatable {
        /// The request is taken, then no more.
        case goAway(GoAway)
        /// RST_STREAM with REFUSED_STREAM: the request is not acted on.
        case refuse
        /// RST_STREAM with a code: the request is acted on, its answer is lost.
        case resetStream(UInt32)
        /// The TCP connection is reset: answers on their way are lost.
        case resetConnection
        /// The TCP connection is ended in an orderly way, without GOAWAY.
        case close
        /// Nothing is read or written for a time; nil: for good.
        case stall(nanoseconds: UInt64?)
        /// SETTINGS; the request is answered as usual.
        case settings(SettingsChange)
        /// The request is answered so.
        case response(Response)
        /// The provider token of the request is expired from now on.
        case expireToken
        /// Connections are reset, new ones too.
        case outage

        /// As scenarios write it.
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

/// How a connection is ended by GOAWAY.
struct GoAway: Sendable, Equatable {
    var code: UInt32 = 0
    var debug: [UInt8] = []
    /// With a first GOAWAY that names the highest stream number, so that requests on their way are
    /// still taken (RFC 9113 section 6.8), and the last one so much later; 0: only one.
    var noticeNanoseconds: UInt64 = 0
    /// The request that struck is not taken, nor any after it.
    var isBeforeRequest = false
    /// The connection is ended at once, open streams or not.
    var isAbrupt = false
}

/// When a fault strikes. What is not given does not limit; all that is given has to hold.
struct Trigger: Sendable, Equatable {
    enum Scope: String, Sendable, CaseIterable {
        case connection, global
    }

    /// What requests are counted over, from 1.
    var scope = Scope.connection
    /// The number of the first request that is struck.
    var at: UInt64?
    /// Each so many requests.
    var every: UInt64?
    /// So many requests from each that strikes.
    var count: UInt64 = 1
    /// A share of requests, by chance.
    var share: Double?
    /// So often in all, over all connections.
    var limit: UInt64?
    /// From so long after the scenario began.
    var fromNanoseconds: UInt64 = 0
    /// For so long.
    var forNanoseconds: UInt64?
    /// Again and again, from each start to the next.
    var againNanoseconds: UInt64?

    /// Whether the time, since the scenario began, is one at which it strikes.
    func holds(at elapsed: UInt64) -> Bool {
        guard elapsed >= fromNanoseconds else { return false }
        guard let length = forNanoseconds else { return true }
        var since = elapsed - fromNanoseconds
        if let again = againNanoseconds { since %= again }
        return since < length
    }

    /// When, after `elapsed`, the time begins or ends to be one at which it strikes; nil: never.
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

    /// Whether the request of this number, from 1, is one that it strikes.
    func holds(number: UInt64, chance: Double) -> Bool {
        if let share, chance >= share { return false }
        if let at {
            guard number >= at else { return false }
            guard let every else { return number - at < count }
            return (number - at) % every < count
        }
        guard let every else { return true }
        // The nth, the 2nth and so on are the first of those struck.
        return number >= every && number % every < count
    }
}
