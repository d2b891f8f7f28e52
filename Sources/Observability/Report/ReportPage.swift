import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideSupport

/// The report as one self-contained page.
package struct ReportPage {
    let data: ReportData
    /// Rows in groups that matter to the operator.
    let outcome: OutcomeShares
    /// Time zone of charts and tables; nil: this machine's.
    var zone: ClockZone?

    package init(data: ReportData) {
        self.data = data
        outcome = OutcomeShares(data.summary, isInProgress: data.isInProgress)
    }

    /// The page as bytes.
    package var html: [UInt8] {
        var page = pageHead(title: "\(heading): \(shares)", css: ReportStyle.css)
        page +=
            header + nextSteps + receipts + arms + waves + refusals + charts + runs + connections
            + settings
            + events
        page += """
            <footer>\(escapedHTML(axis.note)) Broadside \(broadsideVersion), \
            \(escapedHTML(Self.time(data.createdAtMilliseconds))). \
            \(data.hasLedger ? "Ledger: \(escapedHTML(data.ledgerPath))" : "No ledger is left.")</footer>

            """
        return Array((page + pageEnd).utf8)
    }

    // MARK: The head

    private var header: String {
        """
        <header>
        <p>\(escapedHTML(heading)) \
        <span class="status\(statusClass)">\(escapedHTML(statusText))</span></p>
        <h1>\(escapedHTML(sentence))</h1>
        \(bar)\(cards)\(facts)\
        </header>

        """
    }

    var settledCount: UInt64 {
        data.summary.counts.settled
    }

    /// Time axis of the charts, by default in this machine's time zone.
    var axis: TimeAxis {
        TimeAxis(data.runs, zone: zone ?? .local(at: data.startedAtMilliseconds ?? 0))
    }

    var openRows: UInt64 {
        let remaining = data.summary.remaining ?? 0
        return remaining - min(remaining, data.summary.inDoubt)
    }

    /// Shortest duration, in seconds, that the page states. A shorter one would read as 0 s.
    static var shortestSeconds: Double { 0.5 }

    var isComplete: Bool { data.summary.outcome == .complete }

    /// Outcome in one sentence, for readers who read nothing else.
    var sentence: String {
        let summary = data.summary
        let rows = summary.rows.map { grouped($0) }
        let time =
            data.wholeSeconds < Self.shortestSeconds
            ? "less than a second" : durationText(data.wholeSeconds)
        if data.isInProgress {
            return "Still running: \(grouped(settledCount)) rows are settled so far."
        }
        switch summary.outcome {
        case .complete:
            if settledCount == 0 { return "The list has no rows: nothing was sent." }
            let all = summary.rows ?? settledCount
            var text = all == 1 ? "The row is settled" : "All \(grouped(all)) rows are settled"
            text += " after \(time): "
            text += summary.acceptsBySilence ? "the gateway accepted " : "APNs accepted "
            text += grouped(summary.accepted)
            text += summary.rejected > 0 ? " and rejected \(grouped(summary.rejected))." : "."
            if summary.skipped > 0 {
                text +=
                    " \(grouped(summary.skipped)) \(summary.skipped == 1 ? "was" : "were") skipped."
            }
            if summary.invalid > 0 {
                text +=
                    " \(grouped(summary.invalid)) \(summary.invalid == 1 ? "was" : "were")"
                    + " invalid and not sent."
            }
            if summary.failed + summary.unknown > 0 {
                text += " \(grouped(summary.failed + summary.unknown)) ended failed or unknown."
            }
            return text
        case .stopped, .running:
            let left =
                summary.remaining.map { "\(grouped($0)) of \(rows ?? "the") rows are left" }
                ?? "rows are left"
            let word = data.isInterrupted ? "Interrupted" : "Stopped"
            return "\(word) after \(time): \(left), \(grouped(summary.accepted)) were accepted."
        case .aborted:
            let cause = data.cause?.message ?? "APNs refuses the campaign"
            if summary.remaining == 0, let rows, settledCount > 1 {
                return "All \(rows) rows are settled, but \(cause). "
                    + "\(grouped(summary.accepted)) of them "
                    + "\(summary.accepted == 1 ? "was" : "were") accepted."
            }
            return "Ended early: \(cause). \(grouped(summary.accepted)) of "
                + "\(rows ?? "the") rows were accepted."
        case .error:
            return "Ended by an error after \(time): \(grouped(summary.accepted)) of "
                + "\(rows ?? "the") rows were accepted\(rows == nil ? ", and rows are left" : "")."
        }
    }
}
