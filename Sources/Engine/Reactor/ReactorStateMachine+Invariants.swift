extension ReactorStateMachine where Records: ~Copyable {
    /// What does not hold after a turn although it always has to; nil if all is well. Debug builds ask
    /// after each turn, and so does the deterministic simulation.
    var brokenInvariant: String? {
        rows.brokenInvariant
            ?? connections.brokenInvariant(inFlight: rows.inFlight)
            ?? brokenPermits
            ?? recorder.brokenInvariant
    }

    private var brokenPermits: String? {
        (0...settings.abortAfter).contains(run.directives.permits)
            ? nil : "\(run.directives.permits) permits of \(settings.abortAfter)"
    }
}
