import Campaign

extension ReactorStateMachine where Records: ~Copyable {
    /// Tells the canary what became of its rows since the last time, and stops the run where too
    /// many were refused.
    mutating func report(to canary: CanaryGate) {
        let done = metrics.statistics.settled + metrics.statistics.heldBack
        // A row that is invalid tells as much of the campaign as one that is refused.
        let invalid = metrics.statistics.invalid
        let answered =
            metrics.statistics.accepted + metrics.statistics.rejected + metrics.statistics.heldBack
            + invalid
        let refused = metrics.canaryReport.refused + metrics.statistics.heldBack + invalid
        let lost =
            metrics.statistics.failed + metrics.statistics.unknown - metrics.canaryReport.lostBefore
        let verdict = canary.note(
            done: done - metrics.canaryReport.done,
            answered: answered - metrics.canaryReport.answered,
            refused: refused - metrics.canaryReport.refusedReported,
            lost: lost - metrics.canaryReport.lost)
        metrics.canaryReport.done = done
        metrics.canaryReport.answered = answered
        metrics.canaryReport.refusedReported = refused
        metrics.canaryReport.lost = lost
        switch verdict {
        case .pending, .passed:
            break
        case .refused(let count, let answered):
            shared.stop(.canaryRefused(count: count, answered: answered))
        case .unanswered:
            shared.stop(.canaryUnanswered)
        }
    }
}
