import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideEngine
@testable import BroadsideObservability

/// What the page says about the runs: their ends, waves, gaps, pauses and times.
@Suite struct ReportRunsTests {
    /// Run 1 was killed 5.25 s after its latest record, run 2 before its first one. Run 3 ended.
    @Test func `A killed run lasts to its last verdict, and its outcome is interrupted`() {
        let start: UInt64 = 1_795_264_562_000
        var telemetry = Telemetry()
        var epochs: [Manifest.Epoch] = []
        for number in 1...3 as ClosedRange<UInt32> {
            let began = start + UInt64(number - 1) * 60_000
            epochs.append(.init(number: number, startedAtMilliseconds: began))
            guard number != 2 else { continue }
            telemetry.begin(number, atMilliseconds: began, settings: [])
            var snapshot = RunSnapshot()
            snapshot.elapsedSeconds = number == 1 ? 15 : 4
            telemetry.take(snapshot, TimeSeries(), ReactorReport())
        }
        telemetry.end(outcome: "complete", cause: nil, atMilliseconds: start)
        #expect(telemetry.runsWithoutEnd(epochs) == [1, 2])
        var course = SettlementTimeline(epochs: epochs, only: [1, 2])
        for (run, state, time) in [
            (1, .accepted, 100), (1, .rejected, 20_250), (1, .accepted, 9_000),
            (2, .accepted, 62_500), (3, .accepted, 123_000),
        ] as [(UInt32, RowState, UInt64)] {
            course.add(state, in: run, at: start + time)
        }
        var data = ReportPageTests.data(accepted: 4, rejected: 1)
        data = ReportData(
            summary: data.summary, telemetry: telemetry, epochs: epochs, course: course,
            ledgerPath: "tonight", listPath: nil, createdAtMilliseconds: 0)
        #expect(data.runs.map(\.elapsed) == [20.25, 2.5, 4])
        #expect(data.runs.map(\.outcome) == ["interrupted", "interrupted", "complete"])
        #expect(data.runs.map(\.accepted) == [2, 1, 0] && data.runs[0].rejected == 1)
        #expect(data.runningSeconds == 26.75)
        let settled: UInt64 = data.throughput.reduce(0) { $0 + $1.accepted + $1.rejected }
        #expect(settled == 4)
        #expect(data.throughput.allSatisfy { $0.start + $0.duration <= 22.75 })
        #expect(data.gap(before: 1) == 39.75 && !data.isInterrupted)
        data = ReportData(
            summary: ReportPageTests.data(.stopped, accepted: 3, rejected: 1, remaining: 2).summary,
            telemetry: telemetry, epochs: Array(epochs.prefix(2)), course: course,
            ledgerPath: "tonight", listPath: nil, createdAtMilliseconds: 0)
        let page = ReportPage(data: data)
        #expect(page.statusText == "interrupted, 50.0% accepted")
        #expect(page.sentence.hasPrefix("Interrupted after 1 m 03 s"), "\(page.sentence)")
        data.isInProgress = true
        #expect(ReportPage(data: data).statusText == "running")
    }

    @Test
    func `A wave has the runs from its time on, and an earlier one without a run went with it`() {
        let start: UInt64 = 1_795_264_562_000
        var data = ReportPageTests.nights()
        #expect(ReportPage(data: data).waves.isEmpty)
        var telemetry = Telemetry()
        // The second run began three hours after the first, and the last wave has not begun.
        telemetry.record(
            waves: ([0, 3_600_000, 7_200_000, 14_400_000] as [UInt64]).map { time in
                var wave = Wave(
                    atMilliseconds: start + time, isAtOnce: time == 0, localText: "2026-11-21 19:00"
                )
                for zone in ["Asia/Tokyo", "Asia/Seoul"] { wave.add(zone, rows: 600) }
                return wave
            })
        data.waves = telemetry.waves ?? []
        let rows = ReportPage(data: data).waves.split(separator: "<tr>").dropFirst(2).map {
            row -> String in
            let cells = row.matches(of: /<td[^>]*>([^<]*)<\/td>/).map { String($0.1) }
            return cells.joined(separator: ";").replacing("\u{a0}", with: " ")
        }
        let same = "2026-11-21 19:00;Asia/Tokyo and 1 other;1,200"
        let expected: [String] = [
            "1;at once;\(same);12:36:02;50;0;0",
            "2;2026-11-21 13:36 UTC;\(same);with wave 3;;;",
            "3;2026-11-21 14:36 UTC;\(same);15:36:02;50;0;0",
            "4;2026-11-21 16:36 UTC;\(same);not yet;;;",
        ]
        #expect(rows == expected)
    }

