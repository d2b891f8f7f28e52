internal import Glibc

/// Share of the devices in a sample that have some property, with a confidence interval for the
/// share in the whole population.
package struct Proportion: Sendable, Equatable {
    /// Number of devices in the sample that have the property.
    package let count: UInt64
    /// Number of devices in the sample.
    package let total: UInt64

    /// - Parameter count: At most `total`.
    package init(count: UInt64, of total: UInt64) {
        precondition(count <= total, "a part is not larger than the whole")
        self.count = count
        self.total = total
    }

    /// Quantile of the normal distribution for intervals of 95 percent.
    private static let z = 1.959_963_984_540_054

    /// The share, 0 to 1; 0 without devices.
    package var share: Double { total == 0 ? 0 : Double(count) / Double(total) }

    /// Wilson's score interval for 95 percent, without a continuity correction. Of 100 such
    /// intervals, 95 contain the share in the whole population. If there are no devices, the
    /// interval is 0 to 1.
    package var interval: ClosedRange<Double> {
        guard total > 0 else { return 0...1 }
        let (n, z2) = (Double(total), Self.z * Self.z)
        let center = (share + z2 / (2 * n)) / (1 + z2 / n)
        let half = Self.z / (1 + z2 / n) * (share * (1 - share) / n + z2 / (4 * n * n)).squareRoot()
        // The ends are exact, regardless of rounding.
        let low = count == 0 ? 0 : max(0, center - half)
        let high = count == total ? 1 : min(1, center + half)
        assert((low - 1e-9...high + 1e-9).contains(share), "an interval has its own share")
        return low...high
    }

    /// Difference of two shares.
    package struct Difference: Sendable, Equatable {
        /// First share minus second, -1 to 1.
        package let difference: Double
        /// Newcombe's hybrid score interval (his method 10), 95 percent.
        package let interval: ClosedRange<Double>
        /// Whether the difference proves nothing: the interval contains 0, or one of the shares has
        /// no devices.
        package let isInconclusive: Bool
    }

    /// Returns this share minus another share, with a confidence interval.
    ///
    /// From R. G. Newcombe, "Interval estimation for the difference between independent
    /// proportions", Statistics in Medicine 17 (1998), 873-890.
    package func minus(_ other: Proportion) -> Difference {
        let (own, others) = (interval, other.interval)
        let difference = share - other.share
        func root(_ first: Double, _ second: Double) -> Double {
            (first * first + second * second).squareRoot()
        }
        let low = difference - root(share - own.lowerBound, others.upperBound - other.share)
        let high = difference + root(own.upperBound - share, other.share - others.lowerBound)
        let range = max(-1, low)...min(1, high)
        assert(range.contains(difference), "an interval is around the difference")
        return Difference(
            difference: difference, interval: range,
            isInconclusive: range.contains(0) || total == 0 || other.total == 0)
    }
}
