import Engine
import Support

extension ReportPage {
    /// Rows of the tables behind the charts.
    private static var tableLimit: Int { 60 }
    /// Columns of the distribution.
    private static var distributionColumns: Int { 48 }

    /// The curves; nothing where nothing was answered.
    var charts: String {
        var charts = [throughputChart, latencyChart, distributionChart].compactMap { $0?.html }
        if !limits.isEmpty { charts.append(limits) }
        guard !charts.isEmpty else { return "" }
        return "<h2>How it went</h2>\n<div class=\"pair\">\n\(charts.joined())</div>\n"
    }

    private var throughputChart: Chart? {
        let points = data.throughput
        guard !points.isEmpty, data.runningSeconds > 0 else { return nil }
        func rates(_ count: (ReportData.Throughput) -> UInt64) -> [Double?] {
            points.map { $0.duration > 0 ? Double(count($0)) / $0.duration : 0 }
        }
        let all = rates { $0.accepted + $0.rejected + $0.others }.compactMap { $0 }
        var series = [
            Chart.Series(
                name: "accepted", color: "good", shape: .area, values: rates(\.accepted)),
            Chart.Series(name: "refused", color: "bad", shape: .area, values: rates(\.rejected)),
        ]
        if points.contains(where: { $0.others > 0 }) {
            series.append(
                Chart.Series(
                    name: "other ends", color: "other", shape: .area, values: rates(\.others)))
        }
        let rows = Self.thinned(points).map { point in
            [
                clock(point.start), grouped(point.accepted), grouped(point.rejected),
                grouped(point.others),
                rateText(
                    Double(point.accepted + point.rejected + point.others)
                        / max(0.001, point.duration)),
            ]
        }
        return Chart(
            identifier: "throughput", title: "Rows settled per second",
            description: "Over \(durationText(data.runningSeconds)) of running time, at most "
                + "\(rateText(all.max() ?? 0)) rows per second.",
            edges: edges(points.map(\.start), end: points.last.map { $0.start + $0.duration }),
            series: series, ticks: timeTicks, marks: runMarks, unit: "rows per second",
            table: tableHTML(
                ["From", "Accepted", "Refused", "Others", "Per second"], rows))
    }

    private var latencyChart: Chart? {
        let points = data.points
        guard points.contains(where: { $0.p50 != nil }), data.runningSeconds > 0 else { return nil }
        func milliseconds(_ value: UInt64?) -> Double? { value.map { Double($0) / 1000 } }
        let worst = points.compactMap(\.p99).max() ?? 0
        let step = max(1, (points.count + Self.tableLimit - 1) / Self.tableLimit)
        let rows = stride(from: 0, to: points.count, by: step).map { index in
            let point = points[index]
            func text(_ value: UInt64?) -> String { value.map { latencyText($0 * 1000) } ?? "" }
            return [
                clock(point.start), text(point.p50), text(point.p99), grouped(point.answers),
                grouped(point.inFlight),
            ]
        }
        return Chart(
            identifier: "latency", title: "Response times",
            description: "The median and the 99th percentile of each stretch of time; the highest "
                + "99th percentile is \(latencyText(worst * 1000)).",
            edges: edges(points.map(\.start), end: points.last.map { $0.start + $0.duration }),
            series: [
                Chart.Series(
                    name: "99% within", color: "second", shape: .curve,
                    values: points.map { milliseconds($0.p99) }),
                Chart.Series(
                    name: "median", color: "first", shape: .curve,
                    values: points.map { milliseconds($0.p50) }),
            ],
            ticks: timeTicks, marks: runMarks, unit: "milliseconds",
            table: tableHTML(
                ["From", "Median", "99% within", "Responses", "In flight"], rows))
    }

