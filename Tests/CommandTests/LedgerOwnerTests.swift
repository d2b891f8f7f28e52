import Foundation
import Glibc
import TestSupport
import Testing

/// A run writes only into a ledger that nobody else can have laid out for it.
@Suite struct LedgerOwnerTests {
    /// A ledger with rows left, in which somebody could prepare something.
    private func interrupted(_ server: RecordingServer) throws -> Campaign {
        let campaign = try Campaign(rows: 50)
        let first = try campaign.send(to: server.endpoint, ["--limit", "10"])
        #expect(first.exitCode == 0, "\(first.errors)")
        return campaign
    }

    private func retried(_ campaign: Campaign, _ server: RecordingServer) throws -> Finished {
        try campaign.send(to: server.endpoint, ["--resume"])
    }

    @Test(arguments: [0o777, 0o720, 0o702] as [mode_t])
    func `A directory that others can write to is refused`(mode: mode_t) throws {
        let server = try RecordingServer()
        let campaign = try interrupted(server)
        #expect(chmod(campaign.ledger, mode) == 0)
        let refused = try retried(campaign, server)
        #expect(refused.exitCode == 2, "\(refused.errors)")
        #expect(refused.errors.contains("chmod go-w "), "\(refused.errors)")
        #expect(chmod(campaign.ledger, 0o755) == 0)
        #expect(try retried(campaign, server).exitCode == 0)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can give a directory away"))
    func `A directory of another user is refused`() throws {
        let server = try RecordingServer()
        let campaign = try interrupted(server)
        #expect(chown(campaign.ledger, 65_534, 65_534) == 0)
        let refused = try retried(campaign, server)
        #expect(refused.exitCode == 2, "\(refused.errors)")
        #expect(refused.errors.contains("belongs to user 65534"), "\(refused.errors)")
        // What it says may be read.
        #expect(try campaign.ledger("verify").exitCode == 0)
    }

    @Test(arguments: ["lock", ".manifest.json.new", ".manifest.copy.new", ".telemetry.json.new"])
    func `No file is written through a link that lies in a ledger`(name: String) throws {
        let server = try RecordingServer()
        let campaign = try interrupted(server)
        let precious = "\(campaign.directory.path)/precious"
        try "precious".write(toFile: precious, atomically: true, encoding: .utf8)
        let link = "\(campaign.ledger)/\(name)"
        unlink(link)
        #expect(symlink(precious, link) == 0)
        let finished = try retried(campaign, server)
        #expect(finished.exitCode == (name == "lock" ? 2 : 0), "\(finished.errors)")
        #expect(try String(contentsOfFile: precious, encoding: .utf8) == "precious")
        if name != "lock" { #expect(try campaign.ledger("verify").exitCode == 0) }
    }

    @Test(arguments: ["--summary", "--report", "--metrics"])
    func `No output is written through a link at a name that can be guessed`(option: String) throws
    {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 5)
        let folder = campaign.directory.path
        try "precious".write(toFile: "\(folder)/precious", atomically: true, encoding: .utf8)
        // The shell becomes the command, so that its number is known before.
        let finished = try Subprocess(
            "/bin/sh",
            [
                "-c", "ln -s \(folder)/precious \(folder)/out.html.$$.new; exec \"$0\" \"$@\"",
                try Broadside.path(),
            ] + campaign.arguments(to: server.endpoint, [option, "\(folder)/out.html"]),
            in: campaign.directory
        ).wait()
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(
            try String(contentsOfFile: "\(folder)/precious", encoding: .utf8) == "precious")
        #expect(try !String(contentsOfFile: "\(folder)/out.html", encoding: .utf8).isEmpty)
    }
}
