import BroadsideLedgerFormat
import BroadsideLedgers
import BroadsideSupport

extension Night {
    /// Reads the figures of a ledger. If that fails, the result has the reason.
    ///
    /// - Parameter isOurs: Whether this process holds the ledger's lock without sending.
    /// - Throws: Only errors that do not concern the ledger, such as a stop signal.
    static func read(_ path: String, isOurs: Bool) throws(BroadsideError) -> Night {
        let place = absolutePath(path)
        let name = place.parts(atLast: "/").map { String($0.behind) } ?? place
        var night = Night(path: path, title: name, content: .unreadable(""))
        night.pagePaths = ["\(place)/report.html", "\(place).html"]
        do {
            let ledger = try LedgerReader(path: path)
            let start = ledger.manifest.firstStartedAtMilliseconds
            night.startedAtMilliseconds = start <= Self.latestStart ? start : nil
            night.lastStartedAtMilliseconds =
                ledger.ledgers.compactMap(\.manifest.epochs.last?.startedAtMilliseconds).max() ?? 0
            night.title = ledger.name ?? ledger.campaign
            let keys = ledger.ledgers.map {
                "\($0.manifest.campaign) \($0.manifest.identity.partNumber) \($0.manifest.identity.shard?.index ?? 0)"
            }
            if ledger.manifest.shards != nil {
                night.mergedKeys = Set(keys)
            } else {
                night.key = keys.first
            }
            night.warning = ledger.oldCopyWarning
            try night.read(ledger, isOurs: isOurs)
        } catch {
            if error.exitCode == ExitCode.rowsRemain { throw error }
            // The message names `--ledger`, which is not an option of this command.
            let option = "--ledger "
            let problem =
                error.message.starts(withBytes: option)
                ? String(error.message.dropFirst(option.count)) : error.message
            night.content = .unreadable(problem)
        }
        return night
    }

    private mutating func read(
        _ ledger: LedgerReader, isOurs: Bool
    ) throws(BroadsideError) {
        let summary = try ledger.statistics(isOurs: isOurs)
        let telemetry = Telemetry.read(from: ledger.directory) ?? Telemetry()
        let epochs = ledger.manifest.epochs
        // The rows are read only if the telemetry lacks the end of a run. The telemetry of a run in
        // progress is recent enough.
        var untimed = telemetry.runsWithoutEnd(epochs)
        if summary.outcome == .running, let run = telemetry.runs.last { untimed.remove(run.number) }
        let data = ReportData(
            summary: summary, telemetry: telemetry, epochs: epochs,
            course: untimed.isEmpty
                ? nil : try ledger.course(telemetry.withoutWaits(epochs), only: untimed),
            ledgerPath: path, listPath: nil,
            createdAtMilliseconds: 0)
        var figures = Figures(summary)
        figures.isLimited = ledger.endsAtLimit
        figures.runningSeconds = data.runningSeconds > 0 ? data.runningSeconds : nil
        if let modified = telemetry.listModifiedAtMilliseconds,
            modified <= ledger.manifest.firstStartedAtMilliseconds
        {
            let age = ledger.manifest.firstStartedAtMilliseconds - modified
            figures.listAgeSeconds = Double(age) / 1000
        }
        title = summary.name ?? summary.campaign
        switch summary.outcome {
        case .stopped, .aborted, .error: next = ledger.steps(summary, telemetry).first
        case .complete, .running: break
        }
        if let report = telemetry.reportPath ?? telemetry.command?.reportPath {
            pagePaths.insert(report, at: 0)
        }
        content = .figures(figures)
    }
}

extension RunCommand {
    /// Path of the run's report, from the run's command line. Ledgers of version 1.0.0-beta.1
    /// record the path only there.
    fileprivate var reportPath: String? {
        guard let path = value("report") else { return nil }
        return path.starts(withBytes: "/") ? path : "\(directory)/\(path)"
    }
}
