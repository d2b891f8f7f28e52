import BroadsideHygiene
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What the ledger says of rows behind the limit that lie in a chunk which is taken up again.
@Suite(.timeLimit(.minutes(60)))
struct RowsBeyondLimitTests {
    /// What is to be done with each row, and how often earlier runs sent it: single rows and
    /// neighbours, at the chunk's ends and in the middle.
    private static let past: [(disposition: RowDisposition, attempts: UInt16)] = [
        (.beyondLimit, 1), (.send, 0), (.beyondLimit, 0), (.beyondLimit, 0), (.beyondLimit, 300),
        (.beyondLimit, 300), (.send, 0), (.beyondLimit, 999), (.beyondLimit, 256), (.send, 0),
        (.beyondLimit, 0), (.send, 0), (.beyondLimit, 4),
    ]

    @Test func `Rows beyond the limit remain with their attempts, and the others are sent`() throws
    {
        let run = try ScriptedRun(rows: Self.past.count)
        run.adjustChunk = { chunk in
            chunk.dispositions = Self.past.map(\.disposition)
            chunk.attempts = Self.past.map(\.attempts)
        }
        run.run()
        let toSend = Self.past.indices.filter { Self.past[$0].disposition == .send }
        #expect(run.requests.map(ScriptedRun.row).sorted() == toSend)
        let rows = try run.rows()
        try #require(rows.count == Self.past.count)
        for (place, row) in rows.enumerated() {
            let past = Self.past[place]
            #expect(
                row.state == (past.disposition == .send ? .accepted : .remaining), "row \(place)")
            #expect(row.attempts == (past.disposition == .send ? 1 : Int(past.attempts)))
        }
    }

    @Test func `Rows of erased devices are settled without a request and without their token`()
        throws
    {
        let run = try ScriptedRun(rows: 4)
        run.adjustChunk = { chunk in
            chunk.dispositions = [
                .erased(mayHaveBeenSent: false), .send, .erased(mayHaveBeenSent: true), .settled,
            ]
            chunk.attempts = [2, 0, 3, 0]
        }
        run.run()
        #expect(run.requests.map(ScriptedRun.row) == [1])
        let rows = try run.rows()
        #expect(rows.map(\.state) == [.skipped, .accepted, .unknown, .inDoubt])
        #expect(rows.map(\.attempts) == [2, 1, 3, 0])
        #expect(rows.map(\.reason) == ["Suppressed", nil, "ConnectionLost", nil])
        #expect(run.settled == 3)
    }

    @Test func `A request for a row that an earlier run sent counts as a retry`() throws {
        let run = try ScriptedRun(rows: 4)
        run.adjustChunk = { chunk in
            chunk.dispositions = [.send, .sendAgain, .send, .send]
            chunk.wasSent = [false, true, true, false]
            (chunk.attempts, chunk.attemptsBefore) = ([0, 1, 5, 0], [0, 1, 5, 0])
        }
        run.run()
        #expect(run.requests.count == 4)
        #expect(try run.rows().map(\.attempts) == [1, 2, 6, 1])
        #expect(run.reactors.reduce(0) { $0 + $1.machine.snapshot().retries } == 2)
        // The run itself sent each row once.
        #expect(run.reactors.allSatisfy { $0.machine.snapshot().ownRetries == 0 })
    }

    @Test func `Only requests since a row was reopened count for the limit on attempts`() throws {
        let run = try ScriptedRun(rows: 2) {
            $0.retryPolicy = RetryPolicy(maximumAttempts: 5, retryForNanoseconds: 0)
        }
        run.adjustChunk = { chunk in
            chunk.dispositions = [.send, .send]
            chunk.wasSent = [true, true]
            (chunk.attempts, chunk.attemptsBefore) = ([5, 3], [5, 0])
        }
        run.reply = { _ in .status(429, "TooManyRequests") }
        run.run()
        let rows = try run.rows()
        #expect(rows.map(\.state) == [.failed, .failed])
        #expect(rows.map(\.attempts) == [10, 5])
        // 7 requests for 2 rows, each of which an earlier run had sent.
        #expect(run.reactors.reduce(0) { $0 + $1.machine.snapshot().retries } == 7)
        #expect(run.reactors.reduce(0) { $0 + $1.machine.snapshot().ownRetries } == 5)
    }

    @Test func `Reopened rows beyond the limit keep their verdicts, and are not counted`() throws {
        let run = try ScriptedRun(rows: 3)
        run.adjustChunk = { chunk in
            chunk.dispositions = [.settled, .send, .settled]
            let past: [(UInt64, RowState)] = [(0, .failed), (2, .unknown)]
            chunk.kept = past.map { row, state in
                KeptVerdict(
                    row: row, state: state, status: 503, reason: 0, reasonText: [], attempts: 4,
                    arm: 0, topic: [], milliseconds: 1_790_000_000_000, timestamp: nil,
                    token: .digits([]))
            }
        }
        run.run()
        #expect(run.requests.map(ScriptedRun.row) == [1])
        let rows = try run.rows()
        #expect(rows.map(\.state) == [.failed, .accepted, .unknown])
        #expect(rows.map(\.status) == [503, 200, 503] && rows.map(\.attempts) == [4, 1, 4])
        #expect(run.settled == 1)
    }
}
