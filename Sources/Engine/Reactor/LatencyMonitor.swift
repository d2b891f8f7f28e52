package import BroadsidePolicy
import BroadsideSupport

/// What a run found out about responses that slow down under load.
package struct PaceTally: Sendable, Equatable {
    /// The finding of the slowest responses.
    package private(set) var worst: ConcurrencyLimiter.Finding?

    init() {}

    mutating func record(_ finding: ConcurrencyLimiter.Finding) {
        if finding.loadedNanoseconds > worst?.loadedNanoseconds ?? 0 { worst = finding }
    }

    mutating func add(_ other: PaceTally) {
        if let finding = other.worst { record(finding) }
    }
}

/// What `--pace adaptive` keeps for all connections of a reactor.
struct LatencyMonitor {
    /// The time from one turn to the next, smoothed, nanoseconds: so late does the reactor send and
    /// look at responses at the most, by its own doing.
    private(set) var lag: UInt64 = 0
    private(set) var lastIteration: UInt64
    /// The shortest base of any connection; `UInt64.max`: none is known.
    var base = UInt64.max
    /// When the reactor was found to have been away, nanoseconds.
    var lastStall: UInt64 = 0

    /// So much later than asked the reactor may wake before it counts as having been away.
    static var stallThreshold: UInt64 { 10 * millisecond }
    /// A connection tells so often at most that it is held.
    static var eventInterval: UInt64 { 60 * second }

    init(now: Now) { lastIteration = now.nanoseconds }

    mutating func recordIteration(_ now: Now) {
        lag = lag - lag / 8 + (now.nanoseconds - lastIteration) / 8
        lastIteration = now.nanoseconds
    }
}

extension ConcurrencyLimiter.Finding {
    /// In words, to follow "responses slow down under load".
    package var summary: String {
        "\(latencyText(aloneNanoseconds)) alone, \(latencyText(loadedNanoseconds)) with "
            + "\(grouped(inFlight)) in flight: held to \(grouped(limit))"
    }
}
