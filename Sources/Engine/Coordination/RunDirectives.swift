import BroadsidePolicy
import BroadsideSupport

/// Directives of a run to a reactor: read at one instant, valid for a whole iteration.
struct RunDirectives: Sendable {
    /// No new requests; responses in flight are awaited.
    var isStopping: Bool
    /// Responses are no longer awaited.
    var isStoppingAtOnce: Bool
    /// The operator paused the run: no new requests, but responses in flight are processed.
    var isPaused: Bool
    /// Requests per 1,000 seconds over all reactors; nil: unlimited.
    var milliRate: UInt64?
    /// Time of the rate's next rise, monotonic nanoseconds; `.max`: it does not rise.
    var rateRisesAt = UInt64.max
    /// Whether the run counts the times of requests: its rate rises by them.
    var isRampCounting = false
    /// Reactors that have rows to send, at least 1; the rate is divided among them.
    var rateParticipants: Int
    /// A notification was accepted.
    var anyAccepted: Bool
    /// A connection was ready to send.
    var anyReady: Bool
    /// Time of the last response, monotonic nanoseconds; 0 before the first.
    var lastResponse: UInt64
    /// No reactor gets further rows of the list.
    var isListOver: Bool
    /// The provider token to send with, `bearer ...`; nil with a client certificate.
    var authorization: (value: [UInt8]?, version: UInt32)
    /// Whether the provider token is expired or too old and there is no other yet.
    var isTokenStale: Bool
    /// Whether no other token can be made for a while, after TooManyProviderTokenUpdates.
    var isTokenBlocked = false
    /// Increases with each change of the session configuration.
    var sessionVersion: UInt32
    /// Whether the canary is undecided.
    var isCanaryPending: Bool
    /// Whether no more rows are available before the canary is decided.
    var isCanaryHolding: Bool
    /// Number of connections that the reactor keeps open; nil for the number in its settings.
    var connectionShare: Int?
    /// Topics that a guard stopped: their rows are not sent.
    var stoppedTopics = TopicSet()
    /// Requests that may be in flight before the first acceptance.
    var permits = 0
    /// Action for each `ExpiredProviderToken` in the effects, in order.
    var expiredTokens: [ExpiredTokenAction] = []
}

/// Action for requests after ExpiredProviderToken.
enum ExpiredTokenAction: Sendable {
    /// Resend them with another token.
    case renewed
    /// Resend them over another connection: the token is too young to have expired.
    case otherConnection
    /// Stop the run: several connections in a row report an expired token, or no other token is
    /// available.
    case fatal
}