    @Test func `A wave that no run has begun to send is not shown as sent with a later one`() {
        let start: UInt64 = 1_795_264_562_000
        var data = ReportPageTests.nights()
        var telemetry = Telemetry()
        telemetry.record(
            waves: ([0, 3_600_000, 7_200_000] as [UInt64]).map { time in
                Wave(atMilliseconds: start + time, isAtOnce: false, localText: "")
            })
        data.waves = telemetry.waves ?? []
        // When the second run began, quiet hours delayed the first two waves.
        func began(_ first: [Int]?, _ second: [Int]?) -> [String] {
            data.runs[0].waves = first
            data.runs[1].waves = second
            return ReportPage(data: data).waves.split(separator: "<tr>").dropFirst(2).map { row in
                let cells = row.matches(of: /<td[^>]*>([^<]*)<\/td>/).map { String($0.1) }
                return cells[5].replacing("\u{a0}", with: " ") + " " + cells[6]
            }
        }
        #expect(began([2], [2]) == ["not yet ", "not yet ", "12:36:02 100"])
        #expect(began([2], [0]) == ["15:36:02 50", "not yet ", "12:36:02 50"])
        #expect(began([0, 1], [2]) == ["with wave 2 ", "12:36:02 50", "15:36:02 50"])
        #expect(began([9], nil) == ["12:36:02 50", "with wave 3 ", "15:36:02 50"])
        // All rows of the first wave waited until the second run sent them again.
        (data.runs[0].accepted, data.runs[0].rejected, data.runs[0].others) = (0, 0, 0)
        #expect(began([0], [1]) == ["12:36:02 ", "15:36:02 50", "not yet "])
        #expect(began(nil, [1]) == ["not yet ", "15:36:02 50", "not yet "])
    }

    @Test func `A merged ledger says why it has no table of waves`() {
        var data = ReportPageTests.data(accepted: 9)
        data.partsWithWaves = 3
        let page = String(decoding: ReportPage(data: data).html, as: UTF8.self)
        #expect(page.contains("<h2>Waves</h2>") && page.contains("Each of the 3 merged ledgers"))
    }

