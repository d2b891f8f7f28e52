import BroadsideEngine
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport

/// The lines of the live view on a terminal. They depend only on a snapshot and the terminal's
/// width.
struct LiveView {
    /// Capabilities of the terminal.
    struct Style: Equatable {
        var hasColor: Bool
        /// Whether characters beyond ASCII can be displayed.
        var hasUnicode: Bool
    }

    /// Text with its emphasis.
    private struct Segment {
        enum Emphasis { case none, strong, good, bad, faint }
        var text: String
        var emphasis = Emphasis.none
    }

    let style: Style

    /// Minimum width, in columns, for charts of rate and latency.
    static let wideWidth = 100
    /// Maximum width of the latency chart, in columns.
    private static let latencyColumns = 24
    /// Minimum width of the progress bar, in columns.
    private static let leastBar = 10

    /// Returns six lines, and charts below them on a wide terminal. No line exceeds the width.
    ///
    /// - Parameter keys: Keys that the run accepts; nil if it reads none.
    func lines(_ snapshot: RunSnapshot, width: Int, keys: RunKeys? = nil) -> [String] {
        let width = max(Folding.minimumWidth, width)
        var lines = [bar(snapshot, width: width)]
        for segments in [
            outcome(snapshot), rate(snapshot), connections(snapshot), state(snapshot, keys),
            guards(snapshot, keys),
        ] {
            lines.append(line(segments, width: width))
        }
        if width >= Self.wideWidth { lines += pictures(snapshot, width: width) }
        return lines
    }

    // MARK: The bar

    private func bar(_ snapshot: RunSnapshot, width: Int) -> String {
        let share = snapshot.share.map { " \(percentText($0))" } ?? " --"
        let about = snapshot.isRowsEstimate ? "about " : ""
        let rows = snapshot.rows.map { " of \(about)\(grouped($0)) rows" } ?? ""
        let left = snapshot.etaSeconds.map { "\(durationText($0)) left" }
        let end = self.end(snapshot)
        let state: [String?] =
            switch snapshot.phase {
            case .paused: ["paused"]
            case .waiting: ["waiting"]
            case .stopping: ["stopping"]
            case .running, .finished: [end.map { "ends \($0)" }, left]
            }
        let full = state.compactMap(\.self).joined(separator: ", ")
        let short = state.last.flatMap(\.self) ?? ""
        // The longest label that leaves enough columns for a bar. Each label includes the share.
        let labels = [(rows, full), (rows, short), ("", full), ("", short), ("", "")].map {
            share + $0 + ($1.isEmpty ? "" : "  \($1)")
        }
        let label =
            labels.first { $0.count + Self.leastBar <= width } ?? fit(share, width)
        let room = width - label.count
        guard room >= Self.leastBar else { return label }
        let filled = Int((Double(room) * (snapshot.share ?? 0)).rounded(.down))
        let (done, open) = style.hasUnicode ? ("█", "░") : ("#", "-")
        return paint(Segment(text: String(repeating: done, count: filled), emphasis: .good))
            + paint(
                Segment(text: String(repeating: open, count: room - filled), emphasis: .faint))
            + paint(Segment(text: label, emphasis: .strong))
    }

    /// Estimated time of day of the end; nil if there is no estimate.
    private func end(_ snapshot: RunSnapshot) -> String? {
        guard let eta = snapshot.etaSeconds, eta < Self.longestEta else { return nil }
        let end = snapshot.wallMilliseconds + UInt64(eta * 1000)
        return String(localClock(end).prefix(5))
    }

    // MARK: Lines

    private func outcome(_ snapshot: RunSnapshot) -> [Segment] {
        let counts = snapshot.counts
        var segments = [
            Segment(text: "accepted \(grouped(counts[.accepted]))", emphasis: .good),
            Segment(text: "dead \(grouped(snapshot.deadRows))", emphasis: .faint),
        ]
        if counts[.skipped] > 0 {
            segments.append(
                Segment(text: "skipped \(grouped(counts[.skipped]))", emphasis: .faint))
        }
        let troubled = snapshot.troubledRows
        segments.append(
            Segment(
                text: "needs attention \(grouped(troubled))",
                emphasis: troubled > 0 ? .bad : .faint))
        for state in [RowState.unknown, .failed] where counts[state] > 0 {
            segments.append(
                Segment(text: "\(state.name) \(grouped(counts[state]))", emphasis: .bad))
        }
        segments += snapshot.troubles.map {
            Segment(text: "\(printable($0.name, limit: 40)) \(grouped($0.count))")
        }
        return segments
    }

    private func rate(_ snapshot: RunSnapshot) -> [Segment] {
        [
            Segment(text: "\(rateText(snapshot.rateNow))/s now", emphasis: .strong),
            Segment(text: "\(rateText(snapshot.rateAverage))/s average"),
            Segment(text: Self.limitText(snapshot)),
            Segment(text: "\(durationText(snapshot.sendingSeconds)) so far", emphasis: .faint),
        ]
    }

