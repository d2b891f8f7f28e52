import TestSupport
import Testing

/// Campaigns that APNs refuses as such, by `broadside simulate`.
@Suite(.timeLimit(.minutes(60)))
struct RefusedCampaignTests {
    @Test("A list of nothing but bad tokens ends within --abort-after")
    func onlyBadTokens() throws {
        let server = try Simulation(["--bad-token", "1"])
        let campaign = try Campaign(rows: 2000)
        let sent = try campaign.send(
            to: server.endpoint,
            server.credentials() + ["--connections", "2", "--abort-after", "30", "--summary", "-"])
        #expect(sent.exitCode == 4, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.rejected == 30, "\(summary)")
        #expect(summary.reasons == ["BadDeviceToken": summary.rejected])
        #expect(summary.remaining == 2000 - summary.rejected && summary.accepted == 0)
    }

    @Test("A wrong key leaves all rows, and the right one under the same name sends them")
    func wrongKey() throws {
        let server = try Simulation()
        let campaign = try Campaign(rows: 2000)
        let options =
            try server.options(["ca-file", "key-id", "team-id", "topic"])
            + ["--connections", "2", "--summary", "-"]
        let wrong = ["--auth-key", campaign.authority.authKey]
        let sent = try campaign.send(to: server.endpoint, options + wrong)
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(sent.errors.contains("InvalidProviderToken"), "\(sent.errors)")
        let first = try SendSummary(json: sent.output)
        #expect(first.remaining == 2000 && first.rejected == 0 && first.unknown == 0, "\(first)")

        let right = try server.options(["auth-key"])
        let resumed = try campaign.send(to: server.endpoint, options + right + ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try SendSummary(json: resumed.output).accepted == 2000)
    }
}
