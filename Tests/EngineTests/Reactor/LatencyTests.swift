import Foundation
import Testing

@testable import BroadsideEngine

/// The latencies that summary, report and metrics show, from buckets.
@Suite struct LatencyTests {
    /// Values of each size, up to half an hour.
    private static let values: [UInt64] =
        (0...80).map(UInt64.init)
        + (6...40).flatMap { power -> [UInt64] in
            let start: UInt64 = 1 << UInt64(power)
            return [
                start - 1, start, start + 1, start + start / 3, start + start / 2, 2 * start - 1,
            ]
        }

    private func counts(_ values: [UInt64]) -> LatencyCounts {
        var histogram = LatencyHistogram()
        for value in values { histogram.record(value) }
        return histogram.counts
    }

    @Test func `Each latency is known to 3 percent, from a nanosecond to 18 minutes`() {
        for value in Self.values where value < 1 << 39 {
            let counts = self.counts([value, 1 << 50])
            let found = counts.quantile(0.5)!
            #expect(found >= value && Double(found) <= Double(value) * 1.032, "\(value)")
            #expect(counts.count(upTo: found) == 1)
            #expect(counts.count(upTo: value - min(value, 1 + value / 30)) == (value == 0 ? 1 : 0))
            let more = self.counts([value, 1 << 50, value])
            #expect(more.count == 3 && more.count(upTo: found) == 2)
        }
    }

    @Test func `Buckets follow one another without a gap`() {
        var before: UInt64?
        for bucket in 0..<LatencyHistogram.bucketCount {
            let upper = LatencyHistogram.upperBound(of: bucket)
            if let before {
                #expect(upper > before)
                let first = counts([before + 1])
                #expect(first.buckets.firstIndex(of: 1) == bucket)
            }
            #expect(counts([upper]).buckets.firstIndex(of: 1) == bucket)
            before = upper
        }
        #expect(before == (1 << 40) - 1 && LatencyHistogram.bucketCount == 1152)
        // What is longer shares the last one, and is told by the longest of all.
        let last = counts([1 << 40, .max / 4])
        #expect(last.buckets.last == 2 && last.quantile(1) == LatencyHistogram.upperBound(of: 1151))
    }

    @Test func `A quantile is the value at its rank`() {
        let values = (1...1000).map { UInt64($0) * 1_000_000 }
        let shuffled = values.shuffled()
        for (share, value) in [(0.5, 500), (0.95, 950), (0.99, 990), (0.001, 1), (0, 1), (1, 1000)]
        {
            let exact = Double(value) * 1e6
            let found = Double(counts(shuffled).quantile(share)!)
            #expect(found >= exact && found <= exact * 1.032)
        }
        #expect(counts(shuffled).quantile(1) == 1_000_000_000)
        #expect(counts([]).quantile(0.5) == nil && LatencyCounts().quantile(0.5) == nil)
    }

    @Test func `Counts of several reactors add up, and an earlier sample is subtracted`() {
        let early = counts([5, 1_000, 70_000])
        let later = counts([5, 1_000, 70_000, 2_000, 90_000])
        let both = counts([5, 1_000, 70_000, 2_000, 90_000, 7])
        var sum = LatencyCounts()
        sum.add(later)
        sum.add(counts([7]))
        sum.add(LatencyCounts())
        #expect(sum == both)
        #expect(sum.count == 6 && sum.sumNanoseconds == 163_012)
        #expect(sum.maximumNanoseconds == 90_000)
        #expect(later.since(early) == counts([2_000, 90_000]))
        #expect(later.since(LatencyCounts()) == later)
        let none = early.since(later)
        #expect(none.count == 0 && none.buckets.allSatisfy { $0 == 0 })
    }

    @Test func `Columns hold all latencies, and each is wider than the one before`() {
        let quick = [UInt64](repeating: 40, count: 3)
        let values = (0..<5_000).map { 1_000_000 + UInt64($0) * 1_000 } + quick
        let counts = self.counts(values)
        let columns = counts.columns(12)
        #expect(columns.count == 12)
        #expect(abs(columns.reduce(0) { $0 + $1.count } - 5_003) < 1e-6)
        #expect(zip(columns, columns.dropFirst()).allSatisfy { $0.upper < $1.upper })
        // A few that took no time have no column for themselves: the first one holds them too.
        #expect(columns[0].upper > 1_000_000 && columns[0].count > 3)
        let last = columns[11].upper
        #expect(last >= 5_999_000 && Double(last) < 5_999_000 * 1.04)
        // Each column holds what took at most so long, but for what a bucket is wide.
        var seen = 0.0
        for column in columns {
            seen += column.count
            let exact = Double(values.count { $0 <= column.upper })
            #expect(abs(seen - exact) <= 0.04 * 6_000)
        }
        let ratios = zip(columns, columns.dropFirst()).map { Double($1.upper) / Double($0.upper) }
        #expect(ratios.allSatisfy { abs($0 - ratios[0]) < 0.01 })
        #expect(LatencyCounts().columns(5).isEmpty)
        let one = self.counts([1_000]).columns(3)
        #expect(one.count == 3 && abs(one.reduce(0) { $0 + $1.count } - 1) < 1e-9)
    }

    @Test func `Latency histograms are in telemetry`() throws {
        let counts = self.counts([1, 1, 5_000, 1 << 45])
        let data = try JSONEncoder().encode(counts)
        #expect(try JSONDecoder().decode(LatencyCounts.self, from: data) == counts)
        let none = try JSONEncoder().encode(LatencyCounts())
        #expect(try JSONDecoder().decode(LatencyCounts.self, from: none) == LatencyCounts())
    }
}
