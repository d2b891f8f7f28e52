import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideLegacyGateway
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What a reactor sends to a legacy gateway, and what it makes of its silence and its errors.
@Suite(.timeLimit(.minutes(60)))
struct LegacyGatewayRuleTests {
    private static let silence = 5 * second
    private static let slack = second / 5

    private func gatewayRun(
        rows: Int, command: BinaryCommand = .frame, expiration: UInt32? = nil,
        priority: UInt8 = 10, text: String? = nil, inFlight: Int = 1000, abortAfter: Int = 50,
        onLost: LostResponsePolicy = .record, isExplicit: Bool = true
    ) throws -> ScriptedRun {
        try ScriptedRun(rows: rows, abortAfter: abortAfter, text: text) {
            $0.binary = BinarySettings(
                command: command, expiration: expiration, priority: priority,
                silence: Self.silence)
            $0.streamsPerConnection = inFlight
            $0.onLost = onLost
            $0.giveUpAfterIsExplicit = isExplicit
        }
    }

    private func packet(_ status: UInt8, _ identifier: UInt32) -> [UInt8] {
        BinaryErrorPacket(status: status, identifier: identifier).encoded
    }

    private func bytes(_ digits: String) -> [UInt8] {
        stride(from: 0, to: digits.utf8.count, by: 2).map {
            let start = digits.index(digits.startIndex, offsetBy: $0)
            return UInt8(digits[start...].prefix(2), radix: 16)!
        }
    }

    @Test(
        arguments: BinaryCommand.allCases,
        [(nil, 10), (0, 5), (0x0102_0304, 10)] as [(UInt32?, UInt8)])
    func `A notification has the fields that its command allows`(
        command: BinaryCommand, options: (expiration: UInt32?, priority: UInt8)
    ) throws {
        let tokens = [
            String(repeating: "0123456789abcdef", count: 4),
            String(repeating: "9af0", count: 50), String(repeating: "fe", count: 32),
        ]
        let run = try gatewayRun(
            rows: 0, command: command, expiration: options.expiration, priority: options.priority,
            text: tokens.map { $0.uppercased() + "\n" }.joined())
        run.run()
        #expect(run.notifications.count == 3)
        for (place, sent) in run.notifications.enumerated() {
            let isFrame = command == .frame
            let expiration =
                isFrame ? options.expiration : options.expiration ?? BinarySettings.farFuture
            #expect(
                sent.notification
                    == BinaryNotification(
                        command: command,
                        identifier: command == .simple ? nil : UInt32(place + 1),
                        expiration: command == .simple ? nil : expiration,
                        priority: isFrame ? options.priority : nil, token: bytes(tokens[place]),
                        payload: Array(#"{"aps":{}}"#.utf8)))
        }
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.status == 200 })
    }

    @Test func `Enough silence is acceptance, and not a moment earlier`() throws {
        let run = try gatewayRun(rows: 300, inFlight: 100)
        var early: UInt64 = 0
        run.run(for: Self.silence - millisecond) {
            early = max(early, run.settled)
            return false
        }
        // Before anything was accepted few are in flight; a gateway says nothing, so that stays.
        let first = run.notifications.count
        #expect(early == 0 && first == 50)
        run.run()
        #expect(run.notifications.count == 300 && run.links.count == 1)
        #expect(run.notifications.map(\.notification.identifier) == (1...300).map { $0 })
        #expect(run.time >= 4 * Self.silence && run.time < 4 * (Self.silence + Self.slack))
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }

    @Test func `Silence counts from when the network took the notification`() throws {
        let run = try gatewayRun(rows: 3)
        run.run(for: 10 * millisecond) { run.links.count == 1 }
        run.hold(0)
        run.run(for: 20 * second)
        #expect(run.notifications.isEmpty && run.settled == 0)
        let taken = run.time
        run.letGo(0)
        run.run()
        #expect(run.time >= taken + Self.silence && run.time < taken + Self.silence + Self.slack)
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }

    /// A status, what becomes of the row that it names, and whether it is sent again.
    private static let statuses: [(status: UInt8, row: ScriptedRun.Row?)] = [
        (2, .init(state: .rejected, status: 2, reason: "MissingDeviceToken", attempts: 1)),
        (5, .init(state: .rejected, status: 5, reason: "InvalidTokenSize", attempts: 1)),
        (7, .init(state: .rejected, status: 7, reason: "PayloadTooLarge", attempts: 1)),
        (8, .init(state: .rejected, status: 8, reason: "BadDeviceToken", attempts: 1)),
        (128, .init(state: .rejected, status: 128, reason: "ProtocolError", attempts: 1)),
        (3, .init(state: .remaining, status: 0, reason: nil, attempts: 1)),
        (6, .init(state: .remaining, status: 0, reason: nil, attempts: 1)),
        // Again, after a while.
        (1, nil), (255, nil), (77, nil),
        // It was the last that the gateway took.
        (10, .init(state: .accepted, status: 200, reason: nil, attempts: 1)),
    ]

