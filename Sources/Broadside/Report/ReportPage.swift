import APNs

/// The report: one page that needs nothing from anywhere else.
struct ReportPage {
    let data: ReportData

    /// The page's octets.
    var html: [UInt8] {
        var page = """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta http-equiv="Content-Security-Policy" \
            content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
            <meta name="color-scheme" content="light dark">
            <link rel="icon" href="data:,">
            <title>Campaign \(escapedHTML(data.summary.campaign)): \(escapedHTML(statusWord))</title>
            <style>\(ReportStyle.css)</style>
            </head>
            <body>
            <main>

            """
        page += header + charts + refusals + runs + connections + events + settings
        page += nextSteps
        page += """
            <footer>Broadside \(broadsideVersion), \
            \(escapedHTML(Self.time(data.createdAtMilliseconds))). Ledger: \
            \(escapedHTML(data.ledgerPath))</footer>
            </main>
            </body>
            </html>

            """
        return Array(page.utf8)
    }

    // MARK: The head

    private var header: String {
        let summary = data.summary
        var tiles: [(String, String)] = [
            (
                grouped(summary.accepted),
                summary.acceptsBySilence ? "accepted, by silence" : "accepted"
            ),
            (grouped(summary.rejected), summary.acceptsBySilence ? "refused" : "refused by APNs"),
        ]
        for (name, count) in [
            ("invalid", summary.invalid), ("skipped", summary.skipped),
            ("failed", summary.failed), ("unknown", summary.unknown),
            ("in doubt", summary.inDoubt), ("remaining", openRows),
        ] where count > 0 {
            tiles.append((grouped(count), name))
        }
        tiles.append((durationText(data.runningSeconds), "running time"))
        if data.runningSeconds > 0 {
            tiles.append((rateText(settledRate), "a second on average"))
        }
        if data.peakRate > 0 { tiles.append((rateText(data.peakRate), "a second at the peak")) }
        for (name, share) in [("median answer", 0.5), ("99 % answered within", 0.99)] {
            if let value = data.latency.quantile(share) { tiles.append((latencyText(value), name)) }
        }
        let items = tiles.map {
            "<li><b>\(escapedHTML($0.0))</b><span>\(escapedHTML($0.1))</span></li>"
        }
        return """
            <header>
            <p>Campaign \(escapedHTML(data.summary.campaign)) \
            <span class="status\(statusClass)">\(escapedHTML(statusWord))</span></p>
            <h1>\(escapedHTML(sentence))</h1>
            <ul class="tiles">\(items.joined())</ul>
            </header>

            """
    }

    private var settledCount: UInt64 {
        let summary = data.summary
        return summary.accepted + summary.rejected + summary.invalid + summary.skipped
            + summary.failed + summary.unknown
    }

    private var settledRate: Double { Double(settledCount) / data.runningSeconds }

    private var openRows: UInt64 {
        let remaining = data.summary.remaining ?? 0
        return remaining - min(remaining, data.summary.inDoubt)
    }

    private var isComplete: Bool { data.summary.outcome == .complete }

    private var statusWord: String {
        data.isInProgress ? "under way" : data.summary.outcome.rawValue
    }

    private var statusClass: String {
        if data.isInProgress { return " open" }
        switch data.summary.outcome {
        case .complete: return data.summary.failed + data.summary.unknown > 0 ? " open" : ""
        case .stopped: return " open"
        case .aborted, .error: return " bad"
        }
    }

    /// The outcome, for somebody who reads nothing else.
    var sentence: String {
        let summary = data.summary
        let rows = summary.rows.map { grouped($0) }
        let time = durationText(data.runningSeconds)
        if data.isInProgress {
            return "Still under way: \(grouped(settledCount)) rows are settled so far."
        }
        switch summary.outcome {
        case .complete:
            var text = "All \(rows ?? grouped(settledCount)) rows are settled after \(time): "
            text += summary.acceptsBySilence ? "the gateway took " : "APNs accepted "
            text += grouped(summary.accepted)
            text += summary.rejected > 0 ? " and refused \(grouped(summary.rejected))." : "."
            if summary.failed + summary.unknown > 0 {
                text += " \(grouped(summary.failed + summary.unknown)) ended failed or unknown."
            }
            return text
        case .stopped:
            let left =
                summary.remaining.map { "\(grouped($0)) of \(rows ?? "the") rows are left" }
                ?? "rows are left"
            return "Stopped after \(time): \(left), \(grouped(summary.accepted)) were accepted."
        case .aborted:
            return "Ended early, as APNs refuses the campaign: \(grouped(summary.accepted)) of "
                + "\(rows ?? "the") rows were accepted."
        case .error:
            return "Ended by an error after \(time): \(grouped(summary.accepted)) of "
                + "\(rows ?? "the") rows were accepted."
        }
    }

    // MARK: Lists

    private var refusals: String {
        let reasons = data.summary.reasons.sorted {
            ($0.value, $1.key) > ($1.value, $0.key)
        }
        guard !reasons.isEmpty else { return "" }
        let total = Double(max(1, settledCount))
        let rows = reasons.prefix(100).map { reason, count in
            [
                reason, grouped(count), decimal(Double(count) / total * 100, places: 3) + " %",
                Self.meaning(of: reason),
            ]
        }
        return "<h2>Why rows were not accepted</h2>\n<div class=\"box\">"
            + tableHTML(
                ["Reason", "Rows", "Of settled rows", "What it means"], rows, textColumns: [0, 3])
            + "</div>\n"
    }

