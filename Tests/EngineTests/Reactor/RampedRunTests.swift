import BroadsidePolicy
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// A run whose rate rises by itself.
@Suite(.timeLimit(.minutes(60)))
struct RampedRunTests {
    /// From 100 to 1,100 requests per second within ten seconds.
    private let ramp = RateRamp(
        first: 100_000, last: 1_100_000, riseNanoseconds: 10 * second)

    /// What the rate adds up to after so many seconds of sending.
    private func requests(after seconds: Double) -> Double {
        let rising = min(seconds, 10)
        return 100 * rising + 50 * rising * rising + 1_100 * (seconds - rising)
    }

    @Test(arguments: [1, 2, 3])
    func `The requests of all reactors together follow the line`(reactors: Int) throws {
        let run = try ScriptedRun(rows: 9_000, reactors: reactors, connections: 2)
        run.coordinator.ramp = RampClock(ramp)
        run.run(for: 60 * second)
        #expect(run.isFinished && run.requests.count == 9_000)
        let first = try #require(run.requests.map(\.time).min())
        for tenth in 1...120 {
            let time = Double(tenth) / 10
            let count = run.requests.count { Double($0.time - first) / 1e9 <= time }
            let line = requests(after: time)
            #expect(Double(count) <= line + 12 + Double(reactors), "\(time) s")
            #expect(Double(count) >= line * 0.97 - 110, "\(time) s")
        }
    }

    @Test func `A pause does not count, and an outage counts for a second`() throws {
        let run = try ScriptedRun(rows: 3_000, reactors: 1, connections: 1)
        run.coordinator.ramp = RampClock(ramp)
        var continued: UInt64 = 0
        var sentBefore = 0
        run.run(for: 60 * second) {
            if run.time >= 3 * second, continued == 0 {
                run.coordinator.pause(true)
                continued = run.time + 20 * second
                sentBefore = run.requests.count
            }
            if continued > 0, run.time >= continued { run.coordinator.pause(false) }
            return false
        }
        #expect(run.isFinished && run.requests.count == 3_000)
        let again = run.requests.filter { $0.time >= continued }
        let begin = try #require(again.map(\.time).min())
        // About 400 per second, as before the pause, and not 1,100.
        let count = again.count { $0.time < begin + second }
        #expect(sentBefore > 500 && count > 380 && count < 480, "\(sentBefore), \(count)")
    }

    @Test func `A rate that is set ends the rise`() throws {
        let run = try ScriptedRun(rows: 2_000, reactors: 1, connections: 1)
        run.coordinator.ramp = RampClock(ramp)
        run.run(for: 60 * second) {
            if run.time >= 2 * second, run.coordinator.ramp != nil {
                run.coordinator.milliRate = 150_000
            }
            return false
        }
        #expect(run.isFinished && run.coordinator.ramp == nil)
        let last = try #require(run.requests.map(\.time).max())
        let count = run.requests.count { $0.time > last - 5 * second }
        #expect(count > 700 && count <= 752, "\(count)")
    }
}
