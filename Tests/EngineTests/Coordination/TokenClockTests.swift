import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// The time by which provider tokens are dated, on a wall clock that jumps.
@Suite struct TokenClockTests {
    private static let start: UInt64 = 1_800_000_000
    private static let hour: Int64 = 3600

    /// So many seconds after the start, on a wall clock that is off by `jump` seconds.
    private func at(_ passed: UInt64, jump: Int64 = 0) -> Now {
        let wall = Int64(Self.start + passed) + jump
        return Now(
            nanoseconds: (1000 + passed) * second, wallMilliseconds: UInt64(max(0, wall)) * 1000)
    }

    @Test func `The token clock follows small steps of the wall clock`() {
        var clock = TokenClock()
        #expect(clock.seconds(at(0)) == Self.start)
        for jump: Int64 in [-1800, -1, 0, 1, 300, 46 * 60] {
            #expect(clock.seconds(at(60, jump: jump)) == UInt64(Int64(Self.start) + 60 + jump))
        }
    }

    @Test(arguments: [10_800, 3_300, -10_800, -1_900_000_000] as [Int64])
    func `The token clock ignores a jump that would make a token invalid`(jump: Int64) {
        var clock = TokenClock()
        _ = clock.seconds(at(0))
        #expect(clock.seconds(at(60, jump: jump)) == Self.start + 60)
        #expect(clock.seconds(at(7200, jump: jump)) == Self.start + 7200)
        // Set right again.
        #expect(clock.seconds(at(7260, jump: 2)) == Self.start + 7262)
    }

    @Test func `APNs decides whether a clock that is far ahead is right`() {
        var clock = TokenClock()
        _ = clock.seconds(at(0))
        let followsNoJump = clock.adoptWallClock(at(30, jump: 60))
        let followsBack = clock.adoptWallClock(at(30, jump: -3 * Self.hour))
        #expect(!followsNoJump && !followsBack)
        let follows = clock.adoptWallClock(at(60, jump: 3 * Self.hour))
        #expect(follows)
        #expect(clock.seconds(at(61, jump: 3 * Self.hour)) == Self.start + 61 + 10_800)
        #expect(clock.seconds(at(3661, jump: 3 * Self.hour)) == Self.start + 3661 + 10_800)
        // Back is a jump by now.
        #expect(clock.seconds(at(3662)) == Self.start + 3662 + 10_800)
    }

    /// A run with a token of the start, which signs others.
    private func run() -> RunCoordinator {
        RunCoordinator(
            authorization: [0], issuedAt: Self.start, milliRate: nil, abortAfter: 10,
            maxBadTokensPercent: 50, sign: { _ in [1] })
    }

    private func actions(
        _ run: RunCoordinator, _ now: Now, connections: [UInt64]
    ) -> [ExpiredTokenAction] {
        var channel = RunChannel(run, reactor: 0)
        for connection in connections {
            channel.append(.expired(usedVersion: 1, connection: connection))
        }
        channel.exchange(permits: 0, inFlight: 0, now)
        return channel.takeExpiredTokens()
    }

    @Test func `After a sleep of three hours the token is renewed and the run continues`() {
        let run = run()
        #expect(actions(run, at(0), connections: []).isEmpty)
        let awake = at(60, jump: 3 * Self.hour)
        #expect(run.renewToken(awake) == nil)
        #expect(actions(run, awake, connections: [1, 2, 3, 4]).allSatisfy { $0 == .renewed })
        #expect(run.stopCause == nil)
        #expect(run.renewToken(awake) == Self.start + 10_800)
        #expect(run.authorizationVersion == 2 && !run.wantsToken)
    }

    @Test(arguments: [10_800, -10_800] as [Int64])
    func `A wrongly set clock renews no token early`(jump: Int64) {
        let run = run()
        for passed: UInt64 in [0, 60, 600, 2000] {
            var channel = RunChannel(run, reactor: 0)
            channel.checkTokenAge()
            channel.exchange(permits: 0, inFlight: 0, at(passed, jump: passed == 0 ? 0 : jump))
            #expect(!channel.directives.isTokenStale)
            #expect(run.renewToken(at(passed, jump: passed == 0 ? 0 : jump)) == nil)
        }
        var channel = RunChannel(run, reactor: 0)
        channel.checkTokenAge()
        channel.exchange(permits: 0, inFlight: 0, at(2100, jump: jump))
        #expect(run.renewToken(at(2100, jump: jump)) == Self.start + 1800)
    }
}
