import BroadsideSupport

/// What the campaign achieved for devices, in colors and shares. A run can succeed although no
/// device received anything.
extension ReportPage {
    /// Number of rows by outcome. The first three outcomes are on every page.
    private var states: [(name: String, count: UInt64)] {
        let summary = data.summary
        return [
            ("accepted", summary.accepted), ("rejected", summary.rejected),
            ("invalid", summary.invalid), ("skipped", summary.skipped),
            ("failed", summary.failed), ("unknown", summary.unknown),
            ("in doubt", summary.inDoubt), ("remaining", openRows),
        ]
    }

    private var allRows: UInt64 { states.reduce(0) { $0 + $1.count } }

    /// Text to append to shares of all rows; empty if the number of rows is known. It is unknown if
    /// a run was killed or stopped before it had read the list to its end.
    private var soFar: String {
        data.summary.rows == nil && !isComplete ? " of the \(grouped(allRows)) rows so far" : ""
    }

    /// The shares, such as `97.2% accepted, 2.1% rejected, 0.7% invalid`. Other states follow if
    /// they have rows.
    var shares: String {
        guard allRows > 0 else { return "no rows" }
        return states.enumerated().filter { $0.offset < 3 || $0.element.count > 0 }.map {
            "\(Self.percent($0.element.count, of: allRows)) \($0.element.name)"
        }.joined(separator: ", ") + soFar
    }

    /// Formats a share as a percentage. Only exact values become 0% or 100%.
    static func percent(_ count: UInt64, of all: UInt64) -> String {
        assert(count <= all, "a part is at most the whole")
        if count == 0 || all == 0 { return "0%" }
        if count == all { return "100%" }
        let share = Double(count) / Double(all) * 100
        if share < 0.1 { return "<0.1%" }
        return share > 99.9 ? ">99.9%" : "\(decimal(share, places: 1))%"
    }

    /// Minimum share for a good result: accepted rows among the rows that were meant to be sent.
    private static var goodShare: Double { 0.9 }
    /// Share of accepted rows below which the result is bad. It is a share of the rows that were
    /// meant to be sent.
    private static var badShare: Double { 0.5 }

    var statusText: String {
        if data.isInProgress { return "running" }
        let word =
            data.isInterrupted ? Telemetry.interrupted : data.summary.outcome.rawValue
        guard allRows > 0 else { return "\(word), no rows" }
        return "\(word), "
            + "\(Self.percent(data.summary.accepted, of: allRows)) accepted\(soFar)"
    }

    /// CSS class of the status. It is green only if nearly all intended devices were reached.
    var statusClass: String {
        if data.isInProgress { return " open" }
        switch data.summary.outcome {
        case .aborted, .error: return " bad"
        case .complete, .stopped, .running: break
        }
        let meant = allRows - data.summary.skipped
        guard meant > 0 else { return allRows > 0 ? " open" : " bad" }
        let settled = meant - min(meant, openRows + data.summary.inDoubt)
        let share = settled > 0 ? Double(data.summary.accepted) / Double(settled) : 1
        if share < Self.badShare { return " bad" }
        let isWhole = data.summary.outcome == .complete && settled == meant
        return share < Self.goodShare || !isWhole || data.summary.failed + data.summary.unknown > 0
            ? " open" : ""
    }

    /// Name or ID of the campaign.
    var heading: String { data.summary.name ?? "Campaign \(data.summary.campaign)" }

    // MARK: The bar and the cards

    /// The bar of all rows with its legend.
    var bar: String {
        guard outcome.all > 0 else { return "" }
        let parts = OutcomeShares.Part.allCases.filter { outcome.count($0) > 0 }
        let pieces = parts.map { part in
            "<span class=\"k-\(color(part))\" style=\"flex-grow:"
                + "\(decimal(Double(outcome.count(part)) / Double(outcome.all) * 1000, places: 3))"
                + "\"></span>"
        }
        let items = parts.map { part in
            "<li><span class=\"key k-\(color(part))\"></span><b>\(grouped(outcome.count(part)))</b> "
                + "\(part.name) <span>\(escapedHTML(Self.percent(outcome.count(part), of: outcome.all)))</span></li>"
        }
        return """
            <div class="rows" aria-hidden="true">\(pieces.joined())</div>
            <ul class="legend counts">\(items.joined())</ul>

            """
    }

    /// Color of a group of rows: red if the operator has to decide about it, grey if it is normal.
    private func color(_ part: OutcomeShares.Part) -> String {
        switch part {
        case .accepted: "good"
        case .dead: "dead"
        case .badToken, .inDoubt: outcome.needsDecision(part) ? "bad" : "other"
        case .rejected, .undecided: part == .rejected ? "second" : "bad"
        case .skipped: "skipped"
        case .invalid: "invalid"
        case .remaining: "open"
        }
    }

    private struct Card {
        var value: String
        var name: String
        var note: String
        var isAlarm = false
    }

