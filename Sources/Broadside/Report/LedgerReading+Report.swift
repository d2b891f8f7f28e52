import Campaign

extension LedgerReading {
    /// Writes the report page of the ledger as it stands.
    public func writeReport(to output: OutputFile) throws(BroadsideError) {
        try writeReport(to: output, isOurs: false)
    }

    /// - Parameter isOurs: This process holds the ledger's lock and does not send.
    func writeReport(to output: OutputFile, isOurs: Bool) throws(BroadsideError) {
        let manifest = manifest
        let summary = try statistics()
        let telemetry = Telemetry.read(from: directory) ?? Telemetry()
        var data = ReportData(
            summary: summary, telemetry: telemetry, epochs: manifest.epochs, course: try course(),
            ledgerPath: directory.path, listPath: manifest.listPath,
            createdAtMilliseconds: Clock.now().wallMilliseconds)
        data.isInProgress = !isOurs && directory.isInUse
        if !data.isInProgress, !manifest.isFinished,
            let outcome = telemetry.runs.last(where: { $0.number == manifest.epochs.last?.number })?
                .outcome.flatMap(Summary.Outcome.init(rawValue:)), outcome != .complete
        {
            data.summary.outcome = outcome
        }
        try output.write(ReportPage(data: data).html)
        try output.finish()
    }

    /// When rows were settled.
    private func course() throws(BroadsideError) -> LedgerCourse {
        var course = LedgerCourse(epochs: manifest.epochs)
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
}
