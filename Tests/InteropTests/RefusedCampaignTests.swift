import BroadsideTestSupport
import Foundation
import Testing

/// Campaigns that APNs refuses as such, by `broadside simulate`.
@Suite(.timeLimit(.minutes(60)))
struct RefusedCampaignTests {
    @Test func `A list of bad tokens only stops within --abort-after`() throws {
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

    @Test(arguments: [false, true])
    func `A payload that the server calls too large stops the run`(isPersonal: Bool) throws {
        let server = try RecordingServer(
            "reason", ["--reason", "PayloadTooLarge", "--status", "413"])
        let campaign = try Campaign(
            rows: 2000,
            payload: isPersonal ? #"{"aps":{"alert":"for {{token}}"}}"# : Campaign.payload)
        let list = "token\n" + (0..<2000).map { campaign.tokens.token($0) + "\n" }.joined()
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--tokens", try campaign.directory.write(list, to: "list.csv"), "--connections",
                "2",
                "--abort-after", "30", "--summary", "-",
            ])
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(sent.errors.contains("413 PayloadTooLarge"), "\(sent.errors)")
        #expect(sent.errors.contains("make the payload shorter"), "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.rejected == 30 && summary.remaining == 1970, "\(summary)")
    }

    /// As a web server in place of a relay that is gone would respond.
    @Test(arguments: [[], ["--canary", "50"]])
    func `A server that responds 410 without a reason stops the run`(more: [String]) throws {
        let server = try RecordingServer("reason", ["--reason", "", "--status", "410"])
        let campaign = try Campaign(rows: 2000)
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "2", "--summary", "-"] + more)
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(sent.errors.contains("is this APNs?"), "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.rejected == 50 && summary.remaining == 1950, "\(summary)")
    }

    @Test(arguments: ["BadTopic", "DeviceTokenNotForTopic", "BadDeviceToken"])
    func `A wrong setting stops the run although other responses are between refusals`(
        reason: String
    ) throws {
        let server = try RecordingServer(
            "reason-between", ["--reason", reason, "--status", "400"])
        let campaign = try Campaign(rows: 2000)
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--connections", "2", "--abort-after", "30", "--summary", "-", "--give-up-after",
                "1d",
            ])
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(sent.errors.contains(reason), "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        #expect(summary.reasons[reason] == 30 && (summary.remaining ?? 0) > 1900, "\(summary)")
    }

    @Test(arguments: [201, 202, 204])
    func `A status from 201 to 204 makes rows unknown and stops the run`(status: Int) throws {
        let server = try RecordingServer("reason", ["--reason", "", "--status", "\(status)"])
        let campaign = try Campaign(rows: 500)
        let options = ["--connections", "2", "--abort-after", "30", "--summary", "-"]
        let sent = try campaign.send(to: server.endpoint, options)
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(
            sent.errors.contains("the server responds to one request after another with \(status)"),
            "\(sent.errors)")
        #expect(sent.errors.contains("--state unknown"), "\(sent.errors)")
        let first = try SendSummary(json: sent.output)
        #expect(first.unknown == 30 && first.rejected == 0 && first.remaining == 470, "\(first)")
        #expect(try server.tally(campaign.tokens).repeated == 0)
        let kept = "\(campaign.directory.path)/kept"
        let pruned = try Broadside.run(
            ["prune", "--ledger", campaign.ledger, "--tokens", campaign.list, "--output", kept],
            in: campaign.directory)
        #expect(pruned.exitCode == 0, "\(pruned.errors)")
        let taken = try Packing.unpack(kept, in: campaign.directory)
        #expect(taken == campaign.tokens.list())

        let sound = try RecordingServer()
        let resumed = try campaign.send(to: sound.endpoint, options + ["--resume"])
        #expect(resumed.exitCode == 6, "\(resumed.errors)")
        let whole = try SendSummary(json: resumed.output)
        #expect(whole.accepted == 470 && whole.unknown == 30, "\(whole)")
        #expect(try sound.tally(campaign.tokens).total == 470)
    }

    @Test(arguments: [302, 401, 403, 404], [5, 500])
    func `A server other than APNs leaves all rows, and --resume at the right one sends them`(
        status: Int, rows: Int
    ) throws {
        let server = try RecordingServer("reason", ["--reason", "", "--status", "\(status)"])
        let campaign = try Campaign(rows: rows)
        let options = ["--connections", "2", "--abort-after", "30", "--summary", "-"]
        let sent = try campaign.send(to: server.endpoint, options)
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(sent.errors.contains("\(status) without a known reason"), "\(sent.errors)")
        #expect(sent.errors.contains("is this APNs? check --endpoint"), "\(sent.errors)")
        let first = try SendSummary(json: sent.output)
        #expect(first.remaining == rows && first.rejected == 0, "\(first)")

        let right = try RecordingServer()
        let resumed = try campaign.send(to: right.endpoint, options + ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try SendSummary(json: resumed.output).accepted == rows)
    }

    @Test func `A reason that this version does not know is named, and shows that this is APNs`()
        throws
    {
        let server = try RecordingServer(
            "reason", ["--reason", "DeviceTokenRetired", "--status", "400"])
        let campaign = try Campaign(rows: 100)
        let sent = try campaign.send(to: server.endpoint, ["--abort-after", "30"])
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(
            sent.errors.contains(
                "refuses one request after another: 400 DeviceTokenRetired: look up"),
            "\(sent.errors)")
        #expect(!sent.errors.contains("is this APNs?"), "\(sent.errors)")
        let path = "\(campaign.directory.path)/page.html"
        let page = try Broadside.run(
            ["report", "--ledger", campaign.ledger, "--output", path], in: campaign.directory)
        #expect(page.exitCode == 0, "\(page.errors)")
        let text = try String(contentsOfFile: path, encoding: .utf8)
        #expect(text.contains("400 DeviceTokenRetired"))
    }

    @Test(arguments: [("TooManyRequests", 429), ("", 421)])
    func `A run that sends all rows again names the last refusal, in a notice and at its end`(
        reason: String, status: Int
    ) throws {
        let server = try RecordingServer("reason", ["--reason", reason, "--status", "\(status)"])
        let campaign = try Campaign(rows: 20)
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--log", "text"]), in: campaign.directory)
        let refusal =
            "(last refusal: \(status) \(reason.isEmpty ? "without a known reason" : reason))"
        try sending.wait {
            (try? String(contentsOfFile: sending.errorsPath, encoding: .utf8))?
                .contains("were sent again in the last 10 s \(refusal)") == true
        }
        sending.send(signal: SIGINT)
        let sent = try sending.wait()
        #expect(sent.exitCode == 3, "\(sent.errors)")
        #expect(
            sent.errors.contains("broadside: stopped by a signal \(refusal): --resume continues"),
            "\(sent.errors)")
    }

    @Test
    func `A wrong key leaves all rows, and the right one of the same name sends them`() throws {
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
