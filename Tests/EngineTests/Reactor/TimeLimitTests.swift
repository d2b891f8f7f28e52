import BroadsideHygiene
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// The limits in time that a server can come up against, each to its scan: no earlier and no later.
@Suite(.timeLimit(.minutes(60)))
struct TimeLimitTests {
    /// Timers that need no precision are looked at every 50 ms.
    private static let scan = 60 * millisecond

    private func run(rows: Int) throws -> ScriptedRun {
        try ScriptedRun(rows: rows) {
            $0.requestTimeout = 7200 * second
            $0.giveUpAfter = 7200 * second
        }
    }

    /// The server says something, so that its silence is not a reason to end the connection.
    private func stayAlive(_ run: ScriptedRun, for seconds: Int) {
        for _ in 0..<seconds / 5 where run.links[0].closed == nil {
            run.run(for: 5 * second) { run.links[0].closed != nil }
            run.say(ScriptedServer.frame(type: 6, Array(repeating: 7, count: 8)), on: 0)
        }
    }

    @Test func `Written bytes have 30 seconds to be taken`() throws {
        let run = try run(rows: 1)
        run.run { run.links.count == 1 }
        run.hold(0)
        let written = run.time
        stayAlive(run, for: 60)
        let closed = try #require(run.links[0].closed) - written
        #expect(closed >= 30 * second && closed <= 30 * second + Self.scan, "\(closed)")
    }

    @Test func `A connection that does not open in time is described by its step`() {
        typealias Machine = ReactorStateMachine<TransparentRecords>
        #expect(
            Machine.openingProblem(.connecting, awaitsTunnel: true) == "no connection within 15 s")
        #expect(Machine.openingProblem(.handshaking, awaitsTunnel: true) == "no tunnel within 15 s")
        #expect(
            Machine.openingProblem(.handshaking, awaitsTunnel: false)
                == "no TLS handshake within 15 s")
    }

    @Test func `A server has ten seconds to make room for a request`() throws {
        let run = try run(rows: 1)
        run.maxStreams = 0
        run.run { run.links.count == 1 }
        let opened = run.time
        run.run(for: 20 * second) { run.links[0].closed != nil }
        let closed = try #require(run.links[0].closed) - opened
        #expect(closed >= 10 * second && closed <= 10 * second + 2 * Self.scan, "\(closed)")
        #expect(run.failures == 1)
    }

    @Test func `Room in between restarts the ten seconds`() throws {
        let run = try run(rows: 2)
        run.maxStreams = 0
        run.run { run.links.count == 1 }
        run.run(for: 6 * second)
        run.reply = { _ in .silence }
        run.say(ScriptedServer.settings(maxStreams: 1), on: 0)
        run.run(for: second)
        #expect(run.requests.count == 1)
        run.say(ScriptedServer.settings(maxStreams: 0), on: 0)
        run.say(
            ScriptedServer.answer(
                run.requests[0].stream, status: 200, reason: nil, retryAfter: nil), on: 0)
        let full = run.time
        run.run(for: 20 * second) { run.links[0].closed != nil }
        let closed = try #require(run.links[0].closed) - full
        #expect(closed >= 10 * second && closed <= 10 * second + 3 * Self.scan, "\(closed)")
    }

    @Test func `The last bytes of a connection have a second to leave`() throws {
        let run = try run(rows: 1)
        run.reply = { _ in .silence }
        run.run { run.requests.count == 1 }
        run.hold(0)
        run.say(
            ScriptedServer.answer(
                run.requests[0].stream, status: 200, reason: nil, retryAfter: nil), on: 0)
        let answered = run.time
        run.run()
        let closed = try #require(run.links[0].closed) - answered
        #expect(closed >= second && closed <= second + 2 * Self.scan, "\(closed)")
        #expect(try run.rows().map(\.state) == [.accepted])
    }

    @Test func `A run waits two seconds for its connections to close`() throws {
        let run = try run(rows: 1)
        run.holdsCloses = true
        var answered: UInt64 = 0
        run.reply = { _ in
            answered = run.time
            return .status(200)
        }
        run.run()
        let waited = run.time - answered
        #expect(run.isFinished && run.links[0].closed != nil)
        #expect(waited >= 2 * second && waited <= 2 * second + 2 * Self.scan, "\(waited)")
    }

    /// Bytes that took no longer than 100 ms to leave change no clock; a moment more, and the requests
    /// among them have all their time from then on.
    @Test(arguments: [0, 1] as [UInt64])
    func `A write is slow from 100 ms on`(excess: UInt64) throws {
        let run = try ScriptedRun(rows: 1) { $0.requestTimeout = 5 * second }
        run.reply = { _ in .silence }
        run.run { run.links.count == 1 }
        run.hold(0)
        // The preface, and behind it the request, once SETTINGS are here.
        let queued = run.time
        run.run(for: 100 * millisecond + excess * millisecond / 2)
        run.letGo(0)
        let written = run.time
        run.run()
        #expect(written - queued == 100 * millisecond + excess * millisecond / 2)
        let end = excess == 0 ? queued : written
        #expect(
            run.time >= end + 5 * second
                && run.time <= end + 5 * second + Self.scan + 40 * millisecond,
            "\(run.time - queued)")
    }
}
