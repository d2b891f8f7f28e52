import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What a connection is made of, each alone.
struct ConnectionPartsTests {
    // MARK: Outbox

    private func fill(_ outbox: inout Outbox, _ bytes: [UInt8]) {
        let tail = outbox.tail
        for (index, byte) in bytes.enumerated() { tail[index] = byte }
        outbox.append(bytes.count)
    }

    @Test func `An outbox sends bytes in the order in which they were added`() {
        var outbox = Outbox(capacity: 8)
        outbox.begin()
        fill(&outbox, [1, 2, 3])
        let first = outbox.takeWaiting(now: 5, nextRequest: 3).map(Array.init)
        #expect(first == [1, 2, 3])
        fill(&outbox, [4, 5])
        let meanwhile = outbox.takeWaiting(now: 6, nextRequest: 5)
        #expect(meanwhile == nil)
        #expect(outbox.firstUnsent == 3)

        outbox.sendStopped()
        let partly = outbox.recordSent(2, now: 7)
        #expect(partly == nil && outbox.waitingSince == 5 && outbox.room == 3)
        let second = outbox.takeWaiting(now: 8, nextRequest: 5).map(Array.init)
        #expect(second == [3, 4, 5])
        outbox.sendStopped()
        let since = outbox.recordSent(3, now: 9)
        #expect(since == 5)
        #expect(outbox.isEmpty && outbox.room == 8 && outbox.waitingSince == nil)
        #expect(outbox.firstUnsent == 5)
    }

    @Test func `Bytes that an outbox gives up are not sent with later ones`() {
        var outbox = Outbox(capacity: 4)
        outbox.begin()
        fill(&outbox, [1, 2])
        _ = outbox.takeWaiting(now: 2, nextRequest: 3)
        outbox.sendStopped()
        outbox.clear()
        #expect(outbox.isEmpty && outbox.isDrained && outbox.waitingSince == nil)
        fill(&outbox, [3])
        let bytes = outbox.takeWaiting(now: 4, nextRequest: 5).map(Array.init)
        #expect(bytes == [3])
        let broken = outbox.brokenInvariant
        #expect(broken == nil)
    }

    @Test func `Requests of a failed send are unsent, even at the instant of the last one`() {
        var outbox = Outbox(capacity: 8)
        outbox.begin()
        fill(&outbox, [1, 2])
        _ = outbox.takeWaiting(now: 2, nextRequest: 3)
        outbox.sendStopped()
        _ = outbox.recordSent(2, now: 4)
        fill(&outbox, [3])
        _ = outbox.takeWaiting(now: 4, nextRequest: 5)
        #expect(outbox.firstUnsent == 5)
        outbox.sendStopped()
        outbox.fail(now: 4)
        #expect(outbox.firstUnsent == 3)
    }

    // MARK: Trust

    @Test func `After 17 server errors in a row, the requests in flight decide`() {
        for decided in [true, false] {
            var trust = Trust()
            trust.recordResponse(now: 1)
            for _ in 0..<16 {
                trust.recordResponse(now: 2)
                let isTrouble = trust.recordServerError(isRepeated: true, awaitsOthers: false)
                #expect(!isTrouble && !trust.isInDoubt && trust.isComplete)
            }
            trust.recordResponse(now: 3)
            let isTrouble = trust.recordServerError(isRepeated: true, awaitsOthers: !decided)
            #expect(isTrouble == decided && trust.isInDoubt && trust.isComplete == decided)
            trust.recordResponse(now: 4)
            #expect(trust.isComplete && !trust.isInDoubt)
        }
    }

    @Test func `A connection with only server errors is unproven until another response`() {
        var trust = Trust()
        for number in 1...20 {
            trust.recordResponse(now: 1)
            let isTrouble = trust.recordServerError(isRepeated: true, awaitsOthers: true)
            #expect(!isTrouble && trust.isInDoubt && !trust.hasResponded)
            #expect(trust.responses == 0 && trust.rowErrors == number)
        }
        var other = trust
        other.recordResponse(now: 2)
        #expect(other.responses == 1 && other.isComplete && !other.isInDoubt)
        // The last request in flight decides.
        trust.recordResponse(now: 2)
        let isTrouble = trust.recordServerError(isRepeated: true, awaitsOthers: false)
        #expect(isTrouble && !trust.isProven)
    }

    @Test func `The first server error of a row always shows trouble`() {
        var trust = Trust()
        trust.recordResponse(now: 1)
        trust.recordResponse(now: 2)
        let isTrouble = trust.recordServerError(isRepeated: false, awaitsOthers: true)
        #expect(isTrouble && trust.isProven)
    }

    // MARK: Liveness

