import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideEngine
@testable import BroadsideObservability

/// `telemetry.json` is for people: whatever stands in it, nothing that reads it may trap.
@Suite struct TelemetryDamageTests {
    /// A campaign of two runs with everything that a file can have in it.
    static func telemetry() -> Telemetry {
        var telemetry = Telemetry()
        for number in 1...2 as ClosedRange<UInt32> {
            let began = 1_795_264_562_000 + UInt64(number) * 10_800_000
            telemetry.begin(
                number, atMilliseconds: began, settings: [.init(name: "rate", value: "none")],
                earlierPasses: Int(number) - 1)
            telemetry.wait(untilMilliseconds: began + 1)
            var snapshot = RunSnapshot()
            snapshot.elapsedSeconds = 90
            var histogram = LatencyHistogram()
            for index in 1...200 as ClosedRange<UInt64> { histogram.record(index * 100_000) }
            snapshot.latencyCounts = histogram.counts
            var series = TimeSeries()
            for second in 0..<3 {
                var counts = RowCounts()
                counts[.accepted] = 50
                series.append(
                    .init(
                        start: Double(second * 30), duration: 30, counts: counts,
                        latency: histogram.counts, inFlight: 7,
                        limited: Bottleneck.allCases.map { _ in 1000 }))
            }
            var report = ReactorReport()
            report.statistics.limited = Bottleneck.allCases.map { _ in 4_000_000_000 }
            var tally = ConnectionTally()
            tally.number = 3
            tally.recordResponse(latencyNanoseconds: 5_000_000)
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
        summary.counts[.accepted] = 300
        summary.rows = 400
        if let number = telemetry.runs.last?.number { summary.take(telemetry, run: number) }
        #expect(summary.text.hasPrefix("campaign ") && !summary.json().isEmpty)
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
        "-1", "0", "1", "1.5", "1e-18", "5e-324", "1e308", "-1e308", "1e19", "18446744073709551615",
        "9223372036854775807", "4294967296", "281474976710656", "1125899906842624",
        "1152921504606846976", "null", "\"1\"", "[]", "{}",
    ]

    /// The file without its hash.
    static var plain: String {
        let text = String(decoding: telemetry().encoded, as: UTF8.self)
        return text.replacing(/,"hash":"[0-9a-f]{16}"/, with: "")
    }

    /// What somebody edited who knows how the hash is made.
    static func sealed(_ text: String) -> [UInt8] {
        Telemetry.sealed(Array(text.utf8).dropLast("}\n".utf8.count))
    }

    @Test func `Telemetry with any number never traps`() {
        let text = Self.plain
        #expect(Self.use(Self.sealed(text)) != nil)
        var count = 0
        for match in text.matches(of: /[:\[,](-?[0-9][0-9.]*)/) {
            let range = match.1.startIndex..<match.1.endIndex
            for number in Self.numbers {
                var edited = text
                edited.replaceSubrange(range, with: number)
                _ = Self.use(Self.sealed(edited))
                count += 1
            }
        }
        #expect(count > 2000)
    }

    /// The largest value of each number, by its name.
    static let bounds: [(name: String, bound: String)] = [
        ("p50", "1125899906842624"), ("p99", "1125899906842624"), ("accepted", "281474976710656"),
        ("rejected", "281474976710656"), ("others", "281474976710656"),
        ("answers", "281474976710656"), ("start", "3200000000"), ("duration", "3200000000"),
        ("elapsedSeconds", "3200000000"), ("inFlight", "2147483648"),
        ("retries", "281474976710656"), ("reconnects", "281474976710656"),
        ("eventsLost", "281474976710656"), ("opened", "281474976710656"),
        ("goAways", "281474976710656"), ("failures", "281474976710656"),
        ("startedAtMilliseconds", "253402300799999"), ("endedAtMilliseconds", "253402300799999"),
        ("waitedUntilMilliseconds", "253402300799999"), ("earlierPasses", "2147483648"),
        ("milliseconds", "253402300799999"), ("latencySumNanoseconds", "1152921504606846976"),
        ("latencyMaximumNanoseconds", "1152921504606846976"),
        ("max", "1152921504606846976"), ("sum", "18446744073709551615"),
    ]

    @Test func `Telemetry with numbers at their bounds makes a page`() throws {
        var all = Self.plain
        for (name, bound) in Self.bounds {
            let member = try Regex("\"\(name)\":[0-9.]+")
            let one = Self.plain.replacing(member, with: "\"\(name)\":\(bound)")
            #expect(one != Self.plain, "\(name)")
            #expect(Self.use(Self.sealed(one)) != nil, "\(name)")
            all = all.replacing(member, with: "\"\(name)\":\(bound)")
        }
        // In points first, as microseconds; those of a run are nanoseconds.
        let times = ["1125899906842624", "1152921504606846976"].map { bound in
            let list = Bottleneck.allCases.map { _ in bound }.joined(separator: ",")
            return "\"limited\":[\(list)]"
        }
        all = all.replacing(/"limited":\[[0-9,]*\]/, with: times[0])
        #expect(Self.use(Self.sealed(all)) != nil)
        let ofRuns = all.replacing("\(times[0]),\"number\"", with: "\(times[1]),\"number\"")
        #expect(ofRuns != all)
        #expect(Self.use(Self.sealed(ofRuns)) != nil)
        let last = "[[\(LatencyHistogram.bucketCount - 1),281474976710655],["
        let slow = ofRuns.replacing("\"buckets\":[[", with: "\"buckets\":\(last)")
        #expect(Self.use(Self.sealed(slow)) != nil)
        // More is too much.
        for (name, bound) in Self.bounds where name != "sum" {
            let more = all.replacing("\"\(name)\":\(bound)", with: "\"\(name)\":\(bound)0")
            #expect(Telemetry(decoding: Self.sealed(more)) == nil, "\(name)")
        }
    }

    @Test func `Telemetry without a hash is read only from version 0.1.0`() {
        #expect(Telemetry(decoding: Array(Self.plain.utf8)) == nil)
        var old = Telemetry()
        old.begin(1, atMilliseconds: 5, settings: [])
        old.end(outcome: "stopped", cause: "stopped by a signal")
        let text = String(decoding: old.encoded, as: UTF8.self)
            .replacing(/,"hash":"[0-9a-f]{16}"/, with: "")
        #expect(Self.use(Array(text.utf8)) != nil)
    }

    @Test func `Telemetry without responses, or with too many buckets, never traps`() {
        var telemetry = Self.telemetry()
        var snapshot = RunSnapshot()
        snapshot.latencyCounts = telemetry.latency
        var series = TimeSeries()
        var histogram = LatencyHistogram()
        histogram.record(1_000_000)
        for second in 0..<TimeSeries.limit {
            series.append(
                .init(
                    start: Double(second), duration: 1, counts: .init(),
                    latency: histogram.counts, inFlight: 0, limited: []))
        }
        for number in 3...4 as ClosedRange<UInt32> {
            telemetry.begin(number, atMilliseconds: 0, settings: [])
            telemetry.take(snapshot, series, ReactorReport())
        }
        let text = String(decoding: telemetry.encoded, as: UTF8.self)
            .replacing(/,"hash":"[0-9a-f]{16}"/, with: "")
        let idle = text.replacing(/"answers":[0-9]+/, with: "\"answers\":0")
        guard var found = Telemetry(decoding: Self.sealed(idle)) else {
            Issue.record("not read")
            return
        }
        found.begin(5, atMilliseconds: 0, settings: [])
        found.take(snapshot, series, ReactorReport())
        let pair = "[400,281474976710655],"
        let many = Self.plain.replacing(
            "\"buckets\":[", with: "\"buckets\":[" + String(repeating: pair, count: 70_000))
        #expect(Telemetry(decoding: Self.sealed(many)) == nil)
    }

    @Test func `Telemetry with an empty or doubled list never traps`() {
        let text = Self.plain
        for match in text.matches(of: /\[[^\[\]]*\]/) {
            let inside = text[match.range].dropFirst().dropLast()
            for list in ["[]", "[\(inside),\(inside)]", "[[]]", "null"] {
                var edited = text
                edited.replaceSubrange(match.range, with: list)
                _ = Self.use(Self.sealed(edited))
            }
        }
    }

    @Test func `One flipped bit in telemetry is found`() throws {
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
