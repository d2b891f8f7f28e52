import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// `--pace adaptive` in a reactor: its own absence is not the server's queue.
@Suite(.timeLimit(.minutes(60)))
struct AdaptivePaceTests {
    private static let streams = 128

    /// Lets a run go on whose server responds after 40 ms.
    ///
    /// - Returns: The fewest requests that were in flight when responses were due.
    private func runOn(_ run: ScriptedRun, for limit: UInt64, answered: inout Int) -> Int {
        var fewest = Int.max
        var next = answered
        run.run(for: limit) {
            var isDue = false
            while next < run.requests.count, run.requests[next].time + 40 * millisecond <= run.time
            {
                if !isDue { fewest = min(fewest, run.requests.count - next) }
                isDue = true
                run.say(
                    ScriptedServer.answer(
                        run.requests[next].stream, status: 200, reason: nil, retryAfter: nil),
                    on: 0)
                next += 1
            }
            return false
        }
        answered = next
        return fewest
    }

    @Test func `A late reactor does not count its lateness as the server's latency`() throws {
        let run = try ScriptedRun(rows: 30_000) { $0.pace = .adaptive }
        run.maxStreams = UInt32(Self.streams)
        run.reply = { _ in .silence }
        var answered = 0
        _ = runOn(run, for: second, answered: &answered)
        #expect(runOn(run, for: 4 * second, answered: &answered) == Self.streams)
        // From now on each response lies there for 400 ms until somebody looks.
        run.lateness = 400 * millisecond
        #expect(runOn(run, for: 20 * second, answered: &answered) == Self.streams)
        #expect(answered > 5_000 && !run.isFinished)
        #expect(!run.events.contains { $0.kind == .pace })
    }

    @Test func `The lateness of turns is the smoothed time between them`() {
        var watch = LatencyMonitor(now: Now(nanoseconds: second, wallMilliseconds: 0))
        for turn in 1...200 {
            watch.recordIteration(
                Now(nanoseconds: second + UInt64(turn) * 8 * millisecond, wallMilliseconds: 0))
        }
        #expect((7 * millisecond...8 * millisecond).contains(watch.lag))
    }

    @Test func `Slowing responses are logged at most once per minute`() throws {
        let run = try ScriptedRun(rows: 30_000) { $0.pace = .adaptive }
        run.maxStreams = UInt32(Self.streams)
        run.reply = { _ in .silence }
        // One response each 10 ms, however many are waited for: a queue.
        var answered = 0
        var due: UInt64 = 0
        run.run(for: 60 * second) {
            guard run.time >= due, answered < run.requests.count else { return false }
            due = run.time + 10 * millisecond
            run.say(
                ScriptedServer.answer(
                    run.requests[answered].stream, status: 200, reason: nil, retryAfter: nil),
                on: 0)
            answered += 1
            return run.events.contains { $0.kind == .pace }
        }
        #expect(run.events.count { $0.kind == .pace } == 1)
        let next = run.reactors[0].machine.stateMachine.connections[0].nextPaceEventTime
        let told = run.now.nanoseconds - 100 * millisecond...run.now.nanoseconds
        #expect(told.contains(next - min(next, LatencyMonitor.eventInterval)))
    }
}
