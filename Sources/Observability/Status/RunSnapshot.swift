import BroadsideAPNs
package import BroadsideEngine
package import BroadsideLedgerFormat
package import BroadsidePolicy
package import BroadsideRows
import BroadsideSupport

/// State of a whole run at one time. The live view, `--progress json`, the metrics, the control
/// socket and the report's charts use it.
package struct RunSnapshot: Sendable {
    /// What the run is doing.
    package enum Phase: String, Sendable {
        case running, waiting, paused, stopping, finished
    }

    /// Response times, in nanoseconds.
    package struct Latency: Sendable, Equatable {
        package var p50: UInt64?
        package var p99: UInt64?

        init() {}

        init(_ counts: LatencyCounts) {
            p50 = counts.quantile(0.5)
            p99 = counts.quantile(0.99)
        }
    }

    /// The work of a process in its earlier passes over the list.
    package struct EarlierPasses: Sendable {
        var statistics = RunStatistics()
        var latency = LatencyCounts()
        /// Seconds from the start of the first pass to the start of the present pass.
        var seconds = 0.0
        /// Seconds for which the process has sent in its earlier passes, without waits for waves.
        var sendingSeconds = 0.0

        package init() {}

        package init(
            _ statistics: RunStatistics, _ latency: LatencyCounts, seconds: Double,
            sendingSeconds: Double
        ) {
            self.statistics = statistics
            self.latency = latency
            self.seconds = seconds
            self.sendingSeconds = sendingSeconds
        }
    }

    package var campaign = ""
    /// Name of the campaign; nil if it has none.
    package var name: String?
    /// The labels of the campaign.
    package var labels: [String: String] = [:]
    /// Whether the server is a legacy gateway, which sends no response to an accepted notification.
    var acceptsBySilence = false
    /// The split of devices into arms; nil if there are no arms.
    package var split: ArmSplit?
    /// Settled rows of each arm over all runs; nil if there are no arms.
    var arms: ArmTotals? { ArmTotals(split, counts.arms) }
    /// The counts of the guards; nil after the run's end.
    package var guards: GuardStatus?
    package var phase = Phase.running
    /// Seconds since the present pass over the list began.
    package var elapsedSeconds = 0.0
    /// The work of this process before the present pass: the passes of earlier waves.
    var earlierPasses = EarlierPasses()
    /// Time of the snapshot, in milliseconds since 1970.
    package var wallMilliseconds: UInt64 = 0
    /// Time of the snapshot on the monotonic clock, in nanoseconds.
    package var takenAt: UInt64 = 0
    /// Rows by state, over all runs of the campaign.
    package var counts = RowCounts()
    /// Number of rows of the campaign or its shard; nil until it is known or estimated.
    package var rows: UInt64?
    /// Whether `--limit` keeps rows of the list from this run, such as a test's.
    package var isLimited = false
    /// Whether `rows` is an estimate from the share of the list's bytes that was read.
    package var isRowsEstimate = false
    /// Responses per second: during the last second (`rateNow`), and on average over
    /// `sendingSeconds`.
    package var rateNow = 0.0
    package var rateAverage = 0.0
    /// The rates in the last seconds, one for each second, the oldest first.
    package var recentRates: [Double] = []
    package var latencyNow = Latency()
    package var latency = Latency()
    package var openConnections = 0
    var wantedConnections = 0
    package var inFlight = 0
    /// The limit in requests per second from `--rate` or the operator; nil: unlimited.
    package var rateLimit: Double?
    /// The limit of each connection in requests per second; nil: unlimited.
    var ratePerConnection: Double?
    /// The counts per topic; nil if rows name no topics.
    package var topics: [TopicReport]?
    /// Which wave is being sent; nil if rows are not sent in waves.
    package var waves: WaveProgress?
    /// The progress of a rising `rateLimit`; nil if it does not rise.
    package var ramp: RampClock?
    /// The shares of the connections' time in the last second, indexed by `Bottleneck`. All zero
    /// before the first sample.
    var limitedNow = [Double](repeating: 0, count: Bottleneck.allCases.count)
    /// Counters of the present pass.
    package var statistics = RunStatistics()
    package var latencyCounts = LatencyCounts()

    /// Maximum number of rates in `recentRates`.
    static let recentRatesLimit = 120

    package init() {}

    /// Rows that were not accepted, by reason, the most frequent first.
    var reasons: [(name: String, count: UInt64)] {
        counts.reasons.named.sorted { ($0.value, $1.key) > ($1.value, $0.key) }
            .map { (name: $0.key, count: $0.value) }
    }

    /// Number of rows with a dead token, which `prune` removes by default.
    var deadRows: UInt64 {
        reasons.filter { Self.deadReasons.contains($0.name) }.reduce(0) { $0 + $1.count }
    }

    private static let deadReasons: Set = [Reason.unregistered.text, Reason.expiredToken.text]

    /// Number of rows that the operator has to decide about: all settled rows except accepted, dead
    /// and skipped ones.
    var troubledRows: UInt64 {
        let rows = counts.settled - counts[.accepted] - counts[.skipped]
        return rows - min(rows, deadRows)
    }

    /// Reasons of `troubledRows`, the most frequent first.
    var troubles: [(name: String, count: UInt64)] {
        reasons.filter {
            !Self.deadReasons.contains($0.name) && !Self.skipReasons.contains($0.name)
        }
    }

    private static let skipReasons = Set(SkipReason.allCases.map(\.reason.text))

    /// Time at which this process began its first pass, milliseconds since 1970.
    var startedAtMilliseconds: UInt64 {
        let seconds = earlierPasses.seconds + elapsedSeconds
        return wallMilliseconds - min(wallMilliseconds, UInt64(max(0, seconds) * 1000))
    }

    /// Seconds for which this process has sent, without waits for waves.
    package var sendingSeconds: Double {
        let isWaiting = waves?.isWaiting ?? false
        return earlierPasses.sendingSeconds + (isWaiting ? 0 : elapsedSeconds)
    }

    /// Counters of this process, without earlier runs.
    package var processStatistics: RunStatistics {
        var sum = earlierPasses.statistics
        sum.add(statistics)
        return sum
    }

    /// Response times in this process.
    var processLatency: LatencyCounts {
        var sum = earlierPasses.latency
        sum.add(latencyCounts)
        return sum
    }

    /// Number of responses in this process.
    var processResponses: UInt64 {
        processLatency.count + earlierPasses.statistics.untimedResponses
            + statistics.untimedResponses
    }

    /// Settled share of the rows, 0 to 1; nil if the number of rows is unknown.
    var share: Double? {
        guard let rows, rows > 0 else { return nil }
        return min(1, Double(counts.settled) / Double(rows))
    }

    /// Bottleneck of the last second; nil if the run is too short to determine it.
    var limitedBy: Bottleneck? {
        guard elapsedSeconds >= RunStatistics.shortestToJudgeSeconds else { return nil }
        return Bottleneck.allCases.filter { limitedNow[$0.rawValue] > 0 }
            .max { limitedNow[$0.rawValue] < limitedNow[$1.rawValue] }
    }

    /// Estimated seconds until all rows are settled at the current pace, including waits for later
    /// waves; nil if there is no estimate.
    package var etaSeconds: Double? {
        guard phase == .running, let rows, rateNow > 0 || rateAverage > 0, !waitsForBackoff
        else { return nil }
        let left = rows - min(rows, counts.settled)
        let later = left > 0 ? waves?.laterWaves ?? [] : []
        var sent = Double(left - min(left, later.reduce(0) { $0 + $1.rows }))
        var seconds = sendingSeconds(of: sent)
        for wave in later {
            let wait = wave.atMilliseconds - min(wave.atMilliseconds, wallMilliseconds)
            let next = sent + Double(wave.rows)
            seconds =
                max(seconds, Double(wait) / 1000) + sendingSeconds(of: next)
                - sendingSeconds(of: sent)
            sent = next
        }
        let quiet = waves?.quietAtMilliseconds ?? .max
        guard Double(wallMilliseconds) + seconds * 1000 < Double(quiet) else { return nil }
        return seconds
    }

    /// Whether the rows that are left wait to be sent again, so that nothing is known of their pace.
    private var waitsForBackoff: Bool { rateNow == 0 && limitedBy == .retry }

    /// Estimated seconds that it takes to send further rows.
    private func sendingSeconds(of rows: Double) -> Double {
        let least = leastSeconds(of: rows)
        if let ramp, !ramp.isOver, rateNow > 0, rateNow >= (rateLimit ?? .infinity) * 0.8 {
            // The rate limit is the bottleneck, and it is still rising.
            return least
        }
        // Average of the current rate and the rate since the start, so that one slow second changes
        // the estimate only in part.
        return max(least, rows / (rateNow > 0 ? (rateNow + rateAverage) / 2 : rateAverage))
    }

    /// Seconds that it takes to send further rows at the rate limits of the run and of its
    /// connections.
    private func leastSeconds(of rows: Double) -> Double {
        // The run may open more connections later, so this is an estimate.
        let ofConnections = ratePerConnection.map { $0 * Double(wantedConnections) }
        if let ramp, !ramp.isOver {
            return max(
                ramp.ramp.seconds(for: rows, after: Double(ramp.sentNanoseconds) / 1e9),
                seconds(of: rows, at: ofConnections))
        }
        return max(seconds(of: rows, at: rateLimit), seconds(of: rows, at: ofConnections))
    }

    /// Seconds that it takes to send further rows at a rate limit.
    private func seconds(of rows: Double, at limit: Double?) -> Double {
        guard let limit, limit > 0 else { return 0 }
        // Requests in flight were sent already.
        return max(0, rows - Double(inFlight)) / limit
    }
}