    private static func limitText(_ snapshot: RunSnapshot) -> String {
        if let limit = snapshot.rateLimit {
            // A rising limit is shown rounded.
            let text = snapshot.ramp?.isOver == false ? rateText(limit) : rateLimitText(limit)
            return "limit \(text)/s\(rampText(snapshot))"
        }
        guard let limit = snapshot.ratePerConnection else { return "no rate limit" }
        return "limit \(rateLimitText(limit))/s per connection"
    }

    /// Text about a rising rate: its target, and the time until it is reached. Empty if the rate
    /// does not rise.
    private static func rampText(_ snapshot: RunSnapshot) -> String {
        guard let ramp = snapshot.ramp, !ramp.isOver else { return "" }
        return ", rising to \(rateLimitText(Double(ramp.ramp.last) / 1000))/s within "
            + durationText(ramp.secondsLeft)
    }

    private func connections(_ snapshot: RunSnapshot) -> [Segment] {
        var segments: [Segment] = []
        if let p50 = snapshot.latencyNow.p50 ?? snapshot.latency.p50,
            let p99 = snapshot.latencyNow.p99 ?? snapshot.latency.p99
        {
            segments.append(
                Segment(text: "latency p50 \(latencyText(p50)), p99 \(latencyText(p99))"))
        }
        segments.append(
            Segment(
                text: "\(grouped(snapshot.openConnections)) of "
                    + "\(grouped(snapshot.wantedConnections)) connections",
                emphasis: snapshot.openConnections == 0 ? .bad : .none))
        segments.append(Segment(text: "\(grouped(snapshot.inFlight)) in flight"))
        let statistics = snapshot.processStatistics
        if statistics.retries > 0 {
            segments.append(Segment(text: "\(grouped(statistics.retries)) sent again"))
        }
        if let shortened = statistics.shortened, shortened > 0 {
            segments.append(Segment(text: "\(grouped(shortened)) shortened"))
        }
        return segments
    }

    private func state(_ snapshot: RunSnapshot, _ keys: RunKeys?) -> [Segment] {
        switch snapshot.phase {
        case .paused:
            return [
                Segment(
                    text: keys == nil
                        ? "paused: to continue: broadside control --ledger DIR resume"
                        : "paused: press r to continue", emphasis: .bad)
            ]
        case .stopping:
            return [
                Segment(
                    text: "stopping: waiting for \(grouped(snapshot.inFlight)) responses",
                    emphasis: .bad)
            ]
        case .waiting:
            let next = snapshot.waves?.nextText(now: snapshot.wallMilliseconds)
            return [Segment(text: next ?? "waiting", emphasis: .strong)]
        case .running, .finished:
            guard let cause = snapshot.limitedBy else {
                return [Segment(text: "bottleneck: not known yet", emphasis: .faint)]
            }
            let share = Bottleneck.shareText(snapshot.limitedNow[cause.rawValue])
            let name = cause.description(acceptsBySilence: snapshot.acceptsBySilence)
            return [
                Segment(text: "bottleneck: \(name) (\(share))"),
                Segment(text: cause.remedy, emphasis: .faint),
            ]
        }
    }

    private func guards(_ snapshot: RunSnapshot, _ keys: RunKeys?) -> [Segment] {
        if let question = keys?.question {
            return [Segment(text: question, emphasis: .strong)]
        }
        var segments: [Segment] = []
        if let guards = snapshot.guards {
            segments.append(contentsOf: Self.guardTexts(guards).map { Segment(text: $0) })
        }
        if let next = snapshot.waves?.nextText(now: snapshot.wallMilliseconds),
            snapshot.phase != .waiting
        {
            segments.append(Segment(text: "next \(next)"))
        }
        if keys != nil {
            let next = snapshot.phase == .paused ? "r resume" : "p pause"
            segments.append(Segment(text: "\(next), q stop, ? help", emphasis: .faint))
        } else if segments.isEmpty {
            segments.append(Segment(text: "no guard has counted anything", emphasis: .faint))
        }
        return segments
    }

    private static func guardTexts(_ guards: GuardStatus) -> [String] {
        var texts: [String] = []
        switch guards.canary {
        case .none, .assumed: break
        case .pending:
            let responses = grouped(guards.canaryResponses ?? 0)
            texts.append(
                "canary: \(responses) responses, \(grouped(guards.canaryRefused ?? 0)) refused")
        case .passed: texts.append("canary passed")
        case .refused: texts.append("canary refused")
        case .unanswered: texts.append("canary without responses")
        }
        if let refusals = guards.refusals, refusals.windowResponses > 0 {
            texts.append(
                "BadDeviceToken \(grouped(UInt64(refusals.badTokens))) of the last "
                    + "\(grouped(UInt64(refusals.windowResponses)))")
        }
        return texts
    }

