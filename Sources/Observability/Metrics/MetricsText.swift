import BroadsideEngine
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// Snapshot of a run in Prometheus' text format (exposition format 0.0.4). Values are in base
/// units, and each name has HELP and TYPE.
package struct MetricsText {
    private enum Kind: String {
        case counter, gauge, histogram
    }

    package private(set) var text = ""
    /// The labels of the campaign, added to each sample.
    private let campaignLabels: [String: String]
    private var lastFamily = ""

    /// Bucket bounds of the latency histogram, in seconds.
    static let latencyBounds: [Double] = [
        0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
    ]

    /// - Parameter use: Resources that the process has used so far.
    package init(_ snapshot: RunSnapshot, use: ProcessUse) {
        campaignLabels = snapshot.labels
        family("info", .gauge, "The run that these metrics describe.")
        var labels = ["version": broadsideVersion, "campaign": snapshot.campaign]
        if let name = snapshot.name { labels["name"] = name }
        sample("info", labels, "1")
        addRows(snapshot)
        addRequests(snapshot)
        addTopics(snapshot)
        addArms(snapshot)
        addWaves(snapshot)
        addConnections(snapshot)
        addLatency(snapshot.processLatency)
        family(
            "process_cpu_seconds_total", .counter, "User and system time of the process.")
        sample("process_cpu_seconds_total", [:], number(use.cpuMicroseconds / 1e6))
        family(
            "process_peak_resident_memory_bytes", .gauge,
            "Peak memory of the process.")
        sample("process_peak_resident_memory_bytes", [:], "\(use.peakResidentBytes)")
    }

    private mutating func addRows(_ snapshot: RunSnapshot) {
        family(
            "list_rows", .gauge,
            "Rows of the token list, or of its shard; an estimate until the end is read.")
        if let rows = snapshot.rows { sample("list_rows", [:], "\(rows)") }
        family("limited", .gauge, "1 if --limit keeps rows of the list from the run, else 0.")
        sample("limited", [:], snapshot.isLimited ? "1" : "0")
        family("rows_settled_total", .counter, "Rows that are settled, over all runs, by state.")
        for state in RowState.settledStates {
            sample("rows_settled_total", ["state": state.name], "\(snapshot.counts[state])")
        }
        family(
            "rows_refused_total", .counter, "Rows that were not accepted, over all runs, by reason."
        )
        for reason in snapshot.reasons {
            sample("rows_refused_total", ["reason": reason.name], "\(reason.count)")
        }
        family(
            "run_seconds", .gauge, "Time for which this run has sent, without waits for waves.")
        sample("run_seconds", [:], number(snapshot.sendingSeconds))
        family("updated_timestamp_seconds", .gauge, "Time at which these numbers were taken.")
        sample("updated_timestamp_seconds", [:], number(Double(snapshot.wallMilliseconds) / 1000))
        family("phase", .gauge, "What the run is doing: 1 for the phase that it is in.")
        for phase in [RunSnapshot.Phase.running, .waiting, .paused, .stopping, .finished]
        where phase != .waiting || snapshot.waves != nil {
            sample("phase", ["phase": phase.rawValue], snapshot.phase == phase ? "1" : "0")
        }
    }

    private mutating func addWaves(_ snapshot: RunSnapshot) {
        guard let waves = snapshot.waves else { return }
        family("waves", .gauge, "Waves of rows that are due at the same time.")
        sample("waves", [:], "\(waves.waves.count)")
        family("waves_begun", .gauge, "Waves that have begun.")
        sample("waves_begun", [:], "\(waves.current.map { $0 + 1 } ?? 0)")
        guard let next = waves.next else { return }
        family("wave_next_timestamp_seconds", .gauge, "When the next wave begins.")
        sample(
            "wave_next_timestamp_seconds", [:],
            number(Double(waves.waves[next].atMilliseconds) / 1000))
        family("wave_next_rows", .gauge, "Rows of the next wave.")
        sample("wave_next_rows", [:], "\(waves.waves[next].rows)")
    }

    private mutating func addRequests(_ snapshot: RunSnapshot) {
        let statistics = snapshot.processStatistics
        family("requests_total", .counter, "Requests sent, including retries.")
        sample("requests_total", [:], "\(statistics.requests)")
        family(
            "retries_total", .counter,
            "Requests for rows that were sent before, or may have been.")
        sample("retries_total", [:], "\(statistics.retries)")
        if let shortened = statistics.shortened {
            family(
                "shortened_rows_total", .counter,
                "Rows whose value was shortened so that the payload fits.")
            sample("shortened_rows_total", [:], "\(shortened)")
        }
        family("requests_in_flight", .gauge, "Requests that wait for their response.")
        sample("requests_in_flight", [:], "\(snapshot.inFlight)")
        family(
            "rate_limit_requests_per_second", .gauge,
            "Requests per second that are allowed; absent while unlimited.")
        if let rate = snapshot.rateLimit {
            sample("rate_limit_requests_per_second", [:], number(rate))
        }
        if let ramp = snapshot.ramp {
            family(
                "rate_ramp_end_requests_per_second", .gauge,
                "Requests per second at which the limit stops rising.")
            sample(
                "rate_ramp_end_requests_per_second", [:], number(Double(ramp.ramp.last) / 1000))
            family(
                "rate_ramp_seconds_left", .gauge, "Sending time until the limit stops rising."
            )
            sample("rate_ramp_seconds_left", [:], number(ramp.secondsLeft))
        }
    }

    /// Adds counters per topic, if rows name their topics.
    private mutating func addTopics(_ snapshot: RunSnapshot) {
        guard let topics = snapshot.topics else { return }
        family("topic_responses_total", .counter, "Responses by topic, if rows name topics.")
        for topic in topics {
            sample(
                "topic_responses_total", ["topic": topic.name, "outcome": "accepted"],
                "\(topic.accepted)")
            sample(
                "topic_responses_total", ["topic": topic.name, "outcome": "refused"],
                "\(topic.refused)")
        }
        family("topic_stopped", .gauge, "1 for a topic that a guard has stopped.")
        for topic in topics {
            sample("topic_stopped", ["topic": topic.name], topic.stop == nil ? "0" : "1")
        }
    }

    /// Adds counters per arm, if the campaign has arms.
    private mutating func addArms(_ snapshot: RunSnapshot) {
        guard let arms = snapshot.arms else { return }
        family(
            "arm_rows_settled_total", .counter,
            "Rows that are settled, over all runs, by arm and state.")
        for arm in arms.arms {
            for state in RowState.settledStates {
                sample(
                    "arm_rows_settled_total", ["arm": arm.name, "state": state.name],
                    "\(arm.count(state))")
            }
        }
    }

    private mutating func addConnections(_ snapshot: RunSnapshot) {
        let statistics = snapshot.processStatistics
        family("connections", .gauge, "Connections that are ready.")
        sample("connections", [:], "\(snapshot.openConnections)")
        family("connections_wanted", .gauge, "Connections that the run aims for.")
        sample("connections_wanted", [:], "\(snapshot.wantedConnections)")
        family("connections_opened_total", .counter, "Connections made.")
        sample("connections_opened_total", [:], "\(statistics.connectionsOpened)")
        family("reconnects_total", .counter, "Connections opened to replace an earlier one.")
        sample("reconnects_total", [:], "\(statistics.reconnects)")
        family("goaways_total", .counter, "GOAWAY frames received.")
        sample("goaways_total", [:], "\(statistics.goAways)")
        family(
            "connection_seconds_total", .counter,
            "Time that connections spent, by bottleneck.")
        for cause in Bottleneck.allCases {
            sample(
                "connection_seconds_total", ["limited_by": cause.name],
                number(Double(statistics.limited[cause.rawValue]) / 1e9))
        }
    }

    private mutating func addLatency(_ counts: LatencyCounts) {
        let name = "answer_latency_seconds"
        family(name, .histogram, "Time from a request to its response.")
        var below: UInt64 = 0
        for bound in Self.latencyBounds {
            let count = counts.count(upTo: UInt64(bound * 1e9))
            assert(
                count >= below && count <= counts.count,
                "bucket counts never fall and never exceed the total")
            below = count
            sample(name + "_bucket", ["le": number(bound)], "\(count)")
        }
        sample(name + "_bucket", ["le": "+Inf"], "\(counts.count)")
        sample(name + "_sum", [:], number(Double(counts.sumNanoseconds) / 1e9))
        sample(name + "_count", [:], "\(counts.count)")
    }

    private mutating func family(_ name: String, _ kind: Kind, _ help: String) {
        assert(
            (kind == .counter) == name.hasSuffix("_total"),
            "the name of a counter ends in _total, and no other name does")
        assert(!help.utf8.contains(0x0a), "a description is one line")
        lastFamily = name
        text += "# HELP broadside_\(name) \(help)\n# TYPE broadside_\(name) \(kind.rawValue)\n"
    }

    private mutating func sample(_ name: String, _ labels: [String: String], _ value: String) {
        assert(
            name.hasPrefix(lastFamily), "a metric's samples follow its description")
        var line = "broadside_\(name)"
        let labels = labels.merging(campaignLabels) { own, _ in own }
        if !labels.isEmpty {
            let pairs = labels.sorted { $0.key < $1.key }
                .map { "\($0.key)=\"\(Self.escaped($0.value))\"" }
            line += "{\(pairs.joined(separator: ","))}"
        }
        text += "\(line) \(value)\n"
    }

    /// Returns the whole value: if two values were cut off, they might be equal.
    private static func escaped(_ value: String) -> String {
        var text = String.UnicodeScalarView()
        for scalar in ForeignText.escaped(value).unicodeScalars {
            if scalar == "\\" || scalar == "\"" { text.append("\\") }
            text.append(scalar)
        }
        return String(text)
    }

    private func number(_ value: Double) -> String {
        assert(value.isFinite, "a sample is a number")
        return "\(value)"
    }
}
