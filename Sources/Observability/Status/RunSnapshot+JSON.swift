import BroadsideEngine
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
package import BroadsideSupport

extension RunSnapshot {
    /// JSON line of `--progress json`, and of `status` on the control socket.
    package var json: JSONLine {
        var line = JSONLine()
        line.add("name", name)
        line.add("labels", CampaignLabel.json(labels))
        line.add("phase", phase.rawValue)
        line.add("elapsed_seconds", sendingSeconds, places: 1)
        line.add("rows", rows)
        line.add("rows_estimated", isRowsEstimate)
        line.add("settled", counts.settled)
        for state in RowState.settledStates { line.add(state.name, counts[state]) }
        line.add("rate", wholeNumber(rateNow))
        line.add("rate_average", wholeNumber(rateAverage))
        line.add("rate_limit", rateLimit, places: 3)
        if let ramp {
            line.add("rate_ramp_to", Double(ramp.ramp.last) / 1000, places: 3)
            line.add("rate_ramp_seconds_left", ramp.secondsLeft, places: 1)
        }
        var latency = JSONLine()
        latency.add("p50", latencyNow.p50.map { Double($0) / 1e6 }, places: 3)
        latency.add("p99", latencyNow.p99.map { Double($0) / 1e6 }, places: 3)
        line.add("latency_ms", latency)
        line.add("connections", openConnections)
        line.add("connections_wanted", wantedConnections)
        line.add("in_flight", inFlight)
        let statistics = processStatistics
        line.add("retries", statistics.retries)
        if let shortened = statistics.shortened { line.add("shortened", shortened) }
        line.add("limited_by", limitedBy?.name)
        line.add("eta_seconds", etaSeconds, places: 0)
        line.addRaw("guards", guards?.json.object ?? "null")
        if let waves { line.add("waves", waves.position(hasEnded: phase == .finished)) }
        if let topics { line.add("topics", TopicReport.json(topics)) }
        if let arms { line.add("arms", arms.json) }
        return line
    }
}
