import SimulatedWorld
import Testing

@Suite struct SeedTests {
    @Test(arguments: UInt64(0)..<12)
    func invariantsHold(seed: UInt64) {
        let result = runSeed(seed)
        #expect(result.failure == nil)
    }

    @Test(arguments: [UInt64(3), 17])
    func aSeedAlwaysTellsTheSameStory(seed: UInt64) {
        let first = runSeed(seed)
        let second = runSeed(seed)
        #expect(first == second)
    }
}
