package import BroadsidePolicy
import BroadsideSupport

/// Findings of a run about responses that slow down under load.
package struct PaceTally: Sendable, Equatable {
    /// The finding with the slowest responses.
    package private(set) var worst: ConcurrencyLimiter.Finding?

    init() {}

    mutating func record(_ finding: ConcurrencyLimiter.Finding) {
        if finding.loadedNanoseconds > worst?.loadedNanoseconds ?? 0 { worst = finding }
    }

    mutating func add(_ other: PaceTally) {
        if let finding = other.worst { record(finding) }
    }
}

/// State of `--pace adaptive` for all connections of a reactor.
struct LatencyMonitor {
    /// Smoothed interval between iterations, nanoseconds. This is the longest delay that the
    /// reactor itself adds to sends and responses.
    private(set) var lag: UInt64 = 0
    private(set) var lastIteration: UInt64
    /// Shortest latency of any connection without load; `UInt64.max`: none is known.
    var base = UInt64.max
    /// Time of the last detected stall of the reactor, nanoseconds.
    var lastStall: UInt64 = 0

    /// The reactor counts as stalled if it wakes up later than planned by more than this.
    static var stallThreshold: UInt64 { 10 * millisecond }
    /// Minimum interval between two events about a connection's limit.
    static var eventInterval: UInt64 { 60 * second }

    init(now: Now) { lastIteration = now.nanoseconds }

    mutating func recordIteration(_ now: Now) {
        lag = lag - lag / 8 + (now.nanoseconds - lastIteration) / 8
        lastIteration = now.nanoseconds
    }
}

extension ConcurrencyLimiter.Finding {
    /// The finding as text, to follow the words "responses slow down under load".
    package var summary: String {
        "\(latencyText(aloneNanoseconds)) without load, \(latencyText(loadedNanoseconds)) with "
            + "\(grouped(inFlight)) in flight: limited to \(grouped(limit))"
    }
}
