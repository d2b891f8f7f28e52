import BroadsideTestSupport
import Testing

@testable import BroadsidePolicy

@Suite struct RateRampTests {
    private let second: UInt64 = 1_000_000_000
    /// From 100 to 5,100 requests per second within ten seconds.
    private let ramp = RateRamp(first: 100_000, last: 5_100_000, riseNanoseconds: 10_000_000_000)

    @Test
    func `A rate rises evenly in steps of 100 ms, never ahead of the line, and stays at its end`() {
        #expect(ramp.milliRate(after: 0) == 100_000)
        #expect(ramp.milliRate(after: 99_999_999) == 100_000)
        #expect(ramp.milliRate(after: 100_000_000) == 150_000)
        #expect(ramp.milliRate(after: 5 * second) == 2_600_000)
        #expect(ramp.milliRate(after: 10 * second - 1) == 5_050_000)
        #expect(ramp.milliRate(after: 10 * second) == 5_100_000)
        #expect(ramp.milliRate(after: .max) == 5_100_000)
    }

    @Test func `The largest rates and times overflow nothing`() {
        let ramp = RateRamp(
            first: 1, last: RateLimiter.maximumMilliRate, riseNanoseconds: .max)
        let half = ramp.milliRate(after: .max / 2)
        #expect(half > 49_900_000_000 && half <= 50_000_000_000)
        #expect(RateRamp(first: 7, last: 7, riseNanoseconds: 1).milliRate(after: 0) == 7)
    }

    /// Checked against sums over steps of a millisecond.
    @Test(arguments: [1.0, 500, 26_000, 80_000], [0.0, 2.5, 9.9, 40])
    func `What so many requests take is the time by which the rate adds up to them`(
        requests: Double, sent: Double
    ) {
        var left = requests
        var time = sent
        while left > 0 {
            left -= (100 + min(time, 10) * 500) / 1000
            time += 0.001
        }
        #expect(abs(ramp.seconds(for: requests, after: sent) - (time - sent)) < 0.01)
    }

    @Test func `The clock begins with the first request and runs while requests are made`() {
        var clock = RampClock(ramp)
        clock.advance(to: 50 * second)
        #expect(clock.sentNanoseconds == 0 && clock.nextRise(after: 50 * second) == .max)
        clock.recordSent(at: 60 * second)
        #expect(clock.nextRise(after: 60 * second) == 60 * second + 100_000_000)
        clock.advance(to: 60 * second + 250_000_000)
        #expect(clock.sentNanoseconds == 250_000_000 && clock.milliRate == 200_000)
        #expect(clock.nextRise(after: 60 * second + 250_000_000) == 60 * second + 300_000_000)
        // Another thread's news is older.
        clock.recordSent(at: 60 * second + 100_000_000)
        #expect(clock.sentNanoseconds == 250_000_000)
    }

    @Test
    func `Of a time without requests a second counts, and of a pause nothing behind its beginning`()
    {
        var clock = RampClock(ramp)
        clock.recordSent(at: 60 * second)
        clock.advance(to: 90 * second)
        #expect(clock.sentNanoseconds == second && clock.nextRise(after: 90 * second) == .max)
        clock.recordSent(at: 100 * second)
        #expect(clock.sentNanoseconds == second)
        clock.hold(at: 100 * second + 1)
        clock.advance(to: 101 * second)
        clock.recordSent(at: 102 * second)
        #expect(clock.sentNanoseconds == second + 1)
    }

    @Test func `Where the rate is below one per second the time between two requests counts`() {
        var clock = RampClock(RateRamp(first: 100, last: 1_000, riseNanoseconds: 40 * second))
        clock.recordSent(at: 60 * second)
        clock.advance(to: 69 * second)
        #expect(clock.sentNanoseconds == 9 * second)
    }

    @Test func `The clock goes on where an earlier one stood and ends with the rise`() {
        var clock = RampClock(ramp, sentNanoseconds: 9 * second)
        #expect(clock.milliRate == 4_600_000 && !clock.isOver && clock.secondsLeft == 1)
        for tenth in UInt64(0)...20 { clock.recordSent(at: 60 * second + tenth * 100_000_000) }
        #expect(clock.isOver && clock.sentNanoseconds == 10 * second && clock.secondsLeft == 0)
        #expect(clock.milliRate == 5_100_000 && clock.nextRise(after: 61 * second) == .max)
        #expect(RampClock(ramp, sentNanoseconds: .max).isOver)
    }
}
