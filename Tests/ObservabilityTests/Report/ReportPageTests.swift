import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideEngine
@testable import BroadsideObservability

/// What the page says at first sight: colours, shares, times.
@Suite struct ReportPageTests {
    static func data(
        _ outcome: Summary.Outcome = .complete, accepted: UInt64 = 0, rejected: UInt64 = 0,
        invalid: UInt64 = 0, skipped: UInt64 = 0, unknown: UInt64 = 0, remaining: UInt64 = 0,
        telemetry: Telemetry = Telemetry(), epochs: [Manifest.Epoch] = []
    ) -> ReportData {
        var summary = Summary(campaign: 7, outcome: outcome)
        summary.counts[.accepted] = accepted
        summary.counts[.rejected] = rejected
        summary.counts[.invalid] = invalid
        summary.counts[.skipped] = skipped
        summary.counts[.unknown] = unknown
        summary.remaining = remaining
        summary.rows = accepted + rejected + invalid + skipped + unknown + remaining
        return ReportData(
            summary: summary, telemetry: telemetry, epochs: epochs, course: nil,
            ledgerPath: "tonight", listPath: nil, createdAtMilliseconds: 0)
    }

    @Test func `The badge follows the outcome of rows, not the exit of the process`() {
        let cases: [(ReportData, String)] = [
            (Self.data(accepted: 100), ""),
            (Self.data(accepted: 95, rejected: 5), ""),
            (Self.data(accepted: 95, skipped: 900), ""),
            (Self.data(accepted: 80, rejected: 20), " open"),
            (Self.data(accepted: 95, unknown: 5), " open"),
            (Self.data(accepted: 10, invalid: 90), " bad"),
            (Self.data(accepted: 10, rejected: 90), " bad"),
            (Self.data(invalid: 100), " bad"),
            (Self.data(), " bad"),
            (Self.data(skipped: 100), " open"),
            (Self.data(.stopped, accepted: 50, remaining: 50), " open"),
            (Self.data(.stopped, accepted: 1, rejected: 49, remaining: 50), " bad"),
            (Self.data(.aborted, accepted: 99, remaining: 1), " bad"),
            (Self.data(.error, remaining: 5), " bad"),
        ]
        for (data, expected) in cases {
            let page = ReportPage(data: data)
            #expect(page.statusClass == expected, "\(page.shares)")
        }
    }

