import BroadsideTestSupport
import Foundation
import Testing

/// A ledger whose `manifest.json` is gone, as a copy in part leaves it: never taken for a place where
/// a campaign may begin.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct LostManifestTests {
    /// A campaign of 60 rows, of which 20 are sent, without its manifest.
    private func damaged(
        _ server: RecordingServer, keepsCopy: Bool, keepsSegments: Bool
    ) throws -> Campaign {
        let campaign = try Campaign(rows: 60)
        let sent = try campaign.send(to: server.endpoint, ["--limit", "20"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        for name in try campaign.directory.names(in: campaign.ledger)
        where name == "manifest.json" || name == "manifest.copy" && !keepsCopy
            || name.hasPrefix("segment-") && !keepsSegments
        {
            try FileManager.default.removeItem(atPath: "\(campaign.ledger)/\(name)")
        }
        return campaign
    }

    @Test(arguments: [(true, true), (true, false), (false, true)])
    func `A ledger without its manifest is exit 5 with what is missing and how to continue`(
        keepsCopy: Bool, keepsSegments: Bool
    ) throws {
        let server = try RecordingServer()
        let campaign = try damaged(server, keepsCopy: keepsCopy, keepsSegments: keepsSegments)
        let before = try server.tally(campaign.tokens).total
        let prune = campaign.directory.fresh("pruned")
        let calls: [[String]] =
            [
                campaign.arguments(to: server.endpoint, ["--resume"]),
                campaign.arguments(to: server.endpoint, ["--must-resume"]),
                campaign.arguments(to: server.endpoint, ["--resume", "--must-resume"]),
                ["prune", "--ledger", campaign.ledger, "--tokens", campaign.list]
                    + ["--output", prune],
                ["report", "--ledger", campaign.ledger, "--output", prune + ".html"],
                ["ledger", "find", "--ledger", campaign.ledger, "--token", "ab"],
            ]
            + ["stats", "verify", "export"].map { ["ledger", $0, "--ledger", campaign.ledger] }
        for call in calls {
            let finished = try Broadside.run(call, in: campaign.directory)
            let words: Comment = "\(call.prefix(2)): \(finished.errors)"
            #expect(finished.exitCode == 5, words)
            #expect(finished.errors.contains("its manifest.json is missing: "), words)
            #expect(
                finished.errors.contains(
                    "broadside ledger repair --ledger \(campaign.ledger) --output "), words)
            #expect(finished.errors.contains("put a backup") == !keepsCopy, words)
        }
        let list = try String(contentsOfFile: campaign.list, encoding: .utf8)
        let spooled = try Broadside.run(
            campaign.arguments(
                to: server.endpoint, ["--tokens", "-", "--resume"], without: ["tokens"]),
            in: campaign.directory, input: campaign.directory.write(list, to: "input"))
        #expect(spooled.exitCode == 5 && spooled.errors.contains("manifest.json is missing"))
        #expect(try server.tally(campaign.tokens).total == before)

        let repaired = campaign.directory.fresh("repaired")
        let done = try campaign.ledger("repair", ["--output", repaired])
        guard keepsCopy else {
            #expect(done.exitCode == 5, "\(done.errors)")
            #expect(done.errors.contains("json is missing, and there is no sound copy"))
            return
        }
        #expect(done.exitCode == 0, "\(done.errors)")
        let resumed = try campaign.send(to: server.endpoint, ["--resume", "--ledger", repaired])
        #expect(resumed.exitCode == (keepsSegments ? 0 : 6), "\(resumed.errors)")
        let seen = try server.tally(campaign.tokens)
        #expect(seen.missing == 0 && seen.repeated == 0, "\(seen)")
    }

    /// Half of it, nothing of it, one digit of it: what a full disk, a copy or a person leaves.
    @Test(arguments: ["half", "empty", "edited"], [false, true])
    func `A damaged manifest is exit 5 with the repair command, which then helps`(
        damage: String, keepsCopy: Bool
    ) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 60)
        #expect(try campaign.send(to: server.endpoint, ["--limit", "20"]).exitCode == 0)
        let file = URL(filePath: "\(campaign.ledger)/manifest.json")
        let whole = try Data(contentsOf: file)
        let text = String(decoding: whole, as: UTF8.self)
        let damaged =
            switch damage {
            case "half": whole.prefix(whole.count / 2)
            case "empty": Data()
            default: Data(text.replacing(#""rowsLimit" : 20"#, with: #""rowsLimit" : 30"#).utf8)
            }
        #expect(damaged != whole)
        try damaged.write(to: file)
        if !keepsCopy {
            try FileManager.default.removeItem(atPath: "\(campaign.ledger)/manifest.copy")
        }
        let page = campaign.directory.fresh("page.html")
        let calls: [[String]] =
            [
                campaign.arguments(to: server.endpoint, ["--resume"]),
                ["report", "--ledger", campaign.ledger, "--output", page],
                ["report", "--all", campaign.directory.path, "--output", page],
            ]
            + ["stats", "verify", "export"].map { ["ledger", $0, "--ledger", campaign.ledger] }
        for call in calls {
            let finished = try Broadside.run(call, in: campaign.directory)
            let words: Comment = "\(call.prefix(2)): \(finished.errors)"
            #expect(finished.exitCode == 5 && finished.errorLines.count == 1, words)
            #expect(
                finished.errors.contains(
                    "broadside ledger repair --ledger \(campaign.ledger) --output "), words)
            #expect(finished.errors.contains("put a backup") == !keepsCopy, words)
        }
        if !keepsCopy { try whole.write(to: file) }
        let repaired = campaign.directory.fresh("repaired")
        let done = try campaign.ledger("repair", ["--output", repaired])
        #expect(done.exitCode == 0, "\(done.errors)")
        let resumed = try campaign.send(to: server.endpoint, ["--resume", "--ledger", repaired])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        let seen = try server.tally(campaign.tokens)
        #expect(seen.missing == 0 && seen.repeated == 0, "\(seen)")
    }

    /// Other programs have files of that name.
    @Test func `A manifest.json of another program gets no advice to repair`() throws {
        let directory = try TemporaryDirectory()
        try directory.write("{}", to: "manifest.json")
        let finished = try Broadside.run(
            ["ledger", "stats", "--ledger", directory.path], in: directory)
        #expect(finished.exitCode == 5, "\(finished.errors)")
        #expect(!finished.errors.contains("repair"), "\(finished.errors)")
    }

    @Test
    func `A ledger of which only the lock is left begins no campaign, and other files are kept`()
        throws
    {
        let server = try RecordingServer()
        let campaign = try damaged(server, keepsCopy: false, keepsSegments: false)
        func expectLost() throws {
            for use in ["--resume", "--resume-or-begin"] {
                let lost = try campaign.send(to: server.endpoint, [use])
                #expect(lost.exitCode == 5, "\(lost.errors)")
                #expect(lost.errors.contains("has lost its files"), "\(lost.errors)")
            }
        }
        try expectLost()
        for name in try campaign.directory.names(in: campaign.ledger) where name != "lock" {
            try FileManager.default.removeItem(atPath: "\(campaign.ledger)/\(name)")
        }
        try expectLost()
        #expect(try campaign.ledger("stats").exitCode == 5)
        // Without it, telemetry and the like are somebody's files.
        try FileManager.default.removeItem(atPath: "\(campaign.ledger)/lock")
        try campaign.directory.write("{}", to: "ledger/telemetry.json")
        let strange = try campaign.send(to: server.endpoint, ["--resume-or-begin"])
        #expect(strange.exitCode == 2 && strange.errors.contains("name another directory"))
        try FileManager.default.removeItem(atPath: "\(campaign.ledger)/telemetry.json")
        let begun = try campaign.send(to: server.endpoint, ["--resume-or-begin"])
        #expect(begun.exitCode == 0, "\(begun.errors)")
    }
}
