import BroadsideHygiene
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
}