    @Test func `The title has accepted, rejected and invalid without rounding small shares away`() {
        #expect(
            ReportPage(data: Self.data(accepted: 2, rejected: 1, invalid: 1)).shares
                == "50.0% accepted, 25.0% rejected, 25.0% invalid")
        #expect(
            ReportPage(data: Self.data(accepted: 99_999, invalid: 1)).shares
                == ">99.9% accepted, 0% rejected, <0.1% invalid")
        #expect(
            ReportPage(data: Self.data(.stopped, accepted: 1, remaining: 3)).shares
                == "25.0% accepted, 0% rejected, 0% invalid, 75.0% remaining")
        let page = String(
            decoding: ReportPage(data: Self.data(accepted: 1, invalid: 9)).html, as: UTF8.self)
        #expect(
            page.contains(
                "<title>Campaign 0000000000000007: 10.0% accepted, 0% rejected, 90.0% invalid</title>"
            ))
    }

    /// Two runs of two seconds, three hours apart; the second was held for a minute.
    static func nights(seconds: Double = 2) -> ReportData {
        let start: UInt64 = 1_795_264_562_000
        var telemetry = Telemetry()
        var epochs: [Manifest.Epoch] = []
        for number in 1...2 as ClosedRange<UInt32> {
            let began = start + UInt64(number - 1) * 10_800_000
            epochs.append(.init(number: number, startedAtMilliseconds: began))
            telemetry.begin(number, atMilliseconds: began, settings: [])
            var snapshot = RunSnapshot()
            snapshot.elapsedSeconds = seconds
            var series = TimeSeries()
            var counts = RowCounts()
            counts[.accepted] = 50
            var latency = LatencyHistogram()
            latency.record(1_000_000)
            series.append(
                .init(
                    start: 0, duration: seconds, counts: counts, latency: latency.counts,
                    inFlight: 0, limited: Bottleneck.allCases.map { _ in 1000 }))
            telemetry.take(snapshot, series, ReactorReport())
            telemetry.end(outcome: "stopped", cause: nil, atMilliseconds: began)
        }
        telemetry.beginPause(atMilliseconds: start + 10_800_100)
        telemetry.beginPause(atMilliseconds: start + 10_800_200)
        telemetry.endPause(atMilliseconds: start + 10_860_100)
        telemetry.endPause(atMilliseconds: start + 10_960_100)
        return Self.data(accepted: 100, telemetry: telemetry, epochs: epochs)
    }

    /// Texts on the horizontal axis of the histogram, and above it.
    private static func histogram(_ milliseconds: [Double]) -> [String] {
        var data = nights()
        var latency = LatencyHistogram()
        for time in milliseconds { latency.record(UInt64(time * 1e6)) }
        data.latency = latency.counts
        let page = String(decoding: ReportPage(data: data).html, as: UTF8.self)
        let chart = page.components(separatedBy: "aria-labelledby=\"distribution-t").last ?? ""
        let axis = chart.components(separatedBy: "</figure>")[0]
        return axis.matches(of: /<text[^>]*>([^<]*)<\/text>/).map { String($0.1) }
    }

    @Test func `The histogram has three times on its axis and the median above it`() {
        let narrow: [Double] = (0..<200).map { 45 + Double($0) / 14 }
        let wide: [Double] = (0..<200).map { 2 * exp2(Double($0) / 20) }
        let equal = [Double](repeating: 50, count: 100)
        for times: [Double] in [narrow, wide, equal] {
            let texts = Self.histogram(times)
            let ticks = texts.filter { $0.first?.isNumber == true && !$0.hasPrefix("99% ") }
            #expect(ticks.count >= 3 && Set(ticks).count == ticks.count, "\(texts)")
            #expect(texts.contains { $0.hasPrefix("median ") && $0.hasSuffix(" ms") }, "\(texts)")
        }
    }

    @Test func `A page about a few rows has no curves, no rates and no 0 s`() {
        var telemetry = Telemetry()
        telemetry.begin(1, atMilliseconds: 1_795_264_562_000, settings: [])
        var snapshot = RunSnapshot()
        snapshot.elapsedSeconds = 0.2
        var series = TimeSeries()
        var counts = RowCounts()
        counts[.accepted] = 3
        var latency = LatencyHistogram()
        for time in [4, 5, 6] as [UInt64] { latency.record(time * 1_000_000) }
        series.append(
            .init(
                start: 0, duration: 0.2, counts: counts, latency: latency.counts, inFlight: 0,
                limited: Bottleneck.allCases.map { _ in 1000 }))
        telemetry.take(snapshot, series, ReactorReport())
        telemetry.end(outcome: "complete", cause: nil, atMilliseconds: 0)
        func page(_ accepted: UInt64) -> String {
            let data = Self.data(
                accepted: accepted, telemetry: telemetry,
                epochs: [.init(number: 1, startedAtMilliseconds: 1_795_264_562_000)])
            return String(decoding: ReportPage(data: data).html, as: UTF8.self)
        }
        let few = page(3)
        for words in ["How it went", "<svg role", "per second", ">0 s<", "after 0 s"] {
            #expect(!few.contains(words), "\(words)")
        }
        #expect(few.contains("All 3 rows are settled after less than a second: "))
        #expect(few.contains("<b>&lt;1 s</b>"))
        let more = page(20)
        #expect(more.contains("How it went") && more.contains("rows per second on average"))
    }

    @Test func `A command breaks between its options, and a retry names the rows before it`() {
        var data = Self.data(accepted: 9, unknown: 2)
        data.steps = [
            .init(text: "--resume --retry unknown sends them again", command: "x --retry unknown")
        ]
        let steps = ReportPage(data: data).nextSteps
        let order = [
            "<p>2 rows ended unknown. A row that is unknown may have reached its device already.",
            "<span class=\"o\">--resume</span> <span class=\"o\">--retry</span> unknown sends",
            "<code>x <span class=\"o\">--retry</span> unknown</code>",
        ].map { steps.range(of: $0)?.lowerBound }
        #expect(!order.contains(nil) && order.compactMap { $0 } == order.compactMap { $0 }.sorted())
    }

    /// Twenty million rows, most of them accepted.
    private static func large(bad: UInt64, unknown: UInt64) -> ReportData {
        var data = Self.data(
            accepted: 19_336_004, rejected: 650_000 + bad, unknown: unknown, remaining: 0)
        data.summary.counts.reasons.add(text: "Unregistered", count: 649_000)
        data.summary.counts.reasons.add(text: "ExpiredToken", count: 1_000)
        data.summary.counts.reasons.add(text: "BadDeviceToken", count: bad)
        return data
    }

    @Test func `Dead tokens are grey, and what needs a decision is red`() {
        let usual = ReportPage(data: Self.large(bad: 13_000, unknown: 996))
        #expect(usual.outcome.count(.dead) == 650_000 && usual.outcome.count(.badToken) == 13_000)
        #expect(usual.outcome.decisions.map(\.part) == [.undecided])
        for part in [
            "<span class=\"key k-dead\"></span><b>650,000</b> dead <span>3.3%</span>",
            "<span class=\"key k-other\"></span><b>13,000</b> bad token",
            "<span class=\"key k-bad\"></span><b>996</b> failed or unknown <span>&lt;0.1%</span>",
        ] {
            #expect(usual.bar.contains(part), "\(usual.bar)")
        }
        for card in [
            "<b>96.7%</b><span>accepted</span><span class=\"note\">19,336,004 of 20,000,000 rows",
            "<b>3.3%</b><span>dead tokens</span>",
            "<li class=\"alarm\"><b>996</b><span>rows need a decision</span>",
        ] {
            #expect(usual.cards.contains(card), "\(usual.cards)")
        }
        let many = ReportPage(data: Self.large(bad: 2_000_000, unknown: 0))
        #expect(many.outcome.decisions.map(\.part) == [.badToken])
        #expect(many.bar.contains("<span class=\"key k-bad\"></span><b>2,000,000</b> bad token"))
        #expect(many.cards.contains("<b>2.00 M</b><span>rows need a decision</span>"))
        let left = ReportPage(data: Self.data(.stopped, accepted: 1, remaining: 4))
        #expect(left.cards.contains("<span class=\"note\">4 remaining</span>"))
        #expect(ReportPage(data: Self.data()).bar.isEmpty)
    }

    @Test func `Rows in doubt need a decision only if no run is active`() {
        var data = Self.data(.stopped, accepted: 8, remaining: 2)
        data.summary.counts[.inDoubt] = 2
        for isActive in [false, true] {
            data.isInProgress = isActive
            let page = ReportPage(data: data)
            let key = "key k-\(isActive ? "other" : "bad")"
            #expect(page.bar.contains("\(key)\"></span><b>2</b> in doubt"), "\(page.bar)")
            #expect(page.outcome.decisions.isEmpty == isActive)
        }
    }

    @Test func `Shares of dead and bad tokens are shares of the rows that were sent`() {
        var data = Self.data(accepted: 78, rejected: 22, invalid: 200, skipped: 50)
        data.summary.counts.reasons.add(text: "Unregistered", count: 20)
        data.summary.counts.reasons.add(text: "BadDeviceToken", count: 2)
        let page = ReportPage(data: data)
        #expect(
            page.cards.contains(
                "<b>20.0%</b><span>dead tokens</span><span class=\"note\">20 of 100 sent: prune them"
            ),
            "\(page.cards)")
        #expect(page.outcome.decisions.map(\.part) == [.badToken])
    }

    /// Next steps of a campaign with a dead token, as text.
    private static func nextSteps(
        _ list: String?, format: String = "lines", column: String = "token",
        keepTokens: String? = nil
    ) -> String {
        var data = Self.data(accepted: 9, rejected: 1)
        data.summary.counts.reasons.add(text: "Unregistered", count: 1)
        data.listPath = list
        data.identity = CampaignIdentity(
            listByteCount: nil, listFormat: format, columns: [column, "app"], payloadSHA256: "00",
            topic: nil, pushType: "alert", priority: 10, expiration: nil, collapseID: nil,
            environment: "production", shard: nil, suppressSHA256: nil, keepTokens: keepTokens)
        return ReportPage(data: data).nextSteps.replacing(/<[^>]*>/, with: "")
            .replacing("&#39;", with: "'")
    }

    @Test(
        arguments: [
            ("/in/tokens.txt", "lines", "token", "/in/tokens.txt --output tokens.clean.txt"),
            ("/in/a.csv", "csv", "token", "/in/a.csv --output a.clean.csv"),
            (
                "/in/a.csv.gz", "csv;", "device",
                "/in/a.csv.gz --token-column device --output a.clean.csv.gz"
            ),
            (
                "/in/my list", "tsv", "push token",
                "'/in/my list' --format tsv --token-column 'push token' --output 'my list.clean'"
            ),
            ("/in/a.csv", "lines", "token", "/in/a.csv --format lines --output a.clean.csv"),
            (
                nil, "jsonl", "device.token",
                "TOKENS --format jsonl --token-column device.token --output tokens.clean.jsonl"
            ),
        ] as [(String?, String, String, String)])
    func `The printed prune command has the list's format and column, and a new name`(
        list: String?, format: String, column: String, words: String
    ) {
        let steps = Self.nextSteps(list, format: format, column: column)
        #expect(
            steps.contains("broadside prune --ledger tonight --tokens \(words)\n"), "\(steps)")
    }

    @Test func `A ledger without tokens is exported with the list, because prune can't use it`() {
        let steps = Self.nextSteps("/in/tokens.txt", keepTokens: CampaignIdentity.noTokens)
        #expect(!steps.contains("broadside prune"), "\(steps)")
        #expect(
            steps.contains(
                "broadside ledger export --ledger tonight --reason Unregistered --reason "
                    + "ExpiredToken --output dead.csv\n"), "\(steps)")
    }

    @Test func `A displayed number is cut, never rounded up`() {
        #expect(
            [999_999, 1_999_999, 19_999_999, 999_999_999, 1_000_000_000].map { shortCount($0) }
                == ["999,999", "1.99 M", "19.9 M", "999 M", "1.00 G"])
    }

    @Test func `A logarithmic axis has powers of ten and says so`() {
        func chart(_ values: [Double]) -> Chart {
            Chart(
                identifier: "a", title: "A", description: "b",
                edges: (0...values.count).map { Double($0) / Double(values.count) },
                series: [.init(name: "", color: "first", shape: .curve, values: values)], ticks: [],
                isLogarithmic: true, unit: "milliseconds")
        }
        let wide = chart([0.5, 40, 700]).html
        #expect(wide.contains(">milliseconds, logarithmic<"))
        for label in [">0.1<", ">1<", ">10<", ">100<", ">1k<"] {
            #expect(wide.contains(label), "\(label)")
        }
        #expect(!wide.contains(">250<"))
        #expect(chart([12, 40]).html.contains(">50<"))
        #expect(Chart.Scale.logarithmic(low: 1, high: 100).share(10) == 0.5)
        #expect(chart([0]).html.contains("logarithmic"))
    }

    @Test func `What to do comes before the charts, and details are folded`() throws {
        var data = Self.nights()
        data.settings = [.init(name: "rate", value: "<b>20,000</b>")]
        data.connections = [ConnectionTally()]
        let page = String(decoding: ReportPage(data: data).html, as: UTF8.self)
        let places = try ["<ul class=\"tiles cards\">", "<h2>What to do next", "<h2>How it went"]
            .map {
                try #require(page.range(of: $0)?.lowerBound)
            }
        #expect(places == places.sorted())
        for title in ["Connections of the latest run (1)", "Settings of the latest run"] {
            #expect(page.contains("<details class=\"box fold\"><summary>\(title)</summary>"))
        }
        #expect(page.contains("&lt;b&gt;20,000&lt;/b&gt;"))
    }

    @Test func `The counts of the outcome and of the decisions add up`() {
        let whole = ReportPage(
            data: Self.data(accepted: 769, rejected: 74, invalid: 1, skipped: 1_088, unknown: 20))
        #expect(
            whole.sentence.hasSuffix(
                "APNs accepted 769 and rejected 74. 1,088 were skipped. 1 was invalid and not sent. "
                    + "20 ended failed or unknown."), "\(whole.sentence)")
        var data = Self.data(.stopped, accepted: 9, rejected: 10, unknown: 11, remaining: 1_829)
        data.summary.counts[.inDoubt] = 3
        data.summary.counts.reasons.add(text: "BadDeviceToken", count: 8)
        #expect(
            ReportPage(data: data).cards.contains(
                "1,826 remaining, 11 failed or unknown, 8 bad token, 3 in doubt, "
                    + "2 otherwise rejected"))
    }

    @Test func `A page about one row has no plurals`() {
        let page = ReportPage(data: Self.data(accepted: 1))
        #expect(page.sentence.hasPrefix("The row is settled after "), "\(page.sentence)")
        #expect(page.cards.contains("1 of 1 row<"), "\(page.cards)")
    }

    @Test func `The page says what each reason means, also one that this version does not know`() {
        var data = Self.data(rejected: 3, invalid: 41)
        data.summary.counts.reasons.add(text: "BadValue", count: 41)
        data.summary.counts.reasons.add(text: "LengthRequired", count: 2)
        data.summary.counts.reasons.add(text: "TooCurious", count: 1)
        let table = ReportPage(data: data).refusals
        for meaning in [
            "a value does not have the required form: never sent",
            "this server requires a content-length header, which --content-length sends",
            "look up this reason, which this version does not know",
        ] {
            #expect(table.contains(meaning), "\(table)")
        }
    }

    @Test func `A bottleneck is named from two seconds on`() {
        #expect(ReportPage(data: Self.nights(seconds: 0.9)).limits.isEmpty)
        let shares = ReportPage(data: Self.nights(seconds: 2)).limits
        #expect(!shares.contains("bottleneck"), "nothing was measured: \(shares)")
        var snapshot = LiveViewTests.snapshot()
        #expect(snapshot.limitedBy == .streams)
        snapshot.elapsedSeconds = 1.9
        #expect(snapshot.limitedBy == nil)
        let all = ["connecting": 0.7, "retry": 0.297, "cpu": 0.003]
        #expect(Bottleneck.text(all, seconds: 1.9) == nil)
        #expect(Bottleneck.text(nil, seconds: 60) == nil)
        #expect(Bottleneck.text(all, seconds: 2) == "connecting 70%, backoff 30%")
        #expect(Bottleneck.text(["rate": 0.999, "cpu": 0.001], seconds: 2) == "the rate limit 99%")
    }

    @Test func `Telemetry of version 0.1.0 is read, and each cause has its own number`()
        throws
    {
        #expect(Set(Bottleneck.allCases.map(\.rawValue)) == Set(0..<Bottleneck.allCases.count))
        #expect(
            Bottleneck.allCases.map(\.name) == [
                "input", "rate", "connecting", "retry", "streams", "window", "socket", "cpu",
            ])
        let old = """
            {"version":1,"runs":[{"number":1,"startedAtMilliseconds":5,"elapsedSeconds":9,\
            "retries":0,"reconnects":0,"limited":[1,2,3,4,5,6,7],"points":[],"outcome":"aborted",\
            "cause":"APNs refuses"}],"events":[],"eventsLost":0,"connections":[],"settings":[],\
            "earlierLatency":\(Self.empty),"latency":\(Self.empty)}
            """
        let telemetry = try #require(Telemetry(decoding: Array(old.utf8)))
        let data = Self.data(
            telemetry: telemetry, epochs: [.init(number: 1, startedAtMilliseconds: 5)])
        #expect(data.limited[Bottleneck.cpu.rawValue] == 7)
        #expect(data.limited[Bottleneck.retry.rawValue] == 3)
        #expect(data.limited[Bottleneck.connecting.rawValue] == 0)
    }

    private static var empty: String {
        String(decoding: (try? JSONEncoder().encode(LatencyCounts())) ?? Data(), as: UTF8.self)
    }
}