    var limits: String {
        let total = data.limited.reduce(0, +)
        guard total > 0 else { return "" }
        let shares = LimitedBy.allCases.map {
            ($0, Double(data.limited[$0.rawValue]) / Double(total))
        }
        .filter { $0.1 >= 0.001 }.sorted { $0.1 > $1.1 }
        guard let first = shares.first else { return "" }
        let items = shares.map { cause, share in
            let percent = decimal(share * 100, places: 1)
            return "<li><span>\(escapedHTML(words(cause)))</span><span class=\"bar\" "
                + "style=\"width:\(percent)%\"></span><span class=\"n\">\(percent) %</span></li>"
        }
        return """
            <figure><figcaption><h3>What limited the run</h3></figcaption>
            <p>Most of the connections' time was limited by \(escapedHTML(words(first.0))). \
            \(escapedHTML(advice(first.0)))</p>
            <ul class="share">\(items.joined())</ul></figure>

            """
    }

    private var runs: String {
        guard data.runs.count > 1 || data.runs.contains(where: { $0.cause != nil }) else {
            return ""
        }
        let rows = data.runs.suffix(100).map { run in
            [
                "\(run.number)", Self.time(run.startedAtMilliseconds), durationText(run.elapsed),
                grouped(run.retries), run.outcome ?? "did not say", run.cause ?? "",
            ]
        }
        return "<h2>Runs</h2>\n<div class=\"box\">"
            + tableHTML(
                ["Run", "Began", "Took", "Sent again", "Outcome", "Why"], rows,
                textColumns: [0, 1, 4, 5])
            + "</div>\n"
    }

    private var connections: String {
        guard !data.connections.isEmpty else { return "" }
        let rows = data.connections.enumerated().map { index, tally in
            let mean = tally.answers > 0 ? tally.latencySumNanoseconds / tally.answers : 0
            return [
                "\(tally.number ?? index + 1)", grouped(tally.answers),
                tally.latencySumNanoseconds > 0 ? latencyText(mean) : "",
                tally.latencySumNanoseconds > 0 ? latencyText(tally.latencyMaximumNanoseconds) : "",
                grouped(tally.opened - min(tally.opened, 1)), grouped(tally.failures),
                grouped(tally.goAways), tally.lastGoAway ?? "", tally.lastFailure ?? "",
            ]
        }
        let note =
            rows.count >= ConnectionTally.rowsLimit
            ? "<p>The last row stands for all connections beyond it.</p>" : ""
        return "<h2>Connections of the latest run</h2>\n<div class=\"box\">"
            + tableHTML(
                [
                    "No.", "Requests", "Mean", "Slowest", "Reconnects", "Failures", "GOAWAYs",
                    "Last GOAWAY", "Last failure",
                ], rows, textColumns: [0, 7, 8]) + note + "</div>\n"
    }

    private var events: String {
        guard !data.events.isEmpty else { return "" }
        let rows = data.events.map {
            [Self.time($0.milliseconds, withSeconds: true), $0.kind.rawValue, $0.message]
        }
        let note =
            data.eventsLost > 0
            ? "<p>\(grouped(data.eventsLost)) more in between are not kept.</p>" : ""
        return "<h2>What happened</h2>\n<div class=\"box\">"
            + tableHTML(["When", "What", "In words"], rows, textColumns: [0, 1, 2]) + note
            + "</div>\n"
    }

    private var settings: String {
        guard !data.settings.isEmpty else { return "" }
        let items = data.settings.map {
            "<dt>\(escapedHTML($0.name))</dt><dd>\(escapedHTML($0.value))</dd>"
        }
        return "<h2>Settings of the latest run</h2>\n<div class=\"box\"><dl>"
            + items.joined() + "</dl></div>\n"
    }

    private var nextSteps: String {
        let summary = data.summary
        var html = ""
        func add(_ text: String, _ command: String) {
            html += "<p>\(escapedHTML(text))</p><code>\(escapedHTML(command))</code>\n"
        }
        let ledger = shellWord(data.ledgerPath)
        if !isComplete, !data.isInProgress {
            add(
                "Go on where it ended: the same command line with --resume. Settled rows are not "
                    + "sent again.", "broadside send ... --ledger \(ledger) --resume")
        }
        let open = [("failed", summary.failed), ("unknown", summary.unknown)].filter { $0.1 > 0 }
        if !open.isEmpty {
            let names = open.map(\.0).joined(separator: ",")
            add(
                "Send rows that ended \(open.map(\.0).joined(separator: " or ")) once more. A row "
                    + "that is unknown may have reached its device already.",
                "broadside send ... --ledger \(ledger) --resume --retry \(names)")
        }
        if (summary.reasons["Unregistered"] ?? 0) + (summary.reasons["ExpiredToken"] ?? 0) > 0 {
            let list = data.listPath.map(shellWord) ?? "TOKENS"
            add(
                "Take the dead tokens out of the list.",
                "broadside prune --ledger \(ledger) --tokens \(list) --output tokens.clean.txt")
        }
        if summary.acceptsBySilence {
            add(
                "A gateway takes notifications for apps that are gone, too. Its feedback service "
                    + "tells which tokens those are.",
                "broadside feedback --endpoint HOST --certificate FILE --ledger gone")
        }
        add(
            "See what became of each row.",
            "broadside ledger export --ledger \(ledger) --output outcomes.csv")
        return "<h2>What to do next</h2>\n<div class=\"box\">\(html)</div>\n"
    }
}
