import BroadsideHygiene
import BroadsidePolicy
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// Time in which a connection waits for its pace: the rate's, unless the reactor comes so late that
/// the rate goes by unused.
@Suite(.timeLimit(.minutes(60)))
struct LimitedByRateTests {
    /// A run at 1,000 requests a second: half of the burst of ten milliseconds is used.
    private func pacedRun(rows: Int, isPerConnection: Bool = false) throws -> ScriptedRun {
        let run = try ScriptedRun(rows: rows) {
            if isPerConnection { $0.milliRatePerConnection = 1_000_000 }
        }
        if !isPerConnection { run.coordinator.milliRate = 1_000_000 }
        return run
    }

    @Test(arguments: [0, millisecond, 3 * millisecond], [false, true])
    func `A turn that the burst compensates is not a shortage of CPU`(
        lateness: UInt64, isPerConnection: Bool
    ) throws {
        let run = try pacedRun(rows: 2000, isPerConnection: isPerConnection)
        run.lateness = lateness
        run.run()
        #expect(run.requests.count == 2000 && run.time < 2200 * millisecond)
        #expect(run.time(limitedBy: .cpu) == 0)
        #expect(run.time(limitedBy: .rate) > 1900 * millisecond)
    }

    @Test(arguments: [9 * millisecond, 45 * millisecond], [false, true])
    func `A reactor that is too late for its rate is short of CPU`(
        lateness: UInt64, isPerConnection: Bool
    ) throws {
        let run = try pacedRun(rows: 2000, isPerConnection: isPerConnection)
        run.lateness = lateness
        run.run()
        // Two seconds are the rate's, whatever the run takes.
        let (rate, cpu) = (run.time(limitedBy: .rate), run.time(limitedBy: .cpu))
        #expect(run.time > 3 * second)
        #expect(rate > 1900 * millisecond && rate < 2100 * millisecond)
        #expect(cpu > 800 * millisecond && cpu + rate <= run.time)
        #expect(cpu + rate > run.time - 10 * lateness, "\(run.time)")
    }

    @Test(arguments: [false, true])
    func `A pause counts for no bottleneck`(isPaced: Bool) throws {
        let run = try ScriptedRun(rows: 1)
        if isPaced { run.coordinator.milliRate = 1_000_000 }
        run.reply = { _ in
            run.requests.count == 1
                ? .status(429, "TooManyRequests", retryAfter: "5") : .status(200)
        }
        var isPaused = false
        run.run(for: 20 * second) {
            // Time has passed since the last turn.
            if run.time > second, !isPaused {
                isPaused = true
                run.coordinator.pause(true)
            }
            return false
        }
        #expect(isPaused && run.requests.count == 1)
        run.coordinator.pause(false)
        run.run()
        #expect(run.isFinished && run.requests.count == 2)
        #expect(run.time(limitedBy: .cpu) == 0 && run.time(limitedBy: .rate) == 0)
        // The second before the pause.
        let counted = Bottleneck.allCases.reduce(0) { $0 + run.time(limitedBy: $1) }
        #expect(counted > 900 * millisecond && counted < 1200 * millisecond, "\(counted)")
        #expect(run.time(limitedBy: .retry) > 900 * millisecond)
    }

    @Test func `An opening connection counts neither for the rate nor for the machine`() throws {
        let run = try pacedRun(rows: 2000)
        run.opening = { $0 == 1 ? .silent : .open }
        run.run { run.requests.count > 500 }
        run.hangUp(0)
        run.run()
        #expect(run.links.count == 3)
        #expect(run.time(limitedBy: .connecting) > 14 * second)
        #expect(run.time(limitedBy: .cpu) == 0)
        #expect(run.time(limitedBy: .rate) < 3 * second)
    }

    @Test
    func
        `At the list's end a row that waits for its retry counts for the retry`()
        throws
    {
        let run = try ScriptedRun(rows: 20)
        run.reply = { _ in
            run.requests.count == 1
                ? .status(429, "TooManyRequests", retryAfter: "5") : .status(200)
        }
        run.run()
        #expect(run.isFinished && run.requests.count == 21)
        #expect(run.time(limitedBy: .retry) > 4 * second)
        #expect(run.time(limitedBy: .input) < second)
    }
}
