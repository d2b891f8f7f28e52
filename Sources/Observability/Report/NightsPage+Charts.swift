import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// The charts of lists, tokens and runs over the nights.
extension NightsPage {
    /// Minimum number of nights for a curve of running medians. With fewer nights, a line joins the
    /// points.
    private static var smoothedFrom: Int { 14 }
    /// Number of nights for each running median.
    private static var window: Int { 7 }
    /// Maximum number of ticks, so that they fit a phone's screen.
    private static var ticksLimit: Int { 4 }
    /// Minimum distance of two ticks, as a share of the axis, on a page that is 390 pixels wide.
    private static var tickDistance: Double { 0.16 }
    /// Maximum number of days that are searched for the first days of months.
    private static var daysLimit: UInt64 { 20_000 }

    var charts: String {
        let course = course
        guard course.count > 1 else { return "" }
        let list = [
            chart(
                "list", "Rows of the list", unit: "rows",
                course.map { $0.figures.rows.map { Double($0) } }, words: { grouped(UInt64($0)) }),
            chart(
                "dead", "Share of dead tokens", unit: "% of sent rows", color: "dead",
                course.map { $0.figures.deadShare.map { $0 * 100 } },
                words: { Self.share($0 / 100) }),
            chart(
                "speed", "Speed", unit: "notifications per second", color: "good",
                course.map(\.figures.speed), words: rateText),
            durationChart, failureChart,
        ]
        let html = list.compactMap { $0?.html }.joined()
        return "<h2>From night to night</h2>\n<div class=\"pair\">\n\(html)</div>\n"
    }

    private var durationChart: Chart? {
        let seconds = course.map(\.figures.runningSeconds)
        let longest = seconds.compactMap { $0 }.max() ?? 0
        let (unit, scale) =
            longest >= 7200
            ? ("hours", 3600.0) : longest >= 120 ? ("minutes", 60.0) : ("seconds", 1)
        return chart(
            "duration", "Duration", unit: unit, color: "second",
            seconds.map { $0.map { $0 / scale } },
            words: { durationText($0 * scale) })
    }

    /// The chart of failed and unknown rows; nil if there are no such rows. A tile of the page
    /// shows their number, even if it is 0.
    private var failureChart: Chart? {
        let course = course
        let states: [(name: String, color: String, count: (Night.Figures) -> UInt64)] = [
            ("failed", "bad", \.counts[.failed]), ("unknown", "other", \.counts[.unknown]),
        ]
        let nights = course.count { $0.figures.counts[.failed] + $0.figures.counts[.unknown] > 0 }
        let most =
            course.map { $0.figures.counts[.failed] + $0.figures.counts[.unknown] }.max() ?? 0
        guard most > 0 else { return nil }
        return Chart(
            identifier: "failures", title: "Failures",
            description: "\(grouped(nights)) of \(grouped(course.count)) nights have rows that "
                + "failed or ended unknown, at most \(grouped(most)). The numbers are in the table "
                + "below.",
            positions: positions,
            series: states.map { state in
                Chart.Series(
                    name: state.name, color: state.color, shape: .bars,
                    values: course.map { Double(state.count($0.figures)) })
            }, ticks: ticks, unit: "rows")
    }

    /// Chart with points and a line through them; nil if no night has a value.
    private func chart(
        _ identifier: String, _ title: String, unit: String, color: String = "first",
        _ values: [Double?], words: (Double) -> String
    ) -> Chart? {
        guard values.contains(where: { $0 != nil }) else { return nil }
        let drawn = drawnGroups
        let positions = positions
        var series: [Chart.Series] = []
        var texts: [String] = []
        for (index, group) in drawn.enumerated() {
            let own = group.indices.map { values[$0] }
            let known = own.compactMap { $0 }
            guard let first = known.first, let last = known.last, let least = known.min(),
                let most = known.max()
            else { continue }
            let places = group.indices.map { positions[$0] }
            let isSmoothed = known.count >= Self.smoothedFrom
            let isOnly = drawn.count == 1
            let color = isOnly ? color : Self.groupColors[index % Self.groupColors.count]
            series.append(
                Chart.Series(
                    name: isOnly
                        ? (isSmoothed ? "a night" : "") : group.isMixed ? group.name : "",
                    color: color, shape: .points, values: own, positions: places))
            texts.append(
                (isOnly ? "" : "\(group.name): ")
                    + "\(words(first)) in the first night, \(words(last)) in the latest; from "
                    + "\(words(least)) to \(words(most)).")
            // No line joins nights of different campaigns.
            guard isOnly || !group.isMixed else { continue }
            series.append(
                Chart.Series(
                    name: isOnly
                        ? (isSmoothed ? "median of \(Self.window) nights" : "") : group.name,
                    color: color, shape: .curve, values: isSmoothed ? Self.smoothed(own) : own,
                    positions: places))
        }
        texts.append("The numbers are in the table below.")
        return Chart(
            identifier: identifier, title: title, description: texts.joined(separator: " "),
            positions: positions, series: series, ticks: ticks, unit: unit)
    }

