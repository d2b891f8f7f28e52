import BroadsideTestSupport
import Testing

@testable import BroadsidePolicy

@Suite struct RetryTests {
    @Test func `A row fails only when both its attempts and its time are used up`() {
        let policy = RetryPolicy(maximumAttempts: 3, retryForNanoseconds: 1_000_000_000)
        var random = SplitMix64(seed: 1)
        func verdict(_ attempts: Int, _ now: UInt64) -> RetryPolicy.Verdict {
            policy.verdict(attempts: attempts, firstAttempt: 500, now: now, random: &random)
        }
        #expect(verdict(3, 1_000_000_500) == .failed)
        #expect(verdict(4, 1_000_000_500) == .failed)
        #expect(verdict(3, 1_000_000_499) != .failed)
        #expect(verdict(2, 9_000_000_000) != .failed)
    }

    @Test func `A row has at least five attempts and 30 minutes by default`() {
        var random = SplitMix64(seed: 1)
        func verdict(_ attempts: Int, seconds: Double) -> RetryPolicy.Verdict {
            RetryPolicy().verdict(
                attempts: attempts, firstAttempt: 7, now: 7 + UInt64(seconds * 1e9),
                random: &random)
        }
        #expect(verdict(5, seconds: 1800) == .failed)
        #expect(verdict(4, seconds: 1800) != .failed && verdict(5, seconds: 1799.999) != .failed)
    }

    @Test func `A row of an outage of 15 minutes is still tried after the longest delay`() {
        let policy = RetryPolicy()
        var random = SplitMix64(seed: 1)
        let outage = UInt64(900_000_000_000)
        var (now, attempts) = (UInt64(0), 0)
        while now < outage {
            attempts += 1
            guard
                case .again(let due) = policy.verdict(
                    attempts: attempts, firstAttempt: 0, now: now, random: &random)
            else {
                Issue.record("failed after \(now / 1_000_000_000) s")
                return
            }
            now = due
        }
        // A server that asks for Apple's 15 minutes right before it recovers.
        let late = policy.verdict(
            attempts: 100, firstAttempt: 0, now: outage, retryAfterNanoseconds: outage,
            random: &random)
        #expect(late == .again(dueNanoseconds: 2 * outage))
    }

    /// The values that Vigna's splitmix64.c gives.
    @Test func `The generator is splitmix64`() {
        var random = SplitMix64(seed: 1_234_567)
        let values = (0..<5).map { _ in random.next() }
        #expect(
            values == [
                6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423,
                4_593_380_528_125_082_431, 16_408_922_859_458_223_821,
            ])
    }

    @Test func `Each delay doubles up to a minute, less a random part of at most half`() {
        let policy = RetryPolicy()
        var random = SplitMix64(seed: 2)
        var whole: UInt64 = 500_000_000
        for attempts in 1...70 {
            var delays: Set<UInt64> = []
            for _ in 0..<50 {
                let delay = policy.delayNanoseconds(afterAttempts: attempts, random: &random)
                #expect(delay >= whole / 2 && delay <= whole)
                delays.insert(delay)
            }
            #expect(delays.count > 40)
            whole = min(whole * 2, 60_000_000_000)
        }
        var one = SplitMix64(seed: 3)
        var other = SplitMix64(seed: 3)
        #expect(
            policy.delayNanoseconds(afterAttempts: 4, random: &one)
                == policy.delayNanoseconds(afterAttempts: 4, random: &other))
    }

    /// A run that gives up after so long without a response is not kept waiting for longer by its own delays.
    @Test func `The longest delay is three quarters of --give-up-after, at most a minute`() {
        #expect(RetryPolicy.longestDelay(giveUpAfter: 600_000_000_000) == 60_000_000_000)
        for giveUpAfter in [UInt64(60), 40, 1].map({ $0 * 1_000_000_000 }) {
            let longest = RetryPolicy.longestDelay(giveUpAfter: giveUpAfter)
            #expect(longest == giveUpAfter / 4 * 3)
            let policy = RetryPolicy(longestDelayNanoseconds: longest)
            var random = SplitMix64(seed: 7)
            let delays = (0..<200).map { _ in
                policy.delayNanoseconds(afterAttempts: 20, random: &random)
            }
            #expect(delays.max()! <= longest && delays.max()! > longest / 10 * 9)
        }
    }

    @Test func `Retry-After replaces the computed delay, and the due time saturates`() {
        var random = SplitMix64(seed: 4)
        let verdict = RetryPolicy().verdict(
            attempts: 1, firstAttempt: 0, now: 7, retryAfterNanoseconds: 90_000_000_000,
            random: &random)
        #expect(verdict == .again(dueNanoseconds: 90_000_000_007))
        let late = RetryPolicy().verdict(
            attempts: 1, firstAttempt: 0, now: 7, retryAfterNanoseconds: .max, random: &random)
        #expect(late == .again(dueNanoseconds: .max))
    }

    @Test func `The generator with seed 0 starts with the published value`() {
        var random = SplitMix64(seed: 0)
        #expect(random.next() == 0xe220_a839_7b1d_cdaf)
    }

    /// The queue against a sorted array.
    @Test(arguments: 0..<10 as Range<UInt64>)
    func `A retry queue returns random entries in the order of a sorted array`(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var queue = RetryQueue(capacity: 64)
        var model: [RetryQueue.Entry] = []
        for step in 0..<5_000 {
            if model.count < 64, Int.random(in: 0..<5, using: &random) < 3 {
                let entry = RetryQueue.Entry(
                    dueNanoseconds: UInt64.random(in: 0...20, using: &random), tag: UInt32(step))
                queue.insert(dueNanoseconds: entry.dueNanoseconds, tag: entry.tag)
                model.append(entry)
                model.sort {
                    ($0.dueNanoseconds, $0.tag) < ($1.dueNanoseconds, $1.tag)
                }
            } else {
                let now = UInt64.random(in: 0...20, using: &random)
                let tag = queue.popDue(now: now)
                if let first = model.first, first.dueNanoseconds <= now {
                    #expect(tag == first.tag)
                    model.removeFirst()
                } else {
                    #expect(tag == nil)
                }
            }
            let (count, due, isFull) = (queue.count, queue.nextDue, queue.isFull)
            #expect(count == model.count)
            #expect(due == model.first?.dueNanoseconds)
            #expect(isFull == (model.count == 64))
        }
        while let entry = queue.popFirst() { #expect(entry == model.removeFirst()) }
        #expect(model.isEmpty)
    }
}
