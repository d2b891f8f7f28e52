internal import Synchronization

/// `--canary`: holds a list back until the answers to its first rows are in and few enough of them
/// refuse.
///
///     asking ──all rows handed out──▶ holding ──all done, at most P percent refused──▶ passed
///        ▲                              │  │
///        │                              │  ├──more than P percent refused──▶ refused: exit 4
///        └───some could not be sent─────┘  └──with those that were not answered more than P
///                                             percent──▶ unanswered: the run stops
///
/// The list's source says which rows belong to it, the reactors say what became of them; while it is
/// pending no other rows are in anybody's hands, so that every row that is done is one of its own.
/// A row that was sent and not answered for good (lost, or failed) is not a success: it counts against the
/// canary like one that is refused. A row that is invalid counts as answered, and refused. Rows that are
/// skipped have others take their place.
package final class CanaryGate: Sendable {
    /// How the canary stands.
    package enum Verdict: Sendable, Equatable {
        case pending
        case passed
        /// More were refused than may be.
        case refused(count: UInt64, answered: UInt64)
        /// All rows are done, and too few of them were answered to tell, or none.
        case unanswered
    }

    private struct State {
        var handedOut: UInt64 = 0
        var done: UInt64 = 0
        var answered: UInt64
        var refused: UInt64
        var lost: UInt64 = 0
        var isExhausted = false
        var isListOver = false
        /// Rows that are to be handed out in the place of others.
        var missing: UInt64 = 0
        var verdict = Verdict.pending
    }

    /// Rows that are to be handed out: the answers that earlier runs have are not asked for again.
    package let rowsWanted: UInt64
    private let answeredEarlier: UInt64
    private let maximumRefusedPercent: Double
    private let state: Mutex<State>
    private let pending = Atomic<Bool>(true)
    private let holding = Atomic<Bool>(false)

    /// - Parameters:
    ///   - rows: `--canary`.
    ///   - maximumRefusedPercent: `--canary-max-rejected`, 0 to 100.
    ///   - answered: Answers that earlier runs of the same canary had.
    ///   - refused: How many of these refused, 410 left out.
    package init(
        rows: UInt64, maximumRefusedPercent: Double, answered: UInt64 = 0, refused: UInt64 = 0
    ) {
        rowsWanted = rows - min(rows, answered)
        answeredEarlier = answered
        self.maximumRefusedPercent = maximumRefusedPercent
        state = Mutex(State(answered: answered, refused: refused))
    }

    /// True until it is decided. Asked once a turn.
    package var isPending: Bool { pending.load(ordering: .acquiring) }

    /// True while no more rows are to be had: all of its own are handed out.
    package var isHolding: Bool { holding.load(ordering: .acquiring) }

    /// How it stands.
    package var verdict: Verdict { state.withLock { $0.verdict } }

    /// Responses to its rows, and how many of them refuse, those of earlier runs among them.
    package var counts: (responses: UInt64, refused: UInt64) {
        state.withLock { ($0.answered, $0.refused) }
    }

    /// Rows of the canary are on their way to a reactor, those left out that are settled already.
    package func handedOut(_ count: Int) {
        assert(count >= 0, "rows are handed out")
        state.withLock { $0.handedOut += UInt64(count) }
    }

    /// All its rows are handed out.
    ///
    /// - Parameter isListOver: There are fewer than were asked for.
    package func exhausted(isListOver: Bool) {
        state.withLock { state in
            state.isExhausted = true
            state.isListOver = isListOver
            holding.store(state.verdict == .pending, ordering: .releasing)
        }
    }

    /// How many more rows are to be handed out; asked once, after those before are.
    package func takeMissing() -> UInt64 {
        state.withLock { state in
            defer { state.missing = 0 }
            return state.missing
        }
    }

    /// Takes in what became of rows, and decides where all are done.
    ///
    /// - Parameters:
    ///   - done: Rows that are settled, or that are not sent again in this run.
    ///   - answered: How many of them APNs answered for good.
    ///   - refused: How many of these it refused, 410 left out.
    ///   - lost: Rows that were sent, and not answered for good.
    package func note(done: UInt64, answered: UInt64, refused: UInt64, lost: UInt64) -> Verdict {
        state.withLock { state in
            state.done += done
            state.answered += answered
            state.refused += refused
            state.lost += lost
            assert(state.refused <= state.answered, "what is refused was answered")
            guard state.verdict == .pending, state.isExhausted, state.done >= state.handedOut
            else { return state.verdict }
            let sent = state.answered - answeredEarlier + state.lost
            if sent < rowsWanted, !state.isListOver {
                state.missing = rowsWanted - sent
                state.isExhausted = false
                holding.store(false, ordering: .releasing)
                return .pending
            }
            state.verdict = judge(state)
            holding.store(false, ordering: .releasing)
            pending.store(false, ordering: .releasing)
            return state.verdict
        }
    }

    private func judge(_ state: State) -> Verdict {
        // Where nothing was sent the list is at its end: there is nothing to be held back.
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
