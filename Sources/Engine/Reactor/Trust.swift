import BroadsideSupport

/// How many requests a connection's server may have, by what it made of those before.
///
/// A connection without a response since its start or since a refusal is asked carefully, and one to an
/// address that loses rows has as many requests in flight as its responses are worth.
struct Trust {
    /// A connection on which so many requests in a row were lost gets no more.
    static let lossesLimit = 5

    private(set) var responses: UInt64 = 0
    /// When a response came last, monotonic nanoseconds; 0 before the first.
    private(set) var lastResponse: UInt64 = 0
    /// Requests that were reset or had no response in time, one after the other.
    private var lossesInARow = 0
    /// How long the connection is left alone, as its requests are refused.
    private(set) var refusals: RefusalBackoff
    /// The responses that there were when a request was refused last.
    private var responsesAtRefusal: UInt64 = 0
    /// Its address loses rows.
    private(set) var mustProve = false

    init(refusals: RefusalBackoff = RefusalBackoff()) { self.refusals = refusals }

    /// Nothing limits the requests but what the server allows. Asked for each record.
    @inline(__always)
    var isComplete: Bool { hasResponded && !mustProve }

    /// A response has come since the start, or since the last refusal.
    @inline(__always)
    var hasResponded: Bool { responses != responsesAtRefusal }

    @inline(__always)
    mutating func recordResponse(now: UInt64) {
        responses += 1
        lossesInARow = 0
        lastResponse = now
    }

    /// A request was lost.
    ///
    /// - Returns: True for the one that makes it too many in a row.
    mutating func recordLoss() -> Bool {
        lossesInARow += 1
        return lossesInARow == Self.lossesLimit
    }

    /// A request was refused without being processed.
    ///
    /// - Returns: When another may be sent, monotonic nanoseconds.
    mutating func recordRefusal(now: UInt64) -> UInt64 {
        responsesAtRefusal = responses
        return refusals.refused(now: now)
    }

    /// With any response the pause is over; the next refusal starts with the shortest again.
    ///
    /// - Returns: False where there was none to forget.
    mutating func forgetRefusals() -> Bool {
        guard hasResponded, refusals != RefusalBackoff() else { return false }
        refusals = RefusalBackoff()
        return true
    }

    /// Its address loses rows, or does not.
    mutating func requireProof(_ isLossy: Bool) { mustProve = isLossy }

    /// Requests that may be in flight by what the responses are worth.
    var worth: Int { LossyAddresses.worth(responses: responses) }

    /// Ends the proof once the responses are worth all requests that the server allows.
    ///
    /// - Returns: True where it ended now.
    mutating func endProof(requestLimit: Int) -> Bool {
        guard worth > 1, worth >= requestLimit else { return false }
        mustProve = false
        return true
    }
}

/// How long a connection is left alone whose requests are refused without being processed: 1 ms, which
/// doubles to 1 s, and returns to 1 ms with any response on it.
struct RefusalBackoff: Equatable {
    /// Refusals in a row; those within one pause are one.
    private(set) var rounds = 0
    /// Nothing is sent before; monotonic nanoseconds.
    private(set) var until: UInt64 = 0

    static let minimum: UInt64 = millisecond
    static let maximum: UInt64 = second

    /// A request was refused: when it may be sent again.
    mutating func refused(now: UInt64) -> UInt64 {
        if until <= now {
            until = now + min(Self.minimum << UInt64(min(rounds, 10)), Self.maximum)
            rounds += 1
        }
        return until
    }
}
