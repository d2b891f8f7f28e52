import Broadside
import BroadsideEngine

/// Small limits of reactors, for simulations whose lists are far shorter than the real limits.
struct ScriptedBounds {
    var limits = ReactorLimits()
    /// Maximum number of rows in the handoff between reactors.
    var handoffRows = 65_536

    /// Whether each look-up returns other addresses.
    var changesNames = false

    /// Draws the limits of a seed from their own generator, so that the seed's other draws stay the
    /// same.
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
    /// Whether servers respond with more different reasons than are counted separately.
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
    /// Maximum number of rows that one reactor may have at a time.
    var placesMost: Int {
        let limits = bounds.limits
        return min(connectionsMost * streams, limits.flightRows) + limits.retryRows
    }
}
