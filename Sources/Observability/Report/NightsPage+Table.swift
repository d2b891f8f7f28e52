import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// Table with a row per night, newest first, and a heading per month.
extension NightsPage {
    /// Column of numbers.
    private struct Column {
        var heading: String
        /// Whether a value above 0 is highlighted after the run has ended.
        var isAlarm = false
        /// The figure whose outliers this column highlights.
        var figure: NightOutlier.Figure?
        /// Value of the column; nil if it is unknown.
        var value: (Night.Figures) -> UInt64?
        /// Text of the column's value; nil if the value is unknown.
        var text: (Night.Figures) -> String?

        init(
            _ heading: String, isAlarm: Bool = false, figure: NightOutlier.Figure? = nil,
            count: @escaping (Night.Figures) -> UInt64?
        ) {
            self.heading = heading
            self.isAlarm = isAlarm
            self.figure = figure
            value = count
            text = { count($0).map { grouped($0) } }
        }

        init(
            _ heading: String, figure: NightOutlier.Figure? = nil,
            text: @escaping (Night.Figures) -> String?
        ) {
            self.heading = heading
            self.figure = figure
            value = { text($0) == nil ? nil : 1 }
            self.text = text
        }
    }

    /// Columns of the table. A state that no row has, or a figure that no ledger has, gets no
    /// column.
    private var columns: [Column] {
        let all = nights.compactMap(\.figures)
        func ifAny(_ column: Column) -> [Column] {
            all.contains { (column.value($0) ?? 0) > 0 } ? [column] : []
        }
        return [Column("List", figure: .list, count: \.rows)]
            + ifAny(Column("List age", text: { $0.listAgeSeconds.map(durationText) }))
            + [
                Column("Dead", figure: .dead, text: { $0.deadShare.map(Self.share) }),
                Column("Accepted", figure: .accepted, count: \.counts[.accepted]),
                Column("Rejected", count: \.counts[.rejected]),
            ] + ifAny(Column("Invalid", count: \.counts[.invalid]))
            + ifAny(Column("Skipped", count: \.counts[.skipped]))
            + [
                Column("Failed", isAlarm: true, count: \.counts[.failed]),
                Column("Unknown", isAlarm: true, count: \.counts[.unknown]),
                Column("Remaining", isAlarm: true, count: \.remaining),
                Column("Per second", figure: .speed, text: { $0.speed.map(rateText) }),
                Column("Duration", text: { $0.runningSeconds.map(durationText) }),
            ]
    }

    var table: String {
        let columns = columns
        let headings = ["Start", "Campaign", "Outcome"] + columns.map(\.heading)
        var html = "<h2 id=\"nights\">Night by night</h2>\n" + monthLinks
        html += "<p class=\"swipe note\">Scroll the table sideways for more columns.</p>\n"
        html += "<div class=\"nights\" tabindex=\"0\" role=\"region\" aria-labelledby=\"nights\">"
        html += "<table><thead><tr>"
        html += headings.map { "<th scope=\"col\">\(escapedHTML($0))</th>" }.joined()
        html += "</tr></thead>\n"
        let outliers = Dictionary(
            zip(nights.map(\.path), outliers), uniquingKeysWith: { first, _ in first })
        for month in months {
            html += "<tbody><tr class=\"m\"><th colspan=\"\(headings.count)\" scope=\"rowgroup\">"
            html += "<span id=\"\(month.id)\"><b>\(month.name)</b> \(escapedHTML(words(month)))"
            html += "</span></th></tr>\n"
            for night in month.nights {
                html += row(night, columns, outliers[night.path] ?? [])
            }
            html += "</tbody>\n"
        }
        return html + "</table></div>\n"
    }

