import BroadsideHygiene
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// Requests that wait in a connection's own buffer when it ends: nobody has seen them, so they go out
/// again whatever `--on-lost` says. Those that the kernel was given may have arrived.
@Suite(.timeLimit(.minutes(60)))
struct UnsentRequestTests {
    /// A run whose first connection has taken one request, and takes nothing from now on; others would
    /// be written one a second.
    private func held() throws -> ScriptedRun {
        let run = try ScriptedRun(rows: 10) {
            $0.milliRatePerConnection = 1000
            $0.requestTimeout = 7200 * second
            $0.giveUpAfter = 7200 * second
        }
        run.reply = { _ in .silence }
        run.run { run.requests.count == 1 }
        run.hold(0)
        return run
    }

    /// The same a while later: it holds the second request in the network, and eight more are written
    /// behind it.
    private func heldUp() throws -> ScriptedRun {
        let run = try held()
        for _ in 0..<2 {
            run.run(for: 5 * second)
            // The server lives, so that its silence is not a reason to end the connection.
            run.say(ScriptedServer.frame(type: 6, Array(repeating: 7, count: 8)), on: 0)
        }
        run.run(for: millisecond)
        #expect(run.links[0].closed == nil && run.requests.count == 1)
        run.reply = { _ in .status(200) }
        return run
    }

    @Test func `The request timeout counts from the write, not from queueing`() throws {
        let run = try ScriptedRun(rows: 3) { $0.requestTimeout = 12 * second }
        run.reply = { _ in .silence }
        run.run { run.links.count == 1 }
        run.hold(0)
        run.run(for: 8 * second)
        let written = run.time
        #expect(run.requests.isEmpty && written >= 8 * second)
        run.letGo(0)
        run.run()
        #expect(run.requests.count == 3)
        #expect(run.time >= written + 12 * second && run.time < written + 13 * second)
        #expect(try run.rows().allSatisfy { $0.state == .unknown && $0.reason == "Timeout" })
    }

    @Test(arguments: [true, false])
    func `The request timeout of a request that is sent in parts counts from its last part`(
        responds: Bool
    ) throws {
        let run = try ScriptedRun(rows: 1) { $0.requestTimeout = 12 * second }
        run.streamWindow = 4
        run.reply = { _ in .silence }
        run.run(for: 10 * second)
        #expect(run.requests.isEmpty && run.links.count == 1)
        run.say(ScriptedServer.windowUpdate(100, stream: 1), on: 0)
        run.run { run.requests.count == 1 }
        let written = run.time
        run.run(for: 10 * second)
        if responds {
            run.say(
                ScriptedServer.answer(1, status: 200, reason: nil, retryAfter: nil), on: 0)
        }
        run.run()
        #expect(run.requests.count == 1)
        let row = try #require(try run.rows().first)
        #expect(row.state == (responds ? .accepted : .unknown) && row.attempts == 1)
        if !responds {
            #expect(row.reason == "Timeout" && run.time >= written + 12 * second)
        }
    }

    private func judge(_ run: ScriptedRun) throws {
        let lost = ScriptedRun.Row(
            state: .unknown, status: 0, reason: "ConnectionLost", attempts: 1)
        let rows = try run.rows()
        #expect(rows[..<2] == [lost, lost])
        #expect(rows[2...].allSatisfy { $0.state == .accepted && $0.attempts == 1 })
        #expect(run.requests.map(ScriptedRun.row) == [0] + Array(2..<10))
        #expect(run.requests.dropFirst().allSatisfy { $0.connection == 1 })
    }

    @Test func `A connection that takes nothing for 30 s leaves its given rows in doubt`() throws {
        let run = try heldUp()
        for _ in 0..<4 {
            run.run(for: 5 * second)
            run.say(ScriptedServer.frame(type: 6, Array(repeating: 7, count: 8)), on: 0)
        }
        run.run()
        let closed = try #require(run.links[0].closed)
        #expect(closed >= 30 * second && closed < 33 * second)
        try judge(run)
    }

    @Test func `A connection that takes bytes and is silent for 20 s ends without its PING`() throws
    {
        let run = try held()
        run.run(for: second * 19)
        #expect(run.links[0].closed == nil)
        run.reply = { _ in .status(200) }
        run.run()
        let closed = try #require(run.links[0].closed)
        #expect(closed >= 20 * second && closed < 21 * second)
        #expect(run.links[0].pings.isEmpty)
        try judge(run)
    }

    @Test func `A connection that breaks off leaves its given rows in doubt`() throws {
        let run = try heldUp()
        run.hangUp(0)
        run.run()
        try judge(run)
    }

    @Test func `A server that breaks HTTP/2 gets no more bytes`() throws {
        let run = try heldUp()
        // DATA on stream 0 (RFC 9113, section 6.1).
        run.say(ScriptedServer.frame(type: 0, [1]), on: 0)
        run.run()
        try judge(run)
    }

    @Test func `After a second signal rows that never left remain`() throws {
        let run = try heldUp()
        run.coordinator.stop(.signal)
        run.run(for: second)
        run.coordinator.stopAtOnce()
        run.run()
        #expect(run.isFinished && run.requests.count == 1)
        #expect(
            try run.rows().map(\.state)
                == [.unknown, .unknown] + Array(repeating: .remaining, count: 8))
    }

    @Test func `A row that left slowly and then lost its connection is in doubt`() throws {
        let run = try heldUp()
        run.reply = { _ in .silence }
        // All is taken at last, so that the requests' clocks begin anew: what was behind it is given to
        // the network and held there, then all of that is taken too, and the server hangs up.
        run.letGo(0)
        run.hold(0)
        run.run(for: second)
        #expect(run.requests.count == 2)
        run.letGo(0)
        run.hangUp(0)
        run.run()
        #expect(run.requests.map(ScriptedRun.row) == Array(0..<10))
        #expect(try run.rows().allSatisfy { $0.state == .unknown && $0.attempts == 1 })
    }

    @Test(arguments: [false, true])
    func `A request whose payload finds no room in the server's windows is not in doubt`(
        hangsUp: Bool
    ) throws {
        let run = try ScriptedRun(rows: 3) { $0.requestTimeout = 12 * second }
        run.streamWindow = 4
        run.run(for: 5 * second)
        #expect(run.requests.isEmpty && run.links[0].closed == nil)
        run.streamWindow = nil
        if hangsUp { run.hangUp(0) }
        run.run()
        #expect(run.requests.map(ScriptedRun.row).sorted() == [0, 1, 2])
        #expect(run.requests.allSatisfy { $0.connection == 1 })
        let closed = try #require(run.links[0].closed)
        #expect(hangsUp ? closed < 6 * second : closed >= 12 * second)
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }
}
