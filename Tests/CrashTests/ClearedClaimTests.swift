import BroadsideTestSupport
import Foundation
import Testing

/// The claim of a killed run lost its first sector, and with it the text: only a repair continues, also one that is
/// killed and started again.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ClearedClaimTests {
    private let campaign: Campaign
    private let files = FileManager.default
    /// Each repair is killed this number of calls after the one before it.
    private let step = 12

    init() throws { campaign = try Campaign(rows: 70) }

    /// Kills a run while it waits for responses.
    ///
    /// - Returns: The tokens of its requests.
    private func kill() throws -> [String] {
        // The server responds to no request from number 31 on.
        let scenario = try campaign.directory.write(
            #"{ faults: [{ do: "stall", at: 31, count: 1000, scope: "global" }] }"#,
            to: "stall.json5")
        let server = try LocalAPNs(["--max-streams", "5", "--scenario", scenario])
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--connections", "1"]),
            in: campaign.directory)
        // At most 5 requests wait for their responses at a time.
        try process.wait { (try? campaign.statistics().accepted) ?? 0 >= 26 }
        process.send(signal: SIGKILL)
        try #require(try process.wait().exitCode == -SIGKILL)
        return try server.finish().map { $0[4] }
    }

    /// Overwrites the first 512 bytes of the claim with zeros.
    private func clear() throws {
        let folder = campaign.directory.path
        let name = try #require(
            try campaign.directory.names(in: folder).first { $0.hasPrefix(".broadside-") })
        let claim = try FileHandle(forUpdating: URL(filePath: "\(folder)/\(name)"))
        try claim.write(contentsOf: Data(count: 512))
        try claim.close()
    }

    /// Kills repairs at several of their calls, until one of them has made the ledger.
    private func repair(into output: String) throws {
        let library = try Shim.compile("kill-at-call", in: campaign.directory)
        var call = 1
        while !files.fileExists(atPath: output) {
            let ended = try Broadside.run(
                ["ledger", "repair", "--ledger", campaign.ledger, "--output", output],
                in: campaign.directory,
                environment: ["LD_PRELOAD": library, "KILL_AT": "\(call)"])
            try #require(
                [0, -SIGKILL].contains(ended.exitCode), "call \(call): \(ended.errors)")
            call += step
        }
        #expect(call > 3 * step)
    }

    /// - Parameter isCut: Whether the run's segment was cut at the end of its header.
    @Test(arguments: [false, true])
    func `If the text of a killed run's claim is cleared, no device gets the push twice`(
        isCut: Bool
    ) throws {
        var sent = try kill()
        try clear()
        if isCut { #expect(truncate("\(campaign.ledger)/segment-0001-00", 32) == 0) }
        let server = try LocalAPNs()
        for refused in [
            try campaign.ledger("verify"), try campaign.send(to: server.endpoint, ["--resume"]),
        ] {
            #expect(refused.exitCode == 5, "\(refused.errors)")
            #expect(
                refused.errors.contains("broadside ledger repair --ledger \(campaign.ledger)"),
                "\(refused.errors)")
        }

        let (repaired, other) = ("\(campaign.ledger)-repaired", "\(campaign.ledger)-other")
        try repair(into: repaired)
        let done = try campaign.ledger("repair", ["--output", other])
        #expect(done.exitCode == 0, "\(done.errors)")
        #expect(done.output.contains("lost the text of the claim"), "\(done.output)")
        // Of these three ledgers, only the one that is resumed first continues.
        for (ledger, exitCode) in [(repaired, 6), (other, 7), (campaign.ledger, 7)] {
            let resumed = try campaign.send(
                to: server.endpoint, ["--resume", "--ledger", ledger])
            #expect(resumed.exitCode == exitCode, "\(ledger): \(resumed.errors)")
        }
        sent += try server.finish().map { $0[4] }
        #expect(sent.count >= 26)
        #expect(Set(sent).count == sent.count, "\(sent.count - Set(sent).count) sent twice")
    }
}
