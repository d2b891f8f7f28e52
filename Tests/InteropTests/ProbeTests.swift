import BroadsideTestSupport
import Foundation
import Testing

/// The hygiene run.
@Suite(.timeLimit(.minutes(60)))
struct ProbeTests {
    private func probe(
        _ campaign: Campaign, to endpoint: String, _ more: [String]
    ) throws -> Finished {
        let options = campaign.arguments(to: endpoint, more, without: ["payload"]).dropFirst()
        return try Broadside.run(["probe"] + options, in: campaign.directory)
    }

    @Test func `A probe sends each token a silent push that is never stored`() throws {
        let server = try RecordingServer("plain", ["--detail", "1,2,3,4,5"])
        let campaign = try Campaign(rows: 5)
        let probed = try probe(campaign, to: server.endpoint, ["--connections", "1"])
        #expect(probed.exitCode == 0, "\(probed.errors)")
        let requests = try server.events().compactMap(\.fields)
        #expect(requests.count == 5)
        for request in requests {
            func value(_ name: String) -> String? { request.first { $0.name == name }?.value }
            #expect(value("apns-push-type") == "background")
            #expect(value("apns-priority") == "5")
            #expect(value("apns-expiration") == "0")
        }
        #expect(try campaign.statistics().accepted == 5)
    }

    @Test func `A probe takes the campaign's file and ignores its payload and headers`() throws {
        let server = try RecordingServer("plain", ["--detail", "1,2,3,4,5"])
        let campaign = try Campaign(rows: 5)
        let printed = try Broadside.run(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--print-campaign", "--priority", "10", "--expiration", "+2h", "--progress",
                    "auto",
                ], without: ["ledger", "progress"]), in: campaign.directory)
        let file = try campaign.directory.write(printed.output, to: "night.json5")
        let probed = try Broadside.run(
            ["probe", "--campaign", file, "--ledger", campaign.ledger], in: campaign.directory)
        #expect(probed.exitCode == 0, "\(probed.errors)")
        #expect(probed.errors.contains("ignores payload, priority, expiration"))
        let requests = try server.events().compactMap(\.fields)
        #expect(requests.count == 5)
        for request in requests {
            #expect(request.contains { $0.name == "apns-push-type" && $0.value == "background" })
            #expect(request.contains { $0.name == "apns-priority" && $0.value == "5" })
        }

        // What would make the probe another one is not passed over.
        let other = try campaign.directory.write("{to: 'aabb'}", to: "one.json5")
        let refused = try Broadside.run(["probe", "--campaign", other], in: campaign.directory)
        #expect(refused.exitCode == 2 && refused.errors.contains("'to' is an option of send"))
    }

    @Test
    func `--then-prune writes the list without dead tokens once the probe is complete`() throws {
        let server = try LocalAPNs(["--unregistered", "0.2"])
        let campaign = try Campaign(rows: 2000)
        let output = "\(campaign.directory.path)/clean.txt"
        let part = try probe(
            campaign, to: "127.0.0.1:1", ["--then-prune", output, "--give-up-after", "1s"])
        #expect(part.exitCode == 1)
        #expect(part.errors.contains("--then-prune"), "\(part.errors)")
        #expect(!FileManager.default.fileExists(atPath: output))

        let probed = try probe(campaign, to: server.endpoint, ["--then-prune", output])
        #expect(probed.exitCode == 0, "\(probed.errors)")
        let dead = Set(try server.finish().filter { $0[5] == "410" }.map { $0[4] })
        #expect(dead.count > 200 && dead.count < 800)
        let clean = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
        #expect(clean.count == 2000 - dead.count)
        #expect(clean.allSatisfy { !dead.contains(String($0)) })
    }
}
