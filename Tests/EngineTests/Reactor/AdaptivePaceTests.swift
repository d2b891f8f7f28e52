import Support
import Testing

@testable import Engine

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

    @Test func `A reactor that comes late takes no latency for the server's`() throws {
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
}
