import BroadsideEngine
import BroadsideSupport
internal import Glibc

extension ReportPage {
    /// Maximum number of rows in the tables of the charts.
    private static var tableLimit: Int { 60 }
    /// Number of columns in the latency distribution.
    private static var distributionColumns: Int { 48 }

    /// The charts; empty if there were no responses.
    var charts: String {
        var charts =
            hasFewRows
            ? [] : [throughputChart, latencyChart, distributionChart].compactMap { $0?.html }
        if !limits.isEmpty { charts.append(limits) }
        guard !charts.isEmpty else { return "" }
        return "<h2>How it went</h2>\n\(speed)<div class=\"pair\">\n\(charts.joined())</div>\n"
    }

    /// Whether there are too few rows for curves, rates and shares of responses.
    private var hasFewRows: Bool { settledCount < 20 }

    /// The rates and response times in one line.
    private var speed: String {
        guard !hasFewRows else { return "" }
        var parts: [String] = []
        if data.runningSeconds > 0 {
            let average = Double(settledCount) / data.runningSeconds
            var text = "\(rateText(average)) rows per second on average"
            if data.peakRate > 0 {
                text += ", \(rateText(data.peakRate)) in the best full second"
            }
            parts.append(text + ".")
        }
        if let median = data.latency.quantile(0.5), let most = data.latency.quantile(0.99) {
            parts.append(
                "Half of the responses came within \(latencyText(median)), 99% within "
                    + "\(latencyText(most)).")
        }
        return parts.isEmpty ? "" : "<p>\(escapedHTML(parts.joined(separator: " ")))</p>\n"
    }

