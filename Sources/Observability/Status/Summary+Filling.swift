package import BroadsideEngine
package import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

extension Summary {
    /// Sets the counts of rows.
    ///
    /// - Parameter rows: Number of the campaign's rows; nil if unknown.
    package mutating func take(_ counts: RowCounts, rows: UInt64?) {
        self.counts = counts
        // Rows that no run has reserved are missing from this count.
        self.counts[.remaining] = 0
        self.rows = rows
        remaining = rows.map { $0 - min($0, counts.settled) }
    }

    /// Sets the values that the ledger's telemetry recorded about the latest run. Values that it
    /// lacks stay unknown.
    package mutating func take(_ telemetry: Telemetry, run number: UInt32) {
        guard let run = telemetry.runs.last, run.number == number else { return }
        elapsedSeconds = run.elapsedSeconds
        let answers = run.points.reduce(0) { $0 + $1.answers }
        // A run of less than a microsecond is too short for a rate.
        if run.elapsedSeconds >= 1e-6, answers > 0 {
            notificationsPerSecond = Double(answers) / run.elapsedSeconds
        }
        // The telemetry has latencies over all runs. They are the latencies of this run only if it
        // is the only run.
        if telemetry.runs.count == 1, number == 1 { latency = Latency(telemetry.latency) }
        let total = run.limited.reduce(0, +)
        if total > 0, run.limited.count == LimitedBy.allCases.count {
            limitedBy = [:]
            for cause in LimitedBy.allCases {
                limitedBy?[cause.name] = Double(run.limited[cause.rawValue]) / Double(total)
            }
        }
    }

    /// Sets the values that only the process of the run can measure.
    package mutating func take(
        use: ProcessUse, statistics: RunStatistics, latency: LatencyCounts,
        elapsed: Double, requests: UInt64
    ) {
        elapsedSeconds = elapsed
        fallbacks = statistics.fallbacks
        let answers = latency.count + statistics.untimedResponses
        notificationsPerSecond = elapsed > 0 ? Double(answers) / elapsed : 0
        if requests > 0 {
            cpuMicrosecondsPerNotification = use.cpuMicroseconds / Double(requests)
        }
        peakResidentBytes = use.peakResidentBytes
        self.latency = Latency(latency)
        paced = statistics.pace.worst.map { "responses slow down under load, \($0.summary)" }
        let total = statistics.limited.reduce(0, +)
        // Without a measurement, the value is unknown.
        guard total > 0 else {
            limitedBy = nil
            return
        }
        limitedBy = Dictionary(
            uniqueKeysWithValues: LimitedBy.allCases.map {
                ($0.name, Double(statistics.limited[$0.rawValue]) / Double(total))
            })
        assert(
            abs((limitedBy?.values.reduce(0, +) ?? 1) - 1) < 1e-9, "the shares add up to 1")
    }
}
