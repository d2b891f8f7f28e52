import BroadsideTestSupport
import Testing

@testable import BroadsidePolicy

@Suite struct RateLimiterTests {
    let start: UInt64 = 1_000_000_000_000

    @Test func `A burst is ten milliseconds of the rate, at least one request`() {
        #expect(RateLimiter.burst(1_000_000) == 10)
        #expect(RateLimiter.burst(50_000) == 1)
        #expect(RateLimiter.burst(1) == 1)
        #expect(RateLimiter.burst(100_000_000) == 1_000)
    }

    /// Half of a burst is kept for requests that arrive later than they were let through: shifted
    /// by up to four of its ten milliseconds each, no window gets more than the contract allows.
    @Test(arguments: [500_000, 1_000_000, 50_000_000] as [UInt64], [1, 2] as [UInt64])
    func `Requests that leave up to four milliseconds late exceed the rate in no window`(
        milliRate: UInt64, seed: UInt64
    ) {
        var random = SeededRandom(seed: seed)
        var rateLimiter = RateLimiter(milliRate: milliRate, now: start)
        var now = start
        var sent: [(now: UInt64, total: UInt64)] = []
        var total: UInt64 = 0
        while now < start + 5_000_000_000 {
            now = rateLimiter.nextAllowed(rateLimiter.quantum, now: now)!
            now += .random(in: 0...100_000, using: &random)
            if Int.random(in: 0..<50, using: &random) == 0 {
                now += .random(in: 0...20_000_000, using: &random)
            }
            let count = rateLimiter.allowance(now: now)
            rateLimiter.take(count, now: now)
            total += UInt64(count)
            let late = UInt64.random(in: 0...4_000_000, using: &random)
            sent.append((max(sent.last?.now ?? 0, now + late), total))
        }
        expectNoWindowTooFull(sent, milliRate, RateLimiter.burst(milliRate))
    }

    /// A fast pace is waited for a millisecond at a time, and not a nanosecond longer.
    @Test(arguments: [999_000, 2_000_000, 50_000_001, 100_000_000_000] as [UInt64])
    func `A high rate waits for a millisecond's worth of requests and no longer`(milliRate: UInt64)
    {
        var rateLimiter = RateLimiter(milliRate: milliRate, now: start)
        #expect(rateLimiter.quantum == max(1, Int(milliRate / 1_000_000)))
        rateLimiter.take(rateLimiter.allowance(now: start), now: start)
        let next = rateLimiter.nextAllowed(rateLimiter.quantum, now: start)!
        #expect(next > start && next <= start + 1_100_000)
        #expect(rateLimiter.allowance(now: next) >= rateLimiter.quantum)
        #expect(rateLimiter.allowance(now: next - 1) < rateLimiter.quantum)
    }

    /// In any window of 100 ms at most rate x window + burst; in others too, but for the half request
    /// of lateness that is made good where a burst is one request.
    @Test(
        arguments: [500, 1_000, 99_000, 333_333, 1_000_000, 40_000_000, 100_000_000_000]
            as [UInt64], [1, 2, 3] as [UInt64])
    func `No window of 100 ms gets more than its share of the rate and one burst`(
        milliRate: UInt64, seed: UInt64
    ) {
        var random = SeededRandom(seed: seed)
        var rateLimiter = RateLimiter(milliRate: milliRate, now: start)
        var now = start
        var sent: [(now: UInt64, total: UInt64)] = []
        var total: UInt64 = 0
        let spacing = max(1, 1_000_000_000_000 / milliRate)
        for _ in 0..<3_000 {
            if Int.random(in: 0..<4, using: &random) == 0 {
                now += UInt64.random(in: 0...spacing * 3, using: &random)
            } else {
                now = rateLimiter.nextAllowed(now: now)!
                #expect(rateLimiter.allowance(now: now) >= 1)
                if now > start + 1, rateLimiter.allowance(now: now) == 1, total > 0 {
                    // One nanosecond earlier there was no room.
                    #expect(rateLimiter.nextAllowed(now: now - 1)! <= now)
                }
            }
            let allowed = rateLimiter.allowance(now: now)
            let count = Int.random(in: 0...allowed, using: &random)
            rateLimiter.take(count, now: now)
            total += UInt64(count)
            sent.append((now, total))
        }
        for _ in 0..<3_000 {
            let first = Int.random(in: 0..<sent.count, using: &random)
            let last = Int.random(in: first..<sent.count, using: &random)
            let before = first == 0 ? 0 : sent[first - 1].total
            let window = Double(sent[last].now - sent[first].now) / 1e9
            let most = window * Double(milliRate) / 1_000 + Double(rateLimiter.burst)
            let late = rateLimiter.burst == 1 ? 0.5 : 0
            #expect(Double(sent[last].total - before) <= (most + late) * (1 + 1e-6))
        }
        expectNoWindowTooFull(sent, milliRate, rateLimiter.burst)
    }

