import Campaign
import Support

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
    mutating func noteRequest(isRetry: Bool) {
        if isRetry { statistics.retries += 1 }
        statistics.requests += 1
    }

    /// Tells the run of the rows that were accepted since the last time. Guards count responses in their
    /// order, so this comes before any other response is counted.
    mutating func reportAccepted(to run: SharedRun) {
        run.count(accepted: acceptedSinceReport)
        acceptedSinceReport = 0
    }

    /// A connection that takes another's place is a reconnect; the first ones and those by which the
    /// run grows take nobody's place, and those that end with the run get no successor.
    mutating func noteConnection(share: Int) {
        statistics.connectionsOpened += 1
        let replacing = UInt64(max(0, Int(statistics.connectionsOpened) - share))
        statistics.reconnects = max(statistics.reconnects, replacing)
    }
}

/// What of a reactor's counters the canary knows already.
struct CanaryReport {
    var done: UInt64 = 0
    var answered: UInt64 = 0
    /// Rows that were refused for good, 410 left out.
    var refused: UInt64 = 0
    var refusedReported: UInt64 = 0
    var lost: UInt64 = 0
    /// Rows that an earlier run sent: their answers were never to be had.
    var lostBefore: UInt64 = 0
}
