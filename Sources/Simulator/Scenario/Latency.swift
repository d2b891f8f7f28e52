internal import Glibc

/// The distribution of response delays.
struct Latency: Sendable, Equatable {
    enum Distribution: Sendable, Equatable {
        case constant(UInt64)
        case uniform(UInt64, UInt64)
        case exponential(mean: UInt64)
        /// Log-normal: half of the delays are below the median, and sigma is the standard deviation
        /// of the logarithm.
        case logNormal(median: UInt64, sigma: Double)
    }

    var distribution: Distribution
    /// Maximum delay of a response, nanoseconds. Time for which a response waits because of
    /// `perWaitingNanoseconds` or `capacityPerSecond` is not included.
    var limitNanoseconds: UInt64 = 60_000_000_000
    /// Additional delay for each response that is already pending, nanoseconds.
    var perWaitingNanoseconds: UInt64 = 0
    /// Maximum number of responses per second and thread; 0 for no limit. Further responses are
    /// queued.
    var capacityPerSecond: UInt64 = 0
    /// True if the capacity applies to each connection instead of each thread.
    var isCapacityByConnection = false

    /// Returns a delay in nanoseconds from two independent uniform values, each in 0..<1.
    func sample(_ first: Double, _ second: Double) -> UInt64 {
        let value: Double =
            switch distribution {
            case .constant(let nanoseconds): Double(nanoseconds)
            case .uniform(let low, let high): Double(low) + first * Double(high - low)
            case .exponential(let mean): -log(1 - first) * Double(mean)
            case .logNormal(let median, let sigma):
                // The Box-Muller transform: two uniform values yield one normal deviate.
                Double(median)
                    * exp(sigma * sqrt(-2 * log(1 - first)) * cos(2 * Double.pi * second))
            }
        return UInt64(min(max(value, 0), Double(limitNanoseconds)))
    }
}
