import BroadsideAPNs
import BroadsidePolicy
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What a run makes of its reactors' effects, and tells them.
@Suite struct RunExchangeTests {
    private let now = Now(nanoseconds: 5 * second, wallMilliseconds: 1_800_000_000_000)

    private func coordinator(abortAfter: Int = 10, target: ConnectionTarget? = nil)
        -> RunCoordinator
    {
        RunCoordinator(
            authorization: nil, issuedAt: 0, milliRate: nil, abortAfter: abortAfter,
            maxBadTokensPercent: 50, connectionTarget: target, sign: nil)
    }

    private static let single: [@Sendable (inout ReactorEffects) -> Void] = [
        { $0.append(.accepted(1)) }, { $0.isReady = true }, { $0.lastResponse = 1 },
        { $0.isListOver = true }, { $0.rateChange = -1 }, { $0.checksTokenAge = true },
        { $0.canary = .init() },
    ]

    @Test(arguments: single.indices) func `Each effect alone has to be published once`(index: Int) {
        var effects = ReactorEffects()
        #expect(effects.isEmpty)
        Self.single[index](&effects)
        #expect(!effects.isEmpty)
        effects.removeAll()
        #expect(effects.isEmpty)
    }

    @Test func `What one reactor publishes all others read in their next turn`() {
        let run = coordinator()
        var (first, second) = (RunChannel(run, reactor: 0), RunChannel(run, reactor: 1))
        first.markReady()
        first.append(.accepted(3))
        first.recordResponse(now)
        first.markListEnd()
        #expect(!second.directives.anyReady)
        first.exchange(permits: 0, inFlight: 0, now)
        second.exchange(permits: 0, inFlight: 0, now)
        for told in [first.directives, second.directives] {
            #expect(told.anyReady && told.anyAccepted && told.isListOver && !told.isStopping)
            #expect(told.lastResponse == now.nanoseconds)
        }
        second.stop(.deadline)
        // Who asks for it stops at once; the others when they ask.
        #expect(second.directives.isStopping && !run.isStopping)
        second.finishIteration(inFlight: 0, now)
        first.exchange(permits: 0, inFlight: 0, now)
        #expect(first.directives.isStopping && run.stopCause == .deadline)
    }

    @Test func `Permits and refusals of all reactors together stay within --abort-after`() {
        let run = coordinator(abortAfter: 10)
        var (first, second) = (RunChannel(run, reactor: 0), RunChannel(run, reactor: 1))
        first.exchange(permits: 7, inFlight: 0, now)
        second.exchange(permits: 7, inFlight: 0, now)
        #expect(first.directives.permits == 7 && second.directives.permits == 3)
        // Of seven, two were made use of; one of these is refused.
        first.finishIteration(inFlight: 2, now)
        #expect(first.directives.permits == 2)
        first.append(.response(.badDeviceToken, status: 400, reason: .badDeviceToken))
        first.exchange(permits: 0, inFlight: 1, now)
        second.exchange(permits: 10, inFlight: 3, now)
        #expect(first.directives.permits == 1 && second.directives.permits == 8)
        second.append(.accepted(1))
        second.exchange(permits: 10, inFlight: 2, now)
        #expect(second.directives.anyAccepted && second.directives.permits == 2)
    }

    @Test func `The last response that makes a row be sent again is kept until a row is accepted`()
    {
        let run = coordinator()
        var channel = RunChannel(run, reactor: 0)
        channel.append(.response(.none, status: 429, reason: .tooManyRequests))
        channel.append(.response(.pauseAddress, status: 503, reason: nil))
        channel.append(.response(.deadToken, status: 410, reason: .unregistered))
        channel.finishIteration(inFlight: 0, now)
        #expect(run.lastPushback?.response.text == "503 without a known reason")
        #expect(run.lastPushback?.nanoseconds == now.nanoseconds)
        #expect(run.lastPushback?.isOver == false)
        channel.append(.accepted(1))
        channel.finishIteration(inFlight: 0, now)
        #expect(run.lastPushback?.isOver == true)
    }

    @Test func `Responses with an unknown reason are told apart by its text`() {
        let run = coordinator()
        var channel = RunChannel(run, reactor: 0)
        for reason in ["SlowDownNew", "KeyRevoked", "SlowDownNew"] {
            let number = run.resources.unknownReasons.number(of: Array(reason.utf8).rawSpan)
            let isKey = reason == "KeyRevoked"
            channel.append(
                .response(
                    isKey ? .refusesCredential : .none, status: isKey ? 403 : 429, reason: nil,
                    unknownReason: number))
        }
        channel.finishIteration(inFlight: 0, now)
        #expect(run.lastPushback?.response.text == "429 SlowDownNew")
        #expect(run.lastRefusal?.text == "403 KeyRevoked")
        #expect(run.lastRefusal?.isFromOtherServer == false)
        #expect(run.resources.unknownReasons.count == 2)
    }

