/// What came of one seed.
public struct SeedResult: Sendable, Equatable {
    /// The seed.
    public let seed: UInt64
    /// The first invariant that did not hold; nil where all held.
    public let failure: String?
    /// A hash of everything that happened, in order.
    public let traceHash: UInt64
    /// How many events happened.
    public let steps: Int
    /// How many processes it took.
    public let processes: Int
    /// How often a turn found a reactor with more connections than it began with.
    public let grownTurns: Int
    /// Rows of the list.
    public let rows: Int
    /// Attempts that began while an older one still ran.
    public let overlaps: Int
    /// Starts from an old copy of the ledger, each refused.
    public let staleStarts: Int
    /// What happened to waves; nil: all rows were due at once.
    public let waves: WaveCounts?
    /// How often each fault met each condition.
    public let coverage: Coverage
    /// The end of its story, where that was asked for.
    public let lastLines: [String]
}

/// Runs a simulation from its beginning to its end.
///
/// - Parameters:
///   - seed: What everything follows from.
///   - telling: How much of what happens is put into words.
///   - hasSenders: Whether newer attempts claim the ledger while older ones run.
///   - hasWaves: Whether rows are sent at their local time in any case.
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
