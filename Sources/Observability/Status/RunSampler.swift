import BroadsideAPNs
package import BroadsideEngine
package import BroadsideLedgerFormat
package import BroadsideLists
package import BroadsidePolicy
package import BroadsideRows
package import BroadsideSupport

/// Looks at a run once a second and keeps what its curves are drawn from. One on the main thread;
/// everything that tells how a run goes on reads what it made.
package struct RunSampler {
    /// What a sampler can't see by itself.
    package struct Context {
        var campaign: String
        var name: String?
        var labels: [String: String]
        /// A legacy gateway is spoken to.
        var acceptsBySilence = false
        /// What earlier runs settled and this one does not send again.
        var earlier: RowCounts
        /// Which rows of the list are the campaign's.
        var rows = CampaignRows()
        /// The row behind the last one of them, if an earlier run found it.
        var knownEnd: UInt64?
        /// nil where it is not known before its end.
        var listByteCount: UInt64?
        var wantedConnections: Int

        package init(
            campaign: String, name: String? = nil, labels: [String: String] = [:],
            acceptsBySilence: Bool = false, earlier: RowCounts, rows: CampaignRows = CampaignRows(),
            knownEnd: UInt64? = nil,
            listByteCount: UInt64? = nil, wantedConnections: Int
        ) {
            self.campaign = campaign
            self.name = name
            self.labels = labels
            self.acceptsBySilence = acceptsBySilence
            self.earlier = earlier
            self.rows = rows
            self.knownEnd = knownEnd
            self.listByteCount = listByteCount
            self.wantedConnections = wantedConnections
        }
    }

    private let context: Context
    private let start: Now
    package private(set) var series = TimeSeries()
    package private(set) var snapshot = RunSnapshot()
    private var lastSampleTime: UInt64
    private var nextCheck: UInt64

    /// Time between two looks.
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
        snapshot.counts = context.earlier
        snapshot.wallMilliseconds = start.wallMilliseconds
        snapshot.wantedConnections = context.wantedConnections
    }

    /// The run keeps up so many connections from now on.
    package mutating func want(connections: Int) { snapshot.wantedConnections = connections }

    /// What was counted of topics that rows name; nil: they name none.
    package mutating func take(topics: [TopicReport]?) { snapshot.topics = topics }

    /// True when it is time for the next look.
    package func isDue(_ now: Now) -> Bool { now.nanoseconds >= nextCheck }

    /// Takes what the reactors told last.
    ///
    /// - Parameters:
    ///   - list: How far the list is read.
    ///   - milliRate: Requests in 1,000 seconds that are allowed; nil: unlimited.
    ///   - ramp: How far the rate has risen by itself; nil: it does not.
    ///   - guards: What the guards have counted.
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
        takeRows(list)
        let period = report.latency.since(before.latencyCounts)
        snapshot.latencyNow = RunSnapshot.Latency(period)
        snapshot.takenAt = now.nanoseconds
        let untimed = report.statistics.untimedResponses
        if elapsed > 0 {
            let new = period.count + untimed - before.statistics.untimedResponses
            snapshot.rateNow = Double(new) / elapsed
            snapshot.recentRates.append(snapshot.rateNow)
            let extra = snapshot.recentRates.count - RunSnapshot.recentRatesLimit
            if extra > 0 { snapshot.recentRates.removeFirst(extra) }
        }
        assert(
            snapshot.recentRates.count <= RunSnapshot.recentRatesLimit,
            "only the last rates are kept")
        if snapshot.elapsedSeconds > 0 {
            snapshot.rateAverage = Double(report.latency.count + untimed) / snapshot.elapsedSeconds
        }
        let limited = zip(report.statistics.limited, before.statistics.limited).map { $0 - $1 }
        let total = limited.reduce(0, +)
        snapshot.limitedNow = limited.map { total > 0 ? Double($0) / Double(total) : 0 }
        series.append(
            TimeSeries.Point(
                start: snapshot.elapsedSeconds - elapsed, duration: elapsed,
                counts: snapshot.counts.since(before.counts), latency: period,
                inFlight: snapshot.inFlight, limited: limited))
    }

    /// The run has ended: its last look says what its summary says.
    package mutating func end(_ summary: Summary) {
        snapshot.counts = summary.counts
        if let rows = summary.rows {
            snapshot.rows = rows
            snapshot.isRowsEstimate = false
        }
    }

    private mutating func take(_ report: ReactorReport) {
        let statistics = report.statistics
        snapshot.statistics = statistics
        snapshot.latencyCounts = report.latency
        snapshot.latency = RunSnapshot.Latency(report.latency)
        snapshot.counts = context.earlier + statistics.counts
        snapshot.openConnections = statistics.openConnections
        snapshot.inFlight = statistics.inFlight
    }

    /// The campaign's rows, a shard's alone: known, or estimated from the part of the list that was read.
    private mutating func takeRows(_ list: ListSource.Progress) {
        let rows = context.rows
        let end: UInt64
        var isEstimate = false
        if let last = rows.part.endRow {
            // The beginning of the next shard was found before the first row was sent.
            end = last
        } else if list.isAtEnd {
            end = max(list.rows, context.knownEnd ?? 0)
        } else if let known = context.knownEnd {
            end = known
        } else if let byteCount = context.listByteCount, list.bytes > 0, list.rows > 0 {
            // Rows and bytes are counted from the list's beginning, whichever part is read.
            let estimate = Double(list.rows) * Double(byteCount) / Double(list.bytes)
            end = max(list.rows, UInt64(estimate.rounded()))
            isEstimate = end < rows.end
        } else {
            return
        }
        snapshot.isRowsEstimate = isEstimate
        snapshot.rows = max(rows.count(upTo: end), snapshot.counts.settled)
    }
}

extension ReasonCounts {
    /// Reason -> rows not accepted, by APNs' names.
    var named: [String: UInt64] { named { Reason(rawValue: $0)?.text ?? "reason \($0)" } }
}
