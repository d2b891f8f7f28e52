import BroadsideHygiene
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine
@testable import BroadsideHTTP2

/// Connections that were made from a credential that has changed since make way for others.
@Suite(.timeLimit(.minutes(60)))
struct ReplacingTests {
    /// A run over three connections that takes ten seconds.
    private func slowRun() throws -> ScriptedRun {
        let run = try ScriptedRun(rows: 5_000, connections: 3)
        run.coordinator.milliRate = 500_000
        return run
    }

    /// Connections that were not ended at an instant, those included that are being made.
    private func standing(_ run: ScriptedRun) -> [Int] {
        run.links.indices.filter { run.links[$0].closed == nil }
    }

    @Test func `Connections are replaced one after the other without losing a row`() throws {
        let run = try slowRun()
        run.run(for: 2 * second)
        run.coordinator.replaceConnections()
        var fewest = 3
        run.run(for: 3 * second) {
            fewest = min(fewest, standing(run).count)
            return false
        }
        try #require(standing(run) == [3, 4, 5])
        #expect(fewest >= 2)
        let begun = run.links[3...].map(\.begun)
        #expect(begun[0] < begun[1] && begun[1] < begun[2])
        for link in 3..<6 {
            // The one before it had ended its part by then.
            #expect(run.links[link - 3].closed! <= run.links[link].begun + second)
            #expect(run.requests.contains { $0.connection == link })
        }
        run.run()
        #expect(run.links.count == 6 && run.requests.count == 5_000)
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }

    @Test func `A new credential that fails costs one connection`() throws {
        let run = try slowRun()
        run.opening = { $0 < 3 ? .open : .fails(errno: 111) }
        run.run(for: 2 * second)
        run.coordinator.replaceConnections()
        run.run(for: 5 * second)
        #expect(standing(run).filter { $0 < 3 }.count == 2 && run.links.count > 3)
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
    }

    @Test func `While a successor opens the other connections stay`() throws {
        let run = try slowRun()
        run.opening = { $0 < 3 ? .open : .noSettings }
        run.run(for: 2 * second)
        run.coordinator.replaceConnections()
        run.run(for: 5 * second)
        #expect(run.links.count == 4 && standing(run).filter { $0 < 3 }.count == 2)
    }

    @Test func `A connection that is not open yet is replaced without waiting`() throws {
        let run = try slowRun()
        run.opening = { $0 == 1 ? .silent : .open }
        run.run(for: second)
        #expect(run.links[1].closed == nil)
        run.coordinator.replaceConnections()
        run.run(for: 2 * second)
        #expect(try #require(run.links[1].closed) < second + second / 5)
        #expect(standing(run).allSatisfy { $0 >= 3 } && standing(run).count == 3)
    }

    @Test func `A connection whose stream IDs run out is replaced at once`() throws {
        let run = try ScriptedRun(rows: 3000)
        run.run { !run.requests.isEmpty }
        // Too few IDs are left for the other rows.
        run.reactors[0].machine.stateMachine.connections[0].session.http2?.value.http.streams
            .nextID =
            StreamTable.lastID - 5000
        run.run()
        #expect(run.failures == 0 && run.links.count == 2)
        #expect(run.time < 5 * second, "\(run.time)")
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }
}