    /// Every window of 100 ms that starts with a request, to the contract's letter.
    private func expectNoWindowTooFull(
        _ sent: [(now: UInt64, total: UInt64)], _ milliRate: UInt64, _ burst: UInt64
    ) {
        let most = milliRate / 10_000 + burst
        var last = 0
        for first in sent.indices {
            while last + 1 < sent.count, sent[last + 1].now < sent[first].now + 100_000_000 {
                last += 1
            }
            let before = first == 0 ? 0 : sent[first - 1].total
            #expect(sent[last].total - before <= most)
        }
    }

    /// A timer fires late, each time by up to a third of an interval: the rate is reached, and no
    /// window of 100 ms gets more than it may.
    @Test(arguments: [50_000, 33_000, 120_000, 195_000, 7_000] as [UInt64])
    func `A timer that fires late still reaches the rate, and no window gets too much`(
        milliRate: UInt64
    ) {
        var random = SeededRandom(seed: milliRate)
        var rateLimiter = RateLimiter(milliRate: milliRate, now: start)
        let interval = 1_000_000_000_000 / milliRate
        let latest = min(interval / 3, 500_000)
        var now = start
        var sent: [(now: UInt64, total: UInt64)] = []
        for total in 1...5_000 as ClosedRange<UInt64> {
            now = rateLimiter.nextAllowed(now: now)! + .random(in: 0...latest, using: &random)
            rateLimiter.take(1, now: now)
            sent.append((now, total))
        }
        let rate = 4_999 / (Double(sent[4_999].now - sent[0].now) / 1e9)
        #expect(abs(rate / (Double(milliRate) / 1_000) - 1) < 0.001, "\(rate)")
        expectNoWindowTooFull(sent, milliRate, rateLimiter.burst)
    }

    /// What was idle is not caught up: two requests stay half an interval apart.
    @Test func `Idle time gives no credit where a burst is one request`() {
        var rateLimiter = RateLimiter(milliRate: 50_000, now: start)
        rateLimiter.take(1, now: start + 10_000_000_000)
        #expect(rateLimiter.nextAllowed(now: start + 10_000_000_000) == start + 10_010_000_000)
        rateLimiter.take(1, now: start + 10_010_000_000)
        #expect(rateLimiter.nextAllowed(now: start + 10_010_000_000) == start + 10_030_000_000)
    }

