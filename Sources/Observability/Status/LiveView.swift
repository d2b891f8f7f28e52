import Campaign
import Engine
import Support

/// The lines that a person at a terminal watches: drawn from a snapshot and a width alone.
struct LiveView {
    /// What the terminal can show.
    struct Style: Equatable {
        var hasColor: Bool
        /// Characters beyond ASCII.
        var hasUnicode: Bool
    }

    /// Text and how it stands out.
    private struct Segment {
        enum Emphasis { case none, strong, good, bad, faint }
        var text: String
        var emphasis = Emphasis.none
    }

    let style: Style

    /// From so many columns on there are pictures of rate and latency.
    static let wideWidth = 100
    /// The most columns of the latency's picture.
    private static let latencyColumns = 24

    /// Reasons that are named; the others are summed up.
    static let reasonsLimit = 4

    /// A line an element; none is longer than the width.
    func lines(_ snapshot: RunSnapshot, width: Int) -> [String] {
        let width = max(Folding.minimumWidth, width)
        var lines = [bar(snapshot, width: width)]
        for group in [
            rows(snapshot), outcome(snapshot), connections(snapshot), state(snapshot),
        ] {
            lines += wrap(group, width: width)
        }
        if width >= Self.wideWidth { lines += pictures(snapshot, width: width) }
        return lines
    }

    // MARK: The bar

    private func bar(_ snapshot: RunSnapshot, width: Int) -> String {
        var label = snapshot.share.map { " \(percentText($0))" } ?? " --"
        switch (snapshot.phase, snapshot.etaSeconds) {
        case (.paused, _): label += "  paused"
        case (.stopping, _): label += "  stopping"
        case (_, let eta?): label += "  \(durationText(eta)) left"
        default: break
        }
        // Room for the longest label that is usual, so that the bar does not jump.
        let labelWidth = max(label.count, min(18, width / 2))
        let room = width - labelWidth - 2
        guard room >= 6 else { return fit(label, width) }
        let filled = Int((Double(room) * (snapshot.share ?? 0)).rounded(.down))
        let (full, empty) = style.hasUnicode ? ("█", "░") : ("#", "-")
        let done = String(repeating: full, count: filled)
        let left = String(repeating: empty, count: room - filled)
        return paint(Segment(text: done, emphasis: .good))
            + paint(Segment(text: left, emphasis: .faint))
            + paint(Segment(text: fit(label, labelWidth), emphasis: .strong))
    }

    // MARK: Groups

    private func rows(_ snapshot: RunSnapshot) -> [Segment] {
        let about = snapshot.isRowsEstimate ? "about " : ""
        let rows = snapshot.rows.map { " of \(about)\(grouped($0))" } ?? ""
        return [
            Segment(text: "\(grouped(snapshot.counts.settled))\(rows) rows", emphasis: .strong),
            Segment(text: "\(rateText(snapshot.rateNow))/s now"),
            Segment(text: "\(rateText(snapshot.rateAverage))/s average"),
            Segment(text: "\(durationText(snapshot.elapsedSeconds)) so far", emphasis: .faint),
        ]
    }

    private func outcome(_ snapshot: RunSnapshot) -> [Segment] {
        let counts = snapshot.counts
        var segments = [
            Segment(text: "accepted \(grouped(counts[.accepted]))", emphasis: .good)
        ]
        for state in RowState.settledStates.dropFirst() where counts[state] > 0 {
            let isBad = state == .failed || state == .unknown
            segments.append(
                Segment(
                    text: "\(state.name) \(grouped(counts[state]))",
                    emphasis: isBad ? .bad : .none))
        }
        let reasons = snapshot.reasons
        for reason in reasons.prefix(Self.reasonsLimit) {
            segments.append(
                Segment(
                    text: "\(printable(reason.name, limit: 40)) \(grouped(reason.count))",
                    emphasis: .faint))
        }
        let rest = reasons.dropFirst(Self.reasonsLimit).reduce(0) { $0 + $1.count }
        if rest > 0 {
            segments.append(Segment(text: "other reasons \(grouped(rest))", emphasis: .faint))
        }
        return segments
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
        if snapshot.statistics.retries > 0 {
            segments.append(Segment(text: "\(grouped(snapshot.statistics.retries)) sent again"))
        }
        return segments
    }

    private func state(_ snapshot: RunSnapshot) -> [Segment] {
        switch snapshot.phase {
        case .paused:
            return [Segment(text: "paused: broadside control --ledger DIR resume", emphasis: .bad)]
        case .stopping:
            return [Segment(text: "stopping: waiting for responses in flight", emphasis: .bad)]
        case .running, .finished:
            guard let cause = snapshot.limitedBy else { return [] }
            let share = percentText(snapshot.limitedNow[cause.rawValue])
            var segments = [
                Segment(
                    text:
                        "bottleneck: \(cause.words(acceptsBySilence: snapshot.acceptsBySilence)) (\(share))"
                )
            ]
            if let rate = snapshot.rateLimit {
                segments.append(Segment(text: "rate at most \(rateText(rate))/s"))
            }
            return segments
        }
    }

    // MARK: Pictures

    /// The course of the rate, how the latencies are spread, and when it began and will end.
    private func pictures(_ snapshot: RunSnapshot, width: Int) -> [String] {
        var clock = [
            Segment(text: "started \(localDateAndTime(snapshot.startedAtMilliseconds).suffix(5))")
        ]
        if let eta = snapshot.etaSeconds, eta < Self.longestEta {
            let end = snapshot.wallMilliseconds + UInt64(eta * 1000)
            clock.append(Segment(text: "expected end \(localDateAndTime(end).suffix(5))"))
        }
        var lines = wrap(clock, width: width)
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

    /// Of a later end the clock says nothing: ten days, in seconds.
    private static let longestEta = 864_000.0

    /// A column per value, as high as its share of the peak; what is not zero is seen.
    static func sparkline(_ values: some Sequence<Double>, peak: Double) -> String {
        let levels = Array(" ▁▂▃▄▅▆▇█")
        return String(
            values.map { value in
                guard peak > 0, value > 0 else { return levels[0] }
                return levels[max(1, min(8, Int((value / peak * 8).rounded())))]
            })
    }

    // MARK: Laying out

    /// Segments side by side, on as many lines as they need.
    private func wrap(_ segments: [Segment], width: Int) -> [String] {
        let separator = style.hasUnicode ? " · " : ", "
        var lines: [String] = []
        var line = ""
        var position = 0
        for segment in segments {
            let text = fit(segment.text, width)
            let shown = Segment(text: text, emphasis: segment.emphasis)
            if position > 0, position + separator.count + text.count <= width {
                line += paint(Segment(text: separator, emphasis: .faint)) + paint(shown)
                position += separator.count + text.count
            } else {
                if position > 0 { lines.append(line) }
                line = paint(shown)
                position = text.count
            }
        }
        if position > 0 { lines.append(line) }
        return lines
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

    /// One plain line.
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
        case .stopping: line += ", stopping"
        case .running, .finished:
            if let cause = snapshot.limitedBy {
                line += ", bottleneck: \(cause.words(acceptsBySilence: snapshot.acceptsBySilence))"
            }
            if let eta = snapshot.etaSeconds { line += ", \(durationText(eta)) left" }
        }
        return line
    }
}
