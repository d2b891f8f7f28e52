import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import BroadsideTestSupport
import Foundation
import Testing

@testable import BroadsideObservability

/// The page about many nights: order, texts from elsewhere, figures, links, size.
@Suite struct NightsPageTests {
    /// 2026-11-21 12:36:02 UTC.
    static let start: UInt64 = 1_795_264_562_000
    private static let day: UInt64 = 86_400_000

    /// A campaign of a million rows, so many days after the first.
    static func night(
        _ number: UInt64 = 0, title: String = "Evening", outcome: Summary.Outcome = .complete,
        dead: UInt64 = 5_000, failed: UInt64 = 0, seconds: Double? = 125
    ) -> Night {
        var figures = Night.Figures(outcome: outcome)
        figures.rows = 1_000_000
        figures.counts[.accepted] = 1_000_000 - dead - failed
        figures.counts[.rejected] = dead
        figures.counts[.failed] = failed
        figures.remaining = 0
        figures.dead = dead
        figures.runningSeconds = seconds
        return Night(
            path: "nights/\(number)", title: title, startedAtMilliseconds: start + number * day,
            content: .figures(figures))
    }

    static func unreadable(_ problem: String, at milliseconds: UInt64? = nil) -> Night {
        Night(
            path: "nights/damaged", title: "damaged", startedAtMilliseconds: milliseconds,
            content: .unreadable(problem))
    }

    static func html(_ nights: [Night]) -> String {
        let page = NightsPage(nights: NightsReport.sorted(nights), createdAtMilliseconds: start)
        return String(decoding: page.html, as: UTF8.self)
    }

    struct Outline: Decodable {
        var problems: [String]
        var rows: [[String]]
        var links: [String]
        var tags: [String]
    }

    /// The page as Python's parser reads it.
    static func outline(_ html: String) throws -> Outline {
        let directory = try TemporaryDirectory()
        let page = try directory.write(html, to: "page.html")
        let finished = try Subprocess.run(
            "python3", ["-B", "\(Tool.packageRoot)/Tests/Reference/page_outline.py", page],
            in: directory)
        return try JSONDecoder().decode(Outline.self, from: Data(finished.output.utf8))
    }

    @Test func `Nights have the dates of the machine's time zone`() {
        // 21:36 in UTC on 30 November is 06:36 in Tokyo on 1 December.
        let nights = [Self.night(9)].map { night in
            var night = night
            night.startedAtMilliseconds? += 9 * 3_600_000
            return night
        }
        func html(_ zone: ClockZone) -> String {
            let page = NightsPage(
                nights: nights, createdAtMilliseconds: Self.start, zone: { _ in zone })
            return String(decoding: page.html, as: UTF8.self)
        }
        let tokyo = html(ClockZone(offset: 9 * 3_600, name: "JST"))
        #expect(tokyo.contains("2026-12-01 06:36") && tokyo.contains("December 2026"))
        #expect(!tokyo.contains("2026-11-30") && tokyo.contains("local times of this machine"))
        let utc = html(.utc)
        #expect(utc.contains("2026-11-30 21:36") && utc.contains("Times are UTC"))
    }

