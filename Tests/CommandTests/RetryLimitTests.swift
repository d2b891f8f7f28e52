import BroadsideTestSupport
import Foundation
import Testing

/// Rows that failed, a limit that leaves some of them out, and `--retry`.
struct RetryLimitTests {
    @Test func `A retry sends failed rows up to its own limit, whatever limit the run before had`()
        throws
    {
        let campaign = try Campaign(rows: 10)
        let lines = (0..<10).map { row in
            #"{"token":"\#(campaign.tokens.token(row))","status":429,"#
                + #""reason":"TooManyRequests"}"# + "\n"
                + #"{"token":"\#(campaign.tokens.token(row))","status":200}"# + "\n"
        }
        let replay = try campaign.directory.write(lines.joined(), to: "replay.jsonl")
        let server = try LocalAPNs(["--replay", replay])
        func send(_ more: [String]) throws -> Finished {
            try campaign.send(
                to: server.endpoint, ["--max-attempts", "1", "--retry-for", "0s"] + more)
        }
        #expect(try send([]).exitCode == 6)
        let retry = ["--resume", "--retry", "failed"]

        let half = try send(retry + ["--limit", "5"])
        #expect(half.exitCode == 6, "\(half.errors)")
        let beyond = "--retry does not send again: 5 failed rows beyond --limit"
        #expect(half.errors.contains(beyond), "\(half.errors)")
        let again = try send(retry + ["--limit", "5"])
        #expect(again.exitCode == 6 && again.errors.contains(beyond), "\(again.errors)")
        #expect(try campaign.statistics().accepted == 5)

        let rest = try send(retry)
        #expect(rest.exitCode == 0, "\(rest.errors)")
        #expect(try campaign.statistics().accepted == 10)
        #expect(try server.finish().count == 20)
    }
}
