import BroadsideTestSupport
import Foundation
import Testing

/// What `ledger forget` refuses, and ledgers that it can't read.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ForgetRefusalTests: ErasureSuite {
    private let server: LocalAPNs
    let campaign: Campaign

    init() throws { (server, campaign) = try Self.start() }

    // MARK: What is refused

    @Test func `A list of devices that is empty or has a bad row is refused and changes nothing`()
        throws
    {
        _ = try campaign.send(to: server.endpoint)
        let before = try copy(campaign.ledger)
        for (text, problem) in [
            ("", "no row"), ("\(token(3))\nzz\n\(token(4))\n", "line 2"),
            ("token,n\n\(token(3)),1\n,2\n", "line 3"),
        ] {
            let file = try campaign.directory.write(
                text, to: text.contains(",") ? "bad.csv" : "bad.txt")
            let finished = try forget(file, [campaign.ledger])
            #expect(
                finished.exitCode == 2 && finished.errors.contains(problem), "\(finished.errors)")
        }
        let difference = try Subprocess(
            "diff", ["-r", before, campaign.ledger], in: campaign.directory
        ).wait(limit: 60)
        #expect(difference.exitCode == 0, "\(difference.output)")
        #expect(try forget(devices(), ["\(folder)/nothing"]).exitCode == 2)
        let without = try Broadside.run(
            ["ledger", "forget", "--ledger", campaign.ledger], in: campaign.directory)
        #expect(without.exitCode == 2 && without.errors.contains("--tokens FILE"))
    }

    @Test func `A file that is not the ledger's own is refused by its name`() throws {
        _ = try campaign.send(to: server.endpoint)
        try campaign.directory.write(token(3), to: "ledger/rows.csv")
        let finished = try forget(devices(), [campaign.ledger])
        #expect(
            finished.exitCode == 2 && finished.errors.contains("rows.csv"), "\(finished.errors)")
    }

    @Test func `A ledger that a run holds is exit 7, and a damaged one is exit 5`() throws {
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "10"]), in: campaign.directory)
        try sending.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        let held = try forget(devices(), [campaign.ledger])
        #expect(held.exitCode == 7, "\(held.errors)")
        sending.send(signal: SIGTERM)
        _ = try sending.wait()
        #expect(try forget(devices(), [campaign.ledger]).exitCode == 0)
        let segment = "\(campaign.ledger)/segment-0001-00"
        var bytes = try #require(FileManager.default.contents(atPath: segment))
        bytes[50] ^= 1
        try bytes.write(to: URL(filePath: segment))
        let damaged = try forget(devices(), [campaign.ledger])
        #expect(
            damaged.exitCode == 5 && damaged.errors.contains("ledger repair"), "\(damaged.errors)")
    }

    // MARK: What can't be read

    /// A process of root without the rights over other users' files.
    private func withoutRights(_ words: [String]) throws -> Finished {
        try Subprocess(
            "setpriv",
            [
                "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps",
                "-dac_override,-dac_read_search", Broadside.path(),
            ] + words, in: campaign.directory
        ).wait(limit: 60)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can make a ledger of another user"))
    func `A ledger of another user makes forget, find and --cap exit 5, and the others are used`()
        throws
    {
        let (own, other) = ("\(folder)/nights/own", "\(folder)/nights/other")
        try FileManager.default.createDirectory(
            atPath: "\(folder)/nights", withIntermediateDirectories: false)
        for ledger in [own, other] {
            let sent = try campaign.send(to: server.endpoint, ["--ledger", ledger])
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        let user = 61_235
        #expect(chown(other, uid_t(user), gid_t(user)) == 0)
        let nights = ["--ledger", "\(folder)/nights"]
        for more in [["--dry-run"], []] {
            let erased = try withoutRights(
                ["ledger", "forget", "--token", token(3)] + nights + more)
            #expect(erased.exitCode == 5, "\(erased.errors)")
            #expect(erased.output.contains("\(own): "), "\(erased.output)")
            #expect(erased.errors.contains("--ledger \(other): "), "\(erased.errors)")
            #expect(erased.errors.contains("not erased: run the same"), "\(erased.errors)")
        }
        for (row, output) in [(3, ""), (4, "row 4 ")] {
            let found = try withoutRights(["ledger", "find", "--token", token(row)] + nights)
            #expect(found.exitCode == 5 && found.errors.contains(other), "\(found.errors)")
            #expect(found.output.prefix(6) == output, "\(found.output)")
        }
        let next = "\(folder)/next"
        let refused = try withoutRights(
            campaign.arguments(
                to: server.endpoint,
                ["--ledger", next, "--cap", "1/1d", "--history", "\(folder)/nights"]))
        #expect(refused.exitCode == 5 && refused.errorLines.count == 1, "\(refused.errors)")
        #expect(refused.errors.contains("--history \(other): "), "\(refused.errors)")
        #expect(refused.errors.contains("or move it out of the folder"), "\(refused.errors)")
        #expect(!FileManager.default.fileExists(atPath: next))
        let sent = try withoutRights(
            campaign.arguments(
                to: server.endpoint, ["--ledger", next, "--skip-dead", "\(folder)/nights"]))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.split(separator: "\n").count { $0.contains(other) } == 1)
    }
}
