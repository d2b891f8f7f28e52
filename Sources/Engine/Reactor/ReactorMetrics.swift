import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// What a reactor counts and reports: nothing in it decides what is sent.
struct ReactorMetrics: ~Copyable {
    var statistics = RunStatistics()
    var latency = LatencyHistogram()
    /// What is worth a line in the log; handed over with the next report.
    var events = EventBuffer()
    /// Accepted rows that the run was not told of yet.
    var acceptedSinceReport = 0
    /// What the canary knows already.
    var canaryReport = CanaryReport()

    /// Counts a request; `isRetry`: one beyond its row's first.
    @inline(__always)
    mutating func countRequest(isRetry: Bool) {
        if isRetry { statistics.retries += 1 }
        statistics.requests += 1
    }

    /// What became of the canary's rows since the last time.
    mutating func takeCanaryProgress() -> ReactorEffects.CanaryProgress {
        let total = canaryTotal
        defer { canaryReport.reported = total }
        return .init(
            done: total.done - canaryReport.reported.done,
            answered: total.answered - canaryReport.reported.answered,
            refused: total.refused - canaryReport.reported.refused,
            lost: total.lost - canaryReport.reported.lost)
    }

    private var canaryTotal: ReactorEffects.CanaryProgress {
        // A row that is invalid tells as much of the campaign as one that is refused.
        let counts = statistics.counts
        let refusing = statistics.refusedByCredential + counts[.invalid]
        return .init(
            done: counts.settled + statistics.refusedByCredential,
            answered: counts[.accepted] + counts[.rejected] + refusing,
            refused: canaryReport.refused + refusing,
            lost: counts[.failed] + counts[.unknown] - canaryReport.lostBefore)
    }

    /// A connection that takes another's place is a reconnect; the first ones and those by which the
    /// run grows take nobody's place, and those that end with the run get no successor.
    mutating func countConnection(share: Int) {
        statistics.connectionsOpened += 1
        let replacing = UInt64(max(0, Int(statistics.connectionsOpened) - share))
        statistics.reconnects = max(statistics.reconnects, replacing)
    }
}

/// What a reactor counts for the canary alone.
struct CanaryReport {
    /// What the canary knows already.
    var reported = ReactorEffects.CanaryProgress()
    /// Rows that were refused for good, 410 left out.
    var refused: UInt64 = 0
    /// Rows that an earlier run sent: their answers were never to be had.
    var lostBefore: UInt64 = 0
}
