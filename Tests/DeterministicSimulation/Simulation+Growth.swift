import Broadside
import BroadsideEngine
import BroadsideSupport

/// A run that grows while it goes on: what it begins with, and when it gets more.
struct ScriptedGrowth {
    /// Reactors with connections from the start.
    let reactorsAtFirst: Int
    let connectionsAtFirst: Int
    /// Nanoseconds after a process began, and what it may keep up from then on.
    let steps: [(delay: UInt64, connections: Int, reactors: Int)]

    /// The most connections of one reactor.
    static let connectionsMost = 32

    /// What a seed draws, of a generator of its own, so that its other draws stay what they are; nil
    /// where it grows not.
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

    /// Connections that one reactor may ever keep up.
    var connectionsMost: Int {
        growth == nil ? connections : ScriptedGrowth.connectionsMost
    }
}

extension Simulation {
    /// Plans when the process gets more connections.
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

    /// The connections of a reactor that do not count against the ten a second: its first ones.
    func firstConnections(_ reactor: SimulatedReactor) -> Int {
        guard let growth = plan.growth else { return plan.connections }
        let (each, rest) = growth.connectionsAtFirst.quotientAndRemainder(
            dividingBy: growth.reactorsAtFirst)
        guard reactor.index < growth.reactorsAtFirst else { return 0 }
        return each + (reactor.index < rest ? 1 : 0)
    }

    /// No reactor keeps up more connections than its share, and one without any takes no rows.
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
