internal import BroadsideAPNs
import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideObservability
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Final cause of a run's end, with its exit code and last line.
struct RunConclusion {
    var cause: StopCause
    /// Whether every row of the list is settled.
    let isWhole: Bool
    /// Whether APNs responded to any request of this process.
    let wasAnswered: Bool
    /// Whether APNs accepted any request of this process.
    private let anyAccepted: Bool
    /// The last response that made the last pass send a row again; nil if a row was accepted after
    /// it.
    private let pushback: Pushback?
    /// Whether this process sent a request, or earlier runs may have sent a row.
    private let sentAnything: Bool

    /// Creates the conclusion of a run whose reactors have ended.
    ///
    /// - Parameters:
    ///   - stop: Cause of the stop; nil: the run reached the end of its list.
    ///   - statistics: Statistics of the last pass.
    ///   - passes: All passes of the process, including the last one.
    ///   - earlier: Counts of the ledger before the last pass.
    ///   - isWhole: Whether every row of the list is settled.
    ///   - coordinator: Coordinator of the last pass.
    init(
        stop: StopCause?, _ statistics: RunStatistics, of passes: RunPasses,
        earlier: RowCounts, isWhole: Bool, _ coordinator: RunCoordinator
    ) {
        assert(passes.statistics.requests >= statistics.requests, "the last pass is one of them")
        self.isWhole = isWhole
        wasAnswered = coordinator.lastResponse != nil || passes.responses > 0
        anyAccepted = coordinator.anyAccepted || passes.statistics.counts[.accepted] > 0
        pushback = coordinator.lastPushback.flatMap { $0.isOver ? nil : $0 }
        sentAnything =
            passes.statistics.requests > 0 || earlier.sent > 0 || earlier[.inDoubt] > 0
        // A stop request that came when the last row was in flight had no effect.
        cause =
            switch stop {
            case .signal where isWhole, .control where isWhole, .keyboard where isWhole,
                .deadline where isWhole:
                .complete
            case let stop?: stop
            case nil:
                TopicReport.stopCause(coordinator.topicReports)
                    ?? (statistics.refusedByCredential > 0
                        ? .heldBack(rows: statistics.refusedByCredential, coordinator.lastRefusal)
                        : .complete)
            }
    }

    /// The stop record for the ledger.
    var record: StopRecord { StopRecord(cause, wasAnswered: wasAnswered) }

    /// Whether the ledger belongs to this run and accepts records.
    var ownsLedger: Bool {
        // The disk has failed: do not write the manifest again. Segments alone show what was
        // settled.
        if case .ledgerFailed = cause { return false }
        return cause != .superseded && cause != .ledgerGone
    }

    /// Whether the list turned out to be wrong before any run of the campaign sent anything.
    var isWrongList: Bool {
        switch cause {
        case .tooManyInvalid, .listFaulty: !sentAnything
        default: false
        }
    }

    /// Whether the run gave up with no contact: it did not reach the server, and it sent nothing.
    /// No device can then have received the notification.
    var isFailedContact: Bool { cause.isGivingUp && !wasAnswered && !sentAnything }

    /// Whether the run sent nothing, so that its ledger is not needed and the corrected command can
    /// begin again.
    ///
    /// - Parameter isExpected: Whether the ledger is needed even if nothing was sent (see
    ///   `expectsLedger`).
    func discardsLedger(isExpected: Bool) -> Bool {
        isWrongList || (isFailedContact && !isExpected)
    }

    func exitCode(_ summary: Summary) -> Int32 {
        if isWrongList { return ExitCode.badRequest }
        if cause.isAbort { return ExitCode.refused }
        switch cause {
        case .superseded: return ExitCode.inUse
        case .ledgerFailed, .ledgerGone, .listFailed, .listChanged: return ExitCode.disk
        case .brokenServer:
            if !anyAccepted { return ExitCode.failure }
        case _ where cause.isGivingUp && !wasAnswered: return ExitCode.failure
        default: break
        }
        guard isWhole else { return ExitCode.rowsRemain }
        return summary.failed + summary.unknown == 0 ? ExitCode.complete : ExitCode.openRows
    }

    func outcome(_ summary: Summary) -> Summary.Outcome {
        switch exitCode(summary) {
        case ExitCode.complete, ExitCode.openRows: .complete
        case ExitCode.rowsRemain: .stopped
        case ExitCode.refused: .aborted
        default: .error
        }
    }

    func advice(_ circumstances: StopAdvice.Circumstances) -> StopAdvice {
        isWrongList ? StopAdvice(wrongList: cause, circumstances) : StopAdvice(cause, circumstances)
    }

    /// Description of the problem and its fix; nil if there is none.
    func message(_ advice: StopAdvice, _ summary: Summary, _ plan: Plan) -> String? {
        if isWrongList, case .listFaulty(let detail) = cause {
            return detail + " (nothing was sent)"
        }
        if isWrongList {
            return
                "\(cause.message(endpoint: plan.hostAndPort)), and nothing was sent: check the list with "
                + "broadside tokens check, or raise --max-invalid"
        }
        if cause == .complete, let rest = summary.remaining, rest > 0, plan.options.limit != nil {
            return "\(grouped(rest)) rows beyond --limit are in doubt: to send them, resume with a "
                + "higher limit; to record them as unknown, resume with --on-lost record"
        }
        if cause == .complete, summary.openRowsText == nil {
            return summary.unsendableRowsText ?? summary.lengthAdvice
        }
        let what =
            cause == .complete
            ? summary.openRowsText : cause.message(endpoint: plan.hostAndPort)
        let isPushedBack = cause.isInterruption || (cause == .complete && summary.failed > 0)
        return what.map {
            $0 + (isPushedBack ? pushback?.text ?? "" : "")
                + (advice.lastLine.map { ": \($0)" } ?? "")
        }
    }
}

extension Plan {
    /// Whether an existing ledger is needed even if nothing was sent. There are three cases: a
    /// script that began with `--resume-or-begin` may continue with `--resume`; other parts of the
    /// campaign may need the ledger; the ledger has the only copy of a list from standard input.
    var expectsLedger: Bool {
        options.ledgerUse != .begin || options.part != nil || isOfStandardInput
    }
}
