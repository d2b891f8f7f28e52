import Campaign
import APNs
import Engine
import Support

/// The report: one page that needs nothing from anywhere else.
package struct ReportPage {
    let data: ReportData

    package init(data: ReportData) { self.data = data }

    /// The page's bytes.
    package var html: [UInt8] {
        var page = pageHead(title: "\(heading): \(shares)", css: ReportStyle.css)
        // The list of events may be long: what to do comes before it.
        page += header + charts + refusals + nextSteps + runs + connections + settings + events
        page += """
            <footer>Broadside \(broadsideVersion), \
            \(escapedHTML(Self.time(data.createdAtMilliseconds))). Ledger: \
            \(escapedHTML(data.ledgerPath))</footer>

            """
        return Array((page + pageEnd).utf8)
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
            tiles.append((rateText(settledRate), "per second on average"))
        }
        if data.peakRate > 0 { tiles.append((rateText(data.peakRate), "per second at the peak")) }
        for (name, share) in [("median response time", 0.5), ("99% of responses within", 0.99)] {
            if let value = data.latency.quantile(share) { tiles.append((latencyText(value), name)) }
        }
        let items = tiles.map {
            "<li><b>\(escapedHTML($0.0))</b><span>\(escapedHTML($0.1))</span></li>"
        }
        return """
            <header>
            <p>\(escapedHTML(heading)) \
            <span class="status\(statusClass)">\(escapedHTML(statusWord))</span></p>
            <h1>\(escapedHTML(sentence))</h1>
            \(facts)\
            <ul class="tiles">\(items.joined())</ul>
            </header>

            """
    }

    var settledCount: UInt64 {
        data.summary.counts.settled
    }

    private var settledRate: Double { Double(settledCount) / data.runningSeconds }

    var openRows: UInt64 {
        let remaining = data.summary.remaining ?? 0
        return remaining - min(remaining, data.summary.inDoubt)
    }

    var isComplete: Bool { data.summary.outcome == .complete }

    /// The outcome, for somebody who reads nothing else.
    var sentence: String {
        let summary = data.summary
        let rows = summary.rows.map { grouped($0) }
        let time = durationText(data.runningSeconds)
        if data.isInProgress {
            return "Still running: \(grouped(settledCount)) rows are settled so far."
        }
        switch summary.outcome {
        case .complete:
            if settledCount == 0 { return "The list has no rows: nothing was sent." }
            var text = "All \(rows ?? grouped(settledCount)) rows are settled after \(time): "
            text += summary.acceptsBySilence ? "the gateway accepted " : "APNs accepted "
            text += grouped(summary.accepted)
            text += summary.rejected > 0 ? " and refused \(grouped(summary.rejected))." : "."
            if summary.invalid > 0 {
                text += " \(grouped(summary.invalid)) were invalid and not sent."
            }
            if summary.failed + summary.unknown > 0 {
                text += " \(grouped(summary.failed + summary.unknown)) ended failed or unknown."
            }
            return text
        case .stopped, .running:
            let left =
                summary.remaining.map { "\(grouped($0)) of \(rows ?? "the") rows are left" }
                ?? "rows are left"
            return "Stopped after \(time): \(left), \(grouped(summary.accepted)) were accepted."
        case .aborted:
            let cause = data.cause?.message ?? "APNs refuses the campaign"
            return "Ended early: \(cause). \(grouped(summary.accepted)) of "
                + "\(rows ?? "the") rows were accepted."
        case .error:
            return "Ended by an error after \(time): \(grouped(summary.accepted)) of "
                + "\(rows ?? "the") rows were accepted."
        }
    }
}
