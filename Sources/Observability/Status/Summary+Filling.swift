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

    /// Sets the properties of a campaign.
    package mutating func take(_ manifest: Manifest) {
        name = manifest.name
        labels = manifest.labels ?? [:]
        split = manifest.identity.split
        acceptsBySilence = manifest.identity.acceptsBySilence
        hasSuppressionList = manifest.identity.hasSuppressionList
    }

    /// Sets the values that the ledger's telemetry recorded about the process of the latest run.
    /// Values that it lacks stay unknown.
    package mutating func take(_ telemetry: Telemetry, run number: UInt32) {
        guard let run = telemetry.runs.last, run.number == number, run.hasEnd || run.isSampled,
            let passes = telemetry.latestPasses
        else { return }
        let elapsed = passes.reduce(0) { $0 + $1.elapsedSeconds }
        elapsedSeconds = elapsed
        let responses = passes.lazy.flatMap(\.points).reduce(0) { $0 + $1.answers }
        // A run of less than a microsecond is too short for a rate.
        if elapsed >= 1e-6, responses > 0 {
            notificationsPerSecond = Double(responses) / elapsed
        }
        // The telemetry has latencies over all runs. They are the latencies of this process only if
        // all runs are its passes.
        if passes.first?.number == 1, passes.count == telemetry.runs.count {
            latency = Latency(telemetry.latency)
        }
        take(limited: passes.map(\.limited))
    }

    /// Sets the shares of the bottlenecks.
    ///
    /// - Parameter limited: Nanoseconds in each state of `Bottleneck`, for each pass.
    private mutating func take(limited: [[UInt64]]) {
        var times: [String: Double] = [:]
        for states in limited where states.count == Bottleneck.allCases.count {
            for cause in Bottleneck.allCases {
                times[cause.name, default: 0] += Double(states[cause.rawValue])
            }
        }
        let total = times.values.reduce(0, +)
        if total > 0 { limitedBy = times.mapValues { $0 / total } }
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
            uniqueKeysWithValues: Bottleneck.allCases.map {
                ($0.name, Double(statistics.limited[$0.rawValue]) / Double(total))
            })
        assert(
            abs((limitedBy?.values.reduce(0, +) ?? 1) - 1) < 1e-9, "the shares add up to 1")
    }
}
