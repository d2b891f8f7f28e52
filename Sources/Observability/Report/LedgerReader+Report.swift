package import BroadsideLedgerFormat
public import BroadsideLedgers
package import BroadsidePolicy
public import BroadsideSupport

extension LedgerReader {
    /// Writes the report page for the ledger's current state.
    public func writeReport(to output: OutputFile) throws(BroadsideError) {
        try writeReport(to: output, isOurs: false)
    }

    /// End of a run that sent nothing, as that run reports it.
    package struct Ending {
        var outcome: Summary.Outcome
        var cause: StopCause
        var advice: StopAdvice

        package init(outcome: Summary.Outcome, cause: StopCause, advice: StopAdvice) {
            self.outcome = outcome
            self.cause = cause
            self.advice = advice
        }
    }

    /// - Parameters:
    ///   - isOurs: Whether this process holds the ledger's lock without sending.
    ///   - ending: The run's end; nil: the end that the ledger records for its latest run.
    package func writeReport(
        to output: OutputFile, isOurs: Bool, ending: Ending? = nil
    ) throws(BroadsideError) {
        try output.write(try reportPage(isOurs: isOurs, ending: ending))
        try output.finish()
    }

    /// Report page as bytes.
    ///
    /// - Parameter receipts: What devices reported; nil if the user gave no receipts.
    package func reportPage(
        isOurs: Bool = false, ending: Ending? = nil, receipts: ReceiptFindings? = nil
    ) throws(BroadsideError) -> [UInt8] {
        let manifest = manifest
        let summary = try statistics(isOurs: isOurs)
        let telemetry = Telemetry.read(from: directory) ?? Telemetry()
        var data = ReportData(
            summary: summary, telemetry: telemetry, epochs: manifest.epochs,
            course: try course(telemetry.withoutWaits(manifest.epochs)),
            ledgerPath: directory.path, listPath: manifest.listPath,
            createdAtMilliseconds: Clock.now().wallMilliseconds)
        data.identity = manifest.identity
        data.receipts = receipts
        if manifest.shards != nil, manifest.identity.sendsAtLocalTime {
            data.partsWithWaves = ledgers.count
        }
        data.isInProgress = !isOurs && directory.isInUse
        data.startedAtMilliseconds = manifest.firstStartedAtMilliseconds
        if manifest.shards != nil {
            data.partsPeriod = try period()
            data.startedAtMilliseconds = data.partsPeriod?.lowerBound
        }
        data.cause = manifest.latestCause(telemetry)
        data.steps = steps(summary, telemetry)
        if !data.isInProgress, !isFinished,
            let outcome = telemetry.runs.last(where: { $0.number == manifest.epochs.last?.number })?
                .outcome.flatMap(Summary.Outcome.init(rawValue:)), outcome != .complete
        {
            data.summary.outcome = outcome
        }
        if let ending {
            data.summary.outcome = ending.outcome
            data.cause = ending.cause
            data.steps = ending.advice.steps
        }
        return ReportPage(data: data).html
    }

    /// Returns the period from the first start of a run to the last verdict over all ledgers, in
    /// milliseconds since 1970; nil if no run started.
    private func period() throws(BroadsideError) -> ClosedRange<UInt64>? {
        var period: ClosedRange<UInt64>?
        for ledger in ledgers {
            var course = SettlementTimeline(epochs: ledger.manifest.epochs, only: nil)
            let index = try index(ledger)
            do {
                try course.add(index)
            } catch {
                throw Self.unreadable(error, ledger.directory)
            }
            for run in ledger.manifest.epochs {
                let start = run.startedAtMilliseconds
                let seconds = max(0, min(course.seconds(of: run.number) ?? 0, 1e9))
                let end = start &+ UInt64(seconds * 1000)
                guard let known = period else {
                    period = start...max(start, end)
                    continue
                }
                period = min(known.lowerBound, start)...max(known.upperBound, end)
            }
        }
        return period
    }

    /// Reads the times at which rows were settled.
    ///
    /// - Parameters:
    ///   - epochs: Runs of the ledger.
    ///   - runs: Numbers of the runs whose rows are counted; nil: all runs.
    func course(
        _ epochs: [Manifest.Epoch], only runs: Set<UInt32>? = nil
    ) throws(BroadsideError) -> SettlementTimeline {
        var course = SettlementTimeline(epochs: epochs, only: runs)
        for ledger in ledgers {
            let index = try index(ledger)
            do {
                try course.add(index)
            } catch {
                throw Self.unreadable(error, ledger.directory)
            }
        }
        return course
    }

    /// Recommended next steps. For a merged ledger, the steps of each unfinished part.
    func steps(
        _ summary: Summary, _ telemetry: Telemetry
    ) -> [StopAdvice.Step] {
        guard manifest.shards != nil else {
            return StopAdvice(
                of: manifest, telemetry, .init(manifest, telemetry, summary, ledger: directory.path)
            ).steps
        }
        return ledgers.filter { !$0.manifest.isFinished }.prefix(Self.partsLimit).flatMap { part in
            let telemetry = Telemetry.read(from: part.directory) ?? Telemetry()
            // The copy in the merged ledger can't be resumed.
            let path = (try? part.directory.resumePath(part.manifest)) ?? part.directory.path
            return StopAdvice(
                of: part.manifest, telemetry, .init(part.manifest, telemetry, nil, ledger: path)
            ).steps.map { step in
                StopAdvice.Step(text: "\(path): \(step.text)", command: step.command)
            }
        }
    }

    /// Maximum number of parts of a merged ledger for which there are next steps.
    private static var partsLimit: Int { 20 }
}

extension Manifest {
    /// Cause of the latest run's end; nil if none was recorded, because the run was killed or an
    /// earlier version wrote the ledger.
    package func latestCause(_ telemetry: Telemetry) -> StopCause? {
        // If the disk rejected the manifest, the telemetry may still have the cause.
        let record =
            epochs.last?.stop ?? telemetry.runs.first { $0.number == epochs.last?.number }?.stop
        return record?.cause
    }
}

extension StopAdvice {
    /// Advice for a ledger whose latest run has ended.
    package init(
        of manifest: Manifest, _ telemetry: Telemetry, _ circumstances: Circumstances
    ) {
        if let cause = manifest.latestCause(telemetry) {
            self.init(cause, circumstances)
        } else if manifest.isFinished {
            self.init(.complete, circumstances)
        } else {
            let run = telemetry.runs.first { $0.number == manifest.epochs.last?.number }
            self.init(outcome: run?.outcome, message: run?.cause, circumstances)
        }
    }
}