    @Test func `A silent connection with open requests gets a PING and then counts as dead`() {
        var liveness = Liveness(now: 0)
        let limit = Liveness.silenceLimit
        var verdicts = [liveness.verdict(isAwaited: true, now: limit)]
        verdicts.append(liveness.verdict(isAwaited: true, now: limit + 1))
        liveness.recordPing(now: limit + 1)
        verdicts.append(liveness.verdict(isAwaited: true, now: 2 * limit + 1))
        verdicts.append(liveness.verdict(isAwaited: true, now: 2 * limit + 2))
        #expect(verdicts == [.alive, .silent, .alive, .dead])
    }

    @Test func `Any bytes after a PING show that the connection lives`() {
        var liveness = Liveness(now: 0)
        let asked = 11 * second
        liveness.recordPing(now: asked)
        liveness.recordReceived(now: asked - 1)
        let before = liveness.verdict(isAwaited: true, now: asked + 10 * second + 1)
        liveness.recordReceived(now: asked)
        let after = liveness.verdict(isAwaited: true, now: asked + 10 * second + 1)
        // The PING is over: the next silence is a silence again.
        let later = liveness.verdict(isAwaited: true, now: asked + 10 * second + 1)
        #expect([before, after, later] == [.dead, .alive, .silent])
    }

    @Test func `After a stall, only the reply to a PING ends the wait, and one reply is enough`() {
        var liveness = Liveness(now: 0)
        let stall = 20 * second
        liveness.recordReceived(now: stall)
        var asks = [liveness.recordStall()]
        liveness.recordPing(now: stall)
        liveness.recordReceived(now: stall + second)
        var verdicts = [liveness.verdict(isAwaited: true, now: stall + 11 * second)]
        var dead = liveness
        verdicts.append(dead.verdict(isAwaited: true, now: stall + 11 * second + 1))
        #expect(liveness.isAsked && liveness.awaitsReply && verdicts == [.alive, .dead])
        liveness.recordReply()
        // Each iteration of a very slow process counts as a stall.
        liveness.recordReceived(now: 2 * stall)
        asks.append(liveness.recordStall())
        #expect(!liveness.isAsked && !liveness.awaitsReply)
        asks.append(liveness.recordStall())
        #expect(asks == [true, false, true])
    }

    @Test func `An idle connection gets a PING every ten minutes`() {
        var liveness = Liveness(now: 5)
        let early = liveness.verdict(isAwaited: false, now: 5 + 600 * second)
        let due = liveness.verdict(isAwaited: false, now: 6 + 600 * second)
        #expect(early == .alive && due == .silent)
    }

    @Test func `Room for a request restarts the time without room`() {
        var liveness = Liveness(now: 0)
        let limit = Liveness.starvedLimit
        var isTooLong = [liveness.updateStarvation(true, now: 100)]
        isTooLong.append(liveness.updateStarvation(true, now: 100 + limit))
        isTooLong.append(liveness.updateStarvation(false, now: 101 + limit))
        isTooLong.append(liveness.updateStarvation(true, now: 102 + limit))
        isTooLong.append(liveness.updateStarvation(true, now: 103 + 2 * limit))
        #expect(isTooLong == [false, false, false, false, true])
    }

    // MARK: Trust

    @Test func `A connection is trusted from its first response until a request is refused`() {
        var trust = Trust()
        #expect(!trust.isComplete)
        trust.recordResponse(now: 10)
        #expect(trust.isComplete && trust.lastResponse == 10)
        let due = trust.recordRefusal(now: 20)
        #expect(due == 20 + RefusalBackoff.minimum)
        #expect(!trust.isComplete)
        let early = trust.forgetRefusals()
        trust.recordResponse(now: 30)
        let late = trust.forgetRefusals()
        let again = trust.forgetRefusals()
        #expect([early, late, again] == [false, true, false])
        #expect(trust.isComplete && trust.refusals == RefusalBackoff())
    }

    @Test func `Only losses in a row count`() {
        var trust = Trust()
        var isTooMany: [Bool] = []
        for _ in 1..<Trust.lossesLimit { isTooMany.append(trust.recordLoss()) }
        trust.recordResponse(now: 1)
        for _ in 1...Trust.lossesLimit { isTooMany.append(trust.recordLoss()) }
        let expected = [Bool](repeating: false, count: 2 * Trust.lossesLimit - 2) + [true]
        #expect(isTooMany == expected)
    }

    @Test func `A lossy address gets as many streams as its responses justify`() {
        var trust = Trust()
        trust.requireProof(true)
        for _ in 0..<8 { trust.recordResponse(now: 1) }
        #expect(!trust.isComplete)
        let worth = trust.worth
        let isProved = [
            trust.endProof(requestLimit: worth + 1), trust.endProof(requestLimit: worth),
        ]
        #expect(worth > 1 && isProved == [false, true])
        #expect(trust.isComplete)
    }
}
