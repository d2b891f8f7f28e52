import BroadsideTestSupport
import Foundation
import Testing

/// One campaign that is killed ten times, to nginx, which ends each connection after 100 requests.
@Suite(
    .serialized, .timeLimit(.minutes(60)),
    .enabled(if: TestSize.isFull, "ten kills take a minute: tools/test --full"))
struct TenKillsTests {
    static let rows = 20_000

    @Test(arguments: ["resend", "record"])
    func `After ten kills resend delivers every row and record repeats none`(policy: String) throws
    {
        var random = SeededRandom(seed: policy == "resend" ? 71 : 72)
        let campaign = try Campaign(rows: Self.rows)
        let server = try Nginx(requestsPerConnection: 100)
        let options = [
            "--connections", "4", "--on-lost", policy, "--resume-or-begin", "--summary", "-",
        ]
        var kills = 0
        for _ in 0..<10 {
            let before = server.logCount
            let process = try Broadside.start(
                campaign.arguments(to: server.endpoint, options + ["--rate", "20000"]),
                in: campaign.directory)
            // A line of its log has 87 bytes: a share of what ten runs would send each.
            let goal = Int.random(in: 0..<Self.rows / 11 * 87, using: &random)
            try process.wait { server.logCount - before >= goal }
            process.send(signal: SIGKILL)
            if try process.wait().exitCode == -SIGKILL { kills += 1 }
        }
        #expect(kills == 10, "only \(kills) of ten runs were killed before their end")

        let doubt = try DoubtfulRows(campaign)
        let resumed = try campaign.send(to: server.endpoint, options)
        let summary = try SendSummary(json: resumed.output)
        server.settle()
        var seen = try server.tally(campaign.tokens)
        #expect(seen.strangers == 0)
        #expect(summary.accepted + summary.unknown == Self.rows)
        if policy == "resend" {
            #expect(resumed.exitCode == 0 && summary.unknown == 0, "\(resumed.errors)")
        } else {
            #expect(resumed.exitCode == (summary.unknown == 0 ? 0 : 6), "\(resumed.errors)")
            #expect(seen.repeated == 0)
            let unknown = try campaign.export(["--state", "unknown"]).map { $0.line! - 1 }
            #expect(Set(unknown) == doubt.rows && unknown.count == doubt.rows.count)
            let retried = try campaign.send(
                to: server.endpoint, options + ["--retry", "unknown"])
            #expect(retried.exitCode == 0, "\(retried.errors)")
            #expect(try SendSummary(json: retried.output).accepted == Self.rows)
            server.settle()
            seen = try server.tally(campaign.tokens)
        }
        #expect(seen.missing == 0)
        let verified = try campaign.ledger("verify")
        #expect(verified.exitCode == 0 && verified.output.contains(", finished"))
    }
}
