import BroadsideEngine
import BroadsideLedgers
import BroadsideObservability
import BroadsidePolicy
import BroadsideSupport

extension LedgerSession {
    /// Reports that a campaign has no remaining rows. The report goes to all outputs that the
    /// options name. The number of invalid rows is checked with the options of this call, so that a
    /// list with too many invalid rows is reported again.
    ///
    /// - Returns: The exit code.
    func reportFinished(
        _ plan: Plan, _ outlets: RunOutlets, _ signals: SignalWatch
    ) throws(BroadsideError) -> Int32 {
        assert(isFinishedAlready, "a campaign that continues is not reported as finished")
        var summary = Summary(campaign: campaign, outcome: .complete)
        summary.take(manifest)
        summary.guards = GuardStatus(manifest)
        summary.take(earlier.counts, rows: manifest.rowCount(with: earlier))
        summary.unsendable = earlier.unsendable
        summary.retries = manifest.counters.retries
        summary.shortened = manifest.counters.shortened
        summary.reconnects = manifest.counters.reconnects
        summary.take(
            use: ProcessUse.now(), statistics: RunStatistics(), latency: LatencyCounts(),
            elapsed: 0, requests: 0)
        let cause = finishedCause
        // If no row of the list was sent, the outcome is an error, as in the run that read the last
        // row.
        let wasSent = summary.counts.sent > 0
        if cause != .complete { summary.outcome = wasSent ? .aborted : .error }
        let advice = StopAdvice(cause, .init(plan, self, summary, wasAnswered: true))
        // This is printed even with `--progress none`, because a job that uses the same ledger
        // every night sends nothing from the second night on.
        standardErrorLine("the campaign of \(directory.path) is finished: nothing is sent")
        var missing = MissingOutputs()
        // The report is read from the ledger, so the cause is recorded first.
        missing.attempt { () throws(BroadsideError) in try record(finished: cause) }
        if let metrics = outlets.metrics {
            let text = MetricsText(finishedSnapshot(), use: ProcessUse.now()).text
            missing.attempt { () throws(BroadsideError) in
                try signals.write(plan.options.metrics ?? "") { () throws(BroadsideError) in
                    try metrics.publish(text)
                }
            }
        }
        missing.attempt { () throws(BroadsideError) in
            try summary.write(to: plan.options, signals)
        }
        if let report = plan.options.report {
            let ledger = directory.path
            let outcome = summary.outcome
            missing.attempt { () throws(BroadsideError) in
                // The report reads the whole ledger.
                try signals.write(report, patience: nil) { () throws(BroadsideError) in
                    let page = try OutputFile(report, option: "report", permissions: nil)
                    page.endsWithReader = false
                    try LedgerReader(path: ledger).writeReport(
                        to: page, isOurs: true,
                        ending: .init(outcome: outcome, cause: cause, advice: advice))
                }
            }
        }
        if cause == .complete, let warning = summary.emptyHandedWarning {
            standardErrorLine(warning)
        }
        let what =
            cause == .complete
            ? summary.openRowsText ?? summary.unsendableRowsText
            : cause.message(endpoint: plan.hostAndPort)
        let message = what.map { $0 + (advice.lastLine.map { ": \($0)" } ?? "") }
        let code =
            if message == nil {
                ExitCode.complete
            } else if cause == .complete {
                ExitCode.openRows
            } else {
                wasSent ? ExitCode.refused : ExitCode.badRequest
            }
        plan.options.host?.end(RunEnd(summary: summary, exitCode: code, message: message))
        if let message { standardErrorLine("broadside: \(message)") }
        try missing.report(code: code, ledger: directory.path)
        return code
    }

    /// Records the cause that this call found, so that all commands report the outcome of this call.
    private func record(finished cause: StopCause) throws(BroadsideError) {
        // The session's manifest has the name and labels of this call, which are not recorded.
        var manifest = try directory.readManifest()
        guard manifest.replaceStop(cause) else { return }
        try directory.save(manifest)
    }

    /// Cause of the campaign's end. It is `complete`, unless the list has too many invalid rows for
    /// `--max-invalid`, or the list is a part of a campaign and all its rows were refused.
    private var finishedCause: StopCause {
        let sent = SentRows(earlier)
        if manifest.identity.part != nil, sent.areAllRefused {
            if let cause = manifest.epochs.last?.stop?.cause, case .allRefused = cause {
                return cause
            }
            return .allRefused(rows: sent.refused, nil)
        }
        var invalidRows = rowsRead
        return switch invalidRows.finish() {
        case .tooMany(let invalid, let rows): .tooManyInvalid(count: invalid, rows: rows)
        case .noValidRow(let rows): .tooManyInvalid(count: rows, rows: rows)
        case .noRow, nil: .complete
        }
    }

    /// Final snapshot of a run that ended before this process began.
    private func finishedSnapshot() -> RunSnapshot {
        // The counts are those of the run's end. An alert about old counts must not take this call
        // for a run.
        let end =
            Telemetry.read(from: directory)?.endedAtMilliseconds
            ?? manifest.epochs.last?.startedAtMilliseconds
        var snapshot = RunSnapshot()
        snapshot.campaign = hexadecimal(campaign)
        snapshot.name = manifest.name
        snapshot.labels = manifest.labels ?? [:]
        snapshot.split = manifest.identity.split
        snapshot.phase = .finished
        snapshot.wallMilliseconds = end ?? manifest.firstStartedAtMilliseconds
        snapshot.counts = earlier.counts
        snapshot.rows = manifest.rowCount(with: earlier)
        snapshot.isLimited = manifest.rows.limit != nil
        return snapshot
    }
}

extension Summary {
    /// Summary of a run that was stopped before sending began.
    ///
    /// - Parameter directory: Directory of the ledger; it may contain the work of earlier runs.
    /// - Returns: nil if a second signal interrupted the count, because a partial count would
    ///   mislead.
    static func stoppedEarly(_ directory: LedgerDirectory) -> Summary? {
        var summary = Summary(unbegun: .stopped)
        if (try? directory.hasManifest) == true {
            SignalWatch.takeStop()
            guard let reading = try? LedgerReader(path: directory.path) else { return nil }
            reading.directory.patience.endsOnSignals = true
            guard let known = try? reading.statistics() else { return nil }
            summary = known
            summary.outcome = .stopped
            summary.wasKilled = false
        }
        summary.take(
            use: ProcessUse.now(), statistics: RunStatistics(), latency: LatencyCounts(),
            elapsed: 0, requests: 0)
        return summary
    }
}
