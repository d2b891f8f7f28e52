import BroadsidePolicy
import BroadsideSupport

/// Directives of a run to a reactor. They are read together at the start of an iteration and apply
/// to all of it.
struct RunDirectives: Sendable {
    /// Whether the run stops. It then sends no new requests, but waits for responses in flight.
    var isStopping: Bool
    /// Whether the run ends without waiting for responses in flight.
    var isStoppingAtOnce: Bool
    /// Whether the operator paused the run: no new requests, but responses in flight are processed.
    var isPaused: Bool
    /// Requests per 1,000 seconds over all reactors; nil: unlimited.
    var milliRate: UInt64?
    /// Time of the rate's next rise, monotonic nanoseconds; `.max`: it does not rise.
    var rateRisesAt = UInt64.max
    /// Whether a rate ramp still rises, and so counts the time in which requests are sent.
    var isRampCounting = false
    /// Number of reactors that have rows to send, at least 1; the rate is divided among them.
    var rateParticipants: Int
    /// Whether any notification was accepted.
    var anyAccepted: Bool
    /// Whether any connection of the pass has been ready to send.
    var anyReady: Bool
    /// Whether any connection of the run has been ready to send, in this pass or in an earlier one.
    var wasReached: Bool
    /// Time of the last response, monotonic nanoseconds; 0 before the first.
    var lastResponse: UInt64
    /// Whether the list has no further rows for any reactor.
    var isListOver: Bool
    /// The provider token to send with, `bearer ...`; nil with a client certificate.
    var authorization: (value: [UInt8]?, version: UInt32)
    /// Increases when the provider token is of another key than the token before it.
    var keyVersion: UInt32
    /// Whether a usable provider token is missing: the latest one is expired or too old, and no
    /// other is available yet.
    var isTokenStale: Bool
    /// Whether no other token can be made for a while, after TooManyProviderTokenUpdates.
    var isTokenBlocked = false
    /// Increases with each change of the session configuration.
    var sessionVersion: UInt32
    /// Whether the canary is undecided.
    var isCanaryPending: Bool
    /// Whether the canary's rows are used up. All other rows wait until the canary is decided.
    var isCanaryHolding: Bool
    /// Number of connections that the reactor keeps open; nil for the number in its settings.
    var connectionShare: Int?
    /// Topics that a guard stopped. Rows of these topics are not sent.
    var stoppedTopics = TopicSet()
    /// Limit on the reactor's requests in flight before the first acceptance.
    var permits = 0
    /// Action for each `ExpiredProviderToken` in the effects, in order.
    var expiredTokens: [ExpiredTokenAction] = []
}

/// Action for requests after ExpiredProviderToken.
enum ExpiredTokenAction: Sendable {
    /// Resend the requests with another token.
    case renewed
    /// Resend the requests over another connection: the token is too young to have expired.
    case otherConnection
    /// Stop the run: several consecutive connections report an expired token, or no other token is
    /// available.
    case fatal
}
