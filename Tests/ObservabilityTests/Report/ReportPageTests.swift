import Campaign
import Foundation
import Support
import Testing

@testable import Engine
@testable import Observability

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

    @Test func `The badge follows what became of devices, whatever the process says`() {
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

    @Test func `The title names what was accepted, rejected and invalid, none of it rounded away`()
    {
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
                    inFlight: 0, limited: LimitedBy.allCases.map { _ in 1000 }))
            telemetry.take(snapshot, series, ReactorReport())
            telemetry.end(outcome: "stopped", cause: nil, atMilliseconds: began)
        }
        telemetry.beginPause(atMilliseconds: start + 10_800_100)
        telemetry.beginPause(atMilliseconds: start + 10_800_200)
        telemetry.endPause(atMilliseconds: start + 10_860_100)
        telemetry.endPause(atMilliseconds: start + 10_960_100)
        return Self.data(accepted: 100, telemetry: telemetry, epochs: epochs)
    }

    @Test func `It says when it started and ended, and what was in between`() {
        let data = Self.nights()
        let facts = ReportPage(data: data).facts.replacingOccurrences(of: "\u{a0}", with: " ")
        for part in [
            "<dt>Started</dt><dd>2026-11-21 12:36:02 UTC", "<dt>Ended</dt><dd>2026-11-21 15:36:04",
            "1 gap, 2 h 59 m in all", "<dt>Paused</dt><dd>2026-11-21 15:36:02 UTC",
            ", for 1 m 00 s",
        ] {
            #expect(facts.contains(part), "\(facts)")
        }
        #expect(data.gap(before: 0) == nil && data.gap(before: 1) == 10_798)
        #expect(data.runs[1].pauses.count == 1)
    }

    @Test func `The list of runs says why each ended, not what was to be done then`() {
        var telemetry = Telemetry()
        var epochs: [Manifest.Epoch] = []
        let line = "stopped by a signal: --resume continues: broadside send --resume"
        let causes: [StopCause?] = [.signal, .deadline, .complete, nil]
        for (index, cause) in causes.enumerated() {
            let number = UInt32(index + 1)
            telemetry.begin(number, atMilliseconds: 0, settings: [])
            telemetry.end(outcome: "stopped", cause: line)
            epochs.append(Manifest.Epoch(number: number, startedAtMilliseconds: 0))
            epochs[index].stop = cause.map { StopRecord($0, wasAnswered: true) }
        }
        let data = Self.data(accepted: 1, telemetry: telemetry, epochs: epochs)
        // A run of version 0.1.0 left its last line only.
        #expect(
            data.runs.map(\.cause)
                == ["stopped by a signal", "the deadline has passed", nil, line])
    }

    @Test func `The axis shows the clock, below a second too`() {
        let page = String(decoding: ReportPage(data: Self.nights()).html, as: UTF8.self)
        for label in [">12:36:02.000 UTC<", ">15:36:02.000<", ">15:36:04.000<"] {
            #expect(page.contains(label), "\(label)")
        }
        let short = String(
            decoding: ReportPage(data: Self.nights(seconds: 0.3)).html, as: UTF8.self)
        for label in [">12:36:02.000 UTC<", ">15:36:02.300<"] {
            #expect(short.contains(label), "\(label)")
        }
        let long = String(
            decoding: ReportPage(data: Self.nights(seconds: 3600)).html, as: UTF8.self)
        for label in [">12:36 UTC<", ">13:06<", ">15:36<", ">16:06<", ">16:36<"] {
            #expect(long.contains(label), "\(label)")
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
        let all = ["connecting": 0.7, "retry": 0.295, "cpu": 0.005]
        #expect(LimitedBy.text(all, seconds: 1.9) == nil)
        #expect(LimitedBy.text(nil, seconds: 60) == nil)
        #expect(LimitedBy.text(all, seconds: 2) == "connecting 70%, backoff 29%")
    }

    @Test func `Shares of version 0.1.0 are read, and all causes have a number of their own`()
        throws
    {
        #expect(Set(LimitedBy.allCases.map(\.rawValue)) == Set(0..<LimitedBy.allCases.count))
        #expect(
            LimitedBy.allCases.map(\.name) == [
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
        #expect(data.limited[LimitedBy.cpu.rawValue] == 7)
        #expect(data.limited[LimitedBy.retry.rawValue] == 3)
        #expect(data.limited[LimitedBy.connecting.rawValue] == 0)
    }

    private static var empty: String {
        String(decoding: (try? JSONEncoder().encode(LatencyCounts())) ?? Data(), as: UTF8.self)
    }
}
