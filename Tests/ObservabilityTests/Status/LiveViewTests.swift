import Campaign
import Support
import Testing

@testable import Engine
@testable import Observability

/// The lines that a person watches, drawn from a snapshot and a width.
@Suite struct LiveViewTests {
    static let plain = LiveView(style: .init(hasColor: false, hasUnicode: true))

    /// A night half done.
    static func snapshot() -> RunSnapshot {
        var snapshot = RunSnapshot()
        snapshot.elapsedSeconds = 154
        snapshot.rows = 10_000_000
        snapshot.isRowsEstimate = true
        snapshot.counts[.accepted] = 6_120_334
        snapshot.counts[.rejected] = 80_666
        snapshot.counts[.unknown] = 12
        snapshot.rateNow = 41_200
        snapshot.rateAverage = 40_100
        snapshot.latencyNow.p50 = 42_000_000
        snapshot.latencyNow.p99 = 1_310_000_000
        snapshot.openConnections = 63
        snapshot.wantedConnections = 64
        snapshot.inFlight = 23_110
        snapshot.limitedNow[LimitedBy.streams.rawValue] = 0.81
        snapshot.limitedNow[LimitedBy.cpu.rawValue] = 0.19
        snapshot.counts.reasons.add(text: "Unregistered", count: 70_100)
        snapshot.counts.reasons.add(text: "BadDeviceToken", count: 10_566)
        return snapshot
    }

    @Test func `at 80 columns it says everything on few lines`() {
        let lines = Self.plain.lines(Self.snapshot(), width: 80)
        #expect(
            lines == [
                String(repeating: "█", count: 36) + String(repeating: "░", count: 23)
                    + " 62%  1 m 33 s left",
                "6,201,012 of about 10,000,000 rows · 41,200/s now · 40,100/s average",
                "2 m 34 s so far",
                "accepted 6,120,334 · rejected 80,666 · unknown 12 · Unregistered 70,100",
                "BadDeviceToken 10,566",
                "latency p50 42 ms, p99 1.3 s · 63 of 64 connections · 23,110 in flight",
                "bottleneck: APNs stream limit (81%)",
            ])
    }

    @Test
    func `a wide terminal shows when it ends, the course of the rate and how latencies are spread`()
    {
        var snapshot = Self.snapshot()
        snapshot.wallMilliseconds = 1_795_433_467_419
        snapshot.recentRates = [0, 1, 10_000, 20_000, 30_000, 41_200]
        var histogram = LatencyHistogram()
        for _ in 0..<900 { histogram.record(1_000_000) }
        for _ in 0..<100 { histogram.record(64_000_000) }
        snapshot.latencyCounts.add(histogram.counts)
        let lines = Self.plain.lines(snapshot, width: 120)
        let start = localDateAndTime(1_795_433_467_419 - 154_000).suffix(5)
        let end = localDateAndTime(1_795_433_467_419 + 93_000).suffix(5)
        #expect(lines.contains("started \(start) · expected end \(end)"), "\(lines)")
        #expect(lines.contains("rate  ▁▂▄▆█  at most 41,200/s"), "\(lines)")
        let latency = lines.first { $0.hasPrefix("latency ") && $0.contains("█") } ?? ""
        #expect(latency.wholeMatch(of: /latency .+ms █ *▁ .+ms/) != nil, "\(latency)")
        #expect(Self.plain.lines(snapshot, width: 99).allSatisfy { !$0.contains("▁") })
        let ascii = LiveView(style: .init(hasColor: false, hasUnicode: false))
        #expect(ascii.lines(snapshot, width: 120).joined().utf8.allSatisfy { $0 < 0x80 })
    }

    @Test func `what is not zero is seen in a picture, and nothing is higher than its peak`() {
        #expect(LiveView.sparkline([0, 0.001, 4, 8, 9], peak: 8) == " ▁▄██")
        #expect(LiveView.sparkline([0, 1], peak: 0) == "  ")
        #expect(LiveView.sparkline([], peak: 1).isEmpty)
    }

    @Test(arguments: [false, true]) func `no line is wider than the terminal`(hasUnicode: Bool) {
        var snapshot = Self.snapshot()
        snapshot.statistics.retries = 17
        snapshot.rateLimit = 50_000
        for number in 0..<9 {
            let name = "Reason\(number)WithAVeryLongNameThatNoTerminalHolds"
            snapshot.counts.reasons.add(text: name, count: 9)
        }
        let view = LiveView(style: .init(hasColor: false, hasUnicode: hasUnicode))
        for width in 0...220 {
            for line in view.lines(snapshot, width: width) {
                #expect(line.count <= max(width, Folding.minimumWidth), "\(width): \(line)")
                #expect(hasUnicode || line.utf8.allSatisfy { $0 < 0x80 })
            }
        }
        #expect(view.lines(snapshot, width: 200).contains { $0.contains("other reasons 63") })
    }

    @Test func `colour is escape sequences around the same text, and none without it`() {
        let colored = LiveView(style: .init(hasColor: true, hasUnicode: true))
            .lines(Self.snapshot(), width: 80)
        let stripped = colored.map { line in
            line.split(separator: "\u{1b}[").map { part in
                part.firstIndex(of: "m").map { String(part[part.index(after: $0)...]) }
                    ?? String(part)
            }.joined()
        }
        #expect(colored.joined().contains("\u{1b}[32m"))
        let plain = Self.plain.lines(Self.snapshot(), width: 80)
        #expect(!plain.joined().contains("\u{1b}"))
        // Text before the first sequence of a line has no colour, so only coloured parts are cut.
        #expect(stripped[0] == plain[0] && stripped[2] == plain[2])
    }

    @Test func `a pause and a stop are said, and nothing is promised then`() {
        var snapshot = Self.snapshot()
        snapshot.phase = .paused
        #expect(Self.plain.lines(snapshot, width: 80)[0].hasSuffix(" 62%  paused"))
        #expect(snapshot.etaSeconds == nil)
        snapshot.phase = .stopping
        #expect(
            Self.plain.lines(snapshot, width: 80).last
                == "stopping: waiting for responses in flight")
        #expect(LiveView.plainLine(snapshot).hasSuffix("connections, stopping"))
    }

    @Test func `what a server says moves no cursor`() {
        var snapshot = Self.snapshot()
        snapshot.counts.reasons = ReasonCounts()
        snapshot.counts.reasons.add(text: "Evil\u{1b}[2J\r\n\u{9b}1A", count: 1)
        let text = Self.plain.lines(snapshot, width: 80).joined()
        #expect(!text.contains("\u{1b}") && !text.contains("\n") && !text.contains("\r"))
        #expect(!text.unicodeScalars.contains("\u{9b}"))
    }

    @Test func `nothing known yet is not a crash`() {
        for width in [1, 40, 80] {
            #expect(!Self.plain.lines(RunSnapshot(), width: width).isEmpty)
        }
        #expect(
            LiveView.plainLine(RunSnapshot()) == "0, 0/s, 0 accepted, 0 in flight on 0 connections")
    }
}