    /// Four key figures of the campaign.
    var cards: String {
        let (accepted, dead) = (outcome.count(.accepted), outcome.count(.dead))
        let decisions = outcome.decisions
        let waiting = decisions.reduce(0) { $0 &+ $1.count }
        let gap = data.wholeSeconds - data.runningSeconds
        let list = [
            Card(
                value: Self.percent(accepted, of: outcome.all),
                name: data.summary.acceptsBySilence ? "accepted, by silence" : "accepted",
                note: soFar.isEmpty
                    ? "\(grouped(accepted)) of \(counted(outcome.all, "row"))"
                    : "\(grouped(accepted))\(soFar)"),
            Card(
                value: Self.percent(dead, of: outcome.sent), name: "dead tokens",
                note: dead > 0
                    ? "\(grouped(dead)) of \(grouped(outcome.sent)) sent"
                        + (data.keepsTokens ? ": prune them" : "")
                    : "nothing to prune"),
            Card(
                value: shortCount(waiting),
                name: waiting == 1 ? "row needs a decision" : "rows need a decision",
                note: !soFar.isEmpty
                    ? "and an unknown number of rows is not sent yet"
                    : decisions.isEmpty
                        ? emptyHanded == nil ? "nothing is left to decide" : "see what to do next"
                        : decisions.map { "\(grouped($0.count)) \($0.part.name)" }
                            .joined(separator: ", "),
                isAlarm: waiting > 0 || !soFar.isEmpty || emptyHanded != nil),
            Card(
                value: data.wholeSeconds < Self.shortestSeconds
                    ? "<1 s" : durationText(data.wholeSeconds),
                name: data.isInProgress ? "since the start" : "from start to end",
                note: data.partsPeriod != nil
                    ? "of all parts"
                    : gap >= 1
                        ? outcome.sent == 0 && outcome.count(.inDoubt) == 0
                            ? "nothing was sent"
                            : "\(durationText(data.runningSeconds)) \(withoutGaps)"
                        : data.peakRate > 0
                            ? "\(rateText(data.peakRate)) rows in the best second"
                            : "no gaps between runs"),
        ]
        let items = list.map { card in
            "<li\(card.isAlarm ? " class=\"alarm\"" : "")><b>\(escapedHTML(card.value))</b>"
                + "<span>\(escapedHTML(card.name))</span><span class=\"note\">"
                + "\(escapedHTML(card.note))</span></li>"
        }
        return "<ul class=\"tiles cards\">\(items.joined())</ul>\n"
    }

    /// What the running time leaves out.
    private var withoutGaps: String {
        data.waves.isEmpty ? "without the gaps between runs" : "without gaps and waits for waves"
    }

    // MARK: When

    /// The start, end, pauses, gaps and alert.
    var facts: String {
        var items: [(String, String)] = []
        if data.summary.name != nil { items.append(("Campaign", data.summary.campaign)) }
        if let labels = CampaignLabel.text(data.summary.labels) { items.append(("Labels", labels)) }
        if let alert = data.alert {
            items.append((alert.isFirstRows ? "Alert (first row's)" : "Alert", alert.line))
        }
        if let shortened = data.summary.shortened, data.summary.areRequestsKnown {
            items.append(("Shortened", Summary.shortenedText(shortened)))
        }
        if let start = data.startedAtMilliseconds {
            items.append(("Started", Self.bothTimes(start)))
        }
        if !data.isInProgress, let end = data.endedAtMilliseconds, data.wholeSeconds > 0 {
            items.append(("Ended", Self.bothTimes(end)))
        }
        let gaps = data.runs.indices.compactMap(data.gap)
        if gaps.reduce(0, +) >= 1 {
            items.append(
                (
                    "Between runs",
                    "\(gaps.count) gap\(gaps.count == 1 ? "" : "s"), "
                        + "\(durationText(gaps.reduce(0, +))) in all"
                ))
        }
        let pauses = data.runs.flatMap(\.pauses)
        for pause in pauses.prefix(Self.pausesShown) {
            items.append(("Paused", pauseText(pause)))
        }
        if pauses.count > Self.pausesShown {
            items.append(("Paused", "\(pauses.count - Self.pausesShown) more times"))
        }
        guard !items.isEmpty else { return "" }
        return "<dl class=\"facts\">"
            + items.map { "<dt>\(escapedHTML($0.0))</dt><dd>\(escapedHTML($0.1))</dd>" }.joined()
            + "</dl>\n"
    }

    private static var pausesShown: Int { 5 }

    private func pauseText(_ pause: Telemetry.Pause) -> String {
        let start = Self.bothTimes(pause.startedAtMilliseconds)
        guard let end = pause.endedAtMilliseconds else { return "since \(start)" }
        let seconds = Double(end - min(end, pause.startedAtMilliseconds)) / 1000
        return "\(start), for \(durationText(seconds))"
    }

    /// Text such as `2026-11-21 23:55:02 UTC (00:55:02 CET)`, with this machine's local time.
    static func bothTimes(_ milliseconds: UInt64) -> String {
        let utc = time(milliseconds, withSeconds: true)
        return localTime(milliseconds).map { "\(utc) (\($0))" } ?? utc
    }
}
