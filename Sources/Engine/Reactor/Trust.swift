import BroadsideSupport

/// The limits on a connection's requests, based on its responses so far.
///
/// A connection without a response since its start or since a refusal gets few requests. On a
/// connection to an address that loses rows, the limit on requests in flight grows with the number
/// of responses (`LossyAddresses`).
struct Trust {
    /// Number of consecutive lost requests after which a connection gets no more requests.
    static let lossesLimit = 5

    /// Number of consecutive server errors after which a connection gets no more requests until
    /// another response arrives.
    static let rowErrorsLimit = 16

    /// Number of responses, except the first ones that are `rowErrors`.
    private(set) var responses: UInt64 = 0
    /// Number of responses before the first counted one: server errors that may concern only their
    /// rows.
    private(set) var rowErrors: UInt64 = 0
    /// Time of the last response, monotonic nanoseconds; 0 before the first.
    private(set) var lastResponse: UInt64 = 0
    /// Number of consecutive requests that were reset or timed out.
    private var lossesInARow = 0
    /// Backoff of the connection after refused requests.
    private(set) var refusals: RefusalBackoff
    /// Number of responses at the last refusal, or when `isInDoubt` became true.
    private var responsesAtRefusal: UInt64 = 0
    /// Whether the limit for addresses in `LossyAddresses` applies to the connection.
    private(set) var mustProve = false
    /// Whether requests wait until the server sends anything, because it has been silent for long.
    /// The network may have forgotten the connection: then all requests would be lost.
    private(set) var awaitsSign = false
    /// Number of consecutive server errors, and number of responses at the last one.
    private var serverErrorsInARow = 0
    private var responsesAtServerError: UInt64 = 0

    init(refusals: RefusalBackoff = RefusalBackoff()) { self.refusals = refusals }

    /// Whether only the server's own limits apply to the connection. Evaluated for each record.
    @inline(__always)
    var isComplete: Bool { hasResponded && !mustProve }

    /// Whether a response has come since the start or the last refusal, and the connection is not in
    /// doubt.
    @inline(__always)
    var hasResponded: Bool { responses != responsesAtRefusal }

    @inline(__always)
    mutating func recordResponse(now: UInt64) {
        assert(now >= lastResponse, "a response before the last one")
        responses += 1
        lossesInARow = 0
        lastResponse = now
    }

    /// Whether a response was not a server error. Evaluated after server errors.
    var isProven: Bool { responses + rowErrors > serverErrorsInARow }

    /// Whether the responses to the requests in flight decide if the server is in trouble: all
    /// responses were server errors, or many in a row. Until then, no further requests are sent.
    var isInDoubt: Bool {
        responses == responsesAtServerError
            && serverErrorsInARow > (isProven ? Self.rowErrorsLimit : 0)
    }

    /// Records that the last response is a server error.
    ///
    /// If the row had such an error before, the row may be the cause. The error then concerns only
    /// the row, unless there were many in a row, or no other responses at all. In these cases, the
    /// other requests in flight decide.
    ///
    /// - Parameters:
    ///   - isRepeated: Whether the row had a server error before.
    ///   - awaitsOthers: Whether other requests are in flight.
    /// - Returns: True if the error shows that the server is in trouble.
    mutating func recordServerError(isRepeated: Bool, awaitsOthers: Bool) -> Bool {
        assert(responses > 0, "the error is a response")
        if responses - 1 != responsesAtServerError { serverErrorsInARow = 0 }
        serverErrorsInARow += 1
        responsesAtServerError = responses
        guard isRepeated, awaitsOthers || !isInDoubt else { return true }
        if !isProven {
            responses -= 1
            responsesAtServerError = responses
            rowErrors += 1
        }
        // Any other response makes `hasResponded` true.
        if isInDoubt { responsesAtRefusal = responses }
        return false
    }

    /// Records a lost request.
    ///
    /// - Returns: True if this loss reaches the limit.
    mutating func recordLoss() -> Bool {
        lossesInARow += 1
        return lossesInARow == Self.lossesLimit
    }

    /// Records a request that was refused without being processed.
    ///
    /// - Returns: Earliest time of the next request, monotonic nanoseconds.
    mutating func recordRefusal(now: UInt64) -> UInt64 {
        assert(responsesAtRefusal <= responses)
        responsesAtRefusal = responses
        return refusals.refused(now: now)
    }

    /// Resets the backoff after any response.
    ///
    /// - Returns: False if there was nothing to reset.
    mutating func forgetRefusals() -> Bool {
        guard hasResponded, refusals != RefusalBackoff() else { return false }
        refusals = RefusalBackoff()
        return true
    }

    /// Records that the server has been silent for long.
    mutating func awaitSign() { awaitsSign = true }

    /// Records that the server sent something.
    @inline(__always)
    mutating func recordSign() { awaitsSign = false }

    /// Sets whether the connection's address is in `LossyAddresses`.
    mutating func requireProof(_ isLossy: Bool) { mustProve = isLossy }

    /// Limit on requests in flight of a connection that must prove itself, based on its number of
    /// responses.
    var worth: Int { LossyAddresses.worth(responses: responses) }

    /// Lifts the limit of `mustProve` if the connection has had so many responses that the limit is
    /// as high as `requestLimit`, the server's own limit.
    ///
    /// - Returns: True if this call lifted the limit.
    mutating func endProof(requestLimit: Int) -> Bool {
        assert(mustProve, "there is nothing to prove")
        guard worth > 1, worth >= requestLimit else { return false }
        mustProve = false
        return true
    }
}

/// Backoff of a connection whose requests are refused without being processed: 1 ms, doubled up to
/// 1 s, and reset by any response.
struct RefusalBackoff: Equatable {
    /// Number of consecutive refusals; several within one pause count as one.
    private(set) var rounds = 0
    /// Earliest time of the next request, monotonic nanoseconds.
    private(set) var until: UInt64 = 0

    static let minimum: UInt64 = millisecond
    static let maximum: UInt64 = second

    /// Records a refused request; returns the time at which it may be sent again.
    mutating func refused(now: UInt64) -> UInt64 {
        if until <= now {
            until = now + min(Self.minimum << UInt64(min(rounds, 10)), Self.maximum)
            rounds += 1
        }
        assert(until > now && until - now <= Self.maximum)
        return until
    }
}
