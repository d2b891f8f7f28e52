import BroadsideLists

/// Waves of a seed: which rows a process leaves to a later one, because they are not due.
struct ScriptedWaves {
    /// Number of zones, each with its rows.
    let zoneCount: Int
    /// Number of neighboring rows of one zone.
    private let stretch: Int
    private let seed: UInt64
    /// Number of zones that are due in the first process; one more is due in each later one.
    private let first: Int

    /// - Returns: nil: all rows are due at once.
    init?(seed: UInt64) {
        var random = SimulationRandom(seed: seed ^ 0x7761_7665_7300_0001)
        guard random.chance(0.3) else { return nil }
        self.seed = seed
        zoneCount = random.between(2...7)
        stretch = random.pick([1, 1, 3, 40])
        first = random.between(0...1)
    }

    /// Zone of a row.
    func zone(_ row: Int) -> Int {
        var random = SimulationRandom(seed: seed &+ UInt64(row / stretch) &* 0x9e37_79b9)
        return random.below(zoneCount)
    }

    /// Whether the rows of a zone are due in a process.
    func isDue(_ zone: Int, epoch: Int) -> Bool { zone < first + epoch - 1 }
}

extension SimulationPlan {
    /// Waves of a process that is not calm; nil: all rows are due. Not together with what checks the
    /// list as a whole.
    private func waves(epoch: Int) -> ScriptedWaves? {
        guard epoch <= faultPlans.count, maxInvalid == 100, canary == nil, part == nil else {
            return nil
        }
        return ScriptedWaves(seed: seed)
    }

    /// Whether a row is not due in a process. A row without a token waits for nothing.
    func waits(_ row: Int, epoch: Int) -> Bool {
        guard let waves = waves(epoch: epoch), list.tokens[row] != nil else { return false }
        return !waves.isDue(waves.zone(row), epoch: epoch)
    }

    /// Rows that a process sends; nil: all.
    func dueRows(epoch: Int) throws -> DueRows? {
        guard let waves = waves(epoch: epoch) else { return nil }
        let numbers = list.tokens.indices.map { row in
            list.tokens[row] == nil ? 0 : RowZones.firstZone + UInt16(waves.zone(row))
        }
        let zones = try RowZones(numbers: numbers, zoneCount: waves.zoneCount)
        return DueRows(zones) { waves.isDue($0, epoch: epoch) ? .send : .wait }
    }
}
