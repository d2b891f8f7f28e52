import BroadsideAPNs
import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine
@testable import BroadsideObservability

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
        snapshot.limitedNow[Bottleneck.streams.rawValue] = 0.81
        snapshot.limitedNow[Bottleneck.cpu.rawValue] = 0.19
        snapshot.counts.reasons.add(text: "Unregistered", count: 70_100)
        snapshot.counts.reasons.add(text: "BadDeviceToken", count: 10_566)
        return snapshot
    }

    @Test func `The live view has six lines at 80 columns`() {
        var snapshot = Self.snapshot()
        snapshot.wallMilliseconds = 1_795_433_467_419
        let end = localClock(1_795_433_467_419 + 93_000).prefix(5)
        let lines = Self.plain.lines(snapshot, width: 80)
        #expect(
            lines == [
                String(repeating: "█", count: 14) + String(repeating: "░", count: 10)
                    + " 62% of about 10,000,000 rows  ends \(end), 1 m 33 s left",
                "accepted 6,120,334 · dead 70,100 · needs attention 10,578 · unknown 12",
                "41,200/s now · 40,100/s average · no rate limit · 2 m 34 s so far",
                "latency p50 42 ms, p99 1.3 s · 63 of 64 connections · 23,110 in flight",
                "bottleneck: APNs stream limit (81%) · more --connections help",
                "no guard has counted anything",
            ], "\(lines)")
    }

    @Test func `The live view shows the rate limit of each connection if the run has no other`() {
        var snapshot = Self.snapshot()
        snapshot.ratePerConnection = 400
        let line = Self.plain.lines(snapshot, width: 90)[2]
        #expect(line.contains(" · limit 400/s per connection · "), "\(line)")
        snapshot.rateLimit = 5000
        #expect(Self.plain.lines(snapshot, width: 90)[2].contains(" · limit 5,000/s · "))
    }

    @Test
    func `The live view has six lines at any width, the last for guards, questions and keys`() {
        var snapshot = Self.snapshot()
        for width in 0..<LiveView.wideWidth {
            #expect(Self.plain.lines(snapshot, width: width).count == 6)
        }
        snapshot.guards = GuardStatus.some(canary: .pending, responses: 40, refused: 3)
        var keys = RunKeys()
        #expect(
            Self.plain.lines(snapshot, width: 80, keys: keys).last
                == "canary: 40 responses, 3 refused · p pause, q stop, ? help")
        snapshot.phase = .paused
        let paused = Self.plain.lines(snapshot, width: 80, keys: keys)
        #expect(paused[4] == "paused: press r to continue")
        #expect(paused[5].hasSuffix("r resume, q stop, ? help"))
        #expect(keys.take([UInt8(ascii: "q")], now: 1).isEmpty)
        #expect(
            Self.plain.lines(snapshot, width: 80, keys: keys).last
                == "stop this run? q stops it, --resume continues it later; any other key: no")
    }

    @Test
    func `Dead and skipped rows need no attention in the live view, and other unaccepted ones do`()
    {
        var snapshot = RunSnapshot()
        snapshot.counts[.accepted] = 5
        snapshot.counts[.rejected] = 30
        snapshot.counts[.invalid] = 4
        snapshot.counts[.skipped] = 9
        snapshot.counts[.failed] = 2
        snapshot.counts.reasons.add(text: "ExpiredToken", count: 1)
        snapshot.counts.reasons.add(text: "Unregistered", count: 19)
        snapshot.counts.reasons.add(text: "BadDeviceToken", count: 10)
        snapshot.counts.reasons.add(text: "MalformedToken", count: 4)
        snapshot.counts.reasons.add(text: "Suppressed", count: 8)
        snapshot.counts.reasons.add(text: "Duplicate", count: 1)
        snapshot.counts.reasons.add(text: "Timeout", count: 2)
        #expect(snapshot.deadRows == 20 && snapshot.troubledRows == 16)
        #expect(
            Self.plain.lines(snapshot, width: 99)[1]
                == "accepted 5 · dead 20 · skipped 9 · needs attention 16 · failed 2 · BadDeviceToken 10"
                + " · Timeout 2")
    }

    @Test func `A key has the effect of its control command, and stopping takes two`() {
        var keys = RunKeys()
        func take(_ typed: String, _ now: UInt64) -> [RunKeys.Action] {
            keys.take(Array(typed.utf8), now: now)
        }
        #expect(take("p", 1) == [.pause] && take("r?", 2) == [.resume, .help])
        #expect(take("+-x", 3) == [.faster, .slower])
        #expect(take("q", 4).isEmpty && keys.question != nil)
        #expect(take("x", 5).isEmpty && keys.question == nil)
        #expect(take("q", 6).isEmpty && take("q", 7) == [.stop])
        // A question without a response in time is none.
        #expect(take("q", 8).isEmpty && take("q", 11 * second).isEmpty)
        #expect(take("q", 12 * second) == [.stop])
    }

    @Test func `Function keys and pasted text stop no run`() {
        var keys = RunKeys()
        // F1, F2 and F3, as terminals send them, and an arrow.
        let typed = ["\u{1b}OP", "\u{1b}OQ", "\u{1b}OQ", "\u{1b}OR", "\u{1b}[A"]
        for (now, key) in typed.enumerated() {
            #expect(keys.take(Array(key.utf8), now: UInt64(now)).isEmpty)
            #expect(keys.question == nil)
        }
        #expect(keys.take(Array("qqqq".utf8), now: 9).isEmpty && keys.question != nil)
    }

    @Test func `Keys change the rate by a quarter or a fifth, and an unlimited one only down`() {
        #expect(RunKeys.rate(.faster, limit: 100, rate: 7) == 125)
        #expect(RunKeys.rate(.slower, limit: 100, rate: 7) == 80)
        #expect(RunKeys.rate(.faster, limit: 12_345, rate: 0) == 15_400)
        #expect(RunKeys.rate(.faster, limit: nil, rate: 9) == nil)
        #expect(RunKeys.rate(.slower, limit: nil, rate: 41_234) == 33_000)
        #expect(RunKeys.rate(.slower, limit: nil, rate: 0) == nil)
        #expect(RunKeys.rate(.slower, limit: 1, rate: 0) == 0.8)
        for limit in [0.001, 0.5, 1, 999.9, 50_000] {
            #expect(RunKeys.rate(.slower, limit: limit, rate: 0)! <= limit)
            #expect(RunKeys.rate(.faster, limit: limit, rate: 0)! >= limit)
        }
    }

    @Test func `A key held down never asks for a rate that control would refuse`() {
        for action in [RunKeys.Action.faster, .slower] {
            var limit = 50.0
            for _ in 0..<500 { limit = RunKeys.rate(action, limit: limit, rate: 0)! }
            #expect(RunKeys.rates.contains(limit), "\(limit)")
        }
    }

    @Test func `A wide terminal also shows the end time, the rate's course and latencies`() {
        var snapshot = Self.snapshot()
        snapshot.wallMilliseconds = 1_795_433_467_419
        snapshot.recentRates = [0, 1, 10_000, 20_000, 30_000, 41_200]
        var histogram = LatencyHistogram()
        for _ in 0..<900 { histogram.record(1_000_000) }
        for _ in 0..<100 { histogram.record(64_000_000) }
        snapshot.latencyCounts.add(histogram.counts)
        let lines = Self.plain.lines(snapshot, width: 120)
        #expect(lines.contains("started \(localClock(1_795_433_467_419 - 154_000))"), "\(lines)")
        #expect(lines.contains("rate  ▁▂▄▆█  at most 41,200/s"), "\(lines)")
        let latency = lines.first { $0.hasPrefix("latency ") && $0.contains("█") } ?? ""
        #expect(latency.wholeMatch(of: /latency .+ms █ *▁ .+ms/) != nil, "\(latency)")
        #expect(Self.plain.lines(snapshot, width: 99).allSatisfy { !$0.contains("▁") })
        let ascii = LiveView(style: .init(hasColor: false, hasUnicode: false))
        #expect(ascii.lines(snapshot, width: 120).joined().utf8.allSatisfy { $0 < 0x80 })
    }

    @Test func `A value above zero is visible in a chart, and none is higher than its peak`() {
        #expect(LiveView.sparkline([0, 0.001, 4, 8, 9], peak: 8) == " ▁▄██")
        #expect(LiveView.sparkline([0, 1], peak: 0) == "  ")
        #expect(LiveView.sparkline([], peak: 1).isEmpty)
    }

    @Test(arguments: [false, true]) func `No line of the live view is wider than the terminal`(
        hasUnicode: Bool
    ) {
        var snapshot = Self.snapshot()
        snapshot.statistics.retries = 17
        snapshot.statistics.shortened = 23
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
    }

    @Test func `Colour only adds escape sequences to the text`() {
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
        #expect(stripped[0] == plain[0] && stripped[1] == plain[1])
    }

    @Test func `A pause and a stop are shown without an end time`() {
        var snapshot = Self.snapshot()
        snapshot.phase = .paused
        #expect(Self.plain.lines(snapshot, width: 80)[0].hasSuffix(" rows  paused"))
        #expect(snapshot.etaSeconds == nil)
        snapshot.phase = .stopping
        #expect(
            Self.plain.lines(snapshot, width: 80)[4] == "stopping: waiting for 23,110 responses")
        #expect(LiveView.plainLine(snapshot).hasSuffix("connections, stopping"))
    }

    @Test func `The time left is not below that of the rate limit, and is unknown in backoff`() {
        var snapshot = RunSnapshot()
        snapshot.elapsedSeconds = 30
        (snapshot.rows, snapshot.rateNow, snapshot.rateAverage) = (101, 1, 0.1)
        snapshot.counts[.accepted] = 1
        #expect(snapshot.etaSeconds == 100 / 0.55)
        // One request in 25 s: a second with a response looks like a rate of 1.
        snapshot.rateLimit = 0.04
        #expect(snapshot.etaSeconds == 100 / 0.04)
        snapshot.inFlight = 1
        #expect(snapshot.etaSeconds == 99 / 0.04)
        snapshot.rateLimit = 1_000
        #expect(snapshot.etaSeconds == 100 / 0.55)
        // Two connections with 0.02 requests per second each.
        (snapshot.ratePerConnection, snapshot.wantedConnections) = (0.02, 2)
        #expect(snapshot.etaSeconds == 99 / 0.04)
        snapshot.rateLimit = nil
        #expect(snapshot.etaSeconds == 99 / 0.04)
        snapshot.wantedConnections = 50
        #expect(snapshot.etaSeconds == 100 / 0.55)
        snapshot.limitedNow[Bottleneck.retry.rawValue] = 1
        #expect(snapshot.etaSeconds == 100 / 0.55, "there were responses")
        snapshot.rateNow = 0
        #expect(snapshot.etaSeconds == nil)
        #expect(!LiveView.plainLine(snapshot).contains("left"))
        snapshot.limitedNow[Bottleneck.retry.rawValue] = 0
        #expect(snapshot.etaSeconds == 100 / 0.1)
    }

    @Test func `The time left has the waits for later waves, and is unknown before quiet hours`()
        throws
    {
        let start: UInt64 = 1_795_264_562_000
        let waves = ([0, 3_600_000, 3_602_000] as [UInt64]).map { time in
            var wave = Wave(
                atMilliseconds: start + time, isAtOnce: time == 0, localText: "2026-11-21 19:00")
            wave.add("Asia/Tokyo", rows: 500)
            return wave
        }
        var snapshot = RunSnapshot()
        snapshot.wallMilliseconds = start + 4_000
        (snapshot.rows, snapshot.rateNow, snapshot.rateAverage) = (1_500, 50, 50)
        snapshot.counts[.accepted] = 200
        func progress(next: Int?, quiet: UInt64? = nil) -> WaveProgress {
            WaveProgress(
                waves: waves, current: next.map { $0 - 1 } ?? 2, next: next, isWaiting: false,
                quietAtMilliseconds: quiet)
        }
        snapshot.waves = progress(next: 1)
        // The second wave takes 10 s, so it is still being sent when the third begins.
        #expect(try #require(snapshot.etaSeconds).rounded() == 3_616.0)
        #expect(LiveView.plainLine(snapshot).hasSuffix(", 1 h 00 m left"))
        snapshot.waves = progress(next: 1, quiet: start + 4_000)
        #expect(snapshot.etaSeconds == nil)
        // The last wave.
        snapshot.wallMilliseconds = start + 3_612_000
        snapshot.counts[.accepted] = 1_000
        snapshot.waves = progress(next: nil, quiet: start + 3_700_000)
        #expect(snapshot.etaSeconds == 10)
        snapshot.waves = progress(next: nil, quiet: start + 3_620_000)
        #expect(snapshot.etaSeconds == nil)
        snapshot.counts[.accepted] = 1_500
        snapshot.waves = progress(next: nil)
        #expect(snapshot.etaSeconds == 0)
    }

    @Test func `Control characters in a server's text are escaped in the live view`() {
        var snapshot = Self.snapshot()
        snapshot.counts.reasons = ReasonCounts()
        snapshot.counts.reasons.add(text: "Evil\u{1b}[2J\r\n\u{9b}1A", count: 1)
        let text = Self.plain.lines(snapshot, width: 80).joined()
        #expect(!text.contains("\u{1b}") && !text.contains("\n") && !text.contains("\r"))
        #expect(!text.unicodeScalars.contains("\u{9b}"))
    }

    @Test func `The live view without any figures does not trap`() {
        for width in [1, 40, 80] {
            #expect(!Self.plain.lines(RunSnapshot(), width: width).isEmpty)
        }
        #expect(
            LiveView.plainLine(RunSnapshot()) == "0, 0/s, 0 accepted, 0 in flight on 0 connections")
    }
}

extension GuardStatus {
    /// One whose canary has so many responses.
    fileprivate static func some(
        canary: Canary, responses: UInt64, refused: UInt64
    ) -> GuardStatus {
        var status = GuardStatus(canary: canary)
        status.canaryResponses = responses
        status.canaryRefused = refused
        return status
    }
}
