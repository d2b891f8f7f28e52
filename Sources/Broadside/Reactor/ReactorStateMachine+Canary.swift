import Campaign

/// What of a reactor's counters the canary knows already.
struct CanaryReport {
    var done: UInt64 = 0
    var answered: UInt64 = 0
    /// Rows that were refused for good, 410 left out.
    var refused: UInt64 = 0
    var refusedReported: UInt64 = 0
    var lost: UInt64 = 0
    /// Rows that an earlier run sent: their answers were never to be had.
    var lostBefore: UInt64 = 0
}

extension ReactorStateMachine where Records: ~Copyable {
    /// Tells the canary what became of its rows since the last time, and stops the run where too
    /// many were refused.
    mutating func report(to canary: CanaryGate) {
        let done = statistics.settled + statistics.heldBack
        // A row that is invalid tells as much of the campaign as one that is refused.
        let invalid = statistics.invalid
        let answered = statistics.accepted + statistics.rejected + statistics.heldBack + invalid
        let refused = canaryReport.refused + statistics.heldBack + invalid
        let lost = statistics.failed + statistics.unknown - canaryReport.lostBefore
        let verdict = canary.note(
            done: done - canaryReport.done, answered: answered - canaryReport.answered,
            refused: refused - canaryReport.refusedReported, lost: lost - canaryReport.lost)
        canaryReport.done = done
        canaryReport.answered = answered
        canaryReport.refusedReported = refused
        canaryReport.lost = lost
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
