import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// Connections that are over before the client knows it: sends fail while responses still arrive, and
/// networks forget connections that are idle.
@Suite(.timeLimit(.minutes(60)))
struct LastResponsesTests {
    private static let slack = second / 5

    private func accept(_ stream: UInt32, of run: ScriptedRun) {
        run.say(ScriptedServer.answer(stream, status: 200, reason: nil, retryAfter: nil), on: 0)
    }

    /// A run with ten requests in flight, of which two get a response. Sends fail when it replaces
    /// them by two others.
    private func brokenRun(onLost: LostResponsePolicy = .record) throws -> ScriptedRun {
        let run = try ScriptedRun(rows: 20) { $0.onLost = onLost }
        run.maxStreams = 10
        run.reply = { _ in .silence }
        run.run { run.requests.count == 10 }
        run.reply = { _ in .status(200) }
        run.breakSends(0, errno: 104)
        accept(1, of: run)
        accept(3, of: run)
        run.run { run.settled == 2 }
        return run
    }

    @Test(arguments: LostResponsePolicy.allCases)
    func `Responses and GOAWAY that arrived before a failed send are processed`(
        onLost: LostResponsePolicy
    ) throws {
        let run = try brokenRun(onLost: onLost)
        run.run(for: second)
        #expect(run.links.count == 1 && run.links[0].closed == nil)
        accept(5, of: run)
        accept(7, of: run)
        run.say(ScriptedServer.goAway(lastStream: 7, code: 0, reason: "Shutdown"), on: 0)
        run.hangUp(0)
        let before = run.time
        run.run()
        let rows = try run.rows()
        #expect(rows.allSatisfy { $0.state == .accepted && $0.attempts == 1 })
        for row in 0..<20 {
            #expect(run.requests(row: row).count == ((4..<10).contains(row) ? 2 : 1), "\(row)")
        }
        // The GOAWAY was an orderly end.
        #expect(run.links.count == 2 && run.links[1].begun == before)
    }

    @Test(arguments: [false, true])
    func `Without GOAWAY, rows in flight are in doubt, and rows of the failed send are not`(
        ends: Bool
    ) throws {
        let run = try brokenRun()
        let before = run.time
        if ends { run.hangUp(0) }
        run.run()
        let rows = try run.rows()
        for (number, row) in rows.enumerated() {
            #expect((row.state == .unknown) == (2..<10).contains(number), "row \(number)")
            #expect(run.requests(row: number).count == 1 && row.attempts == 1, "row \(number)")
        }
        let waited = run.links[0].closed! - before
        #expect(ends ? waited == 0 : waited > 2 * second && waited < 2 * second + Self.slack)
    }

    // MARK: Stalls

    @Test(arguments: [false, true])
    func `After a stall of more than 10 s, rows wait for the reply to a PING, not for older bytes`(
        isDead: Bool
    ) throws {
        let run = try ScriptedRun(rows: 40)
        run.maxStreams = 10
        run.reply = { _ in .silence }
        run.run { run.requests.count == 10 }
        for request in run.requests { accept(request.stream, of: run) }
        run.reply = { isDead && $0.connection == 0 ? .silence : .status(200) }
        if isDead { run.deafen(0) }
        run.stop(for: 15 * second)
        let continued = run.time
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 1 })
        #expect(run.links[0].pings == [continued] && run.links.count == (isDead ? 2 : 1))
        #expect(run.requests.dropFirst(10).allSatisfy { $0.connection == (isDead ? 1 : 0) })
        #expect(run.time < continued + 15 * second)
    }

    // MARK: Idle connections

    /// A run whose rows all wait for a Retry-After, so that its connection is idle for so long.
    private func idleRun(seconds: Int, connections: Int = 1) throws -> ScriptedRun {
        let run = try ScriptedRun(rows: 200, connections: connections)
        var seen: Set<Int> = []
        run.reply = { request in
            seen.insert(ScriptedRun.row(request)).inserted
                ? .status(429, "TooManyRequests", retryAfter: "\(seconds)") : .status(200)
        }
        run.run { seen.count == 200 }
        run.run(for: second)
        return run
    }

    @Test(arguments: [(5, 0), (20, 1)])
    func `A connection that was idle for more than 10 s is asked before it gets requests`(
        seconds: Int, pings: Int
    ) throws {
        let run = try idleRun(seconds: seconds)
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 2 })
        #expect(run.links.count == 1 && run.links[0].pings.count == pings)
    }

    @Test(arguments: [1, 4])
    func `Rows are not sent on an idle connection that the network has forgotten`(
        connections: Int
    ) throws {
        let run = try idleRun(seconds: 20, connections: connections)
        let (before, count) = (run.links.count, run.requests.count)
        for link in run.links.indices { run.hold(link) }
        run.run()
        #expect(try run.rows().allSatisfy { $0.state == .accepted && $0.attempts == 2 })
        #expect(run.requests.dropFirst(count).allSatisfy { $0.connection >= before })
        #expect(run.requests.count == 400)
        // Some of the connections may have had no row to wait for.
        let closed = run.links.prefix(before).compactMap(\.closed)
        #expect(!closed.isEmpty && run.time < 60 * second)
    }
}
