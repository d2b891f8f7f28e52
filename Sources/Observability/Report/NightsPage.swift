import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport

/// Self-contained page about many nights: tiles, charts over time, and one row per night.
package struct NightsPage {
    /// Nights without a date, then all others, newest first.
    let nights: [Night]
    /// The nights without copies of their ledgers.
    private let counted: [Night]
    let createdAtMilliseconds: UInt64
    /// Nights with figures and a date, oldest first.
    let course: [(milliseconds: UInt64, figures: Night.Figures, group: String)]
    /// Outliers per night, in the order of `nights`.
    let outliers: [[NightOutlier]]

    /// Whether the times of the page are UTC, because this machine's time zone is.
    private let isUTC: Bool

    /// Creates the page in this machine's time zone.
    package init(nights: [Night], createdAtMilliseconds: UInt64) {
        self.init(nights: nights, createdAtMilliseconds: createdAtMilliseconds) {
            ClockZone.local(at: $0)
        }
    }

    /// - Parameters:
    ///   - nights: The nights, newest first.
    ///   - zone: Returns this machine's time zone at a time, milliseconds since 1970.
    init(nights: [Night], createdAtMilliseconds: UInt64, zone: (UInt64) -> ClockZone) {
        outliers = NightOutlier.find(in: nights)
        // `timeText`, which shows UTC, then shows the local time.
        let nights = nights.map { night in
            var night = night
            night.startedAtMilliseconds = night.startedAtMilliseconds.map {
                min(zone($0).shifted($0), Night.latestStart)
            }
            return night
        }
        self.nights = nights
        counted = nights.filter { !$0.isCopy }
        isUTC = zone(createdAtMilliseconds) == .utc
        course = nights.reversed().compactMap { night in
            guard let start = night.startedAtMilliseconds, let figures = night.figures else {
                return nil
            }
            return (start, figures, night.group)
        }
        self.createdAtMilliseconds = createdAtMilliseconds
    }

    /// The page as bytes.
    package var html: [UInt8] {
        var page = pageHead(
            title: "\(heading): \(sentence)", css: ReportStyle.css + ReportStyle.nights)
        page += header + nextSteps + unusual + campaigns + charts + table
        page += """
            <footer>Times are \(isUTC ? "UTC" : "local times of this machine"). List: number of rows. Dead: rows that APNs rejected with 410 \
            (\(escapedHTML(Night.deadReasons.joined(separator: ", ")))), as a share of the rows \
            that were sent. Per second: notifications divided by the time that runs took, without the time \
            between runs. \
            Broadside \(broadsideVersion), \(escapedHTML(ReportPage.time(createdAtMilliseconds))).\
            </footer>

            """
        return Array((page + pageEnd).utf8)
    }

    // MARK: The head

    /// A heading such as `evening: 12 nights, 2026-11-10 to 2026-11-21`. It begins with the
    /// campaign's name if all nights have the same name.
    private var heading: String {
        let titles = Set(counted.map(\.title))
        let name = titles.count == 1 && counted[0].figures != nil ? "\(counted[0].title): " : ""
        let count = name + (counted.count == 1 ? "1 night" : "\(grouped(counted.count)) nights")
        let starts = counted.compactMap(\.startedAtMilliseconds)
        guard let last = starts.first, let first = starts.last else { return count }
        let (from, to) = (Self.day(first), Self.day(last))
        return from == to ? "\(count), \(from)" : "\(count), \(from) to \(to)"
    }

    /// Summary of all outcomes in one sentence.
    private var sentence: String {
        let all = counted.count
        let complete = counted.count { $0.figures?.outcome == .complete }
        let unreadable = counted.count { $0.figures == nil }
        let running = counted.count { $0.figures?.outcome == .running }
        let unusual = outliers.count { !$0.isEmpty }
        if complete == all, unusual == 0 {
            return all == 1 ? "It is complete." : "All are complete."
        }
        var parts = ["\(grouped(complete)) complete"]
        if running > 0 { parts.append("\(grouped(running)) running") }
        let others = all - complete - unreadable - running
        if others > 0 { parts.append("\(grouped(others)) not complete") }
        if unreadable > 0 { parts.append("\(grouped(unreadable)) unreadable") }
        if unusual > 0 { parts.append("\(grouped(unusual)) unusual") }
        return parts.joined(separator: ", ") + "."
    }

    private var header: String {
        let items = tiles.map {
            "<li><b>\(escapedHTML($0.0))</b><span>\(escapedHTML($0.1))</span></li>"
        }
        return """
            <header>
            <p>\(escapedHTML(heading))</p>
            <h1>\(escapedHTML(sentence))</h1>
            <ul class="tiles">\(items.joined())</ul>
            </header>

            """
    }

    /// Maximum number of campaigns for which there are next steps.
    private static var stepsLimit: Int { 5 }

    /// Next step for the latest night of each campaign, if it is not complete.
    private var nextSteps: String {
        var seen: Set<String> = []
        let latest = counted.filter { seen.insert($0.group).inserted && $0.next != nil }
        guard !latest.isEmpty else { return "" }
        let items = latest.prefix(Self.stepsLimit).compactMap { night in
            night.next.map { step in
                let day = night.startedAtMilliseconds.map(Self.day) ?? ""
                let text = "\(night.title): \(step.text)."
                return "<p><b>\(day)</b> \(optionsUnbroken(escapedHTML(text)))</p>"
                    + (step.command.map {
                        "<code>\(optionsUnbroken(escapedHTML($0)))</code>\n"
                    } ?? "\n")
            }
        }
        return "<h2>What to do next</h2>\n<div class=\"box\">\(items.joined())</div>\n"
    }

    /// Maximum number of unusual nights in the list. The newest ones are listed.
    private static var unusualLimit: Int { 10 }

    /// List of unusual nights, as text for readers who skip the charts.
    private var unusual: String {
        let found = zip(nights, outliers).filter { !$0.1.isEmpty }
        guard !found.isEmpty else { return "" }
        var items = found.prefix(Self.unusualLimit).map { night, outliers in
            let day = night.startedAtMilliseconds.map(Self.day) ?? ""
            let text = outliers.map(\.text).joined(separator: "; ")
            return "<li><b>\(day)</b> \(escapedHTML(night.title)): \(escapedHTML(text))</li>"
        }
        if found.count > items.count {
            items.append("<li>\(grouped(found.count - items.count)) earlier ones</li>")
        }
        return """
            <h2>Unlike the nights before</h2>
            <div class="box unusual"><ul>\(items.joined())</ul></div>

            """
    }

    /// Table with one row per campaign, if there are several campaigns. The table of nights is at
    /// the end of the page.
    private var campaigns: String {
        let groups = groups
        guard groups.count > 1, groups.contains(where: { $0.indices.count > 1 }) else { return "" }
        let course = course
        let rows = groups.prefix(Self.campaignsLimit).map { group in
            let figures = group.indices.map { course[$0].figures }
            let last = group.indices.last.map { Self.day(course[$0].milliseconds) } ?? ""
            return [
                group.name, grouped(figures.count), last,
                figures.last?.rows.map { grouped($0) } ?? "",
                grouped(figures.reduce(0) { $0 &+ $1.counts[.accepted] }),
                Self.median(figures.compactMap(\.deadShare)).map(Self.share) ?? "",
                Self.median(figures.compactMap(\.speed)).map(rateText) ?? "",
            ]
        }
        let more =
            groups.count > rows.count
            ? "<p>\(grouped(groups.count - rows.count)) more are in the table of nights.</p>" : ""
        return "<h2>By campaign</h2>\n<div class=\"box\">"
            + tableHTML(
                [
                    "Campaign", "Nights", "Latest", "List", "Accepted", "Dead, median",
                    "Per second, median",
                ], rows, textColumns: [0, 2], isStacked: true) + more + "</div>\n"
    }

    private static var campaignsLimit: Int { 30 }

    /// Nights of one campaign.
    struct Group {
        var name: String
        /// Indices of the group's nights in `course`.
        var indices: [Int]
        /// Whether this group combines all campaigns that have no separate line in the chart.
        var isMixed = false
    }

    /// Campaigns by number of nights, the largest number first, then by name.
    var groups: [Group] {
        var places: [String: [Int]] = [:]
        for (index, night) in course.enumerated() { places[night.group, default: []].append(index) }
        return places.map { Group(name: $0.key, indices: $0.value) }
            .sorted { ($1.indices.count, $0.name) < ($0.indices.count, $1.name) }
    }

    private var tiles: [(String, String)] {
        var tiles = [(grouped(counted.count), counted.count == 1 ? "night" : "nights")]
        let course = course
        let accepted = course.reduce(0) { $0 &+ $1.figures.counts[.accepted] }
        tiles.append((grouped(accepted), "notifications accepted"))
        if let speed = Self.median(course.compactMap(\.figures.speed)) {
            tiles.append((rateText(speed), "median per second"))
        }
        if let seconds = Self.median(course.compactMap(\.figures.runningSeconds)) {
            tiles.append((durationText(seconds), "median duration"))
        }
        let shares = course.compactMap(\.figures.deadShare)
        if let first = shares.first, let last = shares.last {
            tiles.append(
                (
                    Self.share(last),
                    shares.count > 1 ? "dead tokens, \(Self.share(first)) at first" : "dead tokens"
                ))
        }
        let failed = course.reduce(0) {
            $0 &+ $1.figures.counts[.failed] &+ $1.figures.counts[.unknown]
        }
        tiles.append((grouped(failed), "failed or unknown"))
        return tiles
    }

    // MARK: Numbers

    /// Median; nil if there are no values.
    static func median(_ values: [Double]) -> Double? {
        guard !values.isEmpty else { return nil }
        let sorted = values.sorted()
        let half = sorted.count / 2
        return sorted.count % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2
    }

    /// Formats a share as a percentage. Only exact values become 0% or 100%.
    static func share(_ share: Double) -> String {
        if share <= 0 { return "0%" }
        if share >= 1 { return "100%" }
        if share < 0.0001 { return "<0.01%" }
        return share > 0.9999 ? ">99.99%" : decimal(share * 100, places: 2) + "%"
    }

    /// Date such as `2026-11-21`.
    static func day(_ milliseconds: UInt64) -> String { String(timeText(milliseconds).prefix(10)) }
}
