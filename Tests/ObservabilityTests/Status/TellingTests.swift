import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideEngine
@testable import BroadsideLists
@testable import BroadsideObservability

/// What a run keeps of its course: bounded, and true to the counts.
@Suite struct TellingTests {
    static func point(_ second: Int, answers: UInt64 = 100) -> TimeSeries.Point {
        var counts = RowCounts()
        counts[.accepted] = answers - 10
        counts[.rejected] = 7
        counts[.failed] = 3
        var latency = LatencyHistogram()
        for answer in 0..<answers { latency.record((answer + 1) * 1_000_000) }
        return TimeSeries.Point(
            start: Double(second), duration: 1, counts: counts, latency: latency.counts,
            inFlight: second, limited: [1000, 2000, 3000, 0, 0, 0, 0, 0])
    }

    @Test(arguments: [1, 599, 600, 601, 1201, 5000])
    func `A time series is bounded and loses no row`(seconds: Int) throws {
        var series = TimeSeries()
        let one = Self.point(0)
        for second in 0..<seconds {
            var point = one
            point.start = Double(second)
            series.append(point)
        }
        #expect(series.points.count <= TimeSeries.limit)
        #expect(series.points.count >= min(seconds, TimeSeries.limit / 2))
        let accepted: UInt64 = series.points.map(\.accepted).reduce(0, +)
        #expect(accepted == UInt64(seconds) * 90)
        let others: UInt64 = series.points.map(\.others).reduce(0, +)
        #expect(others == UInt64(seconds) * 3)
        var end = 0.0
        for point in series.points {
            #expect(point.start == end)
            end = point.start + point.duration
        }
        #expect(end == Double(seconds))
        // One stretch is as long as the other: old times are told as finely as new ones.
        #expect(Set(series.points.dropLast().map(\.duration)).count <= 1)
        #expect(series.points.allSatisfy { $0.p99 == one.p99 && $0.p50 == one.p50 })
    }

    @Test func `The counters of a process with waves go on from one wave to the next`() throws {
        var report = ReactorReport()
        var latency = LatencyHistogram()
        for _ in 0..<4 { latency.record(1_000_000) }
        report.latency = latency.counts
        report.statistics.requests = 5
        report.statistics.retries = 2
        report.statistics.connectionsOpened = 1
        var sampler = RunSampler(
            RunSampler.Context(
                campaign: "", earlier: .init(), knownEnd: 30, wantedConnections: 1,
                earlierPasses: .init(
                    report.statistics, report.latency, seconds: 50, sendingSeconds: 2)),
            start: Now(nanoseconds: 0, wallMilliseconds: 90_000))
        func metrics() -> String {
            MetricsText(
                sampler.snapshot, use: ProcessUse(cpuMicroseconds: 1, peakResidentBytes: 2)
            ).text
        }
        #expect(metrics().contains("broadside_requests_total 5\n"), "before the first sample")
        #expect(sampler.snapshot.rows == 30, "the zones of all rows are known")
        #expect(sampler.snapshot.rateAverage == 2, "before the first sample")
        report.statistics.requests = 3
        sampler.sample(
            report, list: .init(), phase: .running, milliRate: nil,
            now: Now(nanoseconds: 2 * second, wallMilliseconds: 92_000))
        #expect(sampler.snapshot.sendingSeconds == 4 && sampler.snapshot.elapsedSeconds == 2)
        #expect(sampler.snapshot.startedAtMilliseconds == 40_000)
        for line in [
            "broadside_requests_total 8", "broadside_retries_total 4",
            "broadside_connections_opened_total 2", "broadside_answer_latency_seconds_count 8",
            "broadside_run_seconds 4.0",
        ] {
            #expect(metrics().contains("\n\(line)\n"), "\(line)")
        }
        let progress = sampler.snapshot.json.object
        #expect(progress.contains("\"elapsed_seconds\":4") && progress.contains("\"retries\":4"))
        #expect(sampler.snapshot.rateNow == 2, "the rate is that of the present wave")
        #expect(sampler.snapshot.rateAverage == 2 && progress.contains("\"rate_average\":2,"))
    }

