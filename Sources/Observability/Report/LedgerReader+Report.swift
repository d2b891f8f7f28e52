package import BroadsideLedgerFormat
public import BroadsideLedgers
package import BroadsidePolicy
public import BroadsideSupport

extension LedgerReader {
    /// Writes the report page of the ledger as it stands.
    public func writeReport(to output: OutputFile) throws(BroadsideError) {
        try writeReport(to: output, isOurs: false)
    }

    /// How a run ended that sent nothing, as it sees it itself.
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
    ///   - isOurs: This process holds the ledger's lock and does not send.
    ///   - ending: nil: as the ledger's latest run ended.
    package func writeReport(
        to output: OutputFile, isOurs: Bool, ending: Ending? = nil
    ) throws(BroadsideError) {
        try output.write(try reportPage(isOurs: isOurs, ending: ending))
        try output.finish()
    }

    /// The same, as bytes.
    package func reportPage(
        isOurs: Bool = false, ending: Ending? = nil
    ) throws(BroadsideError) -> [UInt8] {
        let manifest = manifest
        let summary = try statistics(isOurs: isOurs)
        let telemetry = Telemetry.read(from: directory) ?? Telemetry()
        var data = ReportData(
            summary: summary, telemetry: telemetry, epochs: manifest.epochs, course: try course(),
            ledgerPath: directory.path, listPath: manifest.listPath,
            createdAtMilliseconds: Clock.now().wallMilliseconds)
        data.isInProgress = !isOurs && directory.isInUse
        data.startedAtMilliseconds = manifest.firstStartedAtMilliseconds
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

    /// When rows were settled.
    func course() throws(BroadsideError) -> SettlementTimeline {
        var course = SettlementTimeline(epochs: manifest.epochs)
        for ledger in ledgers {
            let index = try index(ledger)
            do {
                var verdicts = ChunkVerdicts(of: index)
                for chunk in 0..<index.chunkCount {
                    try verdicts.load(chunk: chunk)
                    course.add(verdicts)
                }
            } catch {
                throw Self.unreadable(error, ledger.directory)
            }
        }
        return course
    }

    /// What to do now: for a merged ledger, with each of its parts.
    private func steps(
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
            let path = part.directory.resumePath
            return StopAdvice(
                of: part.manifest, telemetry, .init(part.manifest, telemetry, nil, ledger: path)
            ).steps.map { step in
                StopAdvice.Step(text: "\(path): \(step.text)", command: step.command)
            }
        }
    }

    /// Parts of a merged ledger about which something is said.
    private static var partsLimit: Int { 20 }
}

extension Manifest {
    /// Why the latest run ended; nil where it did not say: it was killed, or an earlier version wrote it.
    package func latestCause(_ telemetry: Telemetry) -> StopCause? {
        // What a disk refused the manifest, it may have let telemetry have.
        let record =
            epochs.last?.stop ?? telemetry.runs.first { $0.number == epochs.last?.number }?.stop
        return record?.cause
    }
}

extension StopAdvice {
    /// What to do about a ledger whose latest run is over.
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
