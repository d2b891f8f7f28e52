internal import Glibc

/// How long answers take.
struct Latency: Sendable, Equatable {
    enum Distribution: Sendable, Equatable {
        case constant(UInt64)
        case uniform(UInt64, UInt64)
        case exponential(mean: UInt64)
        /// Half of all are below the median; sigma is the standard deviation of the logarithm.
        case logNormal(median: UInt64, sigma: Double)
    }

    var distribution: Distribution
    /// No answer takes longer, nanoseconds; waiting for others not counted.
    var limitNanoseconds: UInt64 = 60_000_000_000
    /// So much more for each answer that waits already.
    var perWaitingNanoseconds: UInt64 = 0
    /// So many answers a second and thread; more wait their turn. 0: as many as come.
    var capacityPerSecond: UInt64 = 0
    /// The capacity is each connection's instead.
    var isCapacityByConnection = false

    /// A delay in nanoseconds for two independent shares, each 0 (included) to 1 (excluded).
    func sample(_ first: Double, _ second: Double) -> UInt64 {
        let value: Double =
            switch distribution {
            case .constant(let nanoseconds): Double(nanoseconds)
            case .uniform(let low, let high): Double(low) + first * Double(high - low)
            case .exponential(let mean): -log(1 - first) * Double(mean)
            case .logNormal(let median, let sigma):
                // Box and Muller: two even shares make one normal deviate.
                Double(median)
                    * exp(sigma * sqrt(-2 * log(1 - first)) * cos(2 * Double.pi * second))
            }
        return UInt64(min(max(value, 0), Double(limitNanoseconds)))
    }
}
