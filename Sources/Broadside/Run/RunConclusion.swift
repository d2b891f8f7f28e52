import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideObservability
import BroadsidePolicy
import BroadsideSupport

/// Why a run ended, all things considered, and what follows: its exit code and its last line.
struct RunConclusion {
    var cause: StopCause
    /// Every row of the list is settled.
    let isWhole: Bool
    /// APNs responded to something.
    let wasAnswered: Bool
    private let anyAccepted: Bool
    private let sentAnything: Bool

    /// The conclusion of a run whose reactors have ended.
    ///
    /// - Parameters:
    ///   - stop: What stopped it; nil: it ended with its list.
    ///   - statistics: Of all reactors.
    ///   - isWhole: Whether every row of the list is settled.
    ///   - coordinator: The run's.
    init(
        stop: StopCause?, _ statistics: RunStatistics, isWhole: Bool, _ coordinator: RunCoordinator
    ) {
        self.isWhole = isWhole
        wasAnswered = coordinator.lastResponse != nil
        anyAccepted = coordinator.anyAccepted
        sentAnything = statistics.requests > 0
        // A word to stop that came when the last row was in flight has stopped nothing.
        cause =
            switch stop {
            case .signal where isWhole, .control where isWhole, .deadline where isWhole: .complete
            case let stop?: stop
            case nil where !TopicReport.stopped(coordinator.topicReports).isEmpty:
                TopicReport.stopCause(coordinator.topicReports)
            case nil where statistics.refusedByCredential > 0:
                .heldBack(rows: statistics.refusedByCredential, coordinator.lastRefusal)
            case nil: .complete
            }
    }

    /// As the ledger keeps it.
    var record: StopRecord { StopRecord(cause, wasAnswered: wasAnswered) }

    /// The ledger is this run's, and takes what is recorded.
    var ownsLedger: Bool {
        // What the disk refused once it may refuse again: the segments speak for themselves.
        if case .ledgerFailed = cause { return false }
        return cause != .superseded && cause != .ledgerGone
    }

    /// The list is wrong, and that was found before anything was sent.
    var isWrongList: Bool {
        switch cause {
        case .tooManyInvalid, .listFaulty: !sentAnything
        default: false
        }
    }

    /// The server was not reached before anything was sent: nobody can have received the notification.
    var isFailedContact: Bool { cause.isGivingUp && !wasAnswered && !sentAnything }

    /// Nothing was sent that a ledger would have to remember: the corrected command begins again.
    ///
    /// - Parameter isExpected: A script, or another part, continues from the ledger once it existed.
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

    /// What is wrong, and how to fix it; nil if all is well.
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
            return "\(rest) rows behind --limit are in doubt: a resume with a higher one sends "
                + "them, --on-lost record calls them unknown"
        }
        if cause == .complete, summary.openRowsText == nil { return summary.lengthAdvice }
        let what =
            cause == .complete ? summary.openRowsText : cause.message(endpoint: plan.hostAndPort)
        return what.map { $0 + (advice.lastLine.map { ": \($0)" } ?? "") }
    }
}

extension Plan {
    /// Whether others continue from the ledger once it existed: a script that began with
    /// `--resume-or-begin` and continues with `--resume`, the other parts of a campaign, or a list that came
    /// from standard input, of which the ledger has the only copy.
    var expectsLedger: Bool {
        options.ledgerUse != .begin || options.part != nil || options.tokens == .file("-")
    }
}
