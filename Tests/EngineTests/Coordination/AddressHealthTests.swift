import BroadsideRing
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What the failures of some connections to an address mean for the others to it.
@Suite struct AddressHealthTests {
    private let health = AddressHealth()
    private let address = SocketAddress.v4(0x0a00_0001, port: 443)
    private let first = AddressHealth.Owner(reactor: 0, slot: 1)
    private let other = AddressHealth.Owner(reactor: 1, slot: 0)
    private static let start = 1000 * second

    private func fail(
        at now: UInt64, isOutage: Bool = false, isRepeated: Bool = false, reactor: Int = -1
    ) {
        health.failed(
            address, now: now, retryAfter: nil, lasting: nil, isOutage: isOutage,
            isRepeated: isRepeated, reactor: reactor, draw: 0)
    }

    private func ask(_ owner: AddressHealth.Owner, at now: UInt64) -> AddressHealth.Permission {
        health.requestPermission(address, owner, now: now)
    }

    private func leave(_ owner: AddressHealth.Owner, at now: UInt64) -> AddressHealth.Permission {
        health.permission(address, owner, now: now)
    }

    @Test func `A connection that tries a paused address is not held by failures of others`() {
        fail(at: Self.start)
        let later = Self.start + 2 * second
        #expect(ask(first, at: later) == .trial)
        // Others, which were opened before, time out one after the other.
        fail(at: later)
        let pause = AddressHealth.Permission.none(until: later + 2 * second)
        #expect(ask(other, at: later) == pause && ask(first, at: later) == pause)
        #expect(leave(first, at: later) == .trial)
        #expect(leave(other, at: later) == .free)
    }

    @Test func `An announced outage holds open connections until one has tried the address`() {
        fail(at: Self.start)
        let later = Self.start + 2 * second
        #expect(ask(first, at: later) == .trial)
        fail(at: later, isOutage: true)
        let end = later + 2 * second
        #expect(leave(first, at: later) == .none(until: end))
        #expect(leave(other, at: later) == .none(until: end))
        #expect(leave(other, at: end) == .none(until: nil))
        #expect(leave(first, at: end) == .trial)
        health.release(first)
        #expect(leave(other, at: end) == .trial)
        health.succeeded(address, other, now: end)
        #expect(leave(first, at: end) == .free && leave(other, at: end) == .free)
    }

    @Test func `Repeated server errors of a row lengthen the pause up to eight seconds`() {
        var now = Self.start
        let pauses = [
            (1, true), (2, true), (4, true), (8, true), (8, true), (16, false), (16, true),
            (32, false),
        ]
        for (pause, isRepeated) in pauses {
            fail(at: now, isOutage: true, isRepeated: isRepeated)
            let end = now + UInt64(pause) * second
            #expect(leave(first, at: now) == .none(until: end))
            now = end
        }
    }

    @Test func `Repeated server errors of a row raise the limit on requests of the next test`() {
        var now = Self.start
        for (limit, isRepeated) in [
            (1, false), (2, true), (4, true), (8, true), (16, true), (16, true), (1, false),
        ] {
            fail(at: now, isOutage: true, isRepeated: isRepeated)
            #expect(health.entry(address).trialLimit == limit)
            now = health.entry(address).notBefore
        }
        health.succeeded(address, first, now: now)
        #expect(health.entry(address).trialLimit == 1)
    }

    @Test func `After a row that may be the cause, reactors with higher numbers test first`() {
        fail(at: Self.start, isOutage: true, isRepeated: true, reactor: first.reactor)
        let end = Self.start + second
        let later = end + second / 10
        #expect(leave(first, at: end) == .none(until: later))
        #expect(leave(other, at: end) == .trial)
        health.release(other)
        #expect(leave(first, at: later) == .trial)
    }

    @Test func `Several attempts fit into the time after which a run gives up`() {
        var (now, attempts) = (Self.start, 0)
        while now < Self.start + 60 * second {
            health.failed(
                address, now: now, retryAfter: nil, lasting: nil, isOutage: false,
                isUnreached: true, giveUpAfter: 60 * second, draw: 0)
            let end = health.entry(address).notBefore
            #expect(end - now <= 10 * second)
            (now, attempts) = (end, attempts + 1)
        }
        #expect(attempts >= 8)
    }

    @Test(arguments: [0, 1, 12_345_678_901, UInt64.max])
    func `A wait that the server asked for ends before the run gives up`(draw: UInt64) {
        for seconds in [55, 58, 59] as [UInt64] {
            let health = AddressHealth()
            health.failed(
                address, now: Self.start, retryAfter: seconds * second, lasting: nil,
                isOutage: true, giveUpAfter: 60 * second, draw: draw)
            let wait = health.entry(address).notBefore - Self.start
            #expect(wait >= seconds * second && wait < 60 * second)
        }
    }

    @Test func `A response during a new pause does not end it`() {
        fail(at: Self.start, isOutage: true)
        let later = Self.start + 2 * second
        #expect(leave(first, at: later) == .trial)
        // Another connection fails while the response is on its way.
        fail(at: later)
        let end = later + 2 * second
        health.succeeded(address, first, now: later)
        #expect(leave(other, at: later) == .none(until: end))
        #expect(leave(other, at: end) == .trial)
    }

    @Test func `The response of one connection does not end another's trial`() {
        fail(at: Self.start, isOutage: true)
        let later = Self.start + 2 * second
        #expect(leave(first, at: later) == .trial)
        fail(at: later)
        health.succeeded(address, other, now: later)
        #expect(leave(other, at: later + 2 * second) == .none(until: nil))
    }
}
