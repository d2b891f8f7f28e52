import BroadsideEngine
package import BroadsideLedgerFormat
package import BroadsidePolicy

/// All data of a report page. A run collects it at its end; otherwise it comes from a ledger alone.
package struct ReportData {
    /// Rows settled in a period of running time.
    struct Throughput {
        /// The start, in seconds of running time since the campaign's start. Running time does not
        /// include gaps between runs.
        var start: Double
        var duration: Double
        var accepted: UInt64
        var rejected: UInt64
        var others: UInt64
    }

    /// Start of a run on the axis of running time.
    struct RunMark {
        var number: UInt32
        var startedAtMilliseconds: UInt64
        var start: Double
        var elapsed: Double
        /// The word for the run's end; nil if the ledger does not record the end.
        var outcome: String?
        var cause: String?
        /// Number of requests for rows that were sent before, or may have been; nil if unknown.
        var retries: UInt64?
        /// Number of rows that the run settled, by outcome.
        var accepted: UInt64 = 0
        var rejected: UInt64 = 0
        var others: UInt64 = 0
        var settled: UInt64 { accepted + rejected + others }
        /// The pauses by the operator, milliseconds since 1970.
        var pauses: [Telemetry.Pause] = []

        /// Indexes of the waves whose rows the run began to send; nil if none did, or if that is
        /// not recorded.
        var waves: [Int]?
        /// Latest time at which the run waited for its wave; nil if it sent.
        var waitedUntilMilliseconds: UInt64?

        var endedAtMilliseconds: UInt64 {
            max(startedAtMilliseconds + UInt64(elapsed * 1000), waitedUntilMilliseconds ?? 0)
        }

        /// Seconds from the start to the end.
        var tookSeconds: Double {
            max(elapsed, Double(endedAtMilliseconds - startedAtMilliseconds) / 1000)
        }
    }

    var summary: Summary
    var isInProgress = false
    /// Cause of the latest run's end; nil if none was recorded.
    package var cause: StopCause?
    /// Recommended next steps.
    package var steps: [StopAdvice.Step] = []
    /// Text of the alert.
    var alert: AlertText?
    /// Start of the first run, milliseconds since 1970.
    var startedAtMilliseconds: UInt64?
    var ledgerPath: String
    var listPath: String?
    /// Identity of the campaign, including the list's format and columns; nil if unknown.
    package var identity: CampaignIdentity?
    var runs: [RunMark] = []
    var throughput: [Throughput] = []
    /// The points of the telemetry; their times are running time.
    var points: [TimeSeries.Point] = []
    var latency = LatencyCounts()
    /// Nanoseconds that connections spent in each state of `Bottleneck`, over all runs.
    var limited: [UInt64] = []
    var connections: [ConnectionTally] = []
    var events: [Telemetry.Event] = []
    var eventsLost: UInt64 = 0
    var settings: [Telemetry.Setting] = []
    /// The first waves of the campaign, in order; empty if rows are not sent in waves.
    var waves: [Telemetry.PlannedWave] = []
    /// For a merged ledger, the period from the first start to the last verdict of its shards or
    /// parts, in milliseconds since 1970; nil for other ledgers.
    var partsPeriod: ClosedRange<UInt64>?
    /// Number of merged ledgers that have waves; 0 if the ledger is not merged, or if rows are not
    /// sent in waves.
    var partsWithWaves = 0
    /// Program that sent the latest run, as it is called here, for the commands of the page.
    private(set) var program = "broadside"
    /// Whether the ledger still exists. It is removed if nothing was sent.
    package var hasLedger = true
    /// What devices reported; nil if the user gave no receipts.
    var receipts: ReceiptFindings?
    var createdAtMilliseconds: UInt64 = 0

    /// Whether the ledger has the tokens of rows that were not accepted.
    var keepsTokens: Bool { identity?.keepsTokens ?? true }

    /// Whether the latest run was killed.
    var isInterrupted: Bool {
        !isInProgress && summary.outcome == .stopped && runs.last?.outcome == Telemetry.interrupted
    }

    /// - Parameter course: Times at which rows were settled, at least for each run whose end is
    ///   missing from the telemetry. Nil if no end is missing.
    package init(
        summary: Summary, telemetry: Telemetry, epochs: [Manifest.Epoch],
        course: SettlementTimeline?,
        ledgerPath: String, listPath: String?, createdAtMilliseconds: UInt64
    ) {
        self.summary = summary
        self.ledgerPath = ledgerPath
        self.listPath = listPath
        self.createdAtMilliseconds = createdAtMilliseconds
        alert = telemetry.alert
        program = telemetry.command?.programHere ?? program
        startedAtMilliseconds = epochs.first?.startedAtMilliseconds
        latency = telemetry.latency
        connections = telemetry.connections
        events = telemetry.events
        eventsLost = telemetry.eventsLost
        settings = telemetry.settings
        limited = Array(repeating: 0, count: Bottleneck.allCases.count)
        waves = telemetry.waves ?? []
        var axis = 0.0
        for epoch in telemetry.withoutWaits(epochs) {
            let run = telemetry.runs.first { $0.number == epoch.number }
            let bins = course?.bins(of: epoch.number) ?? []
            // A killed run recorded its running time only every few seconds, so its last verdict
            // may be later.
            let settled =
                run?.hasEnd == true ? bins.last?.start : course?.seconds(of: epoch.number)
            let elapsed = max(run?.elapsedSeconds ?? 0, settled ?? 0)
            runs.append(
                RunMark(
                    number: epoch.number, startedAtMilliseconds: epoch.startedAtMilliseconds,
                    start: axis, elapsed: elapsed, outcome: telemetry.outcome(of: epoch),
                    cause: Self.cause(epoch, run),
                    retries: run.flatMap { $0.hasEnd || $0.isSampled ? $0.retries : nil },
                    pauses: run?.pauses ?? [], waves: run?.waves,
                    waitedUntilMilliseconds: run?.waitedUntilMilliseconds))
            count(run, bins)
            add(run, bins, elapsed: elapsed, at: axis)
            assert(elapsed >= 0 && elapsed.isFinite, "run \(epoch.number) lasted \(elapsed) s")
            axis += elapsed
        }
    }

    /// Cause of a run's early end, without the advice that the run gave.
    private static func cause(_ epoch: Manifest.Epoch, _ run: Telemetry.Run?) -> String? {
        // A later start may have replaced the cause in the manifest.
        guard let cause = (run?.stop ?? epoch.stop)?.cause else { return run?.cause }
        return cause == .complete ? nil : cause.message
    }

    /// Counts the rows that the latest run settled.
    private mutating func count(_ run: Telemetry.Run?, _ bins: [SettlementTimeline.Bin]) {
        let last = runs.count - 1
        for bin in bins {
            runs[last].accepted += bin.accepted
            runs[last].rejected += bin.rejected
            runs[last].others += bin.others
        }
        guard bins.isEmpty else { return }
        for point in run?.points ?? [] {
            runs[last].accepted += point.accepted
            runs[last].rejected += point.rejected
            runs[last].others += point.others
        }
    }

    private mutating func add(
        _ run: Telemetry.Run?, _ bins: [SettlementTimeline.Bin], elapsed: Double, at axis: Double
    ) {
        for var bin in bins {
            // The last period ends with the run.
            bin.duration = min(bin.duration, max(0.001, elapsed - bin.start))
            add(
                Throughput(
                    start: axis + bin.start, duration: bin.duration, accepted: bin.accepted,
                    rejected: bin.rejected, others: bin.others), runStart: axis)
        }
        for var point in run?.points ?? [] {
            point.start += axis
            points.append(point)
            guard bins.isEmpty else { continue }
            add(
                Throughput(
                    start: point.start, duration: point.duration, accepted: point.accepted,
                    rejected: point.rejected, others: point.others), runStart: axis)
        }
        // Version 0.1.0 recorded one value fewer: the last one is missing.
        for (index, share) in (run?.limited ?? []).enumerated() where index < limited.count {
            let (sum, isOver) = limited[index].addingReportingOverflow(share)
            limited[index] = isOver ? .max : sum
        }
    }

    /// Minimum duration of a period, in seconds, for a rate. The rate of a shorter period would
    /// look too high, because the period also has responses to requests that were sent before it.
    private static let fullSecond = 0.95

    /// Adds a period. The rows of a period that is too short are added to the previous period of
    /// the same run.
    private mutating func add(_ next: Throughput, runStart: Double) {
        guard next.duration < Self.fullSecond, let last = throughput.last, last.start >= runStart
        else {
            throughput.append(next)
            return
        }
        assert(next.start >= last.start, "periods are out of order")
        let end = max(last.start + last.duration, next.start + next.duration)
        throughput[throughput.count - 1] = Throughput(
            start: last.start, duration: end - last.start, accepted: last.accepted &+ next.accepted,
            rejected: last.rejected &+ next.rejected, others: last.others &+ next.others)
    }

    /// End of the latest run. If the run did not record its end, this is the latest time that it
    /// recorded.
    var endedAtMilliseconds: UInt64? {
        partsPeriod?.upperBound ?? runs.last.map(\.endedAtMilliseconds)
    }

    /// Seconds between the end of the previous run and the start of this one; nil for the first.
    func gap(before index: Int) -> Double? {
        guard index > 0 else { return nil }
        let (end, start) = (runs[index - 1].endedAtMilliseconds, runs[index].startedAtMilliseconds)
        // The clock may have been set back between the two runs.
        return Double(start - min(start, end)) / 1000
    }

    /// Seconds of running time, without the gaps between runs.
    var runningSeconds: Double { runs.last.map { $0.start + $0.elapsed } ?? 0 }

    /// Seconds from the start of the first run to the end of the latest one, including gaps and
    /// pauses; at least the running time, in case a clock was set back.
    var wholeSeconds: Double {
        guard let start = startedAtMilliseconds, let end = endedAtMilliseconds else {
            return runningSeconds
        }
        return max(runningSeconds, Double(end - min(start, end)) / 1000)
    }

    /// Highest rate, in rows per second, over a period of at least a second; 0 if there is no such
    /// period.
    var peakRate: Double {
        throughput.filter { $0.duration >= Self.fullSecond }
            .map { Double($0.accepted + $0.rejected + $0.others) / $0.duration }.max() ?? 0
    }
}
