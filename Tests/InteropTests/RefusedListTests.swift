import BroadsideTestSupport
import Foundation
import Testing

/// Lists that are too short for `--abort-after`, each token of which APNs refuses.
@Suite(.timeLimit(.minutes(60)))
struct RefusedListTests {
    @Test func `A campaign that reached no device says so unless one row was accepted`() throws {
        let server = try LocalAPNs(["--bad-token", "1"])
        let campaign = try Campaign(rows: 20)
        for more in [[], ["--resume"]] {
            let sent = try campaign.send(to: server.endpoint, more)
            #expect(sent.exitCode == 0, "\(sent.errors)")
            #expect(
                sent.errors.contains(
                    "warning: no device got this campaign: APNs refused all 20 rows that were "
                        + "sent (20 BadDeviceToken): check --environment and --topic"),
                "\(sent.errors)")
        }
        #expect(try server.finish().count == 20)
        let other = try LocalAPNs(["--bad-token", "0.5"])
        let sent = try campaign.send(to: other.endpoint, ["--ledger", campaign.ledger + "2"])
        #expect(sent.exitCode == 0 && sent.errors.isEmpty, "\(sent.errors)")
        _ = try other.finish()
    }

    @Test(arguments: ["BadDeviceToken", "DeviceTokenNotForTopic", "Unregistered"], [20, 101])
    func `A campaign of which only the first row is accepted says so if all others are foreign`(
        reason: String, rows: Int
    ) throws {
        let server = try RecordingServer(
            "reason-after-first", ["--reason", reason, "--status", "400"])
        let campaign = try Campaign(rows: rows)
        for more in [["--connections", "1"], ["--resume"]] {
            let sent = try campaign.send(to: server.endpoint, more)
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let warning =
                "warning: almost no device got this campaign: APNs refused \(rows - 1) of the "
                + "\(rows) rows that were sent (\(rows - 1) \(reason)): check --environment and "
                + "--topic"
            #expect(sent.errors.contains(warning) == (reason != "Unregistered"), "\(sent.errors)")
        }
        let short = try Campaign(rows: 19)
        let sent = try short.send(to: server.endpoint, ["--connections", "1"])
        #expect(sent.exitCode == 0 && sent.errors.isEmpty, "\(sent.errors)")
    }

    @Test func `A campaign that skipped most rows and whose others are dead names both`() throws {
        let server = try LocalAPNs(["--unregistered", "1"])
        let campaign = try Campaign(rows: 20)
        let list = try String(contentsOfFile: campaign.list, encoding: .utf8)
        let most = list.split(separator: "\n").prefix(17).joined(separator: "\n") + "\n"
        let sent = try campaign.send(
            to: server.endpoint,
            ["--suppress", campaign.directory.write(most, to: "most.txt")])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(
            sent.errors.contains(
                "APNs refused all 3 rows that were sent (3 Unregistered), and 17 rows were skipped: "
                    + "check --suppress"), "\(sent.errors)")
        _ = try server.finish()
    }

    @Test func `A campaign that reached no device says so for mixed reasons`() throws {
        let server = try LocalAPNs(["--bad-token", "0.2", "--unregistered", "0.8"])
        let campaign = try Campaign(rows: 80)
        let sent = try campaign.send(to: server.endpoint)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(
            sent.errors.contains("no device got this campaign: APNs refused all 80 rows")
                && sent.errors.contains(" Unregistered")
                && sent.errors.contains(" BadDeviceToken")
                && sent.errors.contains("is --tokens the right list?"), "\(sent.errors)")
        _ = try server.finish()
    }
}
