import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideEngine
@testable import BroadsideObservability

/// A process whose rows are sent in waves: each pass is a run of the ledger, and the process may
/// end while it waits.
@Suite struct WaitingRunTests {
    private static let start: UInt64 = 1_795_264_562_000

    private static func latency(_ count: Int) -> LatencyCounts {
        var histogram = LatencyHistogram()
        for _ in 0..<count { histogram.record(1_000_000) }
        return histogram.counts
    }

    /// Sends 40 rows in a second.
    private static func send(_ telemetry: inout Telemetry, limitedBy cause: Bottleneck) {
        var limited = [UInt64](repeating: 0, count: Bottleneck.allCases.count)
        limited[cause.rawValue] = 1000
        var counts = RowCounts()
        counts[.accepted] = 40
        var series = TimeSeries()
        series.append(
            .init(
                start: 0, duration: 1, counts: counts, latency: latency(40), inFlight: 0,
                limited: limited))
        var snapshot = RunSnapshot()
        snapshot.elapsedSeconds = 1
        snapshot.latencyCounts = latency(40)
        var report = ReactorReport()
        report.statistics.limited = limited
        telemetry.take(snapshot, series, report)
    }

    /// A process that sent two waves in a second each, and was stopped while it waited for the
    /// third.
    private static func waves(_ telemetry: inout Telemetry, from number: UInt32) {
        for pass in 0..<3 {
            let time = start + UInt64(pass) * 60_000
            telemetry.begin(
                number + UInt32(pass), atMilliseconds: time, settings: [], earlierPasses: pass)
            telemetry.wait(untilMilliseconds: time + 30_000)
            guard pass < 2 else { break }
            telemetry.restart(atMilliseconds: time + 30_000)
            send(&telemetry, limitedBy: pass == 0 ? .rate : .cpu)
            telemetry.end(outcome: nil, cause: nil, counts: RowCounts())
        }
        telemetry.end(outcome: "stopped", cause: nil, counts: RowCounts())
    }

    @Test func `A run that was stopped while it waited lasted until then`() {
        var telemetry = Telemetry()
        telemetry.begin(1, atMilliseconds: Self.start, settings: [])
        telemetry.wait(untilMilliseconds: Self.start + 12_000)
        telemetry.end(outcome: "stopped", cause: "stopped by a signal", counts: RowCounts())
        #expect(telemetry.endedAtMilliseconds == Self.start + 12_000)
        let data = ReportPageTests.data(
            .stopped, remaining: 5, telemetry: telemetry,
            epochs: [.init(number: 1, startedAtMilliseconds: Self.start)])
        var page = ReportPage(data: data)
        page.zone = .utc
        #expect(page.sentence.hasPrefix("Stopped after 12 s: "), "\(page.sentence)")
        #expect(page.cards.contains("<b>12 s</b>") && page.cards.contains("nothing was sent"))
        #expect(page.facts.contains("<dt>Ended</dt><dd>2026-11-21\u{a0}12:36:14"), "\(page.facts)")
        #expect(page.runs.contains("12:36:14") && page.runs.contains(">12 s<"), "\(page.runs)")
        // The wait is not sending time.
        #expect(data.runningSeconds == 0)
    }

    @Test func `A run that sent after its wait ends with its last sample`() {
        var telemetry = Telemetry()
        telemetry.begin(1, atMilliseconds: Self.start, settings: [])
        telemetry.wait(untilMilliseconds: Self.start + 60_000)
        telemetry.restart(atMilliseconds: Self.start + 30_000)
        Self.send(&telemetry, limitedBy: .rate)
        #expect(telemetry.endedAtMilliseconds == Self.start + 31_000)
    }

    @Test func `A run records the waves that it begins to send, as far as they are kept`() throws {
        var telemetry = Telemetry()
        telemetry.begin(1, atMilliseconds: Self.start, settings: [])
        telemetry.send(waves: [0, 3, Telemetry.wavesLimit])
        telemetry.begin(2, atMilliseconds: Self.start, settings: [])
        telemetry.send(waves: [])
        let read = try #require(Telemetry(decoding: telemetry.encoded))
        #expect(read.runs.map(\.waves) == [[0, 3], nil])
    }

    @Test func `The figures of a ledger are those of all waves of its latest process`() throws {
        var telemetry = Telemetry()
        Self.waves(&telemetry, from: 1)
        telemetry = try #require(Telemetry(decoding: telemetry.encoded))
        var summary = Summary(campaign: 1, outcome: .stopped)
        summary.take(telemetry, run: 3)
        #expect(summary.elapsedSeconds == 2 && summary.notificationsPerSecond == 40)
        #expect(summary.limitedBy?["rate"] == 0.5 && summary.limitedBy?["cpu"] == 0.5)
        #expect(summary.latency.p50 != nil)
        // Another process sent before: the latencies are those of both.
        Self.waves(&telemetry, from: 4)
        summary = Summary(campaign: 1, outcome: .stopped)
        summary.take(telemetry, run: 6)
        #expect(summary.elapsedSeconds == 2 && summary.latency.p50 == nil)
    }

    @Test func `The figures are unknown if the telemetry lacks a wave of the process`() {
        var telemetry = Telemetry()
        for pass in 0..<120 {
            telemetry.begin(
                UInt32(pass + 1), atMilliseconds: Self.start, settings: [], earlierPasses: pass)
            Self.send(&telemetry, limitedBy: .rate)
            telemetry.end(outcome: nil, cause: nil, counts: RowCounts())
        }
        var summary = Summary(campaign: 1, outcome: .stopped)
        summary.take(telemetry, run: 120)
        #expect(summary.elapsedSeconds == nil && summary.limitedBy == nil)
    }
}
