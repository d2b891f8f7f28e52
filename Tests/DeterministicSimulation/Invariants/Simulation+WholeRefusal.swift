import Broadside
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows

/// A part of a campaign that ends with each row that was sent refused, however few they are, is a campaign
/// that is wrong as a whole.
extension Simulation {
    /// The check at the list's end, as the command makes it.
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
            // Behind the limit, too, a row that an earlier process sent is the campaign's.
            guard settled >= min(limit ?? rows, rows) else { return }
            process.coordinator.checkPartAtEnd(SentRows(summary))
        } catch {
            fail("the ledger can't be counted: \(error)")
        }
    }

    /// Holds what the guard did against the rows, one by one.
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
            // The last response of this process, if it was about a row; a gateway has statuses of its own.
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

    /// A campaign of which nothing was ever accepted stops at so many refusals of the request or the
    /// credential, whatever else is said between them.
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
            // A token that has expired is the sender's to renew.
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