    private static var groupColors: [String] { ["first", "second", "good", "other", "dead"] }

    /// The groups of nights that are drawn as lines: some single campaigns, and one group for the
    /// nights of all other campaigns. If no campaign has two nights, one group contains all nights.
    private var drawnGroups: [Group] {
        let groups = groups
        let own = groups.filter { $0.indices.count > 1 }.prefix(Self.groupColors.count - 1)
        let others = groups.filter { group in !own.contains { $0.name == group.name } }
        guard !others.isEmpty else { return Array(own) }
        let rest = Group(
            name: "other campaigns", indices: others.flatMap(\.indices).sorted(), isMixed: true)
        return own + [rest]
    }

    /// Running medians of the values.
    static func smoothed(_ values: [Double?]) -> [Double?] {
        values.indices.map { index in
            guard values[index] != nil else { return nil }
            let around = max(0, index - window / 2)...min(values.count - 1, index + window / 2)
            return median(values[around].compactMap { $0 })
        }
    }

    // MARK: The axis of time

    /// The positions of the nights from the first to the latest, with a margin at both ends.
    private var positions: [Double] {
        let range = range
        return course.map { position($0.milliseconds, in: range) }
    }

    private func position(
        _ milliseconds: UInt64, in range: (first: UInt64, span: UInt64)
    ) -> Double {
        let (first, span) = range
        let passed = milliseconds - min(milliseconds, first)
        return 0.01 + 0.98 * Double(passed) / Double(max(1, span))
    }

    /// Time of the first night, and the time from it to the latest night.
    private var range: (first: UInt64, span: UInt64) {
        let starts = course.map(\.milliseconds)
        guard let first = starts.min(), let last = starts.max() else { return (0, 0) }
        return (first, last - first)
    }

    /// The ticks at months, days or times, depending on the span.
    private var ticks: [Chart.Tick] {
        let (first, span) = range
        let last = first + span
        let day: UInt64 = 86_400_000
        var places: [(milliseconds: UInt64, text: String)] = []
        if span > Self.daysLimit * day {
            places = [first, last].map { ($0, String(timeText($0).prefix(4))) }
        } else if span > 75 * day {
            var time = first / day * day
            while time <= last {
                // A tick at the first of each month.
                if timeText(time).dropFirst(8).prefix(2) == "01" {
                    places.append((time, Self.short(Self.monthName(time))))
                }
                time += day
            }
        } else if span > 2 * day {
            // Each tick is below the points of a night, with the night's date.
            for time in course.map(\.milliseconds).sorted() {
                let text = String(timeText(time).dropFirst(5).prefix(5))
                if places.last?.text != text { places.append((time, text)) }
            }
        } else {
            places = [first, last].map { ($0, String(timeText($0).dropFirst(11).prefix(5))) }
        }
        places.removeAll { $0.milliseconds < first }
        let step = max(1, (places.count + Self.ticksLimit - 1) / Self.ticksLimit)
        var ticks: [Chart.Tick] = []
        for place in stride(from: 0, to: places.count, by: step).map({ places[$0] }) {
            let fraction = position(place.milliseconds, in: (first, span))
            // A text is centered on its tick, except at the ends of the axis. Centered at 0.94 to
            // 0.98, it would extend beyond the chart. Nights are not evenly spaced, so texts can be
            // too close together.
            let fits = fraction < 0.94 || fraction > 0.98
            let isApart = ticks.last.map { fraction - $0.fraction > Self.tickDistance } ?? true
            if places.count <= 2 || fits && isApart {
                ticks.append(Chart.Tick(fraction: fraction, text: place.text))
            }
        }
        return ticks
    }
}
