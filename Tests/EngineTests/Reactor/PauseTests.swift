import BroadsideHygiene
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What an operator's pause does to a run's patience with its server.
@Suite(.timeLimit(.minutes(60)))
struct PauseTests {
    @Test func `After a pause a reactor without rows in it waits as long as any other`() throws {
        let run = try ScriptedRun(rows: 6000, reactors: 2) { $0.giveUpAfter = 40 * second }
        // All rows but one are accepted; that one waits while the pause begins.
        run.reply = { request in
            ScriptedRun.row(request) == 0 && run.requests(row: 0).count == 1
                ? .status(429, "TooManyRequests", retryAfter: "30") : .status(200)
        }
        run.run { run.settled == 5999 }
        try #require(run.links.count == 2 && !run.isFinished)
        let owner = run.requests(row: 0)[0].connection
        run.coordinator.pause(true)
        run.run(for: 100 * second)
        // Its reactor loses its connection and gets no other: the row goes to the reactor that had none.
        run.opening = { _ in .silent }
        run.hangUp(owner)
        run.coordinator.pause(false)
        run.run()
        #expect(run.coordinator.stopCause == nil)
        #expect(run.requests(row: 0).map { $0.connection == owner } == [true, false])
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }

    @Test func `A server that is silent after a pause is given up after --give-up-after`()
        throws
    {
        let run = try ScriptedRun(rows: 1) {
            $0.giveUpAfter = 40 * second
            $0.requestTimeout = 300 * second
        }
        run.reply = { _ in
            run.requests.count == 1 ? .status(429, retryAfter: "5") : .silence
        }
        run.run { run.requests.count == 1 }
        run.coordinator.pause(true)
        run.run(for: 100 * second)
        let resumed = run.time
        run.coordinator.pause(false)
        run.run { run.coordinator.stopCause != nil }
        #expect(run.coordinator.stopCause?.isGivingUp == true)
        let taken = run.time - resumed
        #expect(taken >= 40 * second && taken < 43 * second, "\(taken)")
    }

    @Test func `A pause does not count for --give-up-after while a request is in flight`() throws {
        let run = try ScriptedRun(rows: 1) {
            $0.giveUpAfter = 40 * second
            $0.requestTimeout = 300 * second
        }
        run.reply = { _ in .silence }
        run.run { run.requests.count == 1 }
        run.run(for: 20 * second)
        run.coordinator.pause(true)
        run.run(for: 100 * second)
        #expect(run.coordinator.stopCause == nil)
        let resumed = run.time
        run.coordinator.pause(false)
        run.run { run.coordinator.stopCause != nil }
        #expect(run.coordinator.stopCause?.isGivingUp == true && run.requests.count == 1)
        let taken = run.time - resumed
        #expect(taken >= 19 * second && taken < 22 * second, "\(taken)")
    }

    @Test func `PINGs of a server during a pause do not end the connection`() throws {
        let run = try ScriptedRun(rows: 1)
        run.reply = { _ in
            run.requests.count == 1 ? .status(429, retryAfter: "5") : .status(200)
        }
        run.run { run.requests.count == 1 }
        run.coordinator.pause(true)
        let ping = ScriptedServer.frame(type: 6, [0, 1, 2, 3, 4, 5, 6, 7])
        let pings = Array(repeating: ping, count: 1000).flatMap { $0 }
        for _ in 0..<20 {
            run.say(pings, on: 0)
            run.run(for: 2 * second)
        }
        run.coordinator.pause(false)
        run.run()
        #expect(run.failures == 0 && run.links.count == 1)
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }
}