    @Test func `A wait for a wave is not sending time, and does not lower the average rate`() {
        var earlier = RunStatistics()
        earlier.untimedResponses = 60
        var sampler = RunSampler(
            RunSampler.Context(
                campaign: "", earlier: .init(), wantedConnections: 1,
                earlierPasses: .init(earlier, LatencyCounts(), seconds: 10, sendingSeconds: 10)),
            start: Now(nanoseconds: 0, wallMilliseconds: 10_000))
        let wave = Wave(atMilliseconds: 3_610_000, isAtOnce: false, localText: "")
        sampler.take(
            waves: WaveProgress(waves: [wave], current: nil, next: 0, isWaiting: true))
        sampler.sample(
            ReactorReport(), list: .init(), phase: .waiting, milliRate: nil,
            now: Now(nanoseconds: 600 * second, wallMilliseconds: 610_000))
        #expect(sampler.snapshot.sendingSeconds == 10 && sampler.snapshot.rateAverage == 6)
        #expect(sampler.snapshot.startedAtMilliseconds == 0)
        #expect(sampler.snapshot.json.object.contains("\"elapsed_seconds\":10"))
        #expect(sampler.snapshot.json.object.contains("\"waiting\":true"))
        var ended = sampler.snapshot
        ended.phase = .finished
        #expect(ended.json.object.contains("\"waiting\":false") && ended.sendingSeconds == 10)
        let text = MetricsText(
            sampler.snapshot, use: ProcessUse(cpuMicroseconds: 1, peakResidentBytes: 2)
        ).text
        #expect(text.contains("\nbroadside_run_seconds 10.0\n"))
    }

    @Test func `Rows that earlier runs sent beyond the limit belong to the rows of a run`() {
        var earlier = RowCounts()
        earlier[.accepted] = 40
        let sampler = RunSampler(
            RunSampler.Context(
                campaign: "", earlier: earlier, rows: CampaignRows(limit: 200),
                beyondLimitCount: 32, knownEnd: 200, wantedConnections: 1),
            start: Now(nanoseconds: 0, wallMilliseconds: 0))
        #expect(sampler.snapshot.rows == 232)
    }

    @Test func `The list's rows are estimated until its end is read`() {
        var sampler = RunSampler(
            RunSampler.Context(
                campaign: "", earlier: .init(), rows: CampaignRows(limit: 900),
                listByteCount: 65_000, wantedConnections: 1),
            start: Now(nanoseconds: 0, wallMilliseconds: 0))
        var report = ReactorReport()
        func look(_ rows: UInt64, _ bytes: UInt64, atEnd: Bool = false, _ seconds: UInt64) {
            sampler.sample(
                report, list: .init(rows: rows, bytes: bytes, isAtEnd: atEnd), phase: .running,
                milliRate: 2500, now: Now(nanoseconds: seconds * second, wallMilliseconds: 0))
        }
        look(0, 0, 1)
        #expect(sampler.snapshot.rows == nil && sampler.snapshot.share == nil)
        look(100, 6500, 2)
        #expect(sampler.snapshot.rows == 900 && !sampler.snapshot.isRowsEstimate)
        look(100, 13_000, 3)
        #expect(sampler.snapshot.rows == 500 && sampler.snapshot.isRowsEstimate)
        #expect(sampler.snapshot.rateLimit == 2.5)
        report.statistics.counts[.accepted] = 200
        report.statistics.limited[Bottleneck.rate.rawValue] = 3
        report.statistics.limited[Bottleneck.cpu.rawValue] = 1
        var latency = LatencyHistogram()
        for _ in 0..<200 { latency.record(1_000_000) }
        report.latency = latency.counts
        look(400, 65_000, atEnd: true, 5)
        #expect(sampler.snapshot.rows == 400 && !sampler.snapshot.isRowsEstimate)
        #expect(sampler.snapshot.share == 0.5 && sampler.snapshot.rateNow == 100)
        #expect(sampler.snapshot.rateAverage == 40 && sampler.snapshot.limitedBy == .rate)
        #expect(sampler.snapshot.limitedNow[Bottleneck.rate.rawValue] == 0.75)
        #expect(sampler.snapshot.etaSeconds == 200 / 2.5, "no faster than the limit")
        #expect(sampler.series.points.count == 4)
    }