    private func row(
        _ night: Night, _ columns: [Column], _ outliers: [NightOutlier]
    ) -> String {
        var html = "<tr><th scope=\"row\">\(start(night))</th><td>\(escapedHTML(night.title))</td>"
        switch night.content {
        case .unreadable(let problem):
            html += "<td colspan=\"\(columns.count + 1)\"><p><span class=\"status bad\">unreadable"
            html += "</span> \(escapedHTML(printable(problem, limit: Self.problemLimit)))</p></td>"
        case .copy(let original):
            html +=
                "<td colspan=\"\(columns.count + 1)\"><p><span class=\"status open\">copy</span> "
            html += escapedHTML(printable(original, limit: Self.problemLimit))
            html += " is counted, and this copy of it is not</p></td>"
        case .figures(let figures):
            let limited = figures.isLimited == true ? ", limited" : ""
            html += "<td>\(Self.badge(figures.outcome))\(limited)</td>"
            for column in columns {
                let isAlarm =
                    column.isAlarm && figures.outcome != .running
                    && (column.value(figures) ?? 0) > 0
                let outlier = outliers.first { $0.figure == column.figure }
                if let outlier, !isAlarm {
                    html += "<td class=\"x\" title=\"\(escapedHTML(outlier.text))\">"
                } else {
                    html += isAlarm ? "<td class=\"b\">" : "<td>"
                }
                html += escapedHTML(column.text(figures) ?? "") + "</td>"
            }
        }
        return html + "</tr>\n"
    }

    /// Maximum length of a displayed problem, in Unicode scalars.
    private static var problemLimit: Int { 400 }

    /// Date and time of a night's start, linked to the night's own page if there is one.
    private func start(_ night: Night) -> String {
        guard let milliseconds = night.startedAtMilliseconds else { return "no date" }
        let text = timeText(milliseconds)
        let time = "\(text.prefix(10)) \(text.dropFirst(11).prefix(5))"
        return night.link.map { "<a href=\"\($0)\">\(time)</a>" } ?? time
    }

    /// Badge of an outcome. Expected outcomes are plain text, so that the badges of the other
    /// outcomes stand out.
    private static func badge(_ outcome: Summary.Outcome) -> String {
        switch outcome {
        case .complete: "complete"
        case .running, .stopped: "<span class=\"status open\">\(outcome.rawValue)</span>"
        case .aborted, .error: "<span class=\"status bad\">\(outcome.rawValue)</span>"
        }
    }

    // MARK: Months

    private struct Month {
        var id: String
        /// Full name, such as `November 2026`.
        var name: String
        var nights: [Night]

        /// Short name, such as `Nov 2026`.
        var shortName: String { NightsPage.short(name) }
    }

    /// The months, each with its nights, in the order of the table.
    private var months: [Month] {
        var months: [Month] = []
        for night in nights {
            let key = night.startedAtMilliseconds.map { "m\(timeText($0).prefix(7))" } ?? "undated"
            if months.last?.id != key {
                let name = night.startedAtMilliseconds.map(Self.monthName) ?? "Without a date"
                months.append(Month(id: key, name: name, nights: []))
            }
            months[months.count - 1].nights.append(night)
        }
        return months
    }

    /// The links to the months, if there are more than two.
    private var monthLinks: String {
        let months = months
        guard months.count > 2 else { return "" }
        let links = months.map { "<li><a href=\"#\($0.id)\">\($0.shortName)</a></li>" }
        return "<nav aria-label=\"Months\"><ul class=\"months\">\(links.joined())</ul></nav>\n"
    }

    private func words(_ month: Month) -> String {
        let figures = month.nights.compactMap(\.figures)
        let nightCount = month.nights.count { !$0.isCopy }
        let count = nightCount == 1 ? "1 night" : "\(nightCount) nights"
        guard !figures.isEmpty else { return count }
        var text = "\(count), \(grouped(figures.reduce(0) { $0 &+ $1.counts[.accepted] })) accepted"
        if let dead = Self.median(figures.compactMap(\.deadShare)) {
            text += ", median \(Self.share(dead)) dead"
        }
        return text
    }

    /// Name such as `November 2026`.
    static func monthName(_ milliseconds: UInt64) -> String {
        let text = timeText(milliseconds)
        let number = Int(text.dropFirst(5).prefix(2)) ?? 1
        return "\(monthNames[number - 1]) \(text.prefix(4))"
    }

    /// Shortens `November 2026` to `Nov 2026`; returns other names unchanged.
    static func short(_ name: String) -> String {
        let words = name.split(separator: " ")
        return words.count == 2 ? "\(words[0].prefix(3)) \(words[1])" : name
    }

    private static let monthNames = [
        "January", "February", "March", "April", "May", "June", "July", "August", "September",
        "October", "November", "December",
    ]
}
