/// Histogram of response latencies. Its buckets grow with the value, 32 buckets per power of two,
/// so that a quantile is off by at most 3%. Fixed size; recording is an increment.
@safe package struct LatencyHistogram: ~Copyable {
    private static let subBucketBits = 5
    private static let subBuckets = 1 << subBucketBits
    /// All values of at least 2^40 ns (18 minutes) share the last bucket.
    private static let powers = 40
    static let bucketCount = (powers - subBucketBits + 1) * subBuckets

    // SAFETY: `bucketCount` counters, all set in `init`, freed in `deinit`, and accessed only
    // through this value.
    private let buckets: UnsafeMutablePointer<UInt64>
    private var count: UInt64 = 0
    private var sumNanoseconds: UInt64 = 0
    private var maximumNanoseconds: UInt64 = 0

    package init() {
        // SAFETY: as many are set as are allocated.
        unsafe buckets = .allocate(capacity: Self.bucketCount)
        unsafe buckets.initialize(repeating: 0, count: Self.bucketCount)
    }

    // SAFETY: allocated in `init`, of a trivial type.
    deinit {
        unsafe buckets.deallocate()
    }

    /// Counts one response.
    mutating func record(_ nanoseconds: UInt64) {
        // SAFETY: `bucket(of:)` is below `bucketCount` for every value: those from 2^40 on share
        // the last bucket.
        unsafe buckets[Self.bucket(of: nanoseconds)] &+= 1
        assert(Self.bucket(of: nanoseconds) < Self.bucketCount)
        count &+= 1
        sumNanoseconds &+= nanoseconds
        if nanoseconds > maximumNanoseconds { maximumNanoseconds = nanoseconds }
    }

    /// Current counts, as a value for other threads.
    var counts: LatencyCounts {
        // SAFETY: there are `bucketCount` counters.
        LatencyCounts(
            buckets: (0..<Self.bucketCount).map { unsafe buckets[$0] }, count: count,
            sumNanoseconds: sumNanoseconds, maximumNanoseconds: maximumNanoseconds)
    }

    private static func bucket(of value: UInt64) -> Int {
        if value < UInt64(subBuckets) { return Int(value) }
        let power = 63 - value.leadingZeroBitCount
        if power >= powers { return bucketCount - 1 }
        let shift = power - subBucketBits
        return (shift + 1) * subBuckets + Int(value >> UInt64(shift)) - subBuckets
    }

    static func upperBound(of bucket: Int) -> UInt64 {
        if bucket < subBuckets { return UInt64(bucket) }
        let shift = bucket / subBuckets - 1
        let mantissa = bucket % subBuckets + subBuckets
        return (UInt64(mantissa + 1) << UInt64(shift)) - 1
    }
}
