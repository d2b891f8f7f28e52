import BroadsideAPNs
package import BroadsideEngine
package import BroadsideLedgerFormat
package import BroadsideLists
package import BroadsidePolicy
package import BroadsideRows
package import BroadsideSupport

/// Samples a run once per second, and keeps the data for its charts. A run has one sampler, on the
/// main thread. All progress output uses its snapshots.
package struct RunSampler {
    /// Facts about a run that the sampler can't observe.
    package struct Context {
        var campaign: String
        var name: String?
        var labels: [String: String]
        /// Whether the server is a legacy gateway.
        var acceptsBySilence = false
        /// The split of devices into arms; nil if there are no arms.
        var split: ArmSplit?
        /// The counts of rows that earlier runs settled and this run does not send again.
        var earlier: RowCounts
        /// Selection of the list's rows that belong to the campaign.
        var rows = CampaignRows()
        /// Number of further rows that earlier runs sent, beyond the limit of `rows`.
        var beyondLimitCount: UInt64
        /// Number of the row after the campaign's last one, if an earlier run found the end of the
        /// list.
        var knownEnd: UInt64?
        /// Size of the list in bytes; nil if it is unknown until the whole list is read.
        var listByteCount: UInt64?
        var wantedConnections: Int
        /// The rate limit of each connection, in requests per second; nil: unlimited.
        var ratePerConnection: Double?
        /// The work of this process in its earlier passes over the list.
        var earlierPasses: RunSnapshot.EarlierPasses

        package init(
            campaign: String, name: String? = nil, labels: [String: String] = [:],
            acceptsBySilence: Bool = false, split: ArmSplit? = nil, earlier: RowCounts,
            rows: CampaignRows = CampaignRows(), beyondLimitCount: UInt64 = 0,
            knownEnd: UInt64? = nil,
            listByteCount: UInt64? = nil, wantedConnections: Int,
            ratePerConnection: Double? = nil,
            earlierPasses: RunSnapshot.EarlierPasses = .init()
        ) {
            self.campaign = campaign
            self.name = name
            self.labels = labels
            self.acceptsBySilence = acceptsBySilence
            self.split = split
            self.earlier = earlier
            self.rows = rows
            self.beyondLimitCount = beyondLimitCount
            self.knownEnd = knownEnd
            self.listByteCount = listByteCount
            self.wantedConnections = wantedConnections
            self.ratePerConnection = ratePerConnection
            self.earlierPasses = earlierPasses
        }
    }

    private let context: Context
    private let start: Now
    package private(set) var series = TimeSeries()
    package private(set) var snapshot = RunSnapshot()
    private var lastSampleTime: UInt64
    private var nextCheck: UInt64

    /// Time between samples, in nanoseconds.
    static var interval: UInt64 { second }

    package init(_ context: Context, start: Now) {
        self.context = context
        self.start = start
        lastSampleTime = start.nanoseconds
        nextCheck = start.nanoseconds + Self.interval
        snapshot.campaign = context.campaign
        snapshot.name = context.name
        snapshot.labels = context.labels
        snapshot.acceptsBySilence = context.acceptsBySilence
        snapshot.split = context.split
        snapshot.counts = context.earlier
        snapshot.isLimited = context.rows.limit != nil
        snapshot.wallMilliseconds = start.wallMilliseconds
        snapshot.wantedConnections = context.wantedConnections
        snapshot.ratePerConnection = context.ratePerConnection
        snapshot.earlierPasses = context.earlierPasses
        takeRateAverage()
        if let end = context.rows.part.endRow ?? context.knownEnd { takeRows(upTo: end) }
    }

    /// Changes the number of connections that the run maintains.
    package mutating func want(connections: Int) {
        assert(connections >= snapshot.wantedConnections, "a run only opens more connections")
        snapshot.wantedConnections = connections
    }

    /// Records the counts per topic; nil if rows name no topics.
    package mutating func take(topics: [TopicReport]?) { snapshot.topics = topics }

    /// Records which wave is being sent; nil if rows are not sent in waves.
    package mutating func take(waves: WaveProgress?) { snapshot.waves = waves }

    /// Whether the next sample is due.
    package func isDue(_ now: Now) -> Bool { now.nanoseconds >= nextCheck }

    /// Records the reactors' latest report.
    ///
    /// - Parameters:
    ///   - list: Progress of reading the list.
    ///   - milliRate: Rate limit in requests per 1,000 seconds; nil: unlimited.
    ///   - ramp: Progress of a rising rate; nil if the rate does not rise.
    ///   - guards: Counts of the guards.
    package mutating func sample(
        _ report: ReactorReport, list: ListSource.Progress, phase: RunSnapshot.Phase,
        milliRate: UInt64?, ramp: RampClock? = nil, guards: GuardStatus? = nil, now: Now
    ) {
        let before = snapshot
        assert(now.nanoseconds >= lastSampleTime, "time does not go back")
        let elapsed = Double(now.nanoseconds - min(now.nanoseconds, lastSampleTime)) / 1e9
        lastSampleTime = now.nanoseconds
        nextCheck = now.nanoseconds + Self.interval
        snapshot.phase = phase
        snapshot.wallMilliseconds = now.wallMilliseconds
        snapshot.elapsedSeconds = Double(now.nanoseconds - start.nanoseconds) / 1e9
        snapshot.guards = guards
        snapshot.rateLimit = milliRate.map { Double($0) / 1000 }
        snapshot.ramp = ramp
        take(report)
        assert(snapshot.counts.settled >= before.counts.settled, "what is settled stays settled")
        takeRows(list)
        let period = report.latency.since(before.latencyCounts)
        snapshot.latencyNow = RunSnapshot.Latency(period)
        snapshot.takenAt = now.nanoseconds
        let untimed = report.statistics.untimedResponses
        if elapsed > 0 {
            let new = period.count + untimed - before.statistics.untimedResponses
            // A run's last sample covers less than a second. The rate before it counts for the rest
            // of that second.
            let share = snapshot.recentRates.isEmpty ? 1 : min(1, elapsed)
            snapshot.rateNow = Double(new) / elapsed * share + before.rateNow * (1 - share)
            snapshot.recentRates.append(snapshot.rateNow)
            let extra = snapshot.recentRates.count - RunSnapshot.recentRatesLimit
            if extra > 0 { snapshot.recentRates.removeFirst(extra) }
        }
        assert(
            snapshot.recentRates.count <= RunSnapshot.recentRatesLimit,
            "only the last rates are kept")
        takeRateAverage()
        let limited = zip(report.statistics.limited, before.statistics.limited).map { $0 - $1 }
        let total = limited.reduce(0, +)
        assert(
            report.statistics.limited.count == before.statistics.limited.count
                || before.statistics.limited.isEmpty, "a limit was added during a run")
        snapshot.limitedNow = limited.map { total > 0 ? Double($0) / Double(total) : 0 }
        series.append(
            TimeSeries.Point(
                start: snapshot.elapsedSeconds - elapsed, duration: elapsed,
                counts: snapshot.counts.since(before.counts), latency: period,
                inFlight: snapshot.inFlight, limited: limited))
    }

    /// Takes the final counts from the run's summary, so that the last snapshot agrees with the
    /// summary.
    package mutating func end(_ summary: Summary) {
        snapshot.counts = summary.counts
        if let rows = summary.rows {
            snapshot.rows = rows
            snapshot.isRowsEstimate = false
        }
    }

    private mutating func takeRateAverage() {
        let seconds = snapshot.sendingSeconds
        if seconds > 0 { snapshot.rateAverage = Double(snapshot.processResponses) / seconds }
    }

    private mutating func take(_ report: ReactorReport) {
        let statistics = report.statistics
        snapshot.statistics = statistics
        snapshot.latencyCounts = report.latency
        snapshot.latency = RunSnapshot.Latency(report.latency)
        snapshot.counts = context.earlier + statistics.counts
        assert(snapshot.counts.settled >= context.earlier.settled)
        assert(statistics.inFlight >= 0 && statistics.openConnections >= 0)
        snapshot.openConnections = statistics.openConnections
        snapshot.inFlight = statistics.inFlight
    }

    /// Updates the number of rows of the campaign or its shard. The number is exact, or estimated
    /// from the share of the list that was read.
    private mutating func takeRows(_ list: ListSource.Progress) {
        let rows = context.rows
        let end: UInt64
        var isEstimate = false
        if let last = rows.part.endRow {
            // The start of the next shard was determined before the first row was sent.
            end = last
        } else if list.isAtEnd {
            end = max(list.rows, context.knownEnd ?? 0)
        } else if let known = context.knownEnd {
            end = known
        } else if let byteCount = context.listByteCount, list.bytes > 0, list.rows > 0 {
            // Rows and bytes are counted from the start of the list, for any shard.
            let estimate = Double(list.rows) * Double(byteCount) / Double(list.bytes)
            end = max(list.rows, UInt64(estimate.rounded()))
            isEstimate = end < rows.end
        } else {
            return
        }
        snapshot.isRowsEstimate = isEstimate
        takeRows(upTo: end)
        assert(list.rows <= end, "\(list.rows) rows were read of \(end)")
    }

    private mutating func takeRows(upTo end: UInt64) {
        let rows = context.rows.count(upTo: end) + context.beyondLimitCount
        snapshot.rows = max(rows, snapshot.counts.settled)
    }
}

extension ReasonCounts {
    /// Number of rows that were not accepted, by the text of the reason.
    package var named: [String: UInt64] { named { Reason(rawValue: $0)?.text ?? "reason \($0)" } }
}
