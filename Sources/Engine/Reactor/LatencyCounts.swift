internal import Glibc

/// The counts of a `LatencyHistogram` at one moment, as a value for other threads. The difference
/// of two such values covers the time between them.
package struct LatencyCounts: Sendable, Equatable {
    /// Responses per bucket; empty if there are none.
    var buckets: [UInt64] = []
    package var count: UInt64 = 0
    package var sumNanoseconds: UInt64 = 0
    package var maximumNanoseconds: UInt64 = 0

    package init() {}

    init(
        buckets: [UInt64], count: UInt64, sumNanoseconds: UInt64, maximumNanoseconds: UInt64
    ) {
        self.buckets = buckets
        self.count = count
        self.sumNanoseconds = sumNanoseconds
        self.maximumNanoseconds = maximumNanoseconds
    }

    /// Adds the counts of another histogram.
    package mutating func add(_ other: LatencyCounts) {
        if buckets.isEmpty {
            buckets = other.buckets
        } else {
            assert(
                other.buckets.isEmpty || other.buckets.count == buckets.count,
                "histograms have the same buckets")
            for index in other.buckets.indices { buckets[index] += other.buckets[index] }
        }
        count += other.count
        sumNanoseconds &+= other.sumNanoseconds
        maximumNanoseconds = max(maximumNanoseconds, other.maximumNanoseconds)
    }

    /// Difference from earlier counts of the same histograms.
    package func since(_ earlier: LatencyCounts) -> LatencyCounts {
        guard !earlier.buckets.isEmpty else { return self }
        return LatencyCounts(
            buckets: buckets.indices.map { buckets[$0] - min(buckets[$0], earlier.buckets[$0]) },
            count: count - min(count, earlier.count),
            sumNanoseconds: sumNanoseconds &- earlier.sumNanoseconds,
            maximumNanoseconds: maximumNanoseconds)
    }

    /// Quantile of the latencies, nanoseconds: the given share of responses took at most this long.
    /// nil without responses.
    package func quantile(_ share: Double) -> UInt64? {
        guard count > 0 else { return nil }
        assert((0...1).contains(share), "a share of the responses")
        let rank = max(1, UInt64((share * Double(count)).rounded(.up)))
        var seen: UInt64 = 0
        for index in buckets.indices {
            seen += buckets[index]
            if seen >= rank {
                return min(LatencyHistogram.upperBound(of: index), maximumNanoseconds)
            }
        }
        return maximumNanoseconds
    }

    /// Number of responses that took at most this long. Excludes the bucket that contains this
    /// value, unless the value is the bucket's upper bound.
    package func count(upTo nanoseconds: UInt64) -> UInt64 {
        var seen: UInt64 = 0
        for index in buckets.indices {
            guard LatencyHistogram.upperBound(of: index) <= nanoseconds else { break }
            seen += buckets[index]
        }
        return seen
    }
}

extension LatencyCounts {
    /// Maximum share of responses that are combined into the first column because they are the
    /// fastest. A few responses arrive while the thread waits for a processor, and seem to have
    /// taken no time. Without this combination, most columns would be for these few responses.
    private static let quickestShare = 0.001

    /// Returns the number of responses in each of `wanted` columns. Each column is wider than the
    /// previous column by the same factor. If a bucket spans several columns, its responses are
    /// divided among these columns.
    package func columns(_ wanted: Int) -> [(upper: UInt64, count: Double)] {
        let used = buckets.indices.filter { buckets[$0] > 0 }
        guard let last = used.last else { return [] }
        var quickest: UInt64 = 0
        let first =
            used.first {
                quickest += buckets[$0]
                return Double(quickest) > Double(count) * Self.quickestShare
            } ?? last
        quickest -= min(quickest, buckets[first])
        func edge(_ bucket: Int) -> Double {
            bucket < 0 ? 0 : log2(Double(LatencyHistogram.upperBound(of: bucket)) + 1)
        }
        let (low, high) = (edge(first - 1), edge(last))
        let width = (high - low) / Double(wanted)
        var counts = [Double](repeating: 0, count: wanted)
        counts[0] = Double(quickest)
        for bucket in used where bucket >= first {
            let (from, to) = (edge(bucket - 1), edge(bucket))
            // The bucket of responses that seem to have taken no time has no width.
            guard to > from else {
                counts[0] += Double(buckets[bucket])
                continue
            }
            for column in 0..<wanted {
                let start = low + width * Double(column)
                let overlap = min(to, start + width) - max(from, start)
                if overlap > 0 {
                    counts[column] += Double(buckets[bucket]) * overlap / (to - from)
                }
            }
        }
        return counts.indices.map { column in
            (UInt64(exp2(low + width * Double(column + 1))), counts[column])
        }
    }
}

extension LatencyCounts: Codable {
    private enum CodingKeys: String, CodingKey {
        case buckets, sum, max
    }

    /// Encodes only non-empty buckets, as pairs of index and count.
    package func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        let pairs = buckets.indices.lazy.filter { buckets[$0] > 0 }.map {
            [UInt64($0), buckets[$0]]
        }
        try container.encode(Array(pairs), forKey: .buckets)
        try container.encode(sumNanoseconds, forKey: .sum)
        try container.encode(maximumNanoseconds, forKey: .max)
    }

    package init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        let pairs = try container.decode([[UInt64]].self, forKey: .buckets)
        sumNanoseconds = try container.decode(UInt64.self, forKey: .sum)
        maximumNanoseconds = try container.decode(UInt64.self, forKey: .max)
        guard !pairs.isEmpty else { return }
        guard pairs.count <= LatencyHistogram.bucketCount else {
            throw DecodingError.dataCorruptedError(
                forKey: .buckets, in: container, debugDescription: "more buckets than there are")
        }
        buckets = Array(repeating: 0, count: LatencyHistogram.bucketCount)
        for pair in pairs {
            guard pair.count == 2, pair[0] < UInt64(buckets.count), pair[1] < 1 << 48 else {
                throw DecodingError.dataCorruptedError(
                    forKey: .buckets, in: container, debugDescription: "no bucket and its count")
            }
            buckets[Int(pair[0])] += pair[1]
            count += pair[1]
        }
    }
}
