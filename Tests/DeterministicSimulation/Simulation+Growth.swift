import Broadside
import BroadsideEngine
import BroadsideSupport

/// A run that gets more connections while it runs: its first connections, and the times at which it
/// gets more.
struct ScriptedGrowth {
    /// Number of reactors that have connections from the start.
    let reactorsAtFirst: Int
    let connectionsAtFirst: Int
    /// Times since the start of a process, in nanoseconds, each with the connections that it may
    /// maintain from then on.
    let steps: [(delay: UInt64, connections: Int, reactors: Int)]

    /// Maximum number of connections of one reactor.
    static let connectionsMost = 32

    /// Draws the growth of a seed from its own generator, so that the seed's other draws stay the
    /// same; nil if it does not grow.
    init?(seed: UInt64, connections: Int, reactors: Int) {
        var random = SimulationRandom(seed: seed ^ 0x6772_6f77_7468_0001)
        guard random.chance(0.3) else { return nil }
        var active = random.between(1...reactors)
        var total = active * random.between(1...connections)
        reactorsAtFirst = active
        connectionsAtFirst = total
        var delay: UInt64 = 0
        var steps: [(UInt64, Int, Int)] = []
        for _ in 0..<random.between(1...4) {
            delay += random.skewedDelay(4 * second)
            if active < reactors, random.chance(0.6) { active += 1 }
            let more = random.between(1...(random.chance(0.3) ? 16 : total + 1))
            total = min(total + more, Self.connectionsMost)
            steps.append((delay, total, active))
        }
        self.steps = steps
    }

    func target(reactors: Int) -> ConnectionTarget {
        ConnectionTarget(
            connections: connectionsAtFirst, reactors: reactors, active: reactorsAtFirst)
    }
}

extension SimulationPlan {
    var growth: ScriptedGrowth? {
        ScriptedGrowth(seed: seed, connections: connections, reactors: reactors)
    }

    /// Maximum number of connections that one reactor may ever maintain.
    var connectionsMost: Int {
        growth == nil ? connections : ScriptedGrowth.connectionsMost
    }
}

extension Simulation {
    /// Schedules the times at which the process gets more connections.
    func scheduleGrowth(epoch: Int) {
        for step in plan.growth?.steps ?? [] {
            events.insert(
                .growth(epoch: epoch, connections: step.connections, reactors: step.reactors),
                at: clock + step.delay)
        }
    }

    func grow(to connections: Int, reactors: Int) {
        note { "\(connections) connections on \(reactors) reactors from now on" }
        cover(.growth)
        process.coordinator.connectionTarget?.grow(to: connections, reactors: reactors)
        for reactor in process.reactors { wake(reactor, at: clock + random.delay(50_000)) }
    }

    /// Number of a reactor's first connections, which do not count towards the limit of ten per
    /// second.
    func firstConnections(_ reactor: SimulatedReactor) -> Int {
        guard let growth = plan.growth else { return plan.connections }
        let (each, rest) = growth.connectionsAtFirst.quotientAndRemainder(
            dividingBy: growth.reactorsAtFirst)
        guard reactor.index < growth.reactorsAtFirst else { return 0 }
        return each + (reactor.index < rest ? 1 : 0)
    }

    /// No reactor maintains more connections than its share, and a reactor without connections gets
    /// no rows.
    func checkGrowth(_ reactor: SimulatedReactor) {
        guard let target = process.coordinator.connectionTarget else { return }
        let share = target.share(of: reactor.index)
        let active = reactor.machine.activeConnections
        if active > share { fail("\(active) connections where \(share) may be") }
        if active > firstConnections(reactor) { grownTurns += 1 }
        let statistics = reactor.machine.snapshot()
        if share == 0, statistics.counts.settled + statistics.requests > 0 {
            fail("reactor \(reactor.index) has no connections, and takes rows")
        }
        let ended = Int(statistics.connectionsOpened) - reactor.machine.establishedConnections
        if statistics.reconnects > ended {
            fail("\(statistics.reconnects) reconnects where \(ended) connections ended")
        }
        if target.total > ScriptedGrowth.connectionsMost {
            fail("the run grew to \(target.total) connections")
        }
    }
}
