import Broadside
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows

/// If each row of a part that was sent is refused, the whole campaign is wrong, however few rows
/// they are.
extension Simulation {
    /// Performs the check at the list's end, in the same way as the command.
    func checkPartAtEnd(of process: SimulatedProcess) {
        let heldBack = process.reactors.reduce(0) { $0 + $1.machine.snapshot().refusedByCredential }
        guard plan.part != nil, process.coordinator.stopCause == nil, heldBack == 0 else { return }
        do {
            let limit = plan.limit(epoch: process.epoch)
            let index = try LedgerIndex(
                segments: segments.flatMap { $0 }.map(\.ledgerSegment),
                campaign: plan.segmentNumber, recordedLengths: manifestLengths,
                rows: CampaignRows(limit: limit))
            let summary = try LedgerSummary(index)
            let settled = RowState.allCases.filter(\.isSettled).reduce(0) {
                $0 + summary.count($1)
            }
            let rows = UInt64(plan.list.tokens.count)
            // A row that an earlier process sent belongs to the campaign, also beyond the limit.
            guard settled >= min(limit ?? rows, rows) else { return }
            process.coordinator.checkPartAtEnd(SentRows(summary))
        } catch {
            fail("the ledger can't be counted: \(error)")
        }
    }

    /// Compares the verdict of the guard with each row.
    func checkWholeRefusal(_ rows: [LedgerRow], _ process: SimulatedProcess) {
        let sent = rows.filter {
            switch $0.state {
            case .accepted, .rejected, .failed, .unknown, .inDoubt: true
            case .invalid, .skipped, .remaining: false
            }
        }
        let isWhole =
            plan.part != nil && !sent.isEmpty
            && sent.allSatisfy { $0.state == .rejected && $0.status != 410 }
        let cause = process.coordinator.stopCause
        if case .allRefused(let count, let refusal)? = cause {
            guard isWhole, count == UInt64(sent.count) else {
                fail("the run stops for \(count) refused rows, \(sent.count) were sent")
                return
            }
            // It is the last response of this process if that was about a row. A gateway has other
            // statuses.
            let least: UInt16 = plan.gateway == nil ? 400 : 1
            if let refusal, refusal.status < least || refusal.isCredential {
                fail("the refusal of a whole part is \(refusal.text)")
            }
            return
        }
        let end = plan.limit(epoch: process.epoch).map { Int($0) } ?? rows.count
        let heldBack = process.reactors.reduce(0) { $0 + $1.machine.snapshot().refusedByCredential }
        guard isWhole, cause == nil, heldBack == 0,
            rows.prefix(end).allSatisfy(\.state.isSettled)
        else { return }
        fail("each of \(sent.count) rows of a part was refused, and nothing says so")
    }

    /// If no row of a campaign was ever accepted, the run stops after a number of refusals of the
    /// request or the credential, whatever other responses come in between.
    func checkRefusalsNoticed(_ process: SimulatedProcess) {
        switch process.coordinator.stopCause {
        case nil, .complete, .heldBack: break
        default: return
        }
        let answers = journal.copies.compactMap { copy -> (answer: ServerAnswer, isHeard: Bool)? in
            guard case .answered(let answer) = copy.resolution else { return nil }
            let isHeard =
                copy.epoch == process.epoch && copy.toldAt != nil && !copy.isToldInVain
                && !copy.isCancelled
            // The sender renews a token that has expired.
            return answer.reason == "ExpiredProviderToken" ? nil : (answer, isHeard)
        }
        guard plan.gateway == nil, !answers.contains(where: { $0.answer.status == 200 }) else {
            return
        }
        let count = answers.count {
            $0.isHeard
                && ([403, 404, 405].contains($0.answer.status) || $0.answer.isFromOtherServer)
        }
        if count >= plan.abortAfter {
            fail("\(count) refusals of the campaign, no row is accepted, and the process ends")
        }
    }
}