    /// Answers by the time they took, on a logarithmic axis.
    private var distributionChart: Chart? {
        let latency = data.latency
        let columns = latency.columns(Self.distributionColumns)
        guard !columns.isEmpty else { return nil }
        let shares = columns.map { $0.count / Double(latency.count) * 100 }
        let edges = (0...columns.count).map { Double($0) / Double(columns.count) }
        let tickStep = max(1, columns.count / 4)
        let ticks = stride(from: 0, to: columns.count, by: tickStep).map {
            Chart.Tick(place: edges[$0 + 1], text: latencyText(columns[$0].upper))
        }.filter { $0.place < 0.97 }
        let marks = [("median", 0.5), ("99%", 0.99)].compactMap { name, share in
            latency.quantile(share).flatMap { value in
                columns.firstIndex { $0.upper >= value }.map {
                    Chart.Tick(place: (edges[$0] + edges[$0 + 1]) / 2, text: name)
                }
            }
        }
        let areMarksApart = marks.count < 2 || marks[1].place - marks[0].place > 0.25
        var seen = 0.0
        let rows = columns.map { column in
            seen += column.count
            return [
                latencyText(column.upper), grouped(UInt64(column.count.rounded())),
                decimal(seen / Double(latency.count) * 100, places: 2) + " %",
            ]
        }
        return Chart(
            identifier: "distribution", title: "Responses by response time",
            description: [("half", 0.5), ("99 percent", 0.99), ("all", 1.0)].map { name, share in
                "\(name) within \(latencyText(latency.quantile(share) ?? 0))"
            }.joined(separator: ", ") + ".",
            edges: edges,
            series: [
                Chart.Series(
                    name: "responses", color: "first", shape: .area, values: shares.map { $0 })
            ],
            ticks: ticks, marks: areMarksApart ? marks : Array(marks.suffix(1)),
            unit: "% of responses",
            table: tableHTML(["Up to", "Responses", "Of all, so far"], rows))
    }

    // MARK: The axis of time

    private func edges(_ starts: [Double], end: Double?) -> [Double] {
        let total = max(0.001, data.runningSeconds)
        return (starts + [end ?? total]).map { min(1, max(0, $0 / total)) }
    }

    /// Times on the clock, from the start to the end, as exact as the time between them asks for.
    private var timeTicks: [Chart.Tick] {
        let total = data.runningSeconds
        // Longer texts leave room for fewer.
        let steps = total < 1200 ? 2 : 4
        return (0...steps).map { step in
            let share = Double(step) / Double(steps)
            let milliseconds = clockMilliseconds(total * share)
            let clock = timeText(milliseconds).dropFirst(11)
            let text = clock.prefix(total < 5 ? 12 : total < 1200 ? 8 : 5)
            return Chart.Tick(place: share, text: text + (step == 0 ? " UTC" : ""))
        }
    }

    /// Where later runs began.
    private var runMarks: [Chart.Tick] {
        guard data.runs.count <= 6 else { return [] }
        let total = max(0.001, data.runningSeconds)
        return data.runs.dropFirst().filter { $0.elapsed > 0 }.map {
            Chart.Tick(place: $0.start / total, text: "run \($0.number)")
        }
    }

    /// The time on the clock at a place of the axis.
    private func clock(_ seconds: Double) -> String {
        Self.time(clockMilliseconds(seconds), withSeconds: true)
    }

    /// Milliseconds since 1970 at a place of the axis.
    private func clockMilliseconds(_ seconds: Double) -> UInt64 {
        // The end of the axis is the last run's, not the beginning of one that took no time.
        let run =
            data.runs.last { $0.start <= seconds && $0.elapsed > 0 } ?? data.runs.last
        guard let run else { return 0 }
        return run.startedAtMilliseconds + UInt64(max(0, seconds - run.start) * 1000)
    }

    /// Neighbours added up until there are few enough to be read.
    private static func thinned(_ points: [ReportData.Throughput]) -> [ReportData.Throughput] {
        let step = max(1, (points.count + tableLimit - 1) / tableLimit)
        return stride(from: 0, to: points.count, by: step).map { start in
            var sum = points[start]
            for point in points[(start + 1)..<min(points.count, start + step)] {
                sum.duration = point.start + point.duration - sum.start
                sum.accepted += point.accepted
                sum.rejected += point.rejected
                sum.others += point.others
            }
            return sum
        }
    }
}
