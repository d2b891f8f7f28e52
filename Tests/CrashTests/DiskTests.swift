import BroadsideTestSupport
import Foundation
import Testing

/// Disks that are full, too small, read-only or broken: exit 5, what was recorded stays true, and with
/// room again a resume goes on.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct DiskTests {
    /// Whether this user may mount file systems that nobody else sees.
    static let canMount: Bool = {
        guard let directory = try? TemporaryDirectory() else { return false }
        return
            (try? Subprocess.run(
                "unshare",
                ["--mount", "mount", "-t", "tmpfs", "-o", "size=64k", "none", directory.path],
                in: directory)) != nil
    }()

    @Test(
        .enabled(if: FailingDisk.isAllowed, "file systems in user space are not allowed here"),
        arguments: ["write", "sync"])
    func `A disk that fails writes or syncs ends the run with 5, and nothing goes out twice`(
        what: String
    ) throws {
        let server = try Nginx(requestsPerConnection: 1000)
        let campaign = try Campaign(rows: 20_000)
        let path = campaign.directory.path
        let words = try FailingDisk.words(
            path,
            [Broadside.path()]
                + campaign.arguments(
                    to: server.endpoint,
                    ["--connections", "4", "--reactors", "2", "--rate", "2000", "--summary", "-"],
                    without: ["ledger"]) + ["--ledger", "\(path)/disk/ledger"])
        let process = try Subprocess(words[0], Array(words.dropFirst()), in: campaign.directory)
        // A line of its log has 87 bytes.
        try process.wait { server.logCount >= 1000 * 87 }
        try Data(what.utf8).write(to: URL(filePath: "\(path)/back.fail"))
        let stopped = try process.wait()
        #expect(stopped.exitCode == 5, "\(stopped.errors)")
        #expect(stopped.errorLines.count == 1, "\(stopped.errors)")
        #expect(stopped.errors.contains("Input/output error"), "\(stopped.errors)")
        try FileManager.default.copyItem(atPath: "\(path)/back/ledger", toPath: campaign.ledger)
        try expectTrueAndResumable(campaign, server, stopped)
    }

    /// Runs a script with the command as its first argument and a whole send as the others.
    private func run(
        _ script: String, _ campaign: Campaign, _ endpoint: String, unshared: Bool
    ) throws -> Finished {
        let shell = ["bash", "-c", script, "bash"]
        let words =
            (unshared ? ["unshare", "--mount"] + shell : shell) + [try Broadside.path()]
            + campaign.arguments(
                to: endpoint, ["--connections", "4", "--reactors", "2", "--summary", "-"])
        return try Subprocess(words[0], Array(words.dropFirst()), in: campaign.directory).wait()
    }

    @Test
    func `A manifest that cannot be written at the end still leaves summary and report`() throws {
        let server = try Nginx(requestsPerConnection: 1000)
        let campaign = try Campaign(rows: 300)
        let page = campaign.directory.path + "/page.html"
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint, ["--rate", "10", "--summary", "-", "--report", page]),
            in: campaign.directory)
        try process.wait { ((try? campaign.statistics().accepted) ?? 0) > 0 }
        // Nothing can be made under this name any more.
        let name = "\(campaign.ledger)/.manifest.json.new"
        #expect(mkdir(name, 0o700) == 0)
        let told = try Broadside.run(
            ["control", "--ledger", campaign.ledger, "rate", "unlimited"], in: campaign.directory)
        #expect(told.exitCode == 0, "\(told.errors)")
        let ended = try process.wait(limit: 60)
        #expect(ended.exitCode == 5, "\(ended.errors)")
        #expect(ended.errorLines.count == 1, "\(ended.errors)")
        #expect(ended.errors.contains(".manifest.json.new can't be written"), "\(ended.errors)")
        let summary = try SendSummary(json: ended.output)
        #expect(summary.outcome == "error" && summary.accepted == 300, "\(summary)")
        #expect(try String(contentsOfFile: page, encoding: .utf8).contains("</html>"))
        #expect(rmdir(name) == 0)
        let resumed = try campaign.send(to: server.endpoint, ["--resume", "--summary", "-"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(try SendSummary(json: resumed.output).accepted == 300)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `A file size limit ends the run with 5, and nothing goes out twice`() throws {
        let server = try Nginx(requestsPerConnection: 1000)
        let campaign = try Campaign(rows: 20_000)
        // 64 KiB a file: some 4,000 rows. Where the signal isn't ignored it kills.
        let stopped = try run(
            "trap '' XFSZ; ulimit -f 64; exec \"$@\"", campaign, server.endpoint, unshared: false)
        #expect(stopped.exitCode == 5, "\(stopped.errors)")
        #expect(stopped.errorLines.count == 1, "\(stopped.errors)")
        #expect(stopped.errors.contains("File too large"), "\(stopped.errors)")
        try expectTrueAndResumable(campaign, server, stopped)
    }

    @Test(.enabled(if: canMount, "mounting is not allowed here"))
    func `A full disk ends the run with 5, and nothing goes out twice`() throws {
        let server = try Nginx(requestsPerConnection: 1000)
        let campaign = try Campaign(rows: 20_000)
        // The ledger lies on a small file system of this script's own; what is left of it is copied.
        let disk = "\(campaign.directory.path)/disk"
        try FileManager.default.createDirectory(
            atPath: disk, withIntermediateDirectories: false)
        let script = """
            mount -t tmpfs -o size=128k none \(disk)
            "$@" --ledger \(disk)/ledger
            code=$?
            cp -a \(disk)/ledger \(campaign.ledger)
            exit $code
            """
        let stopped = try Subprocess(
            "unshare",
            ["--mount", "bash", "-c", script, "bash", Broadside.path()]
                + campaign.arguments(
                    to: server.endpoint,
                    ["--connections", "4", "--reactors", "2", "--summary", "-"],
                    without: ["ledger"]), in: campaign.directory
        ).wait()
        #expect(stopped.exitCode == 5, "\(stopped.errors)")
        #expect(stopped.errorLines.count == 1, "\(stopped.errors)")
        #expect(stopped.errors.contains("No space left"), "\(stopped.errors)")
        try expectTrueAndResumable(campaign, server, stopped)
    }

    @Test(.enabled(if: canMount, "mounting is not allowed here"))
    func `A resume in a read-only directory is exit 5 before anything is sent`() throws {
        let server = try Nginx(requestsPerConnection: 1000)
        let campaign = try Campaign(rows: 2000)
        #expect(try campaign.send(to: server.endpoint, ["--limit", "500"]).exitCode == 0)
        server.settle()
        let script = """
            mount --bind \(campaign.ledger) \(campaign.ledger)
            mount -o remount,ro,bind \(campaign.ledger)
            exec "$@" --resume
            """
        let refused = try run(script, campaign, server.endpoint, unshared: true)
        #expect(refused.exitCode == 5, "\(refused.errors)")
        #expect(refused.errorLines.count == 1, "\(refused.errors)")
        #expect(refused.errors.contains("Read-only file system"), "\(refused.errors)")
        #expect(try server.tally(campaign.tokens).total == 500)
        let resumed = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        server.settle()
        #expect(try server.tally(campaign.tokens).isExact)
    }

    /// What the ledger says is so, the summary says no more, and a resume sends the rest once.
    private func expectTrueAndResumable(
        _ campaign: Campaign, _ server: Nginx, _ stopped: Finished
    ) throws {
        server.settle()
        let before = try server.tally(campaign.tokens)
        #expect(before.total > 0 && before.missing > 0 && before.repeated == 0)
        let verified = try campaign.ledger("verify")
        #expect(verified.exitCode == 0, "\(verified.errors)")
        let accepted = try campaign.export(["--state", "accepted"])
        #expect(accepted.allSatisfy { before.counts[$0.line! - 1] == 1 })
        #expect(try SendSummary(json: stopped.output).accepted == accepted.count)

        let resumed = try campaign.send(to: server.endpoint, ["--resume", "--summary", "-"])
        let summary = try SendSummary(json: resumed.output)
        #expect(resumed.exitCode == (summary.unknown == 0 ? 0 : 6), "\(resumed.errors)")
        #expect(summary.accepted + summary.unknown == campaign.tokens.count)
        server.settle()
        #expect(try server.tally(campaign.tokens).repeated == 0)
        let retried = try campaign.send(to: server.endpoint, ["--resume", "--retry", "unknown"])
        #expect(retried.exitCode == 0, "\(retried.errors)")
        server.settle()
        #expect(try server.tally(campaign.tokens).missing == 0)
    }
}
