import BroadsideLedgerFormat
import BroadsideSupport
import Foundation
import Testing

@testable import BroadsideEngine
@testable import BroadsideObservability

/// The text that Prometheus reads; promtool's verdict on a real run is among the command's tests.
@Suite struct MetricsTextTests {
    @Test func `The histogram is cumulative and ends with all answers`() throws {
        var histogram = LatencyHistogram()
        for value in [1, 3, 7, 40, 40, 900, 70_000] as [UInt64] {
            histogram.record(value * 1_000_000)
        }
        var snapshot = RunSnapshot()
        snapshot.latencyCounts = histogram.counts
        let lines = text(snapshot)
        let buckets = lines.filter { $0.hasPrefix("broadside_answer_latency_seconds_bucket") }
        let counts = try buckets.map { try #require(UInt64($0.split(separator: " ")[1])) }
        #expect(counts == counts.sorted() && counts.last == 7)
        #expect(buckets.count == MetricsText.latencyBounds.count + 1)
        #expect(lines.contains("broadside_answer_latency_seconds_bucket{le=\"0.05\"} 5"))
        #expect(lines.contains("broadside_answer_latency_seconds_bucket{le=\"30.0\"} 6"))
        #expect(lines.contains("broadside_answer_latency_seconds_bucket{le=\"+Inf\"} 7"))
        #expect(lines.contains("broadside_answer_latency_seconds_count 7"))
        #expect(lines.contains("broadside_answer_latency_seconds_sum 70.991"))
    }

    @Test func `Metric labels are escaped, and unknown values are absent`() {
        var snapshot = RunSnapshot()
        snapshot.counts.reasons.add(text: "say \"no\" \\ or\nnot", count: 3)
        let lines = text(snapshot)
        #expect(
            lines.contains(#"broadside_rows_refused_total{reason="say \"no\" \\ or\\nnot"} 3"#))
        #expect(!lines.contains { $0.hasPrefix("broadside_list_rows ") })
        #expect(!lines.contains { $0.hasPrefix("broadside_rate_limit_requests_per_second ") })
        snapshot.rateLimit = 2.5
        #expect(text(snapshot).contains("broadside_rate_limit_requests_per_second 2.5"))
    }

    @Test func `Two long names that differ at their ends are two series`() {
        var snapshot = RunSnapshot()
        let name = String(repeating: "x", count: 300)
        for end in ["a", "b"] { snapshot.counts.reasons.add(text: name + end, count: 1) }
        let lines = text(snapshot)
        #expect(lines.contains("broadside_rows_refused_total{reason=\"\(name)a\"} 1"))
        #expect(Set(lines).count == lines.count)
    }

    @Test func `Metrics show whether a run is limited, because monitoring ignores a test's end`() {
        var snapshot = RunSnapshot()
        #expect(text(snapshot).contains("broadside_limited 0"))
        snapshot.isLimited = true
        #expect(text(snapshot).contains("broadside_limited 1"))
    }

    @Test func `Shortened rows are counted where a payload shortens a value, and only there`() {
        var snapshot = RunSnapshot()
        #expect(!text(snapshot).contains { $0.contains("broadside_shortened_rows_total") })
        #expect(!snapshot.json.object.contains("shortened"))
        for rows in [0, 7] as [UInt64] {
            snapshot.statistics.shortened = rows
            #expect(text(snapshot).contains("broadside_shortened_rows_total \(rows)"))
            #expect(snapshot.json.object.contains("\"shortened\":\(rows),"))
        }
    }

    @Test func `Metrics addresses are distinguished from files`() throws {
        #expect(try MetricsOutlet.address("metrics.prom") == nil)
        #expect(try MetricsOutlet.address("/var/lib/a:9100") == nil)
        #expect(try MetricsOutlet.address("./a:b") == nil)
        for (text, host) in [
            (":9100", "127.0.0.1"), ("localhost:9100", "127.0.0.1"), ("[::1]:9100", "::1"),
            ("0.0.0.0:9100", "0.0.0.0"),
        ] {
            let place = try #require(try MetricsOutlet.address(text))
            #expect(place.host == host && place.port == 9100)
        }
        for text in ["example.com:9100", "127.0.0.1:70000", "a:b", "foo:bar:baz"] {
            #expect(throws: BroadsideError.self) { try MetricsOutlet.address(text) }
        }
    }

    @Test func `The dashboard uses only metrics that exist`() throws {
        let root = URL(filePath: #filePath).deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let dashboard = try String(
            contentsOf: root.appending(path: "contrib/grafana/broadside.json"), encoding: .utf8)
        var snapshot = RunSnapshot()
        snapshot.rows = 1
        snapshot.rateLimit = 1
        snapshot.counts.reasons.add(text: "Unregistered", count: 1)
        let names = Set(
            text(snapshot).filter { !$0.hasPrefix("#") }.map { line in
                String(line.prefix { $0 != "{" && $0 != " " })
            })
        let asked = dashboard.matches(of: /broadside_[a-z_]+/).map { String($0.output) }
        #expect(asked.count > 10)
        for name in asked { #expect(names.contains(name), "\(name)") }
        #expect(try JSONSerialization.jsonObject(with: Data(dashboard.utf8)) is [String: Any])
    }

    private func text(_ snapshot: RunSnapshot) -> [String] {
        MetricsText(snapshot, use: ProcessUse(cpuMicroseconds: 1, peakResidentBytes: 2)).text
            .split(separator: "\n").map(String.init)
    }
}
