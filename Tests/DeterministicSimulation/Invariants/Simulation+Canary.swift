import Broadside
import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideLists
import BroadsideRows
import BroadsideSupport

extension Simulation {
    /// Creates the canary of a process in the same way as the command.
    ///
    /// - Returns: The canary, and the counts with which it begins.
    func makeCanary(_ index: LedgerIndex) throws(LedgerError) -> (
        CanaryGate?, (answered: Int, refused: Int)
    ) {
        guard let canary = plan.canary, !hasCanaryPassed, !isCanaryGivenUp else {
            return (nil, (0, 0))
        }
        let summary = try LedgerSummary(index)
        let rejected = summary.count(.rejected)
        let invalid = summary.count(.invalid)
        let answered = summary.count(.accepted) + rejected + invalid
        let refused = rejected - summary.goneCount + invalid
        let gate = CanaryGate(
            rows: UInt64(canary.rows), maximumRefusedPercent: canary.percent, answered: answered,
            refused: refused)
        return (gate, (Int(answered), Int(refused)))
    }

    /// Checks that reactors have no more rows than the canary needs while it is pending.
    func noteCanaryRows(_ chunk: RowChunk) {
        guard let gate = process.coordinator.canary else { return }
        for place in 0..<chunk.rowCount {
            let row = Int(chunk.start.row) + place
            process.lastCanaryRow = max(process.lastCanaryRow, row)
            let disposition = chunk.dispositions?[place]
            guard disposition?.isSent ?? true else { continue }
            process.canaryRows.append(row)
        }
        // If a canary passed, and its process died before this was recorded, whole chunks remain.
        if process.reopens == [], !hasCanaryEverPassed, process.canaryRows.count > gate.rowsWanted {
            fail("\(process.canaryRows.count) rows for a canary of \(gate.rowsWanted)")
        }
    }

    /// Checks the verdict of the canary, and remembers what the manifest would have.
    func endCanary(of process: SimulatedProcess) {
        guard let gate = process.coordinator.canary, let canary = plan.canary else { return }
        let answers = Set(process.canaryRows)
        let rows = plan.list.tokens.count
        if process.epoch == 1, !gate.isPending, canary.rows >= 5, answers.count >= 5, rows > 100,
            process.canaryRows.count == canary.rows, process.lastCanaryRow < rows / 2
        {
            fail("the canary's rows come from the list's first half")
        }
        switch gate.verdict {
        case .pending:
            break
        case .passed:
            hasCanaryEverPassed = true
            let least = canaryRefusals(process, isSure: true)
            let most = process.canaryBefore.answered + Set(process.canaryRows).count
            if Double(least) * 100 > canary.percent * Double(most) {
                fail("the canary passes at \(least) refusals of \(most)")
            }
            // A kill may come before the verdict is recorded.
            let isCutShort = process.hasDied || process.claimedAt != nil
            if !isCutShort || random.chance(0.5) { hasCanaryPassed = true }
        case .refused(let count, let answered):
            if Double(count) * 100 <= canary.percent * Double(answered) {
                fail("the canary stops at \(count) refusals of \(answered)")
            }
            let most = canaryRefusals(process, isSure: false)
            if Int(count) > most {
                fail("the canary stops at \(count) refusals, there are \(most)")
            }
            isCanaryGivenUp = true
        case .unanswered:
            isCanaryGivenUp = true
        }
    }

    /// Number of rows of the canary that were refused, except those of devices that no longer have
    /// the app: a lower bound if `isSure`, otherwise an upper bound.
    private func canaryRefusals(_ process: SimulatedProcess, isSure: Bool) -> Int {
        let rows = Set(process.canaryRows)
        var refused: Set<Int> = []
        for copy in journal.copies where copy.epoch == process.epoch && rows.contains(copy.row) {
            guard let told = copy.toldAt, case .answered(let answer) = copy.resolution
            else { continue }
            let isRefusal =
                answer.isGateways
                ? ServerAnswer.meaning(ofGateway: answer.status) != .transient
                : (300..<500).contains(answer.status) && answer.status != 410
            guard isRefusal else { continue }
            let isFinal = !answer.allowsRetryLater && !answer.leavesDoubt
            // The row may have been settled by the gateway's silence before.
            let isLate = answer.isGateways && told - copy.sentAt > plan.silence / 2
            let isCertain =
                isFinal && !isLate && !copy.isToldInVain
                && !wasCancelled(link: copy.link, stream: copy.stream)
            if !isSure || isCertain { refused.insert(copy.row) }
        }
        let invalid =
            isSure
            ? rows.count { plan.list.tokens[$0] == nil }
            : process.reactors.reduce(0) { $0 + Int($1.machine.statistics.counts[.invalid]) }
        // A gateway may name a row that has not arrived there. The client believes it.
        let words = isSure ? 0 : ownLinks.count { $0.word != nil }
        return process.canaryBefore.refused + refused.count + invalid + words
    }

    /// Whether no response settles a row of the canary, or too few responses do: the unsettled rows
    /// and the refused rows together exceed the limit.
    func isCanaryUnanswered(_ process: SimulatedProcess) -> Bool {
        let rows = Set(process.canaryRows)
        let settling = journal.copies.filter { copy in
            guard copy.epoch == process.epoch, rows.contains(copy.row), copy.toldAt != nil,
                !copy.isToldInVain, case .answered(let answer) = copy.resolution
            else { return false }
            return !answer.allowsRetryLater && !answer.leavesDoubt
                && !wasCancelled(link: copy.link, stream: copy.stream)
        }
        let answered = Set(settling.map(\.row))
        guard let canary = plan.canary, !answered.isEmpty else { return true }
        let isNone = canaryRefusals(process, isSure: false) + rows.count - answered.count
        return Double(isNone) * 100
            > canary.percent * Double(process.canaryBefore.answered + rows.count)
    }

    /// A reactor begins its first connections together, up to the number that is allowed before one
    /// of them is established.
    func checkFirstConnections(_ reactor: SimulatedReactor, begunBefore: Int) {
        let begun = process.connectionsBegun[reactor.index, default: 0]
        guard begunBefore == 0, begun > 0, process.pauses.isEmpty, process.facts.addresses.isEmpty
        else { return }
        let expected = min(firstConnections(reactor), 16)
        if begun < expected {
            fail("reactor \(reactor.index) begins \(begun) connections of \(expected)")
        }
    }

    /// The plan decides the number of first connections. Of all later connections, at most ten
    /// begin within a second.
    func checkChurn(_ reactor: SimulatedReactor) {
        process.connectionsBegun[reactor.index, default: 0] += 1
        guard process.connectionsBegun[reactor.index]! > firstConnections(reactor) else { return }
        process.reconnectTimes.append(clock)
        let count = process.reconnectTimes.count
        if count > 10, clock - process.reconnectTimes[count - 11] < second {
            fail("more than ten new connections within a second")
        }
    }
}
