import BroadsideTestSupport
import Foundation
import Testing

/// How much of a list a kill leaves in doubt: what is in flight, and little besides.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct DoubtTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var reactors: Int
        var rate: Int
        /// Responses after which the run is killed.
        var responses: Int
        /// The most rows that may be reserved and not sent: four chunks a reactor.
        var ahead: Int

        var testDescription: String { "\(reactors) reactors, \(rate)/s, \(responses) responses" }
    }

    /// In flight on a connection at most.
    static let streams = 20

    static let cases = [
        Case(reactors: 1, rate: 100, responses: 3, ahead: 64),
        Case(reactors: 4, rate: 100, responses: 3, ahead: 256),
        Case(reactors: 4, rate: 100, responses: 150, ahead: 256),
        Case(reactors: 8, rate: 50, responses: 20, ahead: 512),
        Case(reactors: 4, rate: 2_000, responses: 1_000, ahead: 1_000),
    ]

    @Test(arguments: cases)
    func `A kill leaves in doubt the rows in flight and a tenth of a second's work`(_ trial: Case)
        throws
    {
        let campaign = try Campaign(rows: 10_000)
        let server = try RecordingServer()
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--reactors", "\(trial.reactors)", "--connections", "\(trial.reactors)",
                    "--rate", "\(trial.rate)", "--max-streams", "\(Self.streams)",
                ]),
            in: campaign.directory)
        try process.wait { try server.answerCount() >= trial.responses }
        process.send(signal: SIGKILL)
        #expect(try process.wait().exitCode == -SIGKILL)
        server.stop()

        // What the server saw and no verdict tells of was in flight, and perhaps more that it did not.
        let seen = try server.tally(campaign.tokens)
        let sent = seen.counts.count { $0 > 0 }
        let found = try campaign.statistics()
        let inDoubt = try #require(found.in_doubt)
        let inFlight = sent - found.accepted
        // The server records a response after it has sent it, and may be stopped in between.
        #expect(inFlight >= -trial.reactors && sent >= trial.responses)
        #expect(inDoubt >= inFlight)
        if found.rows == nil {
            let page = try Broadside.run(
                ["report", "--ledger", campaign.ledger], in: campaign.directory)
            #expect(page.output.contains(" rows so far"), "\(page.output.prefix(9_000))")
            #expect(page.output.contains("and an unknown number of rows is not sent yet"))
        }
        #expect(inDoubt <= trial.reactors * Self.streams + trial.ahead)
    }
}