    // MARK: Charts

    /// Lines with the start time, the rate over time, and the distribution of latencies.
    private func pictures(_ snapshot: RunSnapshot, width: Int) -> [String] {
        var lines = [
            line(
                [
                    Segment(
                        text: "started \(localClock(snapshot.startedAtMilliseconds))",
                        emphasis: .faint)
                ], width: width)
        ]
        guard style.hasUnicode else { return lines }
        if let peak = snapshot.recentRates.max(), peak > 0, snapshot.recentRates.count > 1 {
            let label = "  at most \(rateText(peak))/s"
            let shown = snapshot.recentRates.suffix(width - 5 - label.count)
            lines.append(
                "rate " + paint(Segment(text: Self.sparkline(shown, peak: peak), emphasis: .good))
                    + paint(Segment(text: label, emphasis: .faint)))
        }
        let columns = snapshot.latencyCounts.columns(Self.latencyColumns)
        if let first = columns.first, let last = columns.last, columns.count > 1 {
            let counts = columns.map(\.count)
            let picture = Self.sparkline(counts, peak: counts.max() ?? 0)
            lines.append(
                "latency " + paint(Segment(text: latencyText(first.upper), emphasis: .faint)) + " "
                    + picture + " "
                    + paint(Segment(text: latencyText(last.upper), emphasis: .faint)))
        }
        return lines
    }

    /// Longest estimate, in seconds, for which a time of day is displayed: ten days.
    private static let longestEta = 864_000.0

    /// Chart with one column per value. A column's height is in proportion to the peak, and values
    /// above zero are always visible.
    static func sparkline(_ values: some Sequence<Double>, peak: Double) -> String {
        let levels = Array(" ▁▂▃▄▅▆▇█")
        return String(
            values.map { value in
                guard peak > 0, value > 0 else { return levels[0] }
                return levels[max(1, min(8, Int((value / peak * 8).rounded())))]
            })
    }

    // MARK: Laying out

    /// Joins as many segments as fit the width. The first one is always included.
    private func line(_ segments: [Segment], width: Int) -> String {
        let separator = style.hasUnicode ? " · " : ", "
        var line = ""
        var position = 0
        for segment in segments {
            let text = fit(segment.text, width)
            let shown = paint(Segment(text: text, emphasis: segment.emphasis))
            if position == 0 {
                line = shown
                position = text.count
            } else if position + separator.count + text.count <= width {
                line += paint(Segment(text: separator, emphasis: .faint)) + shown
                position += separator.count + text.count
            }
        }
        assert(position <= width, "a line fits on the terminal")
        return line
    }

    private func fit(_ text: String, _ width: Int) -> String {
        guard text.count > width else { return text }
        return text.prefix(max(0, width - 1)) + (style.hasUnicode ? "…" : "~")
    }

    private func paint(_ segment: Segment) -> String {
        guard style.hasColor, !segment.text.isEmpty else { return segment.text }
        let code: String
        switch segment.emphasis {
        case .none: return segment.text
        case .strong: code = "1"
        case .good: code = "32"
        case .bad: code = "31"
        case .faint: code = "2"
        }
        return "\u{1b}[\(code)m\(segment.text)\u{1b}[0m"
    }

    // MARK: Without a terminal

    /// Progress as one line of plain text.
    static func plainLine(_ snapshot: RunSnapshot) -> String {
        let counts = snapshot.counts
        var line = "\(counts.settled)"
        if let rows = snapshot.rows, let share = snapshot.share {
            line += " of \(snapshot.isRowsEstimate ? "about " : "")\(rows) rows"
            line += " (\(percentText(share)))"
        }
        line += ", \(Int(snapshot.rateNow.rounded()))/s, \(counts[.accepted]) accepted"
        for state in [RowState.rejected, .invalid, .failed, .unknown] where counts[state] > 0 {
            line += ", \(counts[state]) \(state.name)"
        }
        line += ", \(snapshot.inFlight) in flight on \(snapshot.openConnections) connections"
        switch snapshot.phase {
        case .paused: line += ", paused"
        case .waiting:
            let next = snapshot.waves?.nextText(now: snapshot.wallMilliseconds)
            line += ", waiting" + (next.map { " for \($0)" } ?? "")
        case .stopping: line += ", stopping"
        case .running, .finished:
            if let cause = snapshot.limitedBy {
                let text = cause.description(acceptsBySilence: snapshot.acceptsBySilence)
                line += ", bottleneck: \(text)"
            }
            if let eta = snapshot.etaSeconds { line += ", \(durationText(eta)) left" }
        }
        return line
    }
}
