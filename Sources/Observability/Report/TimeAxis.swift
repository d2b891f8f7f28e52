import BroadsideSupport

/// Horizontal time axis of the charts: consecutive runs, each to scale, with a band for each gap
/// between runs. Bands are shortened if they would leave too little space for the runs.
struct TimeAxis {
    /// Part of the axis that shows one run.
    struct Stretch {
        var startedAtMilliseconds: UInt64
        /// Start of the run, in seconds of running time since the campaign's start.
        var start: Double
        var seconds: Double
        /// Left edge of the run on the axis, 0 to 1.
        var left: Double = 0
        var width: Double = 0
    }

    /// Period in which nothing was sent.
    struct Band {
        var left: Double
        var right: Double
        /// Whether the axis is broken in this band, which is narrower than its duration.
        var isCut: Bool
        var text: String
    }

    struct Tick {
        var fraction: Double
        var text: String
    }

    private(set) var stretches: [Stretch] = []
    /// Gaps between runs, followed by pauses.
    private(set) var bands: [Band] = []
    /// Time zone of the axis.
    let zone: ClockZone
    /// Seconds of running time of all runs together.
    let total: Double

    /// Maximum width of a gap, as a share of the width of all runs together.
    private static let longestGap = 0.06
    /// Maximum number of pauses drawn. If there are more, only the first ones are drawn.
    private static let pausesLimit = 200

    /// - Parameters:
    ///   - runs: Runs in order. Runs without a duration are not on the axis.
    ///   - zone: Time zone of the axis.
    init(_ runs: [ReportData.RunMark], zone: ClockZone) {
        self.zone = zone
        let runs = runs.filter { $0.elapsed > 0 && $0.elapsed.isFinite }
        total = max(0.001, runs.reduce(0) { $0 + $1.elapsed })
        var widths: [(gap: Double, isCut: Bool, seconds: Double)] = []
        for (index, run) in runs.enumerated() where index > 0 {
            let end = runs[index - 1].endedAtMilliseconds
            let seconds =
                Double(run.startedAtMilliseconds - min(run.startedAtMilliseconds, end)) / 1000
            // If there are many runs, all gaps together are at most as wide as all runs together.
            let longest = total * min(Self.longestGap, 1 / Double(runs.count))
            widths.append((min(seconds, longest), seconds > longest, seconds))
        }
        let whole = total + widths.reduce(0) { $0 + $1.gap }
        var left = 0.0
        for (index, run) in runs.enumerated() {
            if index > 0 {
                let gap = widths[index - 1]
                let right = left + gap.gap / whole
                if gap.gap > 0 {
                    bands.append(
                        Band(
                            left: left, right: right, isCut: gap.isCut,
                            text: "gap of \(durationText(gap.seconds))"))
                }
                left = right
            }
            stretches.append(
                Stretch(
                    startedAtMilliseconds: run.startedAtMilliseconds, start: run.start,
                    seconds: run.elapsed, left: left, width: run.elapsed / whole))
            left += run.elapsed / whole
        }
        assert(stretches.count == runs.count, "a run without a stretch")
        assert(left <= 1 + 1e-6, "the axis ends at \(left)")
        assert(
            bands.allSatisfy { $0.left <= $0.right && $0.right <= 1 + 1e-6 },
            "a gap is not on the axis")
        assert(
            zip(stretches, stretches.dropFirst()).allSatisfy { $0.start <= $1.start },
            "runs are not in their order")
        for run in runs {
            for pause in run.pauses where bands.count < Self.pausesLimit {
                add(pause, of: run)
            }
        }
    }

    private mutating func add(_ pause: Telemetry.Pause, of run: ReportData.RunMark) {
        guard let stretch = stretches.first(where: { $0.start == run.start }) else { return }
        func fraction(_ milliseconds: UInt64) -> Double {
            let start = stretch.startedAtMilliseconds
            let seconds = Double(milliseconds - min(milliseconds, start)) / 1000
            return stretch.left + stretch.width * min(1, seconds / stretch.seconds)
        }
        let left = fraction(pause.startedAtMilliseconds)
        let right = fraction(pause.endedAtMilliseconds ?? run.endedAtMilliseconds)
        guard right > left else { return }
        bands.append(Band(left: left, right: right, isCut: false, text: "paused"))
    }

    // MARK: Positions

    /// Converts running time, in seconds, to a position on the axis, from 0 to 1.
    ///
    /// - Parameter isEnd: Whether a time between two runs counts as the end of the earlier run.
    func fraction(_ seconds: Double, isEnd: Bool = false) -> Double {
        let found = stretches.last { isEnd ? $0.start < seconds : $0.start <= seconds }
        guard let stretch = found ?? stretches.first else { return 0 }
        let share = min(1, max(0, (seconds - stretch.start) / stretch.seconds))
        return min(1, max(0, stretch.left + stretch.width * share))
    }

