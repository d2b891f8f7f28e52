import BroadsideEngine
import BroadsideObservability
import BroadsidePolicy
import BroadsideSupport

/// Passes samples of a run to `ConnectionGrowth` once per second, and applies its decisions.
struct GrowthWatch {
    private var growth: ConnectionGrowth
    private let target: ConnectionTarget
    private var threads: [ThreadUse] = []
    private var reason = ConnectionGrowth.Reason.early
    /// The limit that `judgedLimit` last returned; nil if the rate limit does not rise.
    private var rampLimit: Double?

    /// Creates the watch; nil if the run keeps its initial number of connections.
    init?(_ plan: Plan, target: ConnectionTarget?) {
        guard let target else { return nil }
        self.target = target
        growth = ConnectionGrowth(
            connections: plan.shape.connections, reactors: plan.shape.reactorsAtFirst,
            connectionsMost: plan.shape.connectionsMost, reactorsMost: plan.shape.reactors)
    }

    /// Takes a sample.
    ///
    /// - Returns: Message about a change; nil if nothing changes.
    mutating func observe(
        _ snapshot: RunSnapshot, threads uses: [ThreadUse], growthSuspended: Bool
    ) -> String? {
        guard !growth.isSettled else { return nil }
        var sample = ConnectionGrowth.Sample(nanoseconds: snapshot.takenAt)
        let limited = snapshot.statistics.limited
        sample.responses = snapshot.latencyCounts.count
        sample.openConnections = snapshot.openConnections
        // Time spent at the adaptive limit counts like time without free streams. Another
        // connection would have its own limit, which may stay higher.
        sample.heldNanoseconds =
            limited[Bottleneck.streams.rawValue] + limited[Bottleneck.window.rawValue]
        sample.busyNanoseconds = limited[Bottleneck.cpu.rawValue]
        sample.totalNanoseconds = limited.reduce(0, +)
        sample.busiestThread = zip(uses, threads).compactMap { $0.share(since: $1) }.max() ?? 0
        threads = uses
        sample.rateLimit = judgedLimit(snapshot)
        sample.rowsLeft = snapshot.rows.map { $0 - min($0, snapshot.counts.settled) }
        sample.latencyNanoseconds = snapshot.latencyNow.p99
        sample.failures = snapshot.statistics.failures
        sample.pushbacks = snapshot.statistics.pushbacks
        sample.pausedAddresses = snapshot.statistics.pausedAddresses
        sample.growthSuspended = growthSuspended
        return take(growth.observe(sample))
    }

    /// Returns the rate limit of a measurement. Only measurements with the same limit are compared.
    /// While the limit rises, the returned limit changes only after a rise by a tenth. Otherwise no
    /// two measurements would have the same limit.
    private mutating func judgedLimit(_ snapshot: RunSnapshot) -> Double? {
        if snapshot.ramp != nil, let last = rampLimit, let limit = snapshot.rateLimit,
            limit >= last, limit < last * 1.1
        {
            return last
        }
        rampLimit = snapshot.ramp == nil ? nil : snapshot.rateLimit
        return snapshot.rateLimit
    }

    private mutating func take(_ decision: ConnectionGrowth.Decision) -> String? {
        switch decision {
        case .stay(let reason):
            self.reason = reason
            return nil
        case .grow(let connections, let reactors):
            let before = target.total
            reason = .measuring
            target.grow(to: connections, reactors: reactors)
            assert(target.total >= before, "connections are only added")
            let threads = reactors > 1 ? " on \(reactors) reactors" : ""
            return "from \(before) to \(connections) connections\(threads): APNs stream limits and "
                + "flow-control windows are the bottleneck"
        case .settled(let reason):
            self.reason = reason
            return "\(counted(target.total, "connection")) (\(words))"
        }
    }

    /// Text about the reason for the run's number of connections.
    var words: String { reason.words(connections: target.total) }
}

extension ConnectionGrowth.Reason {
    /// Human-readable reason, to append to the number of connections.
    func words(connections: Int) -> String {
        switch self {
        case .early: "the run ended before anything could be measured"
        case .measuring: "the run ended before scaling could be measured"
        case .trouble: "connections are failing, or APNs is throttling"
        case .rateKept(let rate): "enough for the rate of \(rateText(rate))/s"
        case .notHeld: "stream limits and windows are not the bottleneck"
        case .threadsBusy: "the reactors use all of their CPU"
        case .fewRows: "too few rows remain for more connections to help"
        case .most: "no more are opened automatically"
        case .noGain(let before, let percent):
            "more would not help: \(connections) instead of \(before) changed throughput by \(percent)%"
        case .repeatedTrouble:
            "connections keep failing, or APNs keeps throttling: no more are opened"
        case .notAllOpen: "the last connections did not open: no more are tried"
        }
    }
}
