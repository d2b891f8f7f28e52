import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// A connection whose streams are all in use is not looked at again until something happens on it.
@Suite(.timeLimit(.minutes(60)))
struct SaturationTests {
    /// A run with one stream whose request has left: the connection has nothing to do.
    private func saturatedRun() throws -> ScriptedRun {
        let run = try ScriptedRun(rows: 3)
        run.maxStreams = 1
        run.reply = { _ in .silence }
        run.run { run.requests.count == 1 }
        // Until only timers are waited for; and not to the instant of one, where all are looked at.
        let sent = run.time
        run.run { run.time > sent }
        run.run(for: 10 * millisecond)
        return run
    }

    @Test func `A response makes room for a request in the same turn`() throws {
        let run = try saturatedRun()
        let isSaturated = run.reactors[0].machine.stateMachine.connections[0].isSaturated
        #expect(isSaturated)
        run.say(
            ScriptedServer.answer(
                run.requests[0].stream, status: 200, reason: nil, retryAfter: nil), on: 0)
        let time = run.time
        run.run { run.requests.count == 2 }
        #expect(run.time == time)
    }

    @Test func `A raised stream limit makes room in the same turn`() throws {
        let run = try saturatedRun()
        run.say(ScriptedServer.settings(maxStreams: 2), on: 0)
        let time = run.time
        run.run { run.requests.count == 2 }
        #expect(run.time == time)
    }
}
