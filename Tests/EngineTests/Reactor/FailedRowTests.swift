import BroadsideHygiene
import BroadsideLedgerFormat
import BroadsidePolicy
import BroadsideRows
import BroadsideSupport
import Testing

@testable import BroadsideEngine

/// What the ledger says of a row whose attempts are used up.
@Suite(.timeLimit(.minutes(60)))
struct FailedRowTests {
    /// One row that gets two attempts.
    private func row(
        replies: [ScriptedRun.Reply]
    ) throws -> ScriptedRun.Row {
        let run = try ScriptedRun(rows: 1) {
            $0.onLost = .resend
            $0.retryPolicy = RetryPolicy(maximumAttempts: 2, retryForNanoseconds: 0)
        }
        run.reply = { _ in replies[run.requests.count - 1] }
        run.run()
        try #require(run.requests.count == 2)
        return try run.rows()[0]
    }

    @Test func `A failed row has the reason of its last response`() throws {
        let row = try row(replies: [
            .status(429, "TooManyRequests"), .status(503, "ServiceUnavailable"),
        ])
        let refused = ScriptedRun.Row(
            state: .failed, status: 503, reason: "ServiceUnavailable", attempts: 2)
        #expect(row == refused)
    }

    @Test(arguments: [(429, "SlowDownNew"), (503, "DatabaseMaintenance")])
    func `A failed row has its last reason even if this version does not know it`(
        status: Int, reason: String
    ) throws {
        let row = try row(replies: [.status(429, "TooManyRequests"), .status(status, reason)])
        #expect(row == .init(state: .failed, status: status, reason: reason, attempts: 2))
        let known = try self.row(replies: [
            .status(status, reason), .status(503, "ServiceUnavailable"),
        ])
        #expect(known.reason == "ServiceUnavailable")
    }

    @Test func `A failed row has no reason if the server states too many different ones`() throws {
        let count = UnknownReasons.limit + 2
        let run = try ScriptedRun(rows: count) {
            $0.retryPolicy = RetryPolicy(maximumAttempts: 1, retryForNanoseconds: 0)
        }
        run.reply = { .status(429, "Request\(ScriptedRun.row($0))") }
        run.run()
        let rows = try run.rows()
        #expect(rows.allSatisfy { $0.state == .failed && $0.status == 429 })
        let named = rows.indices.filter { rows[$0].reason == "Request\($0)" }
        #expect(named.count == UnknownReasons.limit)
        #expect(rows.count { $0.reason?.isEmpty ?? true } == 2)
    }

    @Test func `A failed row may have been processed if a response was lost`() throws {
        let lost = ScriptedRun.Row(
            state: .failed, status: 0, reason: "ConnectionLost", attempts: 2)
        #expect(try row(replies: [.status(429, "TooManyRequests"), .reset]) == lost)
        #expect(try row(replies: [.reset, .status(503, "ServiceUnavailable")]) == lost)
    }
}
