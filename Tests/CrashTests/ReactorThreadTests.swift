import BroadsideTestSupport
import Foundation
import Testing

/// Several reactors at work, with all that passes between threads: chunks and rows given back, rates
/// divided anew, connections replaced, the provider token, a signal, a resume.
///
/// `tools/check-threads` runs these with a command that was built with thread sanitizer, where any
/// data race makes the exit code 66.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ReactorThreadTests {
    static let options = ["--reactors", "3", "--connections", "6", "--summary", "-"]

    @Test func `Three reactors, stopped by a signal and resumed, send each row once`() throws {
        let server = try Simulation(["--threads", "2", "--unregistered", "0.1"])
        let campaign = try Campaign(rows: 20_000)
        let control = try server.credentials() + Self.options + ["--progress", "json"]
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, control + ["--rate", "2000"]),
            in: campaign.directory)
        try process.wait { (try? campaign.statistics().accepted) ?? 0 >= 2000 }
        process.send(signal: SIGINT)
        let stopped = try process.wait()
        #expect(stopped.exitCode == 3, "\(stopped.errors.suffix(4000))")
        let first = try SendSummary(json: stopped.output)
        #expect(first.accepted >= 2000 && first.unknown == 0, "\(first)")

        let resumed = try campaign.send(to: server.endpoint, control + ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors.suffix(4000))")
        let whole = try SendSummary(json: resumed.output)
        #expect(whole.accepted + whole.rejected == 20_000 && whole.unknown == 0, "\(whole)")
        #expect(try campaign.ledger("verify").exitCode == 0)
        try server.stop()
    }

    @Test
    func `Three reactors whose connections are replaced all the time send each row once`() throws {
        let server = try Nginx(requestsPerConnection: 100)
        let campaign = try Campaign(rows: 20_000)
        let sent = try campaign.send(to: server.endpoint, Self.options)
        #expect(sent.exitCode == 0, "\(sent.errors.suffix(4000))")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.accepted == 20_000 && summary.reconnects >= 190, "\(summary)")
        server.settle()
        #expect(try server.tally(campaign.tokens).isExact)
    }
}
