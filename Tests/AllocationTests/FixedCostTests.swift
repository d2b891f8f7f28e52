import BroadsideTestSupport
import Testing

/// What start and end of a run cost, whatever its rows: each sync waits for the disk, and each thread
/// takes memory, and time to start.
@Suite(.timeLimit(.minutes(60)))
struct FixedCostTests {
    @Test func `A run of few rows makes 25 syncs at most and starts 20 threads at most`() throws {
        let simulation = try Simulation(["--fast"])
        let run = try CallCounter().send(
            rows: 50, to: simulation, ["--connections", "4", "--reactors", "1"])
        // Two claims have eleven, three manifests and two copies of them eight, the lock two; the others
        // are for the ledger's name, the names of segments, the header of one, and telemetry.
        #expect(run["syncs"] <= 25 && run["syncs"] > 10)
        #expect(run["threads"] <= 20 && run["threads"] > 5)
    }
}