    private var throughputChart: Chart? {
        let points = data.throughput
        guard !points.isEmpty, data.runningSeconds > 0 else { return nil }
        let axis = axis
        let laid = axis.laid(points, start: \.start, duration: \.duration)
        func rates(_ count: (ReportData.Throughput) -> UInt64) -> [Double?] {
            laid.items.map { point in
                point.map { $0.duration > 0 ? Double(count($0)) / $0.duration : 0 }
            }
        }
        let all = rates { $0.accepted + $0.rejected + $0.others }.compactMap { $0 }
        var series = [
            Chart.Series(
                name: "accepted", color: "good", shape: .area, values: rates(\.accepted)),
            Chart.Series(name: "rejected", color: "dead", shape: .area, values: rates(\.rejected)),
        ]
        if points.contains(where: { $0.others > 0 }) {
            series.append(
                Chart.Series(
                    name: "others", color: "other", shape: .area, values: rates(\.others)))
        }
        let rows = Self.thinned(points).map { point in
            [
                axis.text(atMilliseconds: axis.milliseconds(point.start)), grouped(point.accepted),
                grouped(point.rejected),
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
            edges: laid.edges, series: series, ticks: timeTicks(axis), marks: runMarks(axis),
            bands: axis.bands, unit: "rows per second", note: timeNote(axis),
            table: tableHTML(
                ["From (\(axis.zone.name))", "Accepted", "Rejected", "Others", "Per second"], rows))
    }

    private var latencyChart: Chart? {
        let points = data.points
        guard points.contains(where: { $0.p50 != nil }), data.runningSeconds > 0 else { return nil }
        let axis = axis
        let laid = axis.laid(points, start: \.start, duration: \.duration)
        func milliseconds(_ value: UInt64?) -> Double? { value.map { Double($0) / 1000 } }
        let worst = points.compactMap(\.p99).max() ?? 0
        let step = max(1, (points.count + Self.tableLimit - 1) / Self.tableLimit)
        let rows = stride(from: 0, to: points.count, by: step).map { index in
            let point = points[index]
            func text(_ value: UInt64?) -> String { value.map { latencyText($0 * 1000) } ?? "" }
            return [
                axis.text(atMilliseconds: axis.milliseconds(point.start)), text(point.p50),
                text(point.p99), grouped(point.answers),
                grouped(point.inFlight),
            ]
        }
        return Chart(
            identifier: "latency", title: "Response times",
            description: "The median and the 99th percentile of each time interval; the highest "
                + "99th percentile is \(latencyText(worst * 1000)).",
            edges: laid.edges,
            series: [
                Chart.Series(
                    name: "99% within", color: "second", shape: .curve,
                    values: laid.items.map { milliseconds($0?.p99) }),
                Chart.Series(
                    name: "median", color: "first", shape: .curve,
                    values: laid.items.map { milliseconds($0?.p50) }),
            ],
            ticks: timeTicks(axis), marks: runMarks(axis), bands: axis.bands, isLogarithmic: true,
            unit: "milliseconds", note: timeNote(axis),
            table: tableHTML(
                ["From (\(axis.zone.name))", "Median", "99% within", "Responses", "In flight"], rows
            ))
    }

    /// Responses by latency, on a logarithmic axis.
    private var distributionChart: Chart? {
        let latency = data.latency
        let columns = latency.columns(Self.distributionColumns)
        guard !columns.isEmpty else { return nil }
        let shares = columns.map { $0.count / Double(latency.count) * 100 }
        let edges = (0...columns.count).map { Double($0) / Double(columns.count) }
        let ticks = Self.roundTimes(columns.map(\.upper), edges: edges)
        let marks = [("median", 0.5), ("99%", 0.99)].compactMap { name, share in
            latency.quantile(share).flatMap { value in
                columns.firstIndex { $0.upper >= value }.map {
                    Chart.Tick(
                        fraction: (edges[$0] + edges[$0 + 1]) / 2,
                        text: "\(name) \(latencyText(value))")
                }
            }
        }
        // The text of a mark at the right extends to the left, so it needs more distance to the
        // other mark.
        let areMarksApart =
            marks.count < 2
            || marks[1].fraction - marks[0].fraction > (marks[1].fraction > 0.7 ? 0.58 : 0.34)
        var seen = 0.0
        let rows = columns.map { column in
            seen += column.count
            return [
                latencyText(column.upper), grouped(UInt64(column.count.rounded())),
                decimal(seen / Double(latency.count) * 100, places: 2) + "%",
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
            ticks: ticks, marks: areMarksApart ? marks : Array(marks.prefix(1)),
            unit: "% of responses", note: "Response times, on a logarithmic axis.",
            table: tableHTML(["Up to", "Responses", "Of all, so far"], rows))
    }

    /// Ticks at 1, 2 and 5 of each power of ten, or fewer if not all of them fit. If fewer than
    /// three fit, the ticks are at equal distances in time.
    private static func roundTimes(_ uppers: [UInt64], edges: [Double]) -> [Chart.Tick] {
        guard let first = uppers.first, let last = uppers.last, last > first, first > 0 else {
            return []
        }
        let (low, high) = (Double(first), Double(last))
        // Each column is wider than the previous one by the same factor.
        let width = (edges[edges.count - 1] - edges[1]) / log2(high / low)
        /// Returns ticks at the values that fit. Earlier values take precedence.
        func ticks(_ values: [Double], step: Double) -> [Chart.Tick] {
            var ticks: [Chart.Tick] = []
            for value in values {
                let fraction = edges[1] + width * log2(value / low)
                guard fraction > 0.02, fraction < 0.97,
                    ticks.allSatisfy({ abs($0.fraction - fraction) > 0.2 })
                else { continue }
                ticks.append(Chart.Tick(fraction: fraction, text: roundTime(value, step: step)))
            }
            return ticks.sorted { $0.fraction < $1.fraction }
        }
        var powers: [Double] = []
        while (powers.last ?? 0.1) * 10 <= high { powers.append((powers.last ?? 0.1) * 10) }
        var found = ticks(powers + powers.flatMap { [2 * $0, 5 * $0] }, step: .infinity)
        for power in powers.reversed() {
            for step in [5 * power, 2 * power, power] where found.count < ticksWanted {
                guard (high - low) / step < 100 else { return found }
                let values = stride(from: (low / step).rounded(.down) * step, to: high, by: step)
                let finer = ticks(values.filter { $0 > 0 }, step: step)
                if finer.count > found.count { found = finer }
            }
        }
        return found
    }

    private static var ticksWanted: Int { 3 }

    /// Text such as `20 ms` or `20.5 ms` for a time that is a multiple of a step. The time and the
    /// step are in nanoseconds.
    private static func roundTime(_ nanoseconds: Double, step: Double) -> String {
        func text(_ unit: Double, _ name: String) -> String {
            let (value, step) = (nanoseconds / unit, step / unit)
            guard step < 0.99 else { return "\(grouped(wholeNumber(value.rounded()))) \(name)" }
            return decimal(value, places: step > 0.099 ? 1 : step > 0.0099 ? 2 : 3) + " \(name)"
        }
        switch nanoseconds {
        case ..<1e3: return text(1, "ns")
        case ..<1e6: return text(1e3, "us")
        case ..<1e9: return text(1e6, "ms")
        default: return text(1e9, "s")
        }
    }

    // MARK: The axis of time

    private func timeTicks(_ axis: TimeAxis) -> [Chart.Tick] {
        axis.ticks.map { Chart.Tick(fraction: $0.fraction, text: $0.text) }
    }

    /// Starts of all runs except the first.
    private func runMarks(_ axis: TimeAxis) -> [Chart.Tick] {
        guard data.runs.count <= 6 else { return [] }
        return data.runs.dropFirst().filter { $0.elapsed > 0 }.map {
            Chart.Tick(fraction: axis.fraction($0.start), text: "run \($0.number)")
        }
    }

    /// Note about the time zone and the meaning of the bands.
    private func timeNote(_ axis: TimeAxis) -> String {
        var text = axis.note
        let gaps = axis.bands.filter { $0.text != "paused" }
        if gaps.count == 1 { text += " Shaded: a \(gaps[0].text)" }
        if gaps.count > 1 { text += " Shaded: \(grouped(gaps.count)) gaps between runs" }
        if axis.bands.count > gaps.count {
            text += gaps.isEmpty ? " Shaded: paused" : ", and pauses"
        }
        if !axis.bands.isEmpty { text += "." }
        if gaps.contains(where: \.isCut) { text += " Between // the axis is cut." }
        return text
    }

    /// Merges adjacent periods until the table is short enough for a reader.
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
