import BroadsideSupport

/// What a run tells a reactor: read at one instant, it holds for a whole turn.
struct RunDirectives: Sendable {
    /// No new requests: responses in flight are awaited.
    var isStopping: Bool
    /// Nothing is awaited any more.
    var isStoppingAtOnce: Bool
    /// The operator wants no new requests for a while; those in flight are answered.
    var isPaused: Bool
    /// Requests in 1,000 seconds over all reactors; nil: unlimited.
    var milliRate: UInt64?
    /// Reactors that have rows to send, at least 1: the rate is divided among them.
    var rateParticipants: Int
    /// A notification was accepted: the campaign works.
    var anyAccepted: Bool
    /// A connection stood ready to send.
    var anyReady: Bool
    /// When the last response came, monotonic nanoseconds; 0 before the first.
    var lastResponse: UInt64
    /// No reactor gets further rows of the list.
    var isListOver: Bool
    /// The provider token to send with, `bearer ...`; nil with a client certificate.
    var authorization: (value: [UInt8]?, version: UInt32)
    /// APNs calls the provider token expired, or it is too old, and there is no other yet.
    var isTokenStale: Bool
    /// There can't be another for a while either: APNs said TooManyProviderTokenUpdates.
    var isTokenBlocked = false
    /// Grows whenever sessions are made from something else.
    var sessionVersion: UInt32
    /// The canary is not decided.
    var isCanaryPending: Bool
    /// No more rows are to be had before it is.
    var isCanaryHolding: Bool
    /// Connections that the reactor keeps up; nil: as many as its settings say.
    var connectionShare: Int?
    /// Requests that it may have in flight although nothing was accepted.
    var permits = 0
    /// What is to be done about each `ExpiredProviderToken` that the effects had, in their order.
    var expiredTokens: [ExpiredTokenAction] = []
}

/// What becomes of requests after ExpiredProviderToken.
enum ExpiredTokenAction: Sendable {
    /// They go on with another token.
    case renewed
    /// They are tried over another connection: the token is too young to have expired.
    case otherConnection
    /// One connection after the other says so, or there can be no other token: the run stops.
    case fatal
}
