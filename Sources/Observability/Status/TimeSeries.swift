import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideRows

/// History of a run with a bounded number of points. At the limit, adjacent points are merged in
/// pairs, so that a long run has no more points than a short one.
package struct TimeSeries: Sendable, Equatable {
    /// The counts for a period of time.
    struct Point: Sendable, Equatable, Codable {
        /// Seconds since the run's start.
        var start: Double
        /// Length of the period, in seconds.
        var duration: Double
        /// Rows accepted during the period.
        var accepted: UInt64
        /// Rows rejected during the period.
        var rejected: UInt64
        /// Rows settled in any other state during the period.
        var others: UInt64
        /// Number of responses, and their latencies in microseconds. When points are merged, the
        /// new median is the mean of the medians, weighted by responses; the new 99th percentile is
        /// the higher of the two.
        var answers: UInt64
        var p50: UInt64?
        var p99: UInt64?
        var inFlight: Int
        /// Microseconds that connections spent in each state of `Bottleneck`.
        var limited: [UInt64]

        init(
            start: Double, duration: Double, counts: RowCounts, latency: LatencyCounts,
            inFlight: Int, limited: [UInt64]
        ) {
            self.start = start
            self.duration = duration
            accepted = counts[.accepted]
            rejected = counts[.rejected]
            others = counts.settled - accepted - rejected
            answers = latency.count
            p50 = latency.quantile(0.5).map { $0 / 1000 }
            p99 = latency.quantile(0.99).map { $0 / 1000 }
            self.inFlight = inFlight
            self.limited = limited.map { $0 / 1000 }
        }

        /// Merges the following point into this one.
        mutating func merge(_ next: Point) {
            assert(next.start >= start, "points are merged in their order")
            switch (p50, next.p50) {
            case (let own?, let other?) where answers + next.answers > 0:
                let sum = Double(own) * Double(answers) + Double(other) * Double(next.answers)
                p50 = UInt64(sum / Double(answers + next.answers))
            case (let own, let other): p50 = own ?? other
            }
            p99 = [p99, next.p99].compactMap { $0 }.max()
            duration = next.start + next.duration - start
            accepted += next.accepted
            rejected += next.rejected
            others += next.others
            answers += next.answers
            inFlight = max(inFlight, next.inFlight)
            if limited.count == next.limited.count {
                for index in limited.indices { limited[index] += next.limited[index] }
            }
        }
    }

    private(set) var points: [Point] = []
    /// Number of samples per point.
    private var stride = 1
    /// Number of samples in the last point.
    private var filled = 0

    /// Maximum number of points.
    static let limit = 600

    mutating func append(_ point: Point) {
        assert(filled <= stride, "a point covers so many looks")
        assert(points.last.map { $0.start <= point.start } ?? true, "points are in their order")
        if filled > 0, filled < stride {
            points[points.count - 1].merge(point)
            filled += 1
            return
        }
        if points.count == Self.limit {
            points = Self.halved(points)
            stride *= 2
            // The last point is complete, because the number of merged points was even.
        }
        assert(points.count < Self.limit, "the series was halved")
        points.append(point)
        filled = 1
    }

    /// Returns half as many points, each merged from two.
    static func halved(_ points: [Point]) -> [Point] {
        let merged = Swift.stride(from: 0, to: points.count, by: 2).map { index in
            var point = points[index]
            if index + 1 < points.count { point.merge(points[index + 1]) }
            return point
        }
        assert(
            merged.reduce(0) { $0 + $1.accepted } == points.reduce(0) { $0 + $1.accepted },
            "no row is lost by merging")
        return merged
    }
}