    /// Lays out the values of periods of running time, with nil for each gap between runs.
    func laid<Item>(
        _ items: [Item], start: (Item) -> Double, duration: (Item) -> Double
    ) -> (edges: [Double], items: [Item?]) {
        var edges: [Double] = []
        var laid: [Item?] = []
        var end = 0.0
        for item in items {
            let left = max(fraction(start(item)), end)
            if let last = edges.last, left > max(last, end) + 1e-9 {
                edges.append(end)
                laid.append(nil)
            }
            edges.append(left)
            laid.append(item)
            end = max(left, fraction(start(item) + duration(item), isEnd: true))
        }
        if !items.isEmpty { edges.append(end) }
        assert(items.isEmpty || edges.count == laid.count + 1, "a period without two edges")
        return (edges, laid)
    }

    /// Converts running time, in seconds, to a time in milliseconds since 1970.
    func milliseconds(_ seconds: Double) -> UInt64 {
        guard let stretch = stretches.last(where: { $0.start <= seconds }) ?? stretches.first else {
            return 0
        }
        return stretch.startedAtMilliseconds
            + UInt64(min(1e12, max(0, seconds - stretch.start)) * 1000)
    }

    // MARK: Ticks

    /// The round intervals between ticks, in milliseconds.
    private static let steps: [UInt64] =
        [1, 2, 5, 10, 20, 50, 100, 200, 500]
        + [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800].map { $0 * 1000 }
        + [1, 2, 3, 6, 12, 24, 48, 168, 720].map { $0 * 3_600_000 }

    /// The ticks at round times.
    var ticks: [Tick] {
        let step =
            Self.steps.first { total * 1000 / Double($0) <= ($0 < 1000 ? 3 : 5) }
            ?? Self.steps[Self.steps.count - 1]
        // Minimum distance of ticks, as a share of the axis, on a page that is 390 pixels wide.
        let room = step < 1000 ? 0.42 : step < 60_000 ? 0.28 : 0.2
        var ticks: [Tick] = []
        for stretch in stretches {
            let shift = min(zone.shifted(stretch.startedAtMilliseconds), Night.latestStart)
            var time = (shift + step - 1) / step * step
            while Double(time - shift) / 1000 <= stretch.seconds {
                let share = Double(time - shift) / 1000 / stretch.seconds
                let fraction = min(1, stretch.left + stretch.width * share)
                if fraction - (ticks.last?.fraction ?? -1) >= room {
                    ticks.append(Tick(fraction: fraction, text: Self.text(time, step: step)))
                }
                time += step
            }
        }
        if ticks.isEmpty, let first = stretches.first {
            let time = min(zone.shifted(first.startedAtMilliseconds), Night.latestStart)
            ticks = [Tick(fraction: 0, text: Self.text(time, step: 1000))]
        }
        return ticks
    }

    private static func text(_ shifted: UInt64, step: UInt64) -> String {
        let text = timeText(shifted)
        if step >= 86_400_000 { return String(text.dropFirst(5).prefix(5)) }
        let clock = text.dropFirst(11)
        return String(clock.prefix(step < 1000 ? 12 : step < 60_000 ? 8 : 5))
    }

    /// Whether all runs are on one day in the axis's time zone.
    private var isOneDay: Bool {
        guard let first = stretches.first, let last = stretches.last else { return true }
        let end = last.startedAtMilliseconds + UInt64(min(1e12, last.seconds * 1000))
        return timeText(zone.shifted(first.startedAtMilliseconds)).prefix(10)
            == timeText(zone.shifted(end)).prefix(10)
    }

    /// Time for a table, with month and day if there are several days.
    func text(atMilliseconds milliseconds: UInt64) -> String {
        let text = timeText(zone.shifted(milliseconds))
        let clock = text.dropFirst(11).prefix(8)
        return isOneDay ? String(clock) : "\(text.dropFirst(5).prefix(5))\u{a0}\(clock)"
    }

    /// A note such as `Times are CET, UTC+01:00.`
    var note: String {
        guard zone != .utc else { return "Times are UTC." }
        let minutes = abs(zone.offset) / 60
        func two(_ value: Int) -> String { value < 10 ? "0\(value)" : "\(value)" }
        let sign = zone.offset < 0 ? "-" : "+"
        return "Times are \(zone.name), UTC\(sign)\(two(minutes / 60)):\(two(minutes % 60))."
    }
}
