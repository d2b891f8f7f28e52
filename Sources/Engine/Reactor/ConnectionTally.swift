/// What one connection slot carried in this process, over all connections that used it one after
/// the other.
package struct ConnectionTally: Sendable, Equatable, Codable {
    /// The slot's number in the run, as the log has it; nil where it was not asked for.
    package var number: Int?
    /// Connections that stood here; those after the first are reconnects.
    package var opened: UInt64 = 0
    /// Responses to requests.
    package var responses: UInt64 = 0
    package var latencySumNanoseconds: UInt64 = 0
    package var latencyMaximumNanoseconds: UInt64 = 0
    package var goAways: UInt64 = 0
    /// Connections that ended otherwise than in order.
    package var failures: UInt64 = 0
    /// What the last GOAWAY said.
    package var lastGoAway: String?
    /// Why the last connection that failed did.
    package var lastFailure: String?

    /// Rows that are kept apart; what comes after them is summed up in one more.
    package static let rowsLimit = 128

    private enum CodingKeys: String, CodingKey {
        case number, opened
        case responses = "answers"
        case latencySumNanoseconds, latencyMaximumNanoseconds, goAways, failures, lastGoAway,
            lastFailure
    }

    package init() {}

    @inline(__always)
    mutating func recordResponse(latencyNanoseconds: UInt64) {
        responses &+= 1
        latencySumNanoseconds &+= latencyNanoseconds
        if latencyNanoseconds > latencyMaximumNanoseconds {
            latencyMaximumNanoseconds = latencyNanoseconds
        }
    }

    /// A response came, at a time that is not known.
    mutating func recordResponse() { responses &+= 1 }

    package mutating func add(_ other: ConnectionTally) {
        opened += other.opened
        responses += other.responses
        latencySumNanoseconds &+= other.latencySumNanoseconds
        latencyMaximumNanoseconds = max(latencyMaximumNanoseconds, other.latencyMaximumNanoseconds)
        goAways += other.goAways
        failures += other.failures
        lastGoAway = other.lastGoAway ?? lastGoAway
        lastFailure = other.lastFailure ?? lastFailure
    }
}
