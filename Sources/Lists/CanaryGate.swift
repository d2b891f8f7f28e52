internal import Synchronization

/// The gate for `--canary`. It withholds all other rows until the canary's rows have responses. The
/// gate opens if at most P percent of the canary's rows were refused.
///
///     asking ──all rows handed out──▶ holding ──all done, at most P percent refused──▶ passed
///        ▲                              │  │
///        │                              │  ├──more than P percent refused──▶ refused: exit 4
///        └───some could not be sent─────┘  └──more than P percent, with rows without
///                                             a response──▶ unanswered: the run stops
///
/// The list's source reports which rows belong to the canary, and the reactors report the outcomes
/// of these rows. While the canary is pending, no other rows are handed out, so every completed row
/// belongs to the canary.
///
/// Rows that wait to be sent again, because APNs was busy or in trouble, need not be awaited if they
/// can't change the decision: then the canary passes without them.
///
/// An invalid row counts as a refusal. A row that was sent and has no final response (lost, or
/// failed) counts as refused only in the decision about `unanswered`. Other rows are handed out in
/// place of skipped rows.
package final class CanaryGate: Sendable {
    /// Decision about the canary.
    package enum Verdict: Sendable, Equatable {
        case pending
        case passed
        /// More rows were refused than `maximumRefusedPercent` allows.
        case refused(count: UInt64, answered: UInt64)
        /// All rows have an outcome, but too few rows have a response for a decision.
        case unanswered
    }

    private struct State {
        var handedOut: UInt64 = 0
        var done: UInt64 = 0
        var answered: UInt64
        var refused: UInt64
        var lost: UInt64 = 0
        /// Number of responses after which a row is sent again.
        var postponed: UInt64 = 0
        var isExhausted = false
        var isListOver = false
        /// Number of replacement rows to hand out.
        var missing: UInt64 = 0
        var verdict = Verdict.pending
    }

    /// Number of rows to hand out. Rows with a response from an earlier run are not included.
    package let rowsWanted: UInt64
    private let answeredEarlier: UInt64
    private let maximumRefusedPercent: Double
    private let state: Mutex<State>
    private let pending = Atomic<Bool>(true)
    private let holding = Atomic<Bool>(false)

    /// - Parameters:
    ///   - rows: The value of `--canary`.
    ///   - maximumRefusedPercent: Value of `--canary-max-rejected`, 0 to 100.
    ///   - answered: Number of responses to the same canary's rows in earlier runs.
    ///   - refused: Number of these responses that are refusals, except 410.
    package init(
        rows: UInt64, maximumRefusedPercent: Double, answered: UInt64 = 0, refused: UInt64 = 0
    ) {
        rowsWanted = rows - min(rows, answered)
        answeredEarlier = answered
        self.maximumRefusedPercent = maximumRefusedPercent
        state = Mutex(State(answered: answered, refused: refused))
    }

    /// Whether the canary is undecided. Read once per event-loop iteration.
    package var isPending: Bool { pending.load(ordering: .acquiring) }

    /// Whether all of the canary's rows are handed out. If so, no more rows are available.
    package var isHolding: Bool { holding.load(ordering: .acquiring) }

    /// Current decision.
    package var verdict: Verdict { state.withLock { $0.verdict } }

    /// Number of responses to the canary's rows, and number of refusals among them. Includes
    /// earlier runs.
    package var counts: (responses: UInt64, refused: UInt64) {
        state.withLock { ($0.answered, $0.refused) }
    }

    /// Records that rows of the canary were handed to a reactor. `count` does not include rows that
    /// were already settled.
    package func handedOut(_ count: Int) {
        assert(count >= 0, "rows are handed out")
        state.withLock { $0.handedOut += UInt64(count) }
    }

    /// Records that all rows of the canary are handed out.
    ///
    /// - Parameter isListOver: Whether the list has fewer rows than the canary wants.
    package func exhausted(isListOver: Bool) {
        state.withLock { state in
            state.isExhausted = true
            state.isListOver = isListOver
            holding.store(state.verdict == .pending, ordering: .releasing)
        }
    }

    /// Returns the number of replacement rows to hand out. Call once after the previous rows are
    /// handed out.
    package func takeMissing() -> UInt64 {
        state.withLock { state in
            defer { state.missing = 0 }
            return state.missing
        }
    }

    /// Records outcomes of rows, and decides about the canary once all its rows are done, or once
    /// the rest can't change the decision and waits to be sent again.
    ///
    /// - Parameters:
    ///   - done: Number of rows that are settled, or not sent again in this run.
    ///   - answered: Number of these rows with a final response from APNs.
    ///   - refused: Number of these responses that are refusals, except 410.
    ///   - lost: Number of rows that were sent but got no final response.
    ///   - postponed: Number of responses after which a row is sent again.
    package func note(
        done: UInt64, answered: UInt64, refused: UInt64, lost: UInt64, postponed: UInt64 = 0
    ) -> Verdict {
        state.withLock { state in
            state.done += done
            state.answered += answered
            state.refused += refused
            state.lost += lost
            state.postponed += postponed
            assert(state.refused <= state.answered, "what is refused was answered")
            guard state.verdict == .pending, state.isExhausted else { return state.verdict }
            let open = state.handedOut - min(state.handedOut, state.done)
            let sent = state.answered - answeredEarlier + state.lost + open
            let isWhole = sent >= rowsWanted || state.isListOver
            guard open == 0 || isWhole && passes(state, whatever: open) else { return .pending }
            if !isWhole {
                state.missing = rowsWanted - sent
                state.isExhausted = false
                holding.store(false, ordering: .releasing)
                return .pending
            }
            state.verdict = open > 0 ? .passed : judge(state)
            holding.store(false, ordering: .releasing)
            pending.store(false, ordering: .releasing)
            return state.verdict
        }
    }

    /// Whether the canary passes whatever becomes of its open rows, and these rows wait to be sent
    /// again.
    private func passes(_ state: State, whatever open: UInt64) -> Bool {
        guard open <= state.postponed, state.answered > 0 else { return false }
        let all = state.answered + state.lost + open
        let worst = state.refused + state.lost + open
        return Double(worst) * 100 <= maximumRefusedPercent * Double(all)
    }

    private func judge(_ state: State) -> Verdict {
        // If no row was sent, the list has ended, and no rows are withheld.
        if state.answered == 0 { return state.lost == 0 ? .passed : .unanswered }
        let isTooMany =
            Double(state.refused) * 100 > maximumRefusedPercent * Double(state.answered)
        if isTooMany { return .refused(count: state.refused, answered: state.answered) }
        let sent = state.answered + state.lost
        let isInconclusive =
            Double(state.refused + state.lost) * 100 > maximumRefusedPercent * Double(sent)
        return isInconclusive ? .unanswered : .passed
    }
}