    @Test func `The number of different unknown reasons and their length are limited`() {
        let reasons = UnknownReasons()
        for index in 1...UnknownReasons.limit + 3 {
            let number = reasons.number(of: Array("New\(index)".utf8).rawSpan)
            #expect(Int(number) == min(index, UnknownReasons.limit + 1))
        }
        #expect(reasons.count == UnknownReasons.limit && reasons.text(1) == "New1")
        #expect(reasons.number(of: Array("New2".utf8).rawSpan) == 2)
        #expect(reasons.text(UInt8(UnknownReasons.limit + 1)) == nil)
        #expect(reasons.text(0) == nil)
        let long = UnknownReasons()
        let number = long.number(of: [UInt8](repeating: 120, count: 500).rawSpan)
        #expect(long.text(number)?.utf8.count == UnknownReasons.textByteCountMax)
    }

    @Test func `The rate is divided among the reactors with rows`() {
        let run = coordinator()
        var (first, second) = (RunChannel(run, reactor: 0), RunChannel(run, reactor: 1))
        #expect(first.directives.rateParticipants == 0)
        first.shareRate(true)
        second.shareRate(true)
        first.exchange(permits: 0, inFlight: 0, now)
        second.exchange(permits: 0, inFlight: 0, now)
        #expect(second.directives.rateParticipants == 2)
        first.shareRate(false)
        first.finishIteration(inFlight: 0, now)
        second.exchange(permits: 0, inFlight: 0, now)
        #expect(second.directives.rateParticipants == 1)
    }

    @Test func `A run that gives up names its last error`() {
        for (signal, isTimeout) in [
            (.noResponse(seconds: 60), true), (.unreachable, false),
        ] as [(ReactorEffects.Signal, Bool)] {
            let run = coordinator()
            var channel = RunChannel(run, reactor: 0)
            channel.record(ConnectionTrouble(.connect, "first"))
            channel.record(ConnectionTrouble(.lost, "last"))
            channel.giveUp(signal)
            channel.finishIteration(inFlight: 0, now)
            let last = ConnectionTrouble(.lost, "last")
            #expect(
                run.stopCause
                    == (isTimeout ? .noResponse(seconds: 60, last: last) : .gaveUp(last)))
        }
    }

    @Test(arguments: [false, true])
    func `A run that reached no address names the different problems of two addresses`(
        wasReady: Bool
    ) {
        let run = coordinator()
        var channel = RunChannel(run, reactor: 0)
        if wasReady { channel.markReady() }
        for (peer, problem) in [("a:1", "closed"), ("b:1", "expired"), ("b:1", "expired")] {
            channel.record(ConnectionTrouble(.tls, with: peer, problem))
        }
        channel.giveUp(.unreachable)
        channel.finishIteration(inFlight: 0, now)
        let both = ConnectionTrouble(
            .tls, with: "b:1", wasReady ? "expired" : "expired; a:1: closed")
        #expect(run.stopCause == .gaveUp(both))
    }

    @Test func `A reactor's connections are its share of the run's target`() {
        let target = ConnectionTarget(connections: 2, reactors: 2, active: 1)
        var channel = RunChannel(coordinator(target: target), reactor: 1)
        #expect(channel.directives.connectionShare == 0)
        target.grow(to: 4, reactors: 2)
        channel.exchange(permits: 0, inFlight: 0, now)
        #expect(channel.directives.connectionShare == 2)
        #expect(RunChannel(coordinator(), reactor: 0).directives.connectionShare == nil)
    }

    @Test func `The decision about an expired token is made once for each response`() {
        let run = RunCoordinator(
            authorization: [1], issuedAt: 1_800_000_000, milliRate: nil, abortAfter: 10,
            maxBadTokensPercent: 50, sign: { _ in [2] })
        var channel = RunChannel(run, reactor: 0)
        for connection: UInt64 in [1, 1, 2, 3] {
            channel.append(.expired(usedVersion: 1, connection: connection))
        }
        channel.exchange(permits: 0, inFlight: 0, now)
        let actions = channel.takeExpiredTokens()
        #expect(actions == [.otherConnection, .otherConnection, .otherConnection, .fatal])
        #expect(channel.takeExpiredTokens().isEmpty && channel.directives.isStopping)
        channel.exchange(permits: 0, inFlight: 0, now)
        #expect(channel.takeExpiredTokens().isEmpty)
        #expect(run.stopCause == .expiredToken(isSupplied: false))
    }

    @Test func `Acceptances since a turn are published before the next one decides`() throws {
        let run = try ScriptedRun(rows: 1)
        run.reply = { _ in .silence }
        run.run { run.requests.count == 1 }
        let before = run.reactors[0].machine.stateMachine.run.directives.anyAccepted
        let response = ScriptedServer.answer(
            run.requests[0].stream, status: 200, reason: nil, retryAfter: nil)
        run.reactors[0].machine.received(
            connection: 0, bytes: response.span.bytes, now: run.now)
        run.reactors[0].machine.exchangeWithRun(run.now)
        let after = run.reactors[0].machine.stateMachine.run.directives.anyAccepted
        #expect(!before && after)
    }

    @Test func `Many effects are published before the turn ends`() {
        var channel = RunChannel(coordinator(), reactor: 0)
        for _ in 1..<ReactorEffects.signalsLimit { channel.append(.accepted(1)) }
        #expect(!channel.isFull)
        channel.append(.accepted(1))
        #expect(channel.isFull)
    }
}
