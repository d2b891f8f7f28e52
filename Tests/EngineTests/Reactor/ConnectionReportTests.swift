import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What a reactor reports of its connections, and counts for the canary.
@Suite(.timeLimit(.minutes(60)))
struct ConnectionReportTests {
    @Test(
        arguments: [
            (0, nil, "NO_ERROR"), (0, "BadDeviceToken", "NO_ERROR, BadDeviceToken"),
            (0, "Key\u{202e}Revoked", "NO_ERROR, Key\\u{202e}Revoked"),
            (11, nil, "ENHANCE_YOUR_CALM"), (99, nil, "error 99"),
        ] as [(UInt32, String?, String)])
    func `A connection's last GOAWAY is reported with error and reason`(
        code: UInt32, reason: String?, text: String
    ) throws {
        let run = try ScriptedRun(rows: 2)
        run.reply = { _ in .silence }
        run.run { run.requests.count == 2 }
        run.say(
            ScriptedServer.goAway(
                lastStream: run.requests[1].stream, code: code, reason: reason), on: 0)
        run.run { run.events.contains { $0.kind == .goAway } }
        let tally = try #require(run.reactors[0].machine.report().connections.first)
        #expect(tally.goAways == 1 && tally.lastGoAway == text)
    }

    @Test func `An event of the whole run replaces one on a connection if the buffer is full`() {
        var buffer = EventBuffer()
        for number in 0..<EventBuffer.limit + 2 {
            buffer.append(
                RunEvent(.connectionOpen, .info, connection: number, "", milliseconds: 0))
        }
        buffer.append(RunEvent(.listHeader, .warning, "line 7", milliseconds: 0))
        #expect(buffer.events.count == EventBuffer.limit && buffer.lost == 3)
        #expect(buffer.events.first?.connection == 0 && buffer.events.last?.message == "line 7")
    }

    @Test func `Text of a GOAWAY that is not a reason is in the log, bounded and escaped`() throws {
        let run = try ScriptedRun(rows: 1)
        run.reply = { _ in .silence }
        run.run { run.requests.count == 1 }
        let text = "Maximum active streams violated\n" + String(repeating: "x", count: 400)
        run.say(
            ScriptedServer.goAway(lastStream: run.requests[0].stream, code: 11, text: text), on: 0)
        run.run { run.events.contains { $0.kind == .goAway } }
        let event = try #require(run.events.first { $0.kind == .goAway })
        #expect(
            event.message.contains("ENHANCE_YOUR_CALM, 'Maximum active streams violated\\nxxx"),
            "\(event.message)")
        #expect(event.message.count < 300 && event.fields.reason == nil)
    }

    @Test func `Requests in flight are reported, and no address as paused`() throws {
        let run = try ScriptedRun(rows: 3)
        run.reply = { _ in .silence }
        run.run { run.requests.count == 3 }
        let snapshot = run.reactors[0].machine.snapshot()
        #expect(snapshot.inFlight == 3)
        #expect(snapshot.pausedAddresses == 0)
    }

    @Test(arguments: [(false, 16), (true, 65)])
    func `Only the allowed number of connections opens at once, and fewer before one stands`(
        stands: Bool, number: Int
    ) throws {
        let run = try ScriptedRun(rows: 1, connections: 100)
        run.opening = { stands && $0 == 3 ? .open : .silent }
        run.reply = { _ in .silence }
        run.run { !run.links.isEmpty }
        #expect(run.links.count == 16)
        run.run(for: second)
        #expect(run.links.count == number)
    }

    @Test func `An attempt that fails is counted, and has its line in the log`() throws {
        let run = try ScriptedRun(rows: 1)
        run.opening = { $0 < 2 ? .fails(errno: 111) : .open }
        run.run()
        #expect(run.settled == 1 && run.failures == 2)
        #expect(run.events.count { $0.kind == .connectionLost } == 2)
    }

    @Test(arguments: [1, 2])
    func `An address in trouble is reported as paused until it responds`(addresses: Int) throws {
        let run = try ScriptedRun(rows: 1)
        run.addressCount = addresses
        run.opening = { $0 == 0 ? .fails(errno: 111) : .open }
        run.reply = { _ in .silence }
        run.run { run.failures == 1 }
        #expect(run.reactors[0].machine.snapshot().pausedAddresses == 1)
        run.run { run.requests.count == 1 }
        #expect(run.reactors[0].machine.snapshot().pausedAddresses == 1)
        run.say(
            ScriptedServer.answer(
                run.requests[0].stream, status: 200, reason: nil, retryAfter: nil), on: 1)
        run.run { run.settled == 1 }
        // With two it was the other one that responded.
        #expect(run.reactors[0].machine.snapshot().pausedAddresses == addresses - 1)
    }

    @Test(arguments: [1, 2])
    func `Connections beyond those that the run keeps up are reconnects`(connections: Int) throws {
        let run = try ScriptedRun(rows: 12, connections: connections)
        run.maxStreams = 1
        run.reply = { request in
            run.say(
                ScriptedServer.answer(request.stream, status: 200, reason: nil, retryAfter: nil),
                on: request.connection)
            run.say(
                ScriptedServer.goAway(lastStream: request.stream, code: 0, reason: nil),
                on: request.connection)
            return .silence
        }
        run.run()
        let counted = run.reactors[0].machine.snapshot()
        #expect(counted.connectionsOpened == UInt64(run.links.count) && run.links.count >= 12)
        #expect(counted.reconnects == UInt64(run.links.count - connections))
        #expect(counted.goAways == 12 && counted.failures == 0)
    }

    @Test func `A dead token does not count for the canary`() throws {
        let run = try ScriptedRun(rows: 10)
        run.reply = { request in
            switch ScriptedRun.row(request) {
            case 2: .status(410, "Unregistered")
            case 3, 4: .status(400, "ExpiredToken")
            case 5: .status(400, "BadDeviceToken")
            case 6: .status(400, "MissingDeviceToken")
            case 7: .status(410)
            default: .status(200)
            }
        }
        run.run()
        #expect(run.settled == 10)
        let told = run.reactors[0].machine.stateMachine.metrics.takeCanaryProgress()
        #expect(told == .init(done: 10, answered: 10, refused: 3, lost: 0))
        #expect(run.reactors[0].machine.stateMachine.metrics.takeCanaryProgress() == .init())
    }
}
