import BroadsideTestSupport
import Testing

@testable import BroadsideObservability

/// Intervals of shares and of their differences: against published examples, and by how often they
/// cover the truth.
@Suite struct ProportionTests {
    private static func isNear(_ value: Double, _ published: Double) -> Bool {
        abs(value - published) < 0.000_05 + 1e-9
    }

    /// R. G. Newcombe, "Two-sided confidence intervals for the single proportion", Statistics in
    /// Medicine 17 (1998), 857-872, table I, method 3.
    @Test(
        arguments: [
            (81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0000, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] as [(UInt64, UInt64, Double, Double)])
    func `Wilson's interval is the published one`(
        _ count: UInt64, _ total: UInt64, _ low: Double, _ high: Double
    ) {
        let interval = Proportion(count: count, of: total).interval
        #expect(Self.isNear(interval.lowerBound, low), "\(interval)")
        #expect(Self.isNear(interval.upperBound, high), "\(interval)")
    }

    /// R. G. Newcombe, "Interval estimation for the difference between independent proportions",
    /// Statistics in Medicine 17 (1998), 873-890, table II, method 10.
    @Test(
        arguments: [
            (56, 70, 48, 80, 0.0524, 0.3339), (9, 10, 3, 10, 0.1705, 0.8090),
            (6, 7, 2, 7, 0.0582, 0.8062), (5, 56, 0, 29, -0.0381, 0.1926),
            (0, 10, 0, 20, -0.1611, 0.2775), (0, 10, 0, 10, -0.2775, 0.2775),
            (10, 10, 0, 20, 0.6791, 1.0000), (10, 10, 0, 10, 0.6075, 1.0000),
        ] as [(UInt64, UInt64, UInt64, UInt64, Double, Double)])
    func `Newcombe's interval of a difference is the published one`(
        _ count: UInt64, _ total: UInt64, _ count2: UInt64, _ total2: UInt64, _ low: Double,
        _ high: Double
    ) {
        let found = Proportion(count: count, of: total).minus(Proportion(count: count2, of: total2))
        #expect(Self.isNear(found.interval.lowerBound, low), "\(found)")
        #expect(Self.isNear(found.interval.upperBound, high), "\(found)")
        #expect(found.isInconclusive == (low <= 0 && high >= 0))
    }

    @Test func `Without devices nothing can be told`() {
        let none = Proportion(count: 0, of: 0)
        #expect(none.share == 0 && none.interval == 0...1)
        #expect(none.minus(Proportion(count: 90, of: 100)).isInconclusive)
        #expect(Proportion(count: 90, of: 100).minus(none).isInconclusive)
    }

    @Test func `An interval of no device, and of all, has its end exactly there`() {
        for total in UInt64(1)...3_000 {
            #expect(Proportion(count: 0, of: total).interval.lowerBound == 0, "\(total)")
            #expect(Proportion(count: total, of: total).interval.upperBound == 1, "\(total)")
        }
    }

    @Test func `The difference of two arms has the other sign from the other side`() {
        let (first, second) = (Proportion(count: 56, of: 70), Proportion(count: 48, of: 80))
        let (there, back) = (first.minus(second), second.minus(first))
        #expect(abs(there.difference + back.difference) < 1e-12)
        #expect(abs(there.interval.lowerBound + back.interval.upperBound) < 1e-12)
    }

    /// Number of devices that open, of so many that open with a probability.
    private static func drawn(_ total: Int, _ share: Double, _ random: inout SeededRandom) -> UInt64
    {
        var count: UInt64 = 0
        for _ in 0..<total where Double(random.next() >> 11) / 0x1p53 < share { count += 1 }
        return count
    }

    @Test(arguments: [(200, 0.1, 300, 0.15), (160, 0.3, 160, 0.3), (400, 0.05, 100, 0.2)])
    func `An interval of 95 percent covers the truth in 95 of 100 experiments`(
        _ total: Int, _ share: Double, _ total2: Int, _ share2: Double
    ) {
        var random = SeededRandom(seed: 20_261_127)
        var (own, differences) = (0, 0)
        for _ in 0..<10_000 {
            let first = Proportion(
                count: Self.drawn(total, share, &random), of: UInt64(total))
            let second = Proportion(
                count: Self.drawn(total2, share2, &random), of: UInt64(total2))
            if first.interval.contains(share) { own += 1 }
            if first.minus(second).interval.contains(share - share2) { differences += 1 }
        }
        #expect((9_400...9_600).contains(own), "Wilson: \(own)")
        #expect((9_400...9_600).contains(differences), "Newcombe: \(differences)")
    }
}