    @Test func `The rate of a run's last sample covers a whole second`() {
        func rate(_ samples: [(milliseconds: UInt64, responses: Int)]) -> Double {
            var sampler = RunSampler(
                RunSampler.Context(campaign: "", earlier: .init(), wantedConnections: 1),
                start: Now(nanoseconds: 0, wallMilliseconds: 0))
            var report = ReactorReport()
            var latency = LatencyHistogram()
            for sample in samples {
                for _ in 0..<sample.responses { latency.record(1_000_000) }
                report.latency = latency.counts
                sampler.sample(
                    report, list: .init(), phase: .running, milliRate: nil,
                    now: Now(
                        nanoseconds: sample.milliseconds * millisecond, wallMilliseconds: 0))
            }
            return sampler.snapshot.rateNow
        }
        #expect(rate([(1000, 80), (2000, 80)]) == 80)
        // 27 responses within a tenth of a second.
        let last = rate([(1000, 80), (2000, 80), (2100, 27)])
        #expect(abs(last - (27 + 0.9 * 80)) < 0.001, "\(last)")
        let short = rate([(100, 27)])
        #expect(abs(short - 270) < 0.001, "a run shorter than a second: \(short)")
    }

    /// What a sampler says after a look at a list of 65,000 bytes of which something was read.
    private func rows(
        _ rows: CampaignRows, knownEnd: UInt64? = nil, read: ListSource.Progress
    ) -> (rows: UInt64?, isEstimate: Bool) {
        var sampler = RunSampler(
            RunSampler.Context(
                campaign: "", earlier: .init(), rows: rows, knownEnd: knownEnd,
                listByteCount: 65_000, wantedConnections: 1),
            start: Now(nanoseconds: 0, wallMilliseconds: 0))
        sampler.sample(
            ReactorReport(), list: read, phase: .running, milliRate: nil,
            now: Now(nanoseconds: second, wallMilliseconds: 0))
        return (sampler.snapshot.rows, sampler.snapshot.isRowsEstimate)
    }

    @Test func `A shard's rows are its own, by bytes or by rows`() {
        func part(_ first: UInt64, _ end: UInt64?) -> ListExtent {
            ListExtent(
                firstRow: first, byteOffset: first * 65, firstLine: first + 1, endRow: end,
                endByteOffset: end.map { $0 * 65 })
        }
        // 1,000 rows. Shards 1, 2 and 3 of 4 end where the next one begins.
        for (first, end) in [(0, 250), (250, 500), (500, 750)] as [(UInt64, UInt64)] {
            let shard = CampaignRows(part: part(first, end))
            let read = ListSource.Progress(rows: first + 10, bytes: (first + 10) * 65)
            #expect(rows(shard, read: .init()) == (250, false))
            #expect(rows(shard, read: read) == (250, false))
            let atEnd = ListSource.Progress(rows: end, bytes: end * 65, isAtEnd: true)
            #expect(rows(shard, knownEnd: end, read: atEnd) == (250, false))
        }
        // The last one ends where the list does.
        let last = CampaignRows(part: part(750, nil))
        let beginning = ListSource.Progress(rows: 760, bytes: 760 * 65)
        #expect(rows(last, read: .init()) == (nil, false))
        #expect(rows(last, read: beginning) == (250, true))
        #expect(rows(last, knownEnd: 990, read: beginning) == (240, false))
        let whole = ListSource.Progress(rows: 1000, bytes: 65_000, isAtEnd: true)
        #expect(rows(last, read: whole) == (250, false))
        var limited = last
        limited.limit = 800
        #expect(rows(limited, read: beginning) == (50, false))
        // Dealt out by rows: 0, 3, 6 and so on are 334 of 1,000, the others 333.
        for (remainder, count) in [(0, 334), (1, 333), (2, 333)] as [(UInt64, UInt64)] {
            let dealt = CampaignRows(selection: .init(divisor: 3, remainder: remainder))
            let some = ListSource.Progress(rows: 100, bytes: 6500)
            #expect(rows(dealt, read: some) == (count, true))
            #expect(rows(dealt, knownEnd: 1000, read: some) == (count, false))
            #expect(rows(dealt, read: whole) == (count, false))
        }
    }

