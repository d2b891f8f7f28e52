import Support

/// What a run tells a reactor: read at one instant, it holds for a whole turn.
struct RunDirectives: Sendable {
    /// No new requests: responses in flight are awaited.
    var isStopping = false
    /// Nothing is awaited any more.
    var isStoppingAtOnce = false
    /// The operator wants no new requests for a while; those in flight are answered.
    var isPaused = false
    /// When the last pause ended, monotonic nanoseconds; 0 before the first.
    var lastPauseEnd: UInt64 = 0
    /// Requests in 1,000 seconds over all reactors; nil: unlimited.
    var milliRate: UInt64?
    /// Reactors that have rows to send, at least 1: the rate is divided among them.
    var sharingReactors = 1
    /// A notification was accepted: the campaign works.
    var anyAccepted = false
    /// A connection stood ready to send.
    var anyReady = false
    /// When the last response came, monotonic nanoseconds; 0 before the first.
    var lastResponse: UInt64 = 0
    /// No reactor gets further rows of the list.
    var isListOver = false
    /// The provider token to send with, `bearer ...`; nil with a client certificate.
    var authorization: (value: [UInt8]?, version: UInt32) = (nil, 0)
    /// APNs calls the provider token expired and there is no other yet.
    var isTokenStale = false
    /// Grows whenever sessions are made from something else.
    var sessionVersion: UInt32 = 0
    /// The canary is not decided.
    var isCanaryPending = false
    /// No more rows are to be had before it is.
    var isCanaryHolding = false
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
    case elsewhere
    /// One connection after the other says so, or there can be no other token: the run stops.
    case hopeless
}
