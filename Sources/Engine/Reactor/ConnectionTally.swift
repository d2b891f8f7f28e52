/// The totals of one connection slot in this process, over all of its connections.
package struct ConnectionTally: Sendable, Equatable, Codable {
    /// Number of the slot in the run, as in the log; nil outside of reports.
    package var number: Int?
    /// Number of established connections; those after the first are reconnects.
    package var opened: UInt64 = 0
    /// Responses to requests.
    package var responses: UInt64 = 0
    package var latencySumNanoseconds: UInt64 = 0
    package var latencyMaximumNanoseconds: UInt64 = 0
    package var goAways: UInt64 = 0
    /// Connections that did not end in an orderly way.
    package var failures: UInt64 = 0
    /// Text of the last GOAWAY.
    package var lastGoAway: String?
    /// Cause of the last failure.
    package var lastFailure: String?

    /// Maximum number of slots with an entry of their own. All other slots share one more entry.
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

    /// Counts a response with an unknown latency.
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
