import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// Counters and events of a reactor. Guards and canary decide by the accepted rows and the canary's
/// progress. Nothing else here influences what is sent.
struct ReactorMetrics: ~Copyable {
    var statistics = RunStatistics()
    var latency = LatencyHistogram()
    /// Events for the log, handed over with the next report.
    var events = EventBuffer()
    /// Accepted rows not yet reported to the run.
    var acceptedSinceReport = 0
    /// Number of accepted rows per topic that are not yet reported to the run. Empty if rows name
    /// no topics.
    var topicsAccepted: [UInt32]
    /// The progress already reported to the canary.
    var canaryReport = CanaryReport()

    /// - Parameter topics: Limit on topics that rows name; 0: rows name none.
    init(topics: Int) { topicsAccepted = Array(repeating: 0, count: topics) }

    /// Counts a request.
    ///
    /// - Parameter firstSent: Value of the row's `firstSentNanoseconds` before the request.
    @inline(__always)
    mutating func countRequest(firstSent: UInt64) {
        if firstSent != 0 {
            statistics.retries += 1
            if firstSent != PendingRow.sentByEarlierRun { statistics.ownRetries += 1 }
        }
        statistics.requests += 1
    }

    /// Returns the progress of the canary's rows since the last call.
    mutating func takeCanaryProgress() -> ReactorEffects.CanaryProgress {
        let total = canaryTotal
        defer { canaryReport.reported = total }
        assert(
            total.answered + total.lost <= total.done, "more responses than finished rows")
        assert(total.refused <= total.answered, "a refusal is a response")
        return .init(
            done: total.done - canaryReport.reported.done,
            answered: total.answered - canaryReport.reported.answered,
            refused: total.refused - canaryReport.reported.refused,
            lost: total.lost - canaryReport.reported.lost,
            postponed: total.postponed - canaryReport.reported.postponed)
    }

    private var canaryTotal: ReactorEffects.CanaryProgress {
        // For the canary, an invalid row counts like a refused one.
        let counts = statistics.counts
        let refusing =
            statistics.refusedByCredential + (canaryReport.countsInvalid ? counts[.invalid] : 0)
        return .init(
            done: counts.settled + statistics.refusedByCredential,
            answered: counts[.accepted] + counts[.rejected] + refusing,
            refused: canaryReport.refused + refusing,
            lost: counts[.failed] + counts[.unknown] - canaryReport.lostBefore,
            postponed: statistics.pushbacks)
    }

    /// Counts a connection. The connection counts as a reconnect if it replaces an earlier one.
    /// Initial connections, and connections that the run added, are not reconnects.
    mutating func countConnection(share: Int) {
        statistics.connectionsOpened += 1
        let replacing = UInt64(max(0, Int(statistics.connectionsOpened) - share))
        statistics.reconnects = max(statistics.reconnects, replacing)
    }
}

/// Counters that only the canary uses.
struct CanaryReport {
    /// The progress already reported to the canary.
    var reported = ReactorEffects.CanaryProgress()
    /// Whether an invalid row counts like a refused one.
    var countsInvalid = true
    /// Number of rejected rows, except those with a dead token.
    var refused: UInt64 = 0
    /// Number of rows that an earlier run sent without a recorded response.
    var lostBefore: UInt64 = 0
}
