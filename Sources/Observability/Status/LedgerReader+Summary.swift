import BroadsideLedgerFormat
public import BroadsideLedgers
import BroadsidePolicy
import BroadsideRows
public import BroadsideSupport

extension LedgerReader {
    /// Summary with rows by state and by reason, and with the manifest's other data.
    public func statistics() throws(BroadsideError) -> Summary {
        try statistics(isOurs: false)
    }

    /// - Parameter isOurs: Whether this process holds the ledger's lock without sending.
    func statistics(isOurs: Bool) throws(BroadsideError) -> Summary {
        var summary = LedgerSummary()
        var rows: UInt64? = 0
        for ledger in ledgers {
            do {
                let (index, manifest) = try current(ledger)
                let own = try LedgerSummary(index)
                summary.add(own)
                // Each shard has a limit of its own, so only the sum over the shards is correct.
                let ownRows = manifest.rowCount(with: own)
                rows = rows.flatMap { sum in ownRows.map { sum + $0 } }
            } catch let error as LedgerError {
                throw Self.unreadable(error, ledger.directory)
            } catch {
                throw Self.other(error)
            }
        }
        let telemetry = Telemetry.read(from: directory)
        var result = Summary(
            campaign: manifest.campaignNumber, outcome: outcome(telemetry, isOurs: isOurs))
        result.wasKilled = wasKilled
        result.take(manifest)
        result.name = name
        if manifest.shards == nil { result.guards = GuardStatus(manifest) }
        result.split = split
        if hasRowTopics { result.topicTotals = TopicTotals(summary.topics) }
        result.broadcast = broadcast
        result.take(summary.counts, rows: rows)
        result.unsendable = summary.unsendable
        // The one row of a broadcast is the campaign as a whole.
        if broadcast != nil, result.rejected > 0, result.outcome == .complete {
            result.outcome = .aborted
        }
        result.retries = manifest.counters.retries
        result.shortened = manifest.counters.shortened
        result.reconnects = manifest.counters.reconnects
        // The manifests have these counts only after the end of a run.
        result.areRequestsKnown = ledgers.allSatisfy {
            $0.manifest.epochs.last.map { $0.segments != nil } ?? true
        }
        if let telemetry, let run = manifest.epochs.last {
            result.take(telemetry, run: run.number)
            if run.segments == nil, let last = telemetry.runs.last, last.number == run.number {
                result.areRequestsKnown =
                    last.hasEnd || result.outcome == .running && last.isSampled
                result.retries += last.retries
                result.shortened = manifest.counters.shortened(with: last.shortened)
                result.reconnects += last.reconnects
            }
        }
        return result
    }

    /// In a finished campaign, the number of rows that failed, and the number of rows whose outcome
    /// is unknown. Both numbers come from the record of the latest run's end. If that record is
    /// missing, the rows are counted.
    package func openRows() throws(BroadsideError) -> (failed: UInt64, unknown: UInt64) {
        if let run = Telemetry.read(from: directory)?.runs.last,
            run.number == manifest.epochs.last?.number, let failed = run.failed,
            let unknown = run.unknown
        {
            return (failed, unknown)
        }
        let summary = try statistics()
        return (summary.failed, summary.unknown)
    }

    /// In a finished campaign, the number of failed rows and of unknown rows that the option
    /// `--retry` sends again. Devices may have been erased after the record of the run's end, so the
    /// rows are counted.
    package func retryableRows() throws(BroadsideError) -> (failed: UInt64, unknown: UInt64) {
        let open = try openRows()
        guard open.failed + open.unknown > 0 else { return open }
        let summary = try statistics()
        return (summary.retryable(.failed), summary.retryable(.unknown))
    }

    /// Whether the latest run of the ledger, or of a shard or part, did not record its end.
    package var wasKilled: Bool {
        ledgers.contains { !$0.manifest.isFinished && $0.manifest.epochs.last?.segments == nil }
    }

    /// Outcome that the latest run recorded. If it recorded none, the outcome that the ledger
    /// shows. For a merged ledger, the worst outcome of its shards or parts.
    private func outcome(_ telemetry: Telemetry?, isOurs: Bool) -> Summary.Outcome {
        if !isOurs, directory.isInUse { return .running }
        guard manifest.shards != nil else { return Self.outcome(manifest, telemetry) }
        let outcomes = ledgers.map { Self.outcome($0.manifest, Telemetry.read(from: $0.directory)) }
        return [.aborted, .error, .stopped].first(where: outcomes.contains) ?? .complete
    }

    private static func outcome(
        _ manifest: Manifest, _ telemetry: Telemetry?
    ) -> Summary.Outcome {
        // A guard may have aborted the campaign just when its last row was settled.
        if manifest.epochs.last?.stop?.cause?.isAbort == true { return .aborted }
        if manifest.isFinished { return .complete }
        guard let run = manifest.epochs.last else { return .stopped }
        let own = telemetry?.runs.last { $0.number == run.number }?.outcome
        switch own.flatMap(Summary.Outcome.init(rawValue:)) {
        case .aborted: return .aborted
        case .error: return .error
        case .complete, .running, .stopped, nil: return .stopped
        }
    }
}
