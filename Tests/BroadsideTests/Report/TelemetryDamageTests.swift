import APNs
import Campaign
import Foundation
import Support
import Testing

@testable import Broadside

/// `telemetry.json` is for people: whatever stands in it, nothing that reads it may trap.
@Suite struct TelemetryDamageTests {
    /// A campaign of two runs with everything that a file can have in it.
    static func telemetry() -> Telemetry {
        var telemetry = Telemetry()
        for number in 1...2 as ClosedRange<UInt32> {
            let began = 1_795_264_562_000 + UInt64(number) * 10_800_000
            telemetry.begin(
                number, atMilliseconds: began, settings: [.init(name: "rate", value: "none")])
            var snapshot = RunSnapshot()
            snapshot.elapsedSeconds = 90
            var histogram = LatencyHistogram()
            for index in 1...200 as ClosedRange<UInt64> { histogram.record(index * 100_000) }
            snapshot.latencyCounts = histogram.counts
            var series = TimeSeries()
            for second in 0..<3 {
                var counts = RunSnapshot.Counts()
                counts.accepted = 50
                series.append(
                    .init(
                        start: Double(second * 30), duration: 30, counts: counts,
                        latency: histogram.counts, inFlight: 7,
                        limited: LimitedBy.allCases.map { _ in 1000 }))
            }
            var report = ReactorReport()
            report.statistics.limited = LimitedBy.allCases.map { _ in 4_000_000_000 }
            var tally = ConnectionTally()
            tally.number = 3
            tally.noteAnswer(latencyNanoseconds: 5_000_000)
            report.connections = [tally]
            telemetry.take(snapshot, series, report)
            telemetry.add(RunEvent(.stopping, .info, "no new requests", milliseconds: began + 5))
            telemetry.beginPause(atMilliseconds: began + 10)
            telemetry.endPause(atMilliseconds: began + 1010)
            telemetry.end(
                outcome: "stopped", cause: "stopped by a signal",
                stop: StopRecord(.signal, wasAnswered: true), atMilliseconds: began + 90_000)
        }
        return telemetry
    }

    /// Reads the bytes as `report` and a resumed run do.
    static func use(_ bytes: [UInt8]) -> Telemetry? {
        guard var telemetry = Telemetry(decoding: bytes) else { return nil }
        let epochs = telemetry.runs.map {
            Manifest.Epoch(
                number: $0.number, startedAtMilliseconds: 1_795_264_562_000)
        }
        var summary = Summary(campaign: 7, outcome: .stopped)
        summary.accepted = 300
        summary.rows = 400
        let data = ReportData(
            summary: summary, telemetry: telemetry, epochs: epochs, course: nil,
            ledgerPath: "tonight", listPath: nil, createdAtMilliseconds: 0)
        #expect(ReportPage(data: data).html.count > 1000)
        telemetry.begin(9, atMilliseconds: 0, settings: [])
        var snapshot = RunSnapshot()
        snapshot.latencyCounts = Self.telemetry().latency
        telemetry.take(snapshot, TimeSeries(), ReactorReport())
        telemetry.end(outcome: "complete", cause: nil)
        return telemetry
    }

    static let numbers = [
        "-1", "0", "1", "1.5", "1e308", "-1e308", "1e19", "18446744073709551615",
        "9223372036854775807", "4294967296", "281474976710656", "null", "\"1\"", "[]", "{}",
    ]

    /// The file without its hash, as version 0.1.0 wrote it.
    static var plain: String {
        let text = String(decoding: telemetry().encoded, as: UTF8.self)
        return text.replacing(/,"hash":"[0-9a-f]{16}"/, with: "")
    }

    @Test func `Whatever number stands in it, nothing traps`() {
        let text = Self.plain
        #expect(Self.use(Array(text.utf8)) != nil)
        var count = 0
        for match in text.matches(of: /[:\[,](-?[0-9][0-9.]*)/) {
            let range = match.1.startIndex..<match.1.endIndex
            for number in Self.numbers {
                var edited = text
                edited.replaceSubrange(range, with: number)
                _ = Self.use(Array(edited.utf8))
                count += 1
            }
        }
        #expect(count > 2000)
    }

    @Test func `A list that is empty or twice as long traps nothing either`() {
        let text = Self.plain
        for match in text.matches(of: /\[[^\[\]]*\]/) {
            let inside = text[match.range].dropFirst().dropLast()
            for list in ["[]", "[\(inside),\(inside)]", "[[]]", "null"] {
                var edited = text
                edited.replaceSubrange(match.range, with: list)
                _ = Self.use(Array(edited.utf8))
            }
        }
    }

    @Test func `One flipped bit is found`() throws {
        let bytes = Self.telemetry().encoded
        #expect(Telemetry(decoding: bytes)?.encoded == bytes)
        for place in bytes.indices.dropLast() {
            var edited = bytes
            edited[place] ^= 1
            // Without its name the hash is one of a later version's members; the rest is whole.
            let found = Telemetry(decoding: edited)
            #expect(found == nil || found?.encoded == bytes, "byte \(place)")
        }
    }
}