    @Test func `Latency counts are those between two samples`() throws {
        var histogram = LatencyHistogram()
        for value in 1...1000 { histogram.record(UInt64(value) * 1_000_000) }
        let first = histogram.counts
        #expect(first.sumNanoseconds == 500_500 * 1_000_000)
        for _ in 0..<10 { histogram.record(5_000_000_000) }
        let period = histogram.counts.since(first)
        #expect(period.count == 10)
        #expect((4_900_000_000...5_000_000_000).contains(try #require(period.quantile(0.5))))
        #expect(first.count(upTo: 100_000_000).distance(to: 100).magnitude <= 3)

        let decoded = try JSONDecoder().decode(
            LatencyCounts.self, from: JSONEncoder().encode(histogram.counts))
        #expect(decoded == histogram.counts)
        let columns = first.columns(40)
        #expect(columns.count == 40)
        let sum: Double = columns.map(\.count).reduce(0, +)
        #expect(abs(sum - 1000) < 0.001)
    }

    @Test func `A few responses in no time leave the columns of a histogram to the others`() {
        var histogram = LatencyHistogram()
        for _ in 0..<9 { histogram.record(0) }
        for value in 1...10_000 { histogram.record(40_000_000 + UInt64(value) * 1000) }
        let columns = histogram.counts.columns(40)
        #expect(columns[0].upper > 39_000_000)
        let sum: Double = columns.map(\.count).reduce(0, +)
        #expect(abs(sum - 10_009) < 0.001)
        #expect(columns[0].count > 9)
    }

    @Test func `Telemetry stays small over many long runs and is read back`() throws {
        var telemetry = Telemetry()
        for run in 1...120 {
            telemetry.begin(UInt32(run), atMilliseconds: UInt64(run) * 1_000_000, settings: [])
            var series = TimeSeries()
            var one = Self.point(0)
            for second in 0..<300 {
                one.start = Double(second)
                series.append(one)
            }
            var snapshot = RunSnapshot()
            snapshot.elapsedSeconds = 300
            var latency = LatencyHistogram()
            latency.record(7_000_000)
            snapshot.latencyCounts = latency.counts
            var report = ReactorReport()
            report.connections = [ConnectionTally](repeating: ConnectionTally(), count: 128)
            telemetry.take(snapshot, series, report)
            telemetry.take(snapshot, series, report)
            for event in 0..<50 {
                telemetry.add(
                    RunEvent(
                        .goAway, .warning, connection: 1, "event \(event) of \(run)",
                        milliseconds: 1))
            }
            telemetry.end(outcome: "stopped", cause: nil)
        }
        #expect(telemetry.runs.count == Telemetry.runsLimit)
        #expect(telemetry.runs.map(\.points.count).reduce(0, +) <= Telemetry.pointsLimit)
        #expect(telemetry.runs.last?.points.count == 300)
        #expect(telemetry.events.count == Telemetry.eventsLimit)
        #expect(telemetry.eventsLost == 120 * 50 - UInt64(Telemetry.eventsLimit))
        #expect(telemetry.events.last?.message.hasSuffix("event 49 of 120") == true)
        // Taken twice, counted once, over all runs.
        #expect(telemetry.latency.count == 120)
        let bytes = telemetry.encoded
        #expect(bytes.count < 1 << 20)
        #expect(try #require(Telemetry(decoding: bytes)).encoded == bytes)
        #expect(Telemetry(decoding: Array("{\"version\":2}".utf8)) == nil)
        #expect(Telemetry(decoding: Array(bytes.dropLast(9))) == nil)
    }

    /// A short run has one sample, taken before its first request or behind its last response.
    @Test func `A killed run is interrupted in the text, and stopped in the JSON`() {
        var summary = Summary(campaign: 1, outcome: .stopped)
        #expect(summary.countsText.contains(": stopped\n"))
        summary.wasKilled = true
        #expect(summary.countsText.contains(": interrupted\n"), "\(summary.countsText)")
        #expect(String(decoding: summary.json(), as: UTF8.self).contains("\"stopped\""))
        summary.outcome = .aborted
        #expect(summary.countsText.contains(": aborted\n"), "\(summary.countsText)")
    }

