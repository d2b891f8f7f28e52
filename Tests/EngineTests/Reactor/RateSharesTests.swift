import BroadsideHygiene
import BroadsidePolicy
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// Shares of the run's rate, which only reactors that send take.
@Suite(.timeLimit(.minutes(60)))
struct RateSharesTests {
    /// Two reactors with a connection each, at 1,000 requests per second together. Connections of the second one
    /// end after `lost` and are refused until `back`.
    private func sharedRun(rows: Int, lost: UInt64, back: UInt64) throws -> ScriptedRun {
        let run = try ScriptedRun(rows: rows, reactors: 2, connections: 2)
        run.coordinator.milliRate = 1_000_000
        run.opening = { link in
            run.links[link].reactor == 1 && (lost..<back).contains(run.links[link].begun)
                ? .fails(errno: 111) : .open
        }
        var isCut = false
        run.run(for: 60 * second) {
            if run.time >= lost, !isCut {
                isCut = true
                for (index, link) in run.links.enumerated()
                where link.reactor == 1 && link.closed == nil { run.hangUp(index) }
            }
            return false
        }
        return run
    }

    /// Requests of a reactor in a second of the run.
    private func requests(_ run: ScriptedRun, of reactor: Int, in second: UInt64) -> Int {
        run.requests.count {
            run.links[$0.connection].reactor == reactor
                && $0.time / BroadsideSupport.second == second
        }
    }

    @Test func `A reactor without rows leaves its share of the rate to the others`() throws {
        let run = try sharedRun(rows: 10_000, lost: 2 * second, back: .max)
        // The reactor without connections ends with the list, too.
        #expect(run.isFinished && run.requests.count == 10_000 && run.time < 13 * second)
        #expect(requests(run, of: 1, in: 1) > 400)
        // It gives up on its connections a second after they are gone.
        for second in 5..<9 as Range<UInt64> {
            let count = requests(run, of: 0, in: second)
            #expect(count > 950 && count <= 1_010, "second \(second): \(count)")
        }
    }

    @Test func `A reactor that sends again takes its share of the rate again`() throws {
        let run = try sharedRun(rows: 14_000, lost: 2 * second, back: 4 * second)
        #expect(run.isFinished && run.requests.count == 14_000)
        let last = (run.requests.map(\.time).max() ?? 0) / second
        for second in 0..<last {
            let all = requests(run, of: 0, in: second) + requests(run, of: 1, in: second)
            #expect(all <= 1_050, "second \(second): \(all)")
        }
        #expect(requests(run, of: 1, in: last - 1) > 400)
    }

    @Test func `A reactor stays while another has rows that it cannot send`() throws {
        let run = try ScriptedRun(rows: 4_000, reactors: 2, connections: 2)
        run.opening = { link in
            run.links[link].reactor == 1 && run.links[link].begun > second
                ? .fails(errno: 111) : .open
        }
        run.reply = { request in
            let isFirst = run.requests(row: ScriptedRun.row(request)).count == 1
            return isFirst && run.links[request.connection].reactor == 1
                ? .status(429, "TooManyRequests", retryAfter: "12") : .status(200)
        }
        var isCut = false
        run.run(for: 120 * second) {
            if run.time > 2 * second, !isCut {
                isCut = true
                for (index, link) in run.links.enumerated()
                where link.reactor == 1 && link.closed == nil { run.hangUp(index) }
            }
            return false
        }
        #expect(isCut && run.isFinished && run.time < 20 * second, "\(run.time)")
        let last = Dictionary(run.requests.map { (ScriptedRun.row($0), $0.connection) }) { $1 }
        #expect(last.count == 4_000)
        #expect(last.values.allSatisfy { run.links[$0].reactor == 0 })
        #expect(run.requests.count > 4_000)
    }
}
