import BroadsideSupport
import DeterministicSimulation
import Testing

@Suite struct SeedTests {
    @Test(arguments: UInt64(0)..<12)
    func `A seed's run violates no invariant`(seed: UInt64) {
        let result = runSeed(seed)
        #expect(result.failure == nil)
    }

    @Test func `Runs grow within their limits in all seeds`() {
        var grown = 0
        for seed in UInt64(120)..<134 {
            let result = runSeed(seed)
            #expect(result.failure == nil, "seed \(seed)")
            if result.grownTurns > 0 { grown += 1 }
        }
        #expect(grown >= 2)
    }

    @Test(arguments: [UInt64(21), 37, 45, 117])
    func `Legacy gateway campaigns violate no invariant`(seed: UInt64) {
        let result = runSeed(seed)
        #expect(result.failure == nil)
        #expect(result.coverage.hasGateways)
    }

    @Test(arguments: [UInt64(2), 6, 8, 9, 12, 14, 20, 22])
    func `Rows that are sent at their local time violate no invariant`(seed: UInt64) {
        let result = runSeed(seed, hasWaves: true)
        #expect(result.failure == nil)
        #expect(result.waves.map { $0.passes > 1 && $0.waits > 0 } == true)
    }

    @Test(arguments: [UInt64(3), 17, 21])
    func `A seed gives the same result in each run`(seed: UInt64) {
        let first = runSeed(seed)
        let second = runSeed(seed)
        #expect(first == second)
    }

    @Test func `Several senders of one campaign send no row twice`() {
        var overlapping = 0
        for seed in UInt64(0)..<30 {
            let result = runSeed(seed, hasSenders: true)
            #expect(result.failure == nil, "seed \(seed)")
            if result.overlaps > 0 { overlapping += 1 }
        }
        #expect(overlapping >= 15)
    }
}