    @Test func `Rows in doubt are not said to be unsent because few were seen in flight`() {
        var telemetry = Telemetry()
        telemetry.begin(1, atMilliseconds: 1_000_000, settings: [])
        var series = TimeSeries()
        series.append(Self.point(0))
        telemetry.take(RunSnapshot(), series, ReactorReport())
        var counts = RowCounts()
        counts[.inDoubt] = 300
        var summary = Summary(campaign: 1, outcome: .stopped)
        summary.take(counts, rows: 300)
        summary.take(telemetry, run: 1)
        #expect(summary.countsText.contains("in doubt    300 of them\n"), "\(summary.countsText)")
        #expect(summary.doubtAdvice?.contains("may have been sent") == true)
        // A run may be paused, so that none of them is in flight.
        summary.outcome = .running
        summary.take(counts, rows: nil)
        #expect(
            summary.countsText.contains("in doubt    300, reserved by the run\n"),
            "\(summary.countsText)")
        #expect(summary.doubtAdvice == nil)
    }

    @Test func `The log has a limited number of lines per second and counts the rest`() throws {
        var log = EventLog(.json, progress: .auto, campaign: "0123456789abcdef", name: nil)
        func event(_ level: RunEvent.Level) -> RunEvent {
            RunEvent(
                .connectionLost, level, connection: 3, "a \"b\"\n", milliseconds: 1_795_264_562_059)
        }
        var lines: [String] = []
        for _ in 0..<100 { lines += log.lines(for: event(.info), now: 5 * second) }
        #expect(lines.count == EventLog.linesLimit)
        #expect(
            lines[0] == #"{"time":"2026-11-21T12:36:02.059Z","level":"info","#
                + #""campaign":"0123456789abcdef","event":"connection-lost","connection":3,"#
                + #""message":"a \"b\"\n"}"#)
        lines = log.lines(for: event(.info), now: 6 * second)
        #expect(lines.count == 2 && lines[0].contains("80 more events"))

        var quiet = EventLog(nil, progress: .auto, campaign: "0123456789abcdef", name: nil)
        #expect(quiet.lines(for: event(.info), now: 0).isEmpty)
        #expect(
            quiet.lines(for: event(.warning), now: 0)
                == ["2026-11-21T12:36:02.059Z warning: connection 3: a \"b\"\\n"])
        var silent = EventLog(nil, progress: .none, campaign: "0123456789abcdef", name: nil)
        #expect(silent.lines(for: event(.warning), now: 0).isEmpty)
    }

    @Test func `The limit on lines omits no warning, no event of the run and no end`() {
        var log = EventLog(.json, progress: .none, campaign: "0123456789abcdef", name: nil)
        func lines(_ kind: RunEvent.Kind, _ level: RunEvent.Level, _ connection: Int?) -> [String] {
            let event = RunEvent(kind, level, connection: connection, "x", milliseconds: 0)
            return log.lines(for: event, now: 5 * second)
        }
        let opened = (0..<100).flatMap { lines(.connectionOpen, .info, $0 + 1) }
        #expect(opened.count == EventLog.linesLimit)
        #expect((0..<50).allSatisfy { lines(.connectionLost, .warning, $0 + 1).count == 1 })
        #expect((0..<50).allSatisfy { _ in lines(.control, .notice, nil).count == 1 })
        // The line that counts the others comes before the end, within the same second.
        let last = lines(.ended, .info, nil)
        #expect(last.count == 2 && last[0].contains("80 more events"), "\(last)")
        #expect(last.last?.contains("\"event\":\"ended\"") == true)
        #expect(log.linesDue(now: 5 * second, isEnd: true).isEmpty)
    }

    @Test func `Connections that break one after the other are two lines in ten seconds`() {
        var log = EventLog(nil, progress: .auto, campaign: "", name: nil)
        func event(_ kind: RunEvent.Kind, _ connection: Int?, _ reason: String) -> RunEvent {
            var fields = RunEvent.Fields()
            (fields.status, fields.reason) = (500, reason)
            return RunEvent(
                kind, .notice, connection: connection, "127.0.0.1:443: what happened",
                milliseconds: 0, fields: fields)
        }
        let storm = (1...9).map { event(.connectionDrained, $0, "InternalServerError") }
        #expect(storm.flatMap { log.lines(for: $0, now: second) }.count == 1)
        // What is not about a connection waits for nothing, nor does another kind.
        #expect(log.lines(for: event(.control, nil, "Shutdown"), now: 2 * second).count == 1)
        #expect(log.lines(for: event(.connectionLost, 3, "Shutdown"), now: 2 * second).count == 1)
        #expect(log.linesDue(now: 10 * second).isEmpty)
        let summed = log.linesDue(now: 11 * second)
        #expect(
            summed.map { $0.dropFirst(25) } == [
                "notice: 8 more connections were replaced within 10 s after 500 InternalServerError"
            ], "\(summed)")
        // The storm goes on: a line every ten seconds, until there was none in them.
        for reason in ["InternalServerError", "Shutdown"] {
            let more = event(.connectionDrained, 1, reason)
            #expect(log.lines(for: more, now: 12 * second).isEmpty)
        }
        let mixed = log.linesDue(now: 21 * second).joined()
        #expect(
            mixed.hasSuffix(
                "2 more connections were replaced within 10 s, the last one after 500 Shutdown"))
        #expect(log.linesDue(now: 31 * second).isEmpty)
        #expect(log.lines(for: storm[0], now: 32 * second).count == 1)
        // One is not summed up, and the end waits for nothing.
        #expect(log.lines(for: storm[1], now: 32 * second).isEmpty)
        #expect(log.linesDue(now: 33 * second, isEnd: true).joined().contains("connection 2: 127"))
        // A log that was asked for has each event.
        var asked = EventLog(.text, progress: .auto, campaign: "", name: nil)
        #expect(storm.flatMap { asked.lines(for: $0, now: second) }.count == 9)
    }

    @Test func `Times are local with their zone on a terminal and UTC in a log`() {
        let event = RunEvent(.control, .notice, "x", milliseconds: 1_795_433_467_419)
        let local = EventLog(
            nil, progress: .auto, campaign: "", name: nil, isOnTerminal: true)
        #expect(local.line(event, .text) == "\(localClock(1_795_433_467_419)) notice: x")
        for asked in [nil, EventLogFormat.text] {
            let log = EventLog(
                asked, progress: .auto, campaign: "", name: nil, isOnTerminal: asked != nil)
            #expect(log.line(event, .text) == "2026-11-23T11:31:07.419Z notice: x")
        }
    }

    @Test func `Numbers are written as people read them`() {
        #expect(grouped(0 as UInt64) == "0" && grouped(999 as UInt64) == "999")
        #expect(grouped(1_234_567 as UInt64) == "1,234,567")
        #expect(durationText(59.4) == "59 s" && durationText(60) == "1 m 00 s")
        #expect(durationText(7500) == "2 h 05 m" && durationText(90_000) == "1 d 01 h")
        #expect(latencyText(1_250_000) == "1.3 ms" && latencyText(42_400_000) == "42 ms")
        #expect(latencyText(1_310_000_000) == "1.3 s")
        #expect(latencyText(43_700) == "0.04 ms" && latencyText(999_000) == "1.00 ms")
        #expect(percentText(0.999) == "99%" && percentText(1) == "100%")
        #expect(rateText(0.5) == "0.5" && rateText(41_200.4) == "41,200")
        #expect(Chart.short(60_000) == "60k" && Chart.short(1_500_000) == "1.5M")
        for maximum in [0.003, 0.7, 1, 3.1, 9.9, 12, 99, 41_200, 999_999] {
            let top = Chart.niceTop(maximum)
            #expect(top >= maximum && top <= maximum * 1.7)
        }
        #expect(escapedHTML("<a \"b\"&>") == "&lt;a &quot;b&quot;&amp;&gt;")
    }
}