    @Test
    func `A run that waited for its wave begins when it sends, unless the time is impossible`() {
        var telemetry = Telemetry()
        let starts: [UInt64] = [1_000, 5_000, 9_000]
        let epochs = starts.enumerated().map { index, start in
            Manifest.Epoch(number: UInt32(index + 1), startedAtMilliseconds: start)
        }
        for (number, time) in [(1, 4_000), (2, 9_500), (3, 12_000)] as [(UInt32, UInt64)] {
            telemetry.begin(number, atMilliseconds: time, settings: [])
        }
        #expect(telemetry.withoutWaits(epochs) == epochs)
        telemetry.record(waves: [Wave(atMilliseconds: 1, isAtOnce: false, localText: "")])
        #expect(
            telemetry.withoutWaits(epochs).map(\.startedAtMilliseconds) == [4_000, 5_000, 12_000])
    }

    @Test func `The report has its start, end and the gaps between`() {
        let data = ReportPageTests.nights()
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

    @Test func `The list of runs has why each ended`() {
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
        let data = ReportPageTests.data(accepted: 1, telemetry: telemetry, epochs: epochs)
        // A run of version 0.1.0 left its last line only.
        #expect(
            data.runs.map(\.cause)
                == ["stopped by a signal", "the deadline has passed", nil, line])
    }

    @Test func `The axis has round times and names their clock`() {
        let short = TimeAxis(ReportPageTests.nights().runs, zone: .utc)
        #expect(
            short.ticks.map(\.text)
                == ["12:36:02", "12:36:04", "15:36:03"])
        #expect(short.note == "Times are UTC.")
        let zone = ClockZone(offset: 19_800, name: "IST")
        let long = TimeAxis(ReportPageTests.nights(seconds: 3600).runs, zone: zone)
        #expect(long.ticks.map(\.text) == ["18:30", "19:00", "21:30", "22:00"])
        #expect(long.note == "Times are IST, UTC+05:30.")
        let tiny = TimeAxis(ReportPageTests.nights(seconds: 0.3).runs, zone: .utc)
        #expect(tiny.ticks.map(\.text) == ["12:36:02.000", "15:36:02.000"])
        let none = TimeAxis([], zone: .utc)
        #expect(none.ticks.isEmpty && none.bands.isEmpty && none.fraction(5) == 0)
    }

    @Test func `A gap is a cut band, and a pause one to scale`() {
        let axis = TimeAxis(ReportPageTests.nights().runs, zone: .utc)
        #expect(axis.bands.map(\.text) == ["gap of 2 h 59 m", "paused"])
        #expect(axis.bands.map(\.isCut) == [true, false])
        let gap = axis.bands[0]
        // Two runs of two seconds, and 6% of that between them.
        #expect(abs(gap.left - 2 / 4.24) < 1e-9 && abs(gap.right - 2.24 / 4.24) < 1e-9)
        #expect(axis.fraction(2) == gap.right && axis.fraction(2, isEnd: true) == gap.left)
        let laid = axis.laid(
            [(0.0, 2.0), (2.0, 2.0)], start: { $0.0 }, duration: { $0.1 })
        #expect(laid.items.map { $0 == nil } == [false, true, false])
        #expect(laid.edges == [0, gap.left, gap.right, 1])
        let page = String(decoding: ReportPage(data: ReportPageTests.nights()).html, as: UTF8.self)
        #expect(page.contains("<title>gap of 2 h 59 m</title>"))
        #expect(page.contains("Shaded: a gap of 2 h 59 m, and pauses. Between // the axis is cut."))
    }

    @Test func `The peak is a full second's`() {
        var telemetry = Telemetry()
        telemetry.begin(1, atMilliseconds: 0, settings: [])
        var series = TimeSeries()
        for (start, duration, rows) in [(0.0, 1.0, 100), (1, 1, 120), (2, 0.5, 110)]
            as [(Double, Double, UInt64)]
        {
            var counts = RowCounts()
            counts[.accepted] = rows
            series.append(
                .init(
                    start: start, duration: duration, counts: counts,
                    latency: LatencyHistogram().counts, inFlight: 0, limited: []))
        }
        var snapshot = RunSnapshot()
        snapshot.elapsedSeconds = 2.5
        telemetry.take(snapshot, series, ReactorReport())
        let data = ReportPageTests.data(
            accepted: 330, telemetry: telemetry,
            epochs: [.init(number: 1, startedAtMilliseconds: 0)])
        #expect(data.throughput.map(\.duration) == [1, 1.5])
        #expect(data.throughput.map(\.accepted) == [100, 230])
        #expect(abs(data.peakRate - 230 / 1.5) < 1e-9)
        #expect(ReportPageTests.nights(seconds: 0.5).peakRate == 0)
    }

    @Test func `The duration is from start to end with gaps`() {
        let data = ReportPageTests.nights()
        #expect(data.wholeSeconds == 10_802 && data.runningSeconds == 4)
        let page = ReportPage(data: data)
        #expect(page.sentence.contains("3 h 00 m"), "\(page.sentence)")
        #expect(page.cards.contains("<b>3 h 00 m</b><span>from start to end</span>"))
        #expect(page.cards.contains("4 s without the gaps between runs"))
    }
}
