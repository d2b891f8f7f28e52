import BroadsideSupport

/// Total time during which a response was possible but none came: a request was in flight or could
/// have been sent, and the run was not paused. `--give-up-after` limits it.
///
///     response --in flight--> 20 s --paused--> 20 s --in flight--> 40 s: give up
struct ResponseWait {
    /// Time counted since the last response, nanoseconds.
    private(set) var nanoseconds: UInt64 = 0
    /// End of the time counted so far, monotonic nanoseconds.
    private var countedUntil: UInt64
    /// Time of the last response that reset the count; 0: none.
    private var lastResponse: UInt64 = 0

    init(now: UInt64) { countedUntil = now }

    /// Counts the time since the last call.
    ///
    /// - Parameters:
    ///   - lastResponse: Time of the run's last response; 0: none came. It may be later than `now`,
    ///     because another reactor read its clock later.
    ///   - isPossible: Whether a response could have come since the last call.
    mutating func count(until now: UInt64, lastResponse: UInt64, isPossible: Bool) {
        assert(lastResponse >= self.lastResponse, "an earlier response came later")
        if lastResponse > self.lastResponse {
            self.lastResponse = lastResponse
            nanoseconds = 0
            countedUntil = max(countedUntil, lastResponse)
        }
        if isPossible, now > countedUntil { nanoseconds += now - countedUntil }
        countedUntil = max(countedUntil, now)
    }

    /// Does not count the time since the last call, because the process was stopped during that
    /// time. Responses that arrived meanwhile are not processed yet.
    mutating func skip(to now: UInt64) { countedUntil = max(countedUntil, now) }
}