    @Test func `The newest night is first under its month, and one without a date before all`()
        throws
    {
        let html = Self.html([
            Self.night(0, title: "A"), Self.unreadable("gone"), Self.night(20, title: "C"),
            Self.night(9, title: "B"),
        ])
        let outline = try Self.outline(html)
        #expect(outline.problems.isEmpty)
        #expect(
            outline.rows.map { $0.prefix(2).joined(separator: "|") } == [
                "Start|Campaign", "Without a date 1 night", "no date|damaged",
                "December 2026 1 night, 995,000 accepted, median 0.50% dead", "2026-12-11 12:36|C",
                "November 2026 2 nights, 1,990,000 accepted, median 0.50% dead",
                "2026-11-30 12:36|B", "2026-11-21 12:36|A",
            ])
        #expect(outline.rows[2].last == "unreadable gone")
        #expect(html.contains("<h1>3 complete, 1 unreadable.</h1>"))
        #expect(html.contains("<p>4 nights, 2026-11-21 to 2026-12-11</p>"))
    }

    @Test func `A night's row has counts with separators, shares, speed and duration`() throws {
        let outline = try Self.outline(Self.html([Self.night(dead: 12_300, failed: 7)]))
        #expect(
            outline.rows[0] == [
                "Start", "Campaign", "Outcome", "List", "Dead", "Accepted", "Rejected", "Failed",
                "Unknown", "Remaining", "Per second", "Duration",
            ])
        #expect(
            outline.rows[2] == [
                "2026-11-21 12:36", "Evening", "complete", "1,000,000", "1.23%", "987,693",
                "12,300",
                "7", "0", "0", "8,000", "2 m 05 s",
            ])
    }

    @Test func `An unknown value is empty, and a column without values is left out`() throws {
        var first = Self.night(0, seconds: nil)
        var figures = try #require(first.figures)
        (figures.rows, figures.remaining, figures.counts[.invalid]) = (nil, nil, 3)
        first.content = .figures(figures)
        var second = Self.night(1)
        figures = try #require(second.figures)
        figures.listAgeSeconds = 7_300
        second.content = .figures(figures)
        let rows = try Self.outline(Self.html([first, second])).rows
        #expect(rows[0].contains("Invalid") && !rows[0].contains("Skipped"))
        let age = try #require(rows[0].firstIndex(of: "List age"))
        #expect(rows[2][age] == "2 h 01 m" && rows[3][age] == "")
        for name in ["List", "Remaining", "Per second", "Duration"] {
            #expect(rows[3][try #require(rows[0].firstIndex(of: name))] == "", "\(name)")
        }
    }

    @Test func `A tick is at a night, and has its date`() {
        let html = Self.html((0..<4).map { Self.night($0) })
        for (place, date) in [
            ("1.00", "11-21"), ("33.67", "11-22"), ("66.33", "11-23"), ("99.00", "11-24"),
        ] {
            let tick = try? Regex("x=\"\(place)%\"[^>]*>\(date)<")
            #expect(tick.map { html.contains($0) } == true, "\(date)")
        }
        // A point of the curve is at the same place.
        #expect(html.contains("336.7 "))
        let uneven = Self.html([0, 1, 2, 30, 31].map { Self.night($0) })
        let texts = uneven.matches(of: />(\d\d-\d\d)<\/text>/).map { String($0.1) }
        #expect(Array(texts.prefix(2)) == ["11-21", "12-22"], "\(texts)")
    }

    @Test func `The page names its campaign, and how to continue its latest night`() {
        var nights = (0..<3).map { Self.night($0, title: "Evening") }
        nights[0].next = .init(text: "--resume continues", command: "broadside old")
        #expect(!Self.html(nights).contains("What to do next"))
        nights[2].next = .init(
            text: "--date 2026-11-23 continues", command: "broadside night --date 2026-11-23")
        let html = Self.html(nights)
        #expect(html.contains("<p>Evening: 3 nights, 2026-11-21 to 2026-11-23</p>"))
        #expect(html.contains("<title>Evening: 3 nights, "))
        #expect(
            html.contains(
                "<p><b>2026-11-23</b> Evening: <span class=\"o\">--date</span> 2026-11-23 continues.</p>"
                    + "<code>broadside night <span class=\"o\">--date</span> 2026-11-23</code>"))
        #expect(!html.contains("broadside old"))
        nights[0].title = "Morning"
        #expect(Self.html(nights).contains("<p>3 nights, "))
    }

    @Test func `Names and problems from elsewhere are text, whatever they hold`() throws {
        let hostile =
            "</td></table><script>alert(1)</script><\u{338}img src=x onerror=\"a\">'&\u{202e}\r\n<!--"
        let html = Self.html([
            Self.night(0, title: hostile), Self.unreadable(hostile, at: Self.start + Self.day),
            Self.night(2),
        ])
        let outline = try Self.outline(html)
        #expect(outline.problems.isEmpty, "\(outline.problems)")
        #expect(!outline.tags.contains("script") && !outline.tags.contains("img"))
        let shown = hostile.replacing("\u{202e}\r\n", with: "\\u{202e}\\r\\n")
        #expect(outline.rows.last?[1] == shown)
        #expect(outline.rows.contains { $0.last == "unreadable " + shown })
        for scalar in ["\u{202e}", "\r", "<\u{338}img"] {
            #expect(
                !html.unicodeScalars.contains(scalar.unicodeScalars), "\(scalar.debugDescription)")
        }
    }

    /// A night whose list has so many rows, all of them accepted.
    private static func night(_ number: UInt64, title: String, rows: UInt64) -> Night {
        var night = night(number, title: title, dead: 0)
        if var figures = night.figures {
            figures.rows = rows
            figures.counts[.accepted] = rows
            night.content = .figures(figures)
        }
        return night
    }

    @Test func `A list that became shorter is named and marked`() throws {
        let nights = [
            Self.night(0, title: "Evening", rows: 22_800),
            Self.night(1, title: "Evening", rows: 6_000),
            Self.night(2, title: "Morning", rows: 5_900),
        ]
        let html = Self.html(nights)
        #expect(html.contains("<h1>3 complete, 1 unusual.</h1>"))
        #expect(
            html.contains(
                "<li><b>2026-11-22</b> Evening: the list fell to 6,000 rows from 22,800</li>"))
        #expect(
            html.contains(
                "<td class=\"x\" title=\"the list fell to 6,000 rows from 22,800\">6,000</td>"))
        #expect(try Self.outline(html).problems.isEmpty)
        let json = NightsReport.sorted(nights)
        let lines = zip(json, NightOutlier.find(in: json)).map { $0.json($1).object }
        let decoded = try lines.map {
            try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
        }
        #expect(decoded.map { $0["name"] as? String } == ["Morning", "Evening", "Evening"])
        #expect(
            decoded.map { $0["unusual"] as? [String] }
                == [[], ["the list fell to 6,000 rows from 22,800"], []])
        #expect(
            decoded[1]["rows"] as? Int == 6_000 && decoded[1]["outcome"] as? String == "complete")
        #expect(decoded[2]["started_at"] as? String == "2026-11-21T12:36:02.000Z")
        #expect(decoded[2]["in_doubt"] as? Int == 0)
        #expect(Set(decoded.map { Set($0.keys) }).count == 1)
    }

    @Test func `A night with a limit is shown as limited, and neither judged nor compared with`() {
        var limited = Self.night(1, title: "Evening", rows: 50)
        var figures = limited.figures!
        figures.isLimited = true
        limited.content = .figures(figures)
        let nights = [
            Self.night(0, title: "Evening", rows: 2_000), limited,
            Self.night(2, title: "Evening", rows: 1_900),
        ]
        let html = Self.html(nights)
        #expect(html.contains("<td>complete, limited</td>"))
        #expect(html.contains("<h1>All are complete.</h1>"))
        #expect(limited.json([]).object.contains("\"limited\":true"))
        #expect(nights[0].json([]).object.contains("\"limited\":false"))
        // The run was killed, so the list may have fewer rows than the limit.
        figures.isLimited = nil
        limited.content = .figures(figures)
        let unknown = [nights[0], limited, nights[2]]
        #expect(!Self.html(unknown).contains("complete, limited"))
        #expect(limited.json([]).object.contains("\"limited\":null"))
        let found = NightOutlier.find(in: NightsReport.sorted(unknown))
        #expect(found[1].map(\.figure) == [.list])
    }

    @Test func `Shares and speed are compared from three earlier nights on`() {
        func found(_ count: UInt64, _ last: Night) -> [String] {
            let nights = (0..<count).map { Self.night($0) } + [last]
            return NightOutlier.find(in: NightsReport.sorted(nights)).flatMap { $0.map(\.text) }
        }
        #expect(found(2, Self.night(9, dead: 60_000, seconds: 1_000)).isEmpty)
        #expect(
            found(3, Self.night(9, dead: 60_000, seconds: 1_000)) == [
                "6.00% dead tokens, usually 0.50%",
                "only 94.00% accepted, usually 99.50%", "1,000 per second, usually 8,000",
            ])
        #expect(found(3, Self.night(9, dead: 9_000, seconds: 200)).isEmpty)
        #expect(found(3, Self.night(9, outcome: .running, dead: 60_000)).isEmpty)
        #expect(found(3, Self.night(9, title: "Other", dead: 60_000)).isEmpty)
    }

    @Test func `A night whose rows were all skipped is marked, also as the first`() {
        var figures = Night.Figures(outcome: .complete)
        figures.rows = 1_000_000
        figures.counts[.skipped] = 1_000_000
        var skipped = Self.night(5)
        skipped.content = .figures(figures)
        for nights in [[skipped], [Self.night(0), Self.night(1), skipped]] {
            #expect(
                NightOutlier.find(in: NightsReport.sorted(nights))[0].map(\.text)
                    == ["no device got it, because all rows were skipped"])
        }
    }

    @Test func `A night that skipped nearly all rows is marked, unless earlier nights did so, too`()
    {
        func night(_ number: UInt64, accepted: UInt64) -> Night {
            var figures = Night.Figures(outcome: .complete)
            figures.rows = 1_000
            figures.counts[.accepted] = accepted
            figures.counts[.skipped] = 1_000 - accepted
            var night = Self.night(number)
            night.content = .figures(figures)
            return night
        }
        func found(_ nights: [Night]) -> [String] {
            NightOutlier.find(in: NightsReport.sorted(nights))[0].map(\.text)
        }
        let few = night(9, accepted: 99)
        for earlier in [[], [night(0, accepted: 100)], [night(0, accepted: 1_000)]] {
            #expect(found(earlier + [few]) == ["90.10% of the rows were skipped"])
        }
        #expect(found([night(0, accepted: 50), few]).isEmpty)
        #expect(found([night(9, accepted: 100)]).isEmpty)
    }

    @Test func `The chart of dead tokens has shares of the sent rows`() {
        #expect(Self.html([Self.night(0), Self.night(1)]).contains(">% of sent rows</text>"))
    }

    @Test func `A shard that is also in a merged ledger is not a night of its own`() {
        var (merged, shard, other) = (Self.night(0), Self.night(1), Self.night(2))
        merged.mergedKeys = ["a 0 1", "b 0 2"]
        shard.key = "b 0 2"
        other.key = "b 0 3"
        let left = NightsReport.withoutMerged([merged, shard, other])
        #expect(left.map(\.path) == ["nights/0", "nights/2"])
    }

    @Test
    func `A merged ledger is a copy if its shards are here and one continued after the merge`() {
        var nights = (0..<UInt64(3)).map { Self.night($0) }
        for (index, start) in [20, 10, 30].enumerated() {
            nights[index].lastStartedAtMilliseconds = Self.start + UInt64(start)
        }
        nights[0].mergedKeys = ["a 0 1", "b 0 2"]
        (nights[1].key, nights[2].key) = ("a 0 1", "b 0 2")
        for order in [[0, 1, 2], [2, 1, 0]] {
            let left = NightsReport.withoutMerged(order.map { nights[$0] })
            #expect(left.filter { !$0.isCopy }.map(\.path).sorted() == ["nights/1", "nights/2"])
            #expect(
                left.first(where: \.isCopy)?.json([]).object.contains(#""copy_of":"nights/2""#)
                    == true)
        }
        // Without one of the shards, only the merged ledger has all rows.
        #expect(NightsReport.withoutMerged([nights[0], nights[2]]).map(\.path) == ["nights/0"])
        nights[2].lastStartedAtMilliseconds = nights[0].lastStartedAtMilliseconds
        #expect(NightsReport.withoutMerged(nights).map(\.path) == ["nights/0"])
    }

    @Test func `Of copies of a ledger, the one with the latest run counts, then the longest`()
        throws
    {
        var nights = (0..<4).map { _ in Self.night(0) }
        for (index, name) in ["a", "b", "c", "d"].enumerated() {
            nights[index].path = "nights/\(name)"
            nights[index].key = name == "d" ? "other 0 0" : "same 0 0"
            nights[index].lastStartedAtMilliseconds = Self.start + (name == "a" ? 0 : 1)
        }
        var figures = try #require(nights[1].figures)
        figures.counts[.accepted] -= 1
        nights[1].content = .figures(figures)
        nights[0].next = .init(text: "--resume continues", command: "broadside old")
        let marked = NightsReport.markingCopies(nights)
        #expect(marked.map(\.isCopy) == [true, true, false, false])
        let html = Self.html(marked)
        #expect(html.contains("<p>Evening: 2 nights, 2026-11-21</p>"))
        #expect(html.contains("<h1>All are complete.</h1>") && !html.contains("broadside old"))
        #expect(html.contains("<b>1,990,000</b><span>notifications accepted</span>"))
        let rows = try Self.outline(html).rows
        #expect(rows[1][0].hasPrefix("November 2026 2 nights, 1,990,000 accepted"), "\(rows)")
        #expect(
            rows.compactMap(\.last).filter { $0.hasPrefix("copy ") }
                == Array(
                    repeating: "copy nights/c is counted, and this copy of it is not", count: 2))
        let line = marked[0].json([]).object
        #expect(
            line.contains(#""outcome":"copy""#) && line.contains(#""copy_of":"nights/c""#),
            "\(line)")

        // A ledger that began at another time is not a copy, and one that can't be read stays that.
        nights[1].startedAtMilliseconds = Self.start + 1
        nights[0].content = .unreadable("damaged")
        #expect(NightsReport.markingCopies(nights).allSatisfy { !$0.isCopy })
        // A merged ledger is a copy of another one with the same shards.
        for index in [2, 3] {
            (nights[index].key, nights[index].mergedKeys) = (nil, ["a 0 1", "a 0 2"])
        }
        #expect(
            NightsReport.markingCopies(nights).map(\.isCopy) == [false, false, false, true])
    }

    @Test func `Names that differ in numbers are one campaign with lines of their own`() throws {
        let names = ["Evening 2026-11-20", "Evening 3", "0123456789abcdef", "12:30", "Evening"]
        #expect(
            names.map { Self.night(title: $0).group }
                == ["Evening #", "Evening #", "without a name", "#", "Evening"])
        let html = Self.html([
            Self.night(0, title: "Evening 1"), Self.night(1, title: "Evening 2"),
            Self.night(0, title: "<b>Morning"), Self.night(1, title: "<b>Morning"),
            Self.night(2, title: "Once"),
        ])
        #expect(html.contains("<h2>By campaign</h2>"))
        #expect(html.contains("<span class=\"key k-first\"></span>&lt;b&gt;Morning</li>"))
        #expect(html.contains("<span class=\"key dot k-good\"></span>other campaigns</li>"))
        #expect(html.contains("Evening #: 1,000,000 in the first night"))
        #expect(try Self.outline(html).problems.isEmpty)
        #expect(!Self.html([Self.night(0), Self.night(1)]).contains("By campaign"))
    }

    @Test func `The tiles have sums and compare the latest night with the first`() {
        let html = Self.html([
            Self.night(0, dead: 20_000, seconds: 100), Self.night(1, dead: 0, seconds: 1_000),
            Self.night(2, outcome: .stopped, dead: 4_000, seconds: 400),
        ])
        for tile in [
            "<b>3</b><span>nights</span>", "<b>2,976,000</b><span>notifications accepted</span>",
            "<b>2,500</b><span>median per second</span>",
            "<b>6 m 40 s</b><span>median duration</span>",
            "<b>0.40%</b><span>dead tokens, 2.00% at first</span>",
            "<b>0</b><span>failed or unknown</span>", "<h1>2 complete, 1 not complete.</h1>",
        ] {
            #expect(html.contains(tile), "\(tile)")
        }
    }

    @Test func `Charts have a title and a text, and are left out for a single night`() {
        #expect(!Self.html([Self.night()]).contains("<svg"))
        let html = Self.html([
            Self.night(0, dead: 20_000, failed: 30), Self.night(400, seconds: 50),
        ])
        for part in [
            "<title id=\"list-t\">Rows of the list</title>",
            "1,000,000 in the first night, 1,000,000 in the latest",
            "2.00% in the first night, 0.50% in the latest; from 0.50% to 2.00%.",
            "8,000 in the first night, 20,000 in the latest",
            "2 m 05 s in the first night, 50 s in the latest",
            "1 of 2 nights have rows that failed or ended unknown, at most 30. The", ">Dec 2026<",
        ] {
            #expect(html.contains(part), "\(part)")
        }
        let known = Self.html([Self.night(0, seconds: nil), Self.night(1, seconds: nil)])
        for chart in ["speed", "duration", "failures"] {
            #expect(html.contains("id=\"\(chart)-t\"") && !known.contains("id=\"\(chart)-t\""))
        }
    }

    @Test func `Nights at any two times are drawn`() throws {
        for days in [0, 1, 3, 80, 19_999, 20_001, 2_900_000] as [UInt64] {
            let html = Self.html([Self.night(0), Self.night(days)])
            let outline = try Self.outline(html)
            #expect(outline.problems.isEmpty && html.contains("id=\"list-t\""), "\(days)")
        }
    }

    @Test func `The line through many nights is the median of seven`() {
        let values: [Double?] = [1, 9, 2, nil, 8, 3, 100, 4]
        #expect(NightsPage.smoothed(values) == [2, 5, 3, nil, 6, 4, 6, 6])
        #expect(NightsPage.median([]) == nil)
        #expect(
            [0, 0.00001, 0.0123, 0.99999, 1].map(NightsPage.share)
                == ["0%", "<0.01%", "1.23%", ">99.99%", "100%"])
    }

    @Test func `A year of nights is a page below 300 KB that needs nothing from elsewhere`() throws
    {
        let nights = (0..<360 as Range<UInt64>).map { number in
            var night = Self.night(
                number, title: "Evening news of the day \(number)", dead: number * 37,
                failed: number % 9, seconds: 100 + Double(number % 31))
            night.link = "nights/2026-11-21-evening-\(number).html"
            return night
        }
        let html = Self.html(nights)
        #expect(html.utf8.count < 300_000, "\(html.utf8.count)")
        let outline = try Self.outline(html)
        #expect(outline.problems.isEmpty, "\(outline.problems.prefix(5))")
        #expect(outline.rows.count == 1 + 360 + 13)
        #expect(outline.links.count == 360)
        #expect(html.contains("<a href=\"#m2026-11\">Nov 2026</a>"))
        for word in ["http://", "https://", "src=", "url(", "@import", "<script"] {
            #expect(!html.contains(word), "\(word)")
        }
    }

    // MARK: Links

    @Test(arguments: [
        ("/a/b/x.html", "/a/b", "x.html"), ("/a/b/x.html", "/a", "b/x.html"),
        ("/a/x.html", "/a/b/c", "../../x.html"), ("/x.html", "/", "x.html"),
        ("/a/b", "/a/b", "../b"),
        (
            "/a/javascript:alert(1)\"'<&>/ü ?#%.html", "/a",
            "javascript%3Aalert%281%29%22%27%3C%26%3E/%C3%BC%20%3F%23%25.html"
        ),
    ])
    func `A link is relative and escaped for HTML and URLs`(
        target: String, folder: String, link: String
    ) {
        #expect(RelativeLink.text(to: target, from: folder) == link)
    }

    @Test func `A report that several nights name is linked from the newest one`() throws {
        let directory = try TemporaryDirectory()
        let shared = try directory.write("x", to: "tonight.html")
        let own = try directory.write("x", to: "monday.html")
        var nights = [Self.night(2), Self.night(1), Self.night(0)]
        nights[0].pagePaths = ["\(directory.path)/none.html", shared]
        nights[1].pagePaths = [directory.path, shared]
        nights[2].pagePaths = [own, shared]
        let folder = absolutePath(directory.path)
        #expect(
            NightsReport.linked(nights, from: folder).map(\.link)
                == ["tonight.html", nil, "monday.html"])
        let html = Self.html(NightsReport.linked(nights, from: "\(folder)/pages"))
        #expect(html.contains("<a href=\"../tonight.html\">2026-11-23 12:36</a>"))
    }
}