    /// Up to there waiting makes room for more requests, from there on for none.
    @Test(arguments: [200_000, 1_000_000, 50_000_000] as [UInt64])
    func `A limiter holds until its burst is whole, and waiting longer allows no more`(
        milliRate: UInt64
    ) {
        var rateLimiter = RateLimiter(milliRate: milliRate, now: start)
        rateLimiter.take(rateLimiter.allowance(now: start), now: start)
        let end = rateLimiter.holdsUntil
        #expect(
            end > start
                && rateLimiter.allowance(now: end - end / 1_000_000) < Int(rateLimiter.burst))
        #expect(rateLimiter.allowance(now: end + 1) == Int(rateLimiter.burst))
        #expect(rateLimiter.allowance(now: end + 3_600_000_000_000) == Int(rateLimiter.burst))
        // Where a burst is a single request, half of one's lateness is made good.
        var slow = RateLimiter(milliRate: 50_000, now: start)
        slow.take(1, now: start)
        #expect(slow.holdsUntil == start + 30_000_000)
        #expect(RateLimiter(milliRate: nil, now: start).holdsUntil == 0)
        #expect(RateLimiter(milliRate: 0, now: start).holdsUntil == .max)
    }

    @Test(arguments: [1_000, 7_777, 1_000_000, 3_000_001, 1_000_000_000] as [UInt64])
    func `The rate is reached within one percent`(milliRate: UInt64) {
        var rateLimiter = RateLimiter(milliRate: milliRate, now: start)
        var now = start
        var total = 0
        while total < 20_000 + 200 * Int(rateLimiter.burst) {
            now = rateLimiter.nextAllowed(now: now)!
            let count = rateLimiter.allowance(now: now)
            rateLimiter.take(count, now: now)
            total += count
        }
        let rate = Double(total) / (Double(now - start) / 1e9)
        #expect(abs(rate / (Double(milliRate) / 1_000) - 1) < 0.01)
    }

    @Test func `After a minute of idleness only half of a burst is allowed at once`() {
        var rateLimiter = RateLimiter(milliRate: 1_000_000, now: start)
        #expect(rateLimiter.allowance(now: start + 60_000_000_000) == 5)
        rateLimiter.take(5, now: start + 60_000_000_000)
        #expect(rateLimiter.allowance(now: start + 60_000_000_000) == 0)
        #expect(rateLimiter.nextAllowed(now: start + 60_000_000_000) == start + 60_001_000_000)
        #expect(rateLimiter.allowance(now: start + 60_005_000_000) == 5)
    }

    /// Fractions of a nanosecond add up: one by one is as exact as all at once.
    @Test func `Fractions of a nanosecond add up to the same time one by one as all at once`() {
        var rateLimiter = RateLimiter(milliRate: 70_000_000_001, now: start)
        let burst = Int(rateLimiter.burst)
        for _ in 0..<burst { rateLimiter.take(1, now: start) }
        #expect(rateLimiter.allowance(now: start) == 0)
        var whole = RateLimiter(milliRate: 70_000_000_001, now: start)
        whole.take(burst, now: start)
        #expect(rateLimiter.nextAllowed(now: start) == whole.nextAllowed(now: start))
        #expect(
            rateLimiter.allowance(now: start + 5_000_000) == whole.allowance(now: start + 5_000_000)
        )
    }

    @Test func `A changed rate applies from then on, 0 pauses and nil removes the limit`() {
        var rateLimiter = RateLimiter(milliRate: 1_000_000, now: start)
        rateLimiter.take(5, now: start)
        rateLimiter.setRate(milliRate: 0, now: start)
        #expect(rateLimiter.allowance(now: start + 1_000_000_000) == 0)
        #expect(rateLimiter.nextAllowed(now: start) == nil)
        rateLimiter.setRate(milliRate: nil, now: start)
        #expect(rateLimiter.allowance(now: start) == .max)
        #expect(rateLimiter.nextAllowed(now: start) == start)
        // From slow to fast: the slow rate's debt of one request is one request.
        rateLimiter = RateLimiter(milliRate: 1_000, now: start)
        rateLimiter.take(1, now: start)
        rateLimiter.setRate(milliRate: 1_000_000, now: start)
        #expect(rateLimiter.allowance(now: start) == 4)
        // From fast to slow: at most one burst of the slow rate is owed.
        rateLimiter.take(4, now: start)
        rateLimiter.setRate(milliRate: 1_000, now: start)
        #expect(rateLimiter.nextAllowed(now: start) == start + 1_000_000_000)
    }

    /// What a pause is worth is its time at the rate before it: a short one gives no burst.
    @Test func `A pause gives no credit beyond its time`() {
        var rateLimiter = RateLimiter(milliRate: 20_000, now: start)
        rateLimiter.take(1, now: start)
        rateLimiter.setRate(milliRate: 0, now: start + 1_000_000)
        rateLimiter.setRate(milliRate: 20_000, now: start + 7_000_000)
        #expect(rateLimiter.nextAllowed(now: start + 7_000_000) == start + 50_000_000)
        // Twice, and to another rate: half a request of debt is half a request.
        rateLimiter.setRate(milliRate: 0, now: start + 10_000_000)
        rateLimiter.setRate(milliRate: 0, now: start + 20_000_000)
        rateLimiter.setRate(milliRate: 1_000_000, now: start + 25_000_000)
        #expect(rateLimiter.allowance(now: start + 25_000_000) == 4)
        rateLimiter.take(4, now: start + 25_000_000)
        #expect(rateLimiter.nextAllowed(now: start + 25_000_000) == start + 25_500_000)
        // A long one leaves none.
        rateLimiter.setRate(milliRate: 0, now: start + 26_000_000)
        rateLimiter.setRate(milliRate: 20_000, now: start + 90_000_000)
        #expect(rateLimiter.allowance(now: start + 90_000_000) == 1)
    }
}
