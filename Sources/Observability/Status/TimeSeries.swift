import BroadsideEngine
import BroadsideLedgerFormat
import BroadsideRows

/// A run's course in time: at most a fixed number of points. When they are used up, neighbours are
/// merged in pairs, so that a long night is drawn as finely as a short one.
package struct TimeSeries: Sendable, Equatable {
    /// What happened in a stretch of time.
    struct Point: Sendable, Equatable, Codable {
        /// Seconds since the run's start.
        var start: Double
        /// Seconds.
        var duration: Double
        /// Rows settled in it.
        var accepted: UInt64
        /// Refused for good.
        var rejected: UInt64
        /// Settled in any other way.
        var others: UInt64
        /// Answers, and how long they took, microseconds. Of merged points the median is the mean
        /// of their medians by answers, the 99th percentile that of the worst.
        var answers: UInt64
        var p50: UInt64?
        var p99: UInt64?
        var inFlight: Int
        /// Connection microseconds by `LimitedBy`.
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

        /// Takes the point that follows into itself.
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
    /// Looks that one point stands for.
    private var stride = 1
    /// Looks in the last point.
    private var filled = 0

    /// Points that are kept.
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
            // The last point is a whole one: an even number was merged.
        }
        assert(points.count < Self.limit, "the series was halved")
        points.append(point)
        filled = 1
    }

    /// Neighbours merged in pairs.
    static func halved(_ points: [Point]) -> [Point] {
        Swift.stride(from: 0, to: points.count, by: 2).map { index in
            var point = points[index]
            if index + 1 < points.count { point.merge(points[index + 1]) }
            return point
        }
    }
}
