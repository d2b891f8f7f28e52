import Broadside
import BroadsideEngine

/// How little a reactor may hold, in simulations whose lists are far shorter than its limits.
struct ScriptedBounds {
    var limits = ReactorLimits()
    /// Rows that may lie between reactors.
    var handoffRows = 65_536

    /// Each look-up finds other addresses.
    var changesNames = false

    /// What a seed draws, of a generator of its own, so that its other draws stay what they are.
    init(seed: UInt64) {
        var random = SimulationRandom(seed: seed ^ 0x626f_756e_6473_0001)
        guard random.chance(0.4) else { return }
        if random.chance(0.6) { limits.flightRows = random.between(1...random.pick([4, 60])) }
        if random.chance(0.6) { limits.retryRows = random.between(1...random.pick([4, 60])) }
        if random.chance(0.6) { limits.ledgerBacklog = random.pick([40, 500, 4000]) }
        if random.chance(0.6) { handoffRows = random.between(1...random.pick([3, 40])) }
        changesNames = random.chance(0.25)
    }
}

extension ScriptedBounds {
    /// Whether servers answer with more different reasons than are counted apart.
    static func namesReasons(seed: UInt64, rows: Int) -> Bool {
        var random = SimulationRandom(seed: seed ^ 0x7265_6173_6f6e_0001)
        return rows > 600 && random.chance(0.2)
    }
}

extension FaultPlan {
    mutating func addManyReasons() {
        strangeReason = 0.5
        hasManyReasons = true
    }
}

extension SimulationPlan {
    /// Rows that one reactor may hold at a time.
    var placesMost: Int {
        let limits = bounds.limits
        return min(connectionsMost * streams, limits.flightRows) + limits.retryRows
    }
}
