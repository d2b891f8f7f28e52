import BroadsideSupport
import Testing

@testable import Broadside

struct ClientLivenessTests {
    @Test
    func `A PING is due after 10 s of silence if a request waits, and otherwise after 10 minutes`()
    {
        let liveness = ClientLiveness(now: 5 * second)
        #expect(!liveness.needsPing(isAwaited: true, now: 15 * second - 1))
        #expect(liveness.needsPing(isAwaited: true, now: 15 * second))
        #expect(!liveness.needsPing(isAwaited: false, now: 605 * second - 1))
        #expect(liveness.needsPing(isAwaited: false, now: 605 * second))
    }

    @Test
    func `Without bytes, a connection is dead 10 s after a PING`() {
        var liveness = ClientLiveness(now: 0)
        liveness.recordPing(now: 10 * second)
        #expect(liveness.isAsked && !liveness.needsPing(isAwaited: true, now: 19 * second))
        #expect(!liveness.isDead(now: 20 * second - 1) && liveness.isDead(now: 20 * second))
        liveness.recordReceived(now: 19 * second)
        #expect(!liveness.isAsked && !liveness.isDead(now: 20 * second))
    }
}
