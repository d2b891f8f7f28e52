/// Result of one seed.
public struct SeedResult: Sendable, Equatable {
    /// The seed.
    public let seed: UInt64
    /// The first invariant that was violated; nil if none was.
    public let failure: String?
    /// A hash of all events, in order.
    public let traceHash: UInt64
    /// Number of events.
    public let steps: Int
    /// Number of processes.
    public let processes: Int
    /// Number of iterations that found a reactor with more connections than at its start.
    public let grownTurns: Int
    /// Number of rows of the list.
    public let rows: Int
    /// Number of attempts that began while an older one still ran.
    public let overlaps: Int
    /// Number of starts from an old copy of the ledger, all of them refused.
    public let staleStarts: Int
    /// Counts about waves; nil if all rows were due at once.
    public let waves: WaveCounts?
    /// How often each fault occurred in each condition.
    public let coverage: Coverage
    /// The last lines of its trace, if they were requested.
    public let lastLines: [String]
}

/// Runs a simulation from start to end.
///
/// - Parameters:
///   - seed: Number that decides everything.
///   - telling: How much of the trace is written as text.
///   - hasSenders: Whether newer attempts claim the ledger while older ones run.
///   - hasWaves: Whether rows are always sent at their local time.
public func runSeed(
    _ seed: UInt64, telling: Telling = .nothing, hasSenders: Bool = false, hasWaves: Bool = false
) -> SeedResult {
    let plan = SimulationPlan(seed: seed, hasSenders: hasSenders, hasWaves: hasWaves)
    let simulation = Simulation(plan: plan, telling: telling)
    simulation.run()
    return SeedResult(
        seed: seed, failure: simulation.failure, traceHash: simulation.trace.hash,
        steps: simulation.steps,
        processes: simulation.segments.count, grownTurns: simulation.grownTurns,
        rows: plan.list.tokens.count, overlaps: simulation.overlaps,
        staleStarts: simulation.staleStarts,
        waves: plan.waves == nil ? nil : simulation.story.counts, coverage: simulation.coverage,
        lastLines: simulation.trace.lastLines)
}
