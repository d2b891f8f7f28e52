import BroadsideObservability
import BroadsideSupport

/// The end of a run after its last row and its ledger: the files that it writes, what it says, and
/// its exit code.
struct RunEnding {
    let plan: Plan
    let session: LedgerSession
    let passes: RunPasses
    let conclusion: RunConclusion
    let summary: Summary
    /// What the operator should do.
    let advice: StopAdvice
    /// Description of the problem and its fix; nil if there is none.
    let message: String?
    /// Whether the ledger is removed, because nothing was sent.
    let isDiscarded: Bool
    let signals: SignalWatch
    /// Whether a second signal asked for a prompt end.
    let isUrgent: () -> Bool

    /// Writes the files, then tells the end, because the hook gets the files' names.
    ///
    /// - Parameter page: Creates the report page.
    /// - Returns: The exit code.
    /// - Throws: The failure of a file, if the run itself was complete.
    func finish(_ page: () -> [UInt8]) throws(BroadsideError) -> Int32 {
        let code = conclusion.exitCode(summary)
        var missing = MissingOutputs()
        let report = write(&missing, code, page)
        if conclusion.cause == .complete, let warning = summary.emptyHandedWarning {
            standardErrorLine(warning)
        }
        if let text = plan.lateErrorsWarning(passes.statistics) { standardErrorLine(text) }
        if let message { standardErrorLine("broadside: \(message)") }
        if isDiscarded { session.directory.discardCampaign() }
        plan.options.host?.end(RunEnd(summary: summary, exitCode: code, message: message))
        if callsHook {
            passes.hook?.put(
                HookEvent(exitCode: code), summary: summary, hasLedger: !isDiscarded,
                report: report)
        }
        passes.hook?.finish(signals, isUrgent: isUrgent())
        try missing.report(code: code, ledger: session.directory.path)
        return code
    }

    /// Writes the summary and the report pages.
    ///
    /// - Returns: Path of the report page; nil if there is none.
    private func write(
        _ missing: inout MissingOutputs, _ code: Int32, _ page: () -> [UInt8]
    ) -> String? {
        let isUrgent = isUrgent()
        passes.isSummaryWritten = true
        missing.attempt { () throws(BroadsideError) in
            try summary.write(to: plan.options, signals, isUrgent: isUrgent)
        }
        guard plan.options.report != nil || plan.options.night != nil else { return nil }
        let page = page()
        var report: String?
        if let night = plan.options.night, !isDiscarded, code != ExitCode.inUse {
            report = night.write(page: page, into: session.directory, signals, isUrgent)
        }
        if let path = plan.options.report {
            missing.attempt { () throws(BroadsideError) in
                try signals.write(path, isUrgent: isUrgent) { () throws(BroadsideError) in
                    try replaceFile(path, with: page)
                }
                report = path
            }
        }
        return report
    }

    /// Whether the hook is told. Each repeat after the deadline would tell the same end again.
    private var callsHook: Bool {
        !passes.beginsTooLate || conclusion.cause != .deadline || !session.wasEndedByDeadline
    }
}
