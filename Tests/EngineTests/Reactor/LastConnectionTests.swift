import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// Connections that end when no row is left to be sent: another one is opened for rows that come
/// back, and for nothing else.
@Suite(.timeLimit(.minutes(60)))
struct LastConnectionTests {
    /// A run all of whose rows are out and not answered.
    private func sentRun(
        rows: Int, connections: Int = 1, maxStreams: Int = 1000,
        onLost: LostResponsePolicy = .record
    ) throws -> ScriptedRun {
        let run = try ScriptedRun(rows: rows, connections: connections) { $0.onLost = onLost }
        run.maxStreams = UInt32(maxStreams)
        run.reply = { _ in .silence }
        run.run { run.requests.count == rows }
        #expect(run.links.count == connections)
        return run
    }

    private func answer(_ run: ScriptedRun, _ stream: UInt32, _ status: Int, _ reason: String?) {
        run.say(
            ScriptedServer.answer(stream, status: status, reason: reason, retryAfter: nil), on: 0)
    }

    private func end(_ run: ScriptedRun, lastStream: UInt32) {
        run.say(ScriptedServer.goAway(lastStream: lastStream, code: 0, reason: nil), on: 0)
    }

    @Test(arguments: [3, 1000])
    func `The last connection's recorded rows leave nothing to do`(maxStreams: Int) throws {
        let run = try sentRun(rows: 3, maxStreams: maxStreams)
        run.hangUp(0)
        run.run()
        #expect(run.isFinished && run.links.count == 1)
        #expect(try run.rows().map(\.state) == [.unknown, .unknown, .unknown])
    }

    @Test func `One of several last connections leaves its responses to the others`() throws {
        let run = try sentRun(rows: 40, connections: 3, maxStreams: 14)
        run.hangUp(0)
        run.run(for: 5 * second)
        #expect(!run.isFinished)
        for request in run.requests where request.connection != 0 {
            run.say(
                ScriptedServer.answer(request.stream, status: 200, reason: nil, retryAfter: nil),
                on: request.connection)
        }
        run.run()
        #expect(run.isFinished && run.links.count == 3)
    }

    @Test func `Responses after a GOAWAY are awaited without another connection`() throws {
        let run = try sentRun(rows: 3)
        answer(run, 1, 200, nil)
        end(run, lastStream: 5)
        run.run(for: 5 * second)
        #expect(!run.isFinished && run.links.count == 1 && run.links[0].closed == nil)
        answer(run, 3, 200, nil)
        answer(run, 5, 200, nil)
        run.run()
        #expect(run.isFinished && run.links.count == 1)
        #expect(try run.rows().allSatisfy { $0.state == .accepted })
    }

    @Test(arguments: [(429, "TooManyRequests"), (503, "Shutdown"), (500, "InternalServerError")])
    func `A retryable response after the GOAWAY opens another connection`(
        status: Int, reason: String
    ) throws {
        let run = try sentRun(rows: 3)
        run.reply = { _ in .status(200) }
        answer(run, 1, 200, nil)
        end(run, lastStream: 5)
        run.run(for: 5 * second)
        answer(run, 3, 200, nil)
        answer(run, 5, status, reason)
        run.run()
        #expect(run.isFinished && run.links.count == 2)
        let rows = try run.rows()
        #expect(rows.map(\.state) == [.accepted, .accepted, .accepted])
        #expect(rows.map(\.attempts) == [1, 1, 2])
    }

    @Test(arguments: LostResponsePolicy.allCases)
    func `A last connection that dies while responses are awaited leaves them in doubt`(
        onLost: LostResponsePolicy
    ) throws {
        let run = try sentRun(rows: 3, onLost: onLost)
        run.reply = { _ in .status(200) }
        answer(run, 1, 200, nil)
        // The third row was not acted on; the second's answer never comes.
        end(run, lastStream: 3)
        run.run(for: 5 * second)
        run.hangUp(0)
        run.run()
        #expect(run.isFinished && run.links.count == 2)
        let rows = try run.rows()
        #expect(rows[0].state == .accepted && rows[2].state == .accepted)
        #expect(rows[1].state == (onLost == .record ? .unknown : .accepted))
        #expect(run.requests(row: 1).count == (onLost == .record ? 1 : 2))
        #expect(run.requests(row: 2).count == 2 && rows[2].attempts == 1)
    }

    @Test func `Rows of a list that continues go over another connection`() throws {
        let run = try ScriptedRun(rows: 700)
        run.maxStreams = 1
        run.reply = { request in
            // Each connection ends with its hundredth request, at a chunk's end as well.
            if run.requests.count % 100 == 0 { run.hangUp(request.connection) }
            return .status(200)
        }
        run.run()
        #expect(run.isFinished && run.requests.count == 700)
        // The one that ends with the last row gets no successor.
        #expect(run.links.count == 7)
        #expect(try run.rows().count == 700)
    }
}
