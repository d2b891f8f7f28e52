import BroadsideAPNs
package import BroadsideEngine
package import BroadsideLedgerFormat
package import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// One look at a whole run: what the live view, `--progress json`, the metrics, the control socket
/// and the report's curves are all drawn from.
package struct RunSnapshot: Sendable {
    /// What the run is doing.
    package enum Phase: String, Sendable {
        case running, paused, stopping, finished
    }

    /// Times of answers, nanoseconds.
    package struct Latency: Sendable, Equatable {
        var p50: UInt64?
        package var p99: UInt64?

        init() {}

        init(_ counts: LatencyCounts) {
            p50 = counts.quantile(0.5)
            p99 = counts.quantile(0.99)
        }
    }

    package var campaign = ""
    /// What people call it; nil: nothing.
    package var name: String?
    /// The campaign's labels.
    package var labels: [String: String] = [:]
    /// A legacy gateway is spoken to: what it says nothing of was accepted.
    var acceptsBySilence = false
    /// What the guards have counted; nil if the run is over.
    package var guards: GuardStatus?
    package var phase = Phase.running
    /// Since this process began to send.
    var elapsedSeconds = 0.0
    /// Milliseconds since 1970.
    package var wallMilliseconds: UInt64 = 0
    /// Monotonic nanoseconds.
    package var takenAt: UInt64 = 0
    /// Over all runs of the campaign.
    package var counts = RowCounts()
    /// The campaign's rows, those of its shard if it has one; nil before anything is known.
    package var rows: UInt64?
    /// True while `rows` is estimated from how much of the list's bytes so many rows took.
    var isRowsEstimate = false
    /// Answers a second: in the last second, and since the start.
    package var rateNow = 0.0
    var rateAverage = 0.0
    /// The rates of the last looks, a second each, the oldest first.
    package var recentRates: [Double] = []
    package var latencyNow = Latency()
    var latency = Latency()
    package var openConnections = 0
    var wantedConnections = 0
    var inFlight = 0
    /// Requests a second that `--rate` or the operator allows; nil: unlimited.
    package var rateLimit: Double?
    /// What was counted of each topic, where rows name their topics; nil: they name none.
    package var topics: [TopicReport]?
    /// How far that has risen by itself; nil: it does not.
    package var ramp: RampClock?
    /// Shares of the last second by `LimitedBy`; all zero before the first.
    var limitedNow = [Double](repeating: 0, count: LimitedBy.allCases.count)
    /// What this process counted.
    package var statistics = RunStatistics()
    package var latencyCounts = LatencyCounts()

    /// Looks whose rates are kept.
    static let recentRatesLimit = 120

    package init() {}

    /// Reason -> rows not accepted, the most frequent first.
    var reasons: [(name: String, count: UInt64)] {
        counts.reasons.named.sorted { ($0.value, $1.key) > ($1.value, $0.key) }
            .map { (name: $0.key, count: $0.value) }
    }

    /// Rows whose token belongs to no device any more: what `prune` removes unless it is told otherwise.
    var deadRows: UInt64 {
        reasons.filter { Self.deadReasons.contains($0.name) }.reduce(0) { $0 + $1.count }
    }

    private static let deadReasons: Set = [Reason.unregistered.text, Reason.expiredToken.text]

    /// Rows that somebody has to decide about: all that are settled but for the accepted, the dead and
    /// the skipped ones.
    var troubledRows: UInt64 {
        let rows = counts.settled - counts[.accepted] - counts[.skipped]
        return rows - min(rows, deadRows)
    }

    /// What is wrong with them: the reasons, the most frequent first.
    var troubles: [(name: String, count: UInt64)] {
        reasons.filter {
            !Self.deadReasons.contains($0.name) && !Self.skipReasons.contains($0.name)
        }
    }

    private static let skipReasons = Set(SkipReason.allCases.map(\.reason.text))

    /// When this process began to send, milliseconds since 1970.
    var startedAtMilliseconds: UInt64 {
        wallMilliseconds - min(wallMilliseconds, UInt64(max(0, elapsedSeconds) * 1000))
    }

    /// The part of the rows that is settled, 0 to 1; nil where the rows are not known.
    var share: Double? {
        guard let rows, rows > 0 else { return nil }
        return min(1, Double(counts.settled) / Double(rows))
    }

    /// The bottleneck of the last second; nil while the run is too young to tell.
    var limitedBy: LimitedBy? {
        guard elapsedSeconds >= RunStatistics.shortestToJudgeSeconds else { return nil }
        return LimitedBy.allCases.filter { limitedNow[$0.rawValue] > 0 }
            .max { limitedNow[$0.rawValue] < limitedNow[$1.rawValue] }
    }

    /// Seconds until all is settled if it goes on like this; nil where that can't be said.
    var etaSeconds: Double? {
        guard phase == .running, let rows, rateNow > 0 || rateAverage > 0 else { return nil }
        let left = Double(rows - min(rows, counts.settled))
        // Half of each: the present counts, but one slow second is not a trend.
        if let ramp, !ramp.isOver, rateNow > 0, rateNow >= (rateLimit ?? .infinity) * 0.8 {
            // The rate is the bottleneck, and it still rises.
            return ramp.ramp.seconds(for: left, after: Double(ramp.sentNanoseconds) / 1e9)
        }
        let rate = rateNow > 0 ? (rateNow + rateAverage) / 2 : rateAverage
        return left / rate
    }
}

extension LimitedBy {
    /// In words, to follow "bottleneck".
    ///
    /// - Parameter acceptsBySilence: Whether a legacy gateway is spoken to, which has no streams.
    package func words(acceptsBySilence: Bool = false) -> String {
        switch self {
        case .input: "reading the list"
        case .rate: "the rate limit"
        case .connecting: "connecting"
        case .retry: "backoff"
        case .streams:
            acceptsBySilence ? "the wait for the gateway's silence" : "APNs stream limit"
        case .window: "flow-control windows"
        case .socket: "network"
        case .cpu: "CPU of this machine"
        }
    }

    /// What makes a run faster that this holds back, in a few words.
    var remedy: String {
        switch self {
        case .input: "an uncompressed list on a faster disk helps"
        case .rate: "a higher rate helps"
        case .connecting: "broadside doctor shows why connections take long"
        case .retry: "APNs asks to wait: a lower rate helps"
        case .streams, .window: "more --connections help"
        case .socket: "--hpack compact sends fewer bytes"
        case .cpu: "more --reactors help where cores are idle"
        }
    }

    /// The three largest shares, for people; nil where a run was too short to judge.
    ///
    /// - Parameter shares: By `name`, adding up to 1.
    package static func text(
        _ shares: [String: Double]?, seconds: Double, acceptsBySilence: Bool = false
    ) -> String? {
        guard let shares, seconds >= RunStatistics.shortestToJudgeSeconds else { return nil }
        let largest = allCases.map { ($0, shares[$0.name] ?? 0) }.filter { $0.1 >= 0.01 }
            .sorted { $0.1 > $1.1 }.prefix(3)
        guard !largest.isEmpty else { return nil }
        return largest.map { cause, share in
            "\(cause.words(acceptsBySilence: acceptsBySilence)) \(percentText(share))"
        }.joined(separator: ", ")
    }
}
