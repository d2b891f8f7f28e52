import BroadsideTestSupport
import Testing

/// Rows that wait for another try while the rest of the list is sent.
@Suite(.timeLimit(.minutes(60)))
struct WaitingRowsTests {
    /// One of two connections responds 429 to 20 rows and is closed, and no further one is served. The
    /// reactor that has the other one has sent the rest of the list long before these rows are due, and
    /// has to stay for them.
    @Test func `A reactor without rows waits for those of another that cannot connect`() throws {
        let server = try RecordingServer(
            "busy-then-closed", ["--served", "2", "--retry-after", "6"])
        let campaign = try Campaign(rows: 900)
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--reactors", "2", "--connections", "2", "--rate", "600", "--on-lost", "resend",
                "--give-up-after", "10s", "--summary", "-",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == 900 && summary.remaining == 0, "\(summary)")
        #expect(try server.tally(campaign.tokens).isExact)
        // All that is accepted is accepted on the first connection, and the rows that waited come last.
        let answers = try server.answers()
        let busy = Set(answers.filter { $0.action == "busy" }.compactMap(\.path))
        let taken = answers.filter { $0.action == "taken" }
        #expect(busy.count == 20 && taken.allSatisfy { $0.connection == 1 })
        #expect(Set(taken.suffix(20).compactMap(\.path)) == busy)
    }
}