    @Test(arguments: statuses.indices, [1, 3, 6] as [UInt32])
    func `An error packet settles the rows before it and resends those after it`(
        index: Int, named: UInt32
    ) throws {
        let (status, outcome) = Self.statuses[index]
        let run = try gatewayRun(rows: 6)
        run.run { run.notifications.count == 6 }
        // In pieces, as the network may have it.
        for byte in packet(status, named) + [1, 2, 3] { run.say([byte], on: 0) }
        run.run(for: second / 10) { run.links[0].closed != nil }
        #expect(run.links[0].closed != nil)
        run.run()
        let again = status == 10 || outcome != nil ? 0 : 1
        let behind = 6 - Int(named)
        #expect(run.links.count == (behind + again == 0 ? 1 : 2))
        #expect(run.notifications.count == 6 + behind + again)
        // Those behind it first, in their order, and with identifiers from 1.
        let second = run.notifications[6...]
        #expect(second.map(\.notification.identifier) == second.indices.map { UInt32($0 - 5) })
        #expect(
            second.prefix(behind).map(\.notification.token)
                == (Int(named)..<6).map { bytes(ScriptedRun.token($0)) })
        for (number, row) in try run.rows().enumerated() {
            let accepted = ScriptedRun.Row(
                state: .accepted, status: 200, reason: nil, attempts: 1)
            if number == Int(named) - 1 {
                var retried = accepted
                retried.attempts = 2
                #expect(row == outcome ?? retried)
            } else {
                #expect(row == accepted)
            }
        }
        #expect(run.heldBack == (status == 3 || status == 6 ? 1 : 0))
    }

    @Test(arguments: [0, 4, 1_000] as [UInt32])
    func `An error packet with an unknown identifier leaves rows in doubt`(identifier: UInt32)
        throws
    {
        let run = try gatewayRun(rows: 3)
        run.run { run.notifications.count == 3 }
        run.say(packet(1, identifier), on: 0)
        run.run()
        #expect(run.notifications.count == 3)
        #expect(
            try run.rows().allSatisfy { $0.state == .unknown && $0.reason == "ConnectionLost" })
        #expect(run.events.contains { $0.kind == .errorPacket })
    }

    @Test(arguments: [false, true])
    func `A gateway that was reached is waited for, and one that never was is given up soon`(
        wasThere: Bool
    ) throws {
        let run = try gatewayRun(rows: 20, inFlight: 5, isExplicit: false)
        run.opening = { wasThere && $0 == 0 ? .open : .fails(errno: 111) }
        if wasThere {
            run.run { run.notifications.count == 5 }
            run.hangUp(0)
        }
        run.run()
        switch run.coordinator.stopCause {
        case .noResponse(seconds: 60, _): #expect(wasThere && run.links.count > 4)
        case .gaveUp: #expect(!wasThere && run.links.count == 3)
        default: Issue.record("\(String(describing: run.coordinator.stopCause))")
        }
    }

    @Test func `An error packet about a row that was not sent has no effect`() throws {
        let run = try gatewayRun(rows: 20)
        run.coordinator.milliRate = 10_000
        run.run { run.notifications.count == 3 }
        run.hold(0)
        // The network has one more of them, the others wait behind it.
        run.run(for: second)
        run.say(packet(8, 8), on: 0)
        run.run()
        let rows = try run.rows()
        #expect(rows.prefix(4).allSatisfy { $0.state == .unknown && $0.attempts == 1 })
        #expect(rows[4...].allSatisfy { $0.state == .accepted && $0.attempts == 1 })
        #expect(run.notifications.count { $0.link == 1 } == 16)
    }

    @Test func `An error packet about a row accepted by silence changes no verdict`() throws {
        let run = try gatewayRun(rows: 60)
        run.run { run.notifications.count == 60 }
        #expect(run.settled == 50)
        run.say(packet(8, 50), on: 0)
        run.run()
        // Those behind it were discarded.
        #expect(run.links.count == 2 && run.notifications.count == 70)
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
        #expect(run.events.contains { $0.kind == .errorPacket && $0.level == .warning })
        #expect(run.reactors[0].machine.snapshot().refutedAcceptances == 1)
    }

    @Test func `A shutdown after silence is a warning only if later rows were accepted by silence`()
        throws
    {
        for (named, level) in [(50, .info), (49, .warning)] as [(UInt32, RunEvent.Level)] {
            let run = try gatewayRun(rows: 60)
            run.run { run.notifications.count == 60 }
            run.say(packet(10, named), on: 0)
            run.run()
            #expect(run.events.filter { $0.kind == .errorPacket }.map(\.level) == [level])
            let refuted = run.reactors[0].machine.snapshot().refutedAcceptances
            #expect(refuted == UInt64(50 - named))
            #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
        }
    }

    @Test(
        arguments: [(3, 1, true), (4, 1, true), (3, 2, false), (8, 1, false)]
            as [(UInt8, UInt32, Bool)])
    func `Late refusals of the first row of each connection end the run`(
        status: UInt8, named: UInt32, ends: Bool
    ) throws {
        let run = try gatewayRun(rows: 40, inFlight: 10, abortAfter: 3)
        var (said, settled) = (0, 0 as UInt64)
        run.run {
            // Two rows of the connection are accepted by silence before its error comes.
            if run.links.count > said, run.settled >= settled + 2 {
                run.say(packet(status, named), on: said)
                said += 1
                settled = run.settled
            }
            return false
        }
        guard ends else {
            #expect(run.coordinator.stopCause == nil && said > 3)
            return
        }
        #expect(said == 3)
        guard case .refused(let refusal) = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(refusal.status == UInt16(status) && refusal.isCredential == (status == 3))
        #expect(run.reactors[0].machine.snapshot().refutedAcceptances >= 6)
    }

    @Test(arguments: LostResponsePolicy.allCases, [0, 1, 2])
    func `Without an error packet the rows in flight are in doubt`(
        onLost: LostResponsePolicy, way: Int
    ) throws {
        let run = try gatewayRun(rows: 4, onLost: onLost)
        run.run { run.notifications.count == 4 }
        switch way {
        case 0: run.hangUp(0)
        case 1: run.say([9, 8, 0, 0, 0, 1], on: 0)
        default:
            // Half a packet says nothing.
            run.say([8, 8, 0, 0, 0], on: 0)
            run.hangUp(0)
        }
        run.run()
        let rows = try run.rows()
        switch onLost {
        case .record:
            #expect(run.notifications.count == 4)
            #expect(rows.allSatisfy { $0.state == .unknown && $0.attempts == 1 })
        case .resend:
            #expect(run.notifications.count == 8)
            #expect(rows.allSatisfy { $0.state == .accepted && $0.attempts == 2 })
        }
    }

    @Test(arguments: [0, 50])
    func `A gateway that closes a connection before it accepted a row may refuse the certificate`(
        settled: Int
    ) throws {
        let run = try gatewayRun(rows: 60)
        run.run { run.notifications.count == (settled == 0 ? 50 : 60) }
        run.hangUp(0)
        run.run()
        let hints = run.events.count { $0.message.contains("may refuse the client certificate") }
        #expect(hints == (settled == 0 ? 1 : 0), "\(run.events)")
    }

    /// A refused certificate ends the run, so that the rows would be sent by a resume.
    @Test(arguments: [(true, 0), (false, 0), (true, 50)] as [(Bool, UInt64)])
    func `A certificate refused before any data leaves the rows in flight unsent`(
        precedesData: Bool, settled: UInt64
    ) throws {
        let run = try gatewayRun(rows: 60)
        run.run { run.notifications.count == (settled == 0 ? 50 : 60) }
        let slot = run.links[0].slot
        let trouble = ConnectionTrouble(.tls, "the certificate is refused")
        run.reactors[0].machine.stateMachine.fail(
            slot, trouble, isLasting: true, precedesData: precedesData, now: run.now)
        run.run()
        let unknown = try run.rows().count { $0.state == .unknown }
        // A row that silence has settled shows that the alert came too late to prove anything.
        #expect((unknown == 0) == (precedesData && settled == 0))
        #expect(try run.rows().count { $0.state == .accepted } == settled)
    }

    @Test(arguments: [false, true])
    func `A gateway that began an error packet gets no more rows`(
        ends: Bool
    ) throws {
        let run = try gatewayRun(rows: 120, inFlight: 60)
        run.run { run.settled == 50 }
        run.run(for: 4 * second)
        let sent = run.notifications.count
        #expect(sent > 55 && sent < 120 && run.settled == 50)
        run.say(Array(packet(8, 55).prefix(5)), on: 0)
        let begun = run.time
        // They are old enough meanwhile for silence to be believed, but for that.
        run.run(for: 3 * second / 2)
        #expect(run.notifications.count { $0.link == 0 } == sent && run.settled == 50)
        if ends { run.say([55], on: 0) }
        run.run()
        let states = try run.rows().map(\.state)
        if ends {
            #expect(states.enumerated().allSatisfy { $1 == ($0 == 54 ? .rejected : .accepted) })
        } else {
            #expect(states.prefix(50).allSatisfy { $0 == .accepted })
            #expect(states[50..<sent].allSatisfy { $0 == .unknown })
            #expect(states[sent...].allSatisfy { $0 == .accepted })
            let waited = run.links[0].closed! - begun
            #expect(waited > 2 * second && waited < 2 * second + Self.slack)
        }
    }

    @Test(arguments: [false, true])
    func `A gateway that stops reading gets time for an error packet`(
        says: Bool
    ) throws {
        let run = try gatewayRun(rows: 60)
        run.run { run.notifications.count == 50 }
        run.breakSends(0, errno: 32)
        run.run { run.settled == 50 }
        let broken = run.time
        run.run(for: second)
        #expect(run.links.count == 1 && run.links[0].closed == nil && run.settled == 50)
        // It had two of them before it broke.
        if says { run.say(packet(8, 52), on: 0) }
        run.run()
        let states = try run.rows().map(\.state)
        #expect(states.prefix(says ? 51 : 50).allSatisfy { $0 == .accepted })
        if says {
            #expect(states[51] == .rejected && states[52...].allSatisfy { $0 == .accepted })
            #expect(run.links.count == 2 && run.notifications.count == 58)
        } else {
            #expect(states[50...].allSatisfy { $0 == .unknown })
            let waited = run.links[0].closed! - broken
            #expect(waited > 2 * second && waited < 2 * second + Self.slack)
        }
    }

    @Test func `A row with a processing error fails with its last status`() throws {
        let run = try gatewayRun(rows: 1)
        var seen = 0
        run.run {
            if seen < run.notifications.count {
                seen += 1
                run.say(packet(1, 1), on: run.notifications[seen - 1].link)
            }
            return false
        }
        let row = try #require(try run.rows().first)
        #expect(row.state == .failed && row.status == 1 && row.reason == "ProcessingError")
        #expect(row.attempts >= 5 && row.attempts == run.notifications.count)
        #expect(run.time >= 900 * second)
    }

    @Test(arguments: [1, 2])
    func `Refusals count from the last acceptance on`(named: UInt32) throws {
        let run = try gatewayRun(rows: 40, abortAfter: 2)
        run.run { run.notifications.count == 2 }
        // One was accepted before the first refusal; then the first of all, or the second.
        run.say(packet(4, 2), on: 0)
        run.run { run.links.count == 2 && run.notifications.count > 2 }
        run.say(packet(4, named), on: 1)
        run.run(for: Self.silence - second)
        #expect((run.coordinator.stopCause?.isAbort == true) == (named == 1))
    }

    @Test func `A rejected row counts as refused for the canary`() throws {
        let run = try gatewayRun(rows: 4)
        run.run { run.notifications.count == 4 }
        run.say(packet(8, 3), on: 0)
        run.run()
        // Two before it were accepted, the one behind it went out again.
        let told = run.reactors[0].machine.stateMachine.metrics.takeCanaryProgress()
        #expect(told == .init(done: 4, answered: 4, refused: 1, lost: 0))
    }

    @Test func `A list of bad tokens stops a legacy run`() throws {
        let run = try gatewayRun(rows: 500, abortAfter: 10)
        var seen = 0
        run.run {
            while seen < run.notifications.count {
                let sent = run.notifications[seen]
                seen = run.notifications.count
                run.say(packet(8, sent.notification.identifier!), on: sent.link)
            }
            return false
        }
        #expect(run.coordinator.stopCause?.isAbort == true)
        let rejected = try run.rows().filter { $0.state == .rejected }
        #expect(rejected.count == 10 && rejected.allSatisfy { $0.reason == "BadDeviceToken" })
    }

    /// Has gateways say what is not an error packet once they have a notification, on as many
    /// connections as it takes.
    private func junkRun(_ isToSay: (Int) -> Bool) throws -> ScriptedRun {
        let run = try gatewayRun(rows: 8, inFlight: 1, onLost: .resend)
        var seen = 0
        run.run(for: 600 * second) {
            while seen < run.notifications.count {
                if isToSay(seen) { run.say([9, 9, 9, 9, 9, 9], on: run.notifications[seen].link) }
                seen += 1
            }
            return run.coordinator.isStopping
        }
        return run
    }

    @Test func `Three connections in a row with junk instead of an error packet end the run`()
        throws
    {
        let run = try junkRun { _ in true }
        guard case .brokenServer(let trouble) = run.coordinator.stopCause else {
            Issue.record("\(String(describing: run.coordinator.stopCause))")
            return
        }
        #expect(trouble.kind == .protocol && run.notifications.count == 3)
    }

    @Test func `Accepted rows between junk connections let the run continue`() throws {
        let run = try junkRun { $0 % 5 < 2 }
        #expect(run.coordinator.stopCause == nil && run.isFinished)
        #expect(run.settled == 8 && run.notifications.count == 14)
    }
}
