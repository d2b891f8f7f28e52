import BroadsideAPNs
import BroadsideEngine
import BroadsideSupport

/// Tables of the report.
extension ReportPage {
    var refusals: String {
        let reasons = data.summary.reasons.sorted {
            ($0.value, $1.key) > ($1.value, $0.key)
        }
        guard !reasons.isEmpty else { return "" }
        let rows = reasons.prefix(100).map { reason, count in
            [
                reason, grouped(count), Self.percent(count, of: settledCount),
                meaning(of: reason),
            ]
        }
        return "<h2>Why rows were not accepted</h2>\n<div class=\"box\">"
            + tableHTML(
                ["Reason", "Rows", "Of settled rows", "What it means"], rows, textColumns: [0, 3],
                isStacked: true)
            + "</div>\n"
    }

    var limits: String {
        let total = data.limited.reduce(0) { $0 + Double($1) }
        guard total > 0, data.runningSeconds >= RunStatistics.shortestToJudgeSeconds else {
            return ""
        }
        let shares = Bottleneck.allCases.map {
            ($0, Double(data.limited[$0.rawValue]) / total)
        }
        .filter { $0.1 >= 0.001 }.sorted { $0.1 > $1.1 }
        guard let first = shares.first else { return "" }
        let acceptsBySilence = data.summary.acceptsBySilence
        func description(_ cause: Bottleneck) -> String {
            escapedHTML(cause.description(acceptsBySilence: acceptsBySilence))
        }
        let advice = first.0.advice(acceptsBySilence: acceptsBySilence)
        let items = shares.map { cause, share in
            let percent = decimal(share * 100, places: 1)
            return "<li><span>\(description(cause))</span><span class=\"bar\" "
                + "style=\"width:\(percent)%\"></span><span class=\"n\">\(percent)%</span></li>"
        }
        return """
            <figure><figcaption><h3>Bottlenecks</h3></figcaption>
            <p>The bottleneck was \(description(first.0)). \
            \(optionsUnbroken(escapedHTML(advice)))</p>
            <ul class="share">\(items.joined())</ul></figure>

            """
    }

    var runs: String {
        guard data.runs.count > 1 || data.runs.contains(where: { $0.cause != nil }) else {
            return ""
        }
        let axis = axis
        let rows = data.runs.indices.suffix(100).map { index in
            let run = data.runs[index]
            let isRunning = data.isInProgress && index == data.runs.count - 1
            // The latest record of a killed run may be older than its end.
            let isKilled = !isRunning && run.outcome == Telemetry.interrupted
            return [
                "\(run.number)", axis.text(atMilliseconds: run.startedAtMilliseconds),
                isRunning ? "running" : axis.text(atMilliseconds: run.endedAtMilliseconds),
                durationText(run.tookSeconds), data.gap(before: index).map(durationText) ?? "",
                isKilled ? "" : run.retries.map { grouped($0) } ?? "",
                isRunning ? "running" : run.outcome ?? "not recorded",
                run.cause ?? "",
            ]
        }
        return "<h2>Runs</h2>\n<div class=\"box\">"
            + tableHTML(
                [
                    "Run", "Began (\(axis.zone.name))", "Ended", "Took", "Gap before",
                    "Sent again", "Outcome", "Why",
                ],
                rows, textColumns: [0, 1, 2, 6, 7], isStacked: true)
            + "</div>\n"
    }

    var connections: String {
        guard !data.connections.isEmpty else { return "" }
        let rows = data.connections.enumerated().map { index, tally in
            let mean = tally.responses > 0 ? tally.latencySumNanoseconds / tally.responses : 0
            return [
                "\(tally.number ?? index + 1)", grouped(tally.responses),
                tally.latencySumNanoseconds > 0 ? latencyText(mean) : "",
                tally.latencySumNanoseconds > 0 ? latencyText(tally.latencyMaximumNanoseconds) : "",
                grouped(tally.opened - min(tally.opened, 1)), grouped(tally.failures),
                grouped(tally.goAways), tally.lastGoAway ?? "", tally.lastFailure ?? "",
            ]
        }
        let note =
            rows.count >= ConnectionTally.rowsLimit
            ? "<p>The last row is for all further connections.</p>" : ""
        return folded(
            "Connections of the latest run (\(grouped(rows.count)))",
            tableHTML(
                [
                    "No.", "Requests", "Mean", "Slowest", "Reconnects", "Failures", "GOAWAYs",
                    "Last GOAWAY", "Last failure",
                ], rows, textColumns: [0, 7, 8], isStacked: true) + note)
    }

    var events: String {
        guard !data.events.isEmpty else { return "" }
        let axis = axis
        let rows = data.events.map {
            [axis.text(atMilliseconds: $0.milliseconds), $0.kind.rawValue, $0.message]
        }
        let note =
            data.eventsLost > 0
            ? "<p>\(grouped(data.eventsLost)) more in between are not kept.</p>" : ""
        return "<h2>What happened</h2>\n<div class=\"box\">"
            + tableHTML(
                ["When (\(axis.zone.name))", "What", "In words"], rows, textColumns: [0, 1, 2],
                isStacked: true) + note
            + "</div>\n"
    }

    var settings: String {
        guard !data.settings.isEmpty else { return "" }
        let items = data.settings.map {
            "<dt>\(escapedHTML($0.name))</dt><dd>\(escapedHTML($0.value))</dd>"
        }
        return folded("Settings of the latest run", "<dl>\(items.joined())</dl>")
    }

    /// HTML of a box that opens with a click on its title.
    func folded(_ title: String, _ html: String) -> String {
        "<details class=\"box fold\"><summary>\(escapedHTML(title))</summary>\n\(html)</details>\n"
    }
}
