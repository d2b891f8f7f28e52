package import Campaign
import Support

/// What a run found out of answers that slow down under load.
package struct PaceTally: Sendable, Equatable {
    /// The finding of the slowest answers.
    package private(set) var worst: ConcurrencyLimiter.Finding?

    init() {}

    mutating func note(_ finding: ConcurrencyLimiter.Finding) {
        if finding.loadedNanoseconds > worst?.loadedNanoseconds ?? 0 { worst = finding }
    }

    mutating func add(_ other: PaceTally) {
        if let finding = other.worst { note(finding) }
    }
}

/// What `--pace adaptive` keeps for all connections of a reactor.
struct LatencyMonitor {
    /// The time from one turn to the next, smoothed, nanoseconds: so late does the reactor send and
    /// look at answers at the most, by itself.
    private(set) var lag: UInt64 = 0
    private(set) var lastTurn: UInt64
    /// The shortest base of any connection; `UInt64.max`: none is known.
    var base = UInt64.max
    /// When the reactor was found to have been away, nanoseconds.
    var lastAbsence: UInt64 = 0

    /// So much later than asked the reactor may wake before it counts as having been away.
    static var absence: UInt64 { 10 * millisecond }
    /// A connection tells so often at most that it is held.
    static var tellInterval: UInt64 { 60 * second }

    init(now: Now) { lastTurn = now.nanoseconds }

    mutating func noteTurn(_ now: Now) {
        lag = lag - lag / 8 + (now.nanoseconds - lastTurn) / 8
        lastTurn = now.nanoseconds
    }
}

extension ReactorStateMachine where Records: ~Copyable {
    /// How many more requests the connection's pace lets go. Ends its window where that is due.
    @inline(__always)
    mutating func paceRoom(_ index: Int, now: Now) -> Int {
        guard settings.pace == .adaptive, connections[index].session.respondsToEach
        else { return .max }
        let open = connections[index].openCount
        if open >= min(connections[index].pace.limit, connections[index].session.requestLimit) {
            connections[index].pace.noteFull()
        }
        if connections[index].pace.isDue(now: now.nanoseconds) { endPaceWindow(index, now: now) }
        return connections[index].pace.limit - open
    }

    @inline(never)
    private mutating func endPaceWindow(_ index: Int, now: Now) {
        let finding = connections[index].pace.endWindow(
            now: now.nanoseconds, allowed: connections[index].session.requestLimit,
            hint: connections.latencyMonitor.base, lag: connections.latencyMonitor.lag)
        connections.latencyMonitor.base = min(
            connections.latencyMonitor.base, connections[index].pace.base)
        guard let finding else { return }
        metrics.statistics.pace.note(finding)
        guard now.nanoseconds >= connections[index].nextPaceWord else { return }
        connections[index].nextPaceWord = now.nanoseconds + LatencyMonitor.tellInterval
        tell(
            .pace, .info, connection: index,
            "\(connections.peer(index)): responses slow down under load, \(finding.words)", now: now
        )
    }

    /// Where the reactor did not run although it was time, latencies are not the server's.
    mutating func noteAbsence(_ now: Now) {
        guard now.nanoseconds > timers.nextDeadline + LatencyMonitor.absence,
            now.nanoseconds != connections.latencyMonitor.lastAbsence
        else { return }
        connections.latencyMonitor.lastAbsence = now.nanoseconds
        let absence = now.nanoseconds - connections.latencyMonitor.lastTurn
        for index in 0..<connections.count {
            connections[index].pace.noteAbsence(nanoseconds: absence)
        }
    }

    /// What connections that are gone knew is forgotten.
    mutating func renewPaceBase() {
        connections.latencyMonitor.base = .max
        for index in 0..<connections.count where connections[index].isReady {
            connections.latencyMonitor.base = min(
                connections.latencyMonitor.base, connections[index].pace.base)
        }
    }
}

extension ConcurrencyLimiter.Finding {
    /// In words, to follow "responses slow down under load".
    package var words: String {
        "\(latencyText(aloneNanoseconds)) alone, \(latencyText(loadedNanoseconds)) with "
            + "\(grouped(inFlight)) in flight: held to \(grouped(limit))"
    }
}
