import BroadsideTestSupport
import Foundation
import Testing

/// Users and containers whose number of threads is limited: a sentence and exit 1 before a ledger is begun,
/// or a whole run.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ThreadLimitTests {
    /// Somebody who has no other process, and whom limits bind: they do not bind root.
    private static let user = 61_234

    @Test(
        .enabled(if: geteuid() == 0, "another user's processes are started by root"),
        arguments: [false, true])
    func `With any limit of threads a run ends in one sentence or sends everything`(withMore: Bool)
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 300)
        let path = campaign.directory.path
        let files = [campaign.list, campaign.payloadFile, "\(path)/key.p8", "\(path)/ca.pem"]
        for (from, to) in zip(
            [campaign.authority.authKey, campaign.authority.caFile], files.suffix(2))
        {
            try FileManager.default.copyItem(atPath: from, toPath: to)
        }
        for file in [path] + files {
            #expect(chown(file, uid_t(Self.user), gid_t(Self.user)) == 0)
        }
        var codes: [Int32] = []
        for limit in 1...14 {
            let ledger = "\(path)/ledger-\(limit)"
            var options = ["--auth-key", files[2], "--ca-file", files[3], "--ledger", ledger]
            if withMore {
                options += [
                    "--reactors", "2", "--connections", "4", "--metrics", "127.0.0.1:0",
                    "--control", "\(path)/control", "--report", "\(path)/page.html", "--log",
                    "json",
                ]
            }
            let sent = try Subprocess(
                "setpriv",
                [
                    "--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups", "prlimit",
                    "--nproc=\(limit):\(limit)", Broadside.path(),
                ] + campaign.arguments(to: server.endpoint, options), in: campaign.directory
            ).wait(limit: 120)
            codes.append(sent.exitCode)
            if sent.exitCode == 0 { continue }
            #expect(sent.exitCode == 1, "\(limit): \(sent.errors)")
            let says = "a thread can't be started: Resource temporarily unavailable: raise"
            #expect(sent.errorLines.count == 1 && sent.errors.contains(says), "\(sent.errors)")
            #expect(!FileManager.default.fileExists(atPath: ledger), "\(limit)")
        }
        // Too few, then enough, for each limit above as well.
        let enough = try #require(codes.firstIndex(of: 0))
        #expect(enough > 2 && codes[enough...].allSatisfy { $0 == 0 }, "\(codes)")
        #expect(try server.finish().count == 300 * (codes.count - enough))
    }

    @Test(
        .enabled(if: geteuid() == 0, "another user's processes are started by root"),
        arguments: [1, 3])
    func `A simulator with too few threads says so`(limit: Int) throws {
        let directory = try TemporaryDirectory()
        #expect(chown(directory.path, uid_t(Self.user), gid_t(Self.user)) == 0)
        let ended = try Subprocess(
            "setpriv",
            [
                "--reuid=\(Self.user)", "--regid=\(Self.user)", "--clear-groups", "prlimit",
                "--nproc=\(limit):\(limit)", Broadside.path(), "simulate", "--listen",
                "127.0.0.1:0", "--state", "\(directory.path)/state", "--threads", "4", "--control",
                "\(directory.path)/control",
            ], in: directory
        ).wait(limit: 60)
        #expect(ended.exitCode == 1 && ended.errorLines.count == 1, "\(ended.errors)")
        #expect(ended.errors.contains("a thread can't be started: Resource temporarily"))
        #expect(ended.errors.contains("or use fewer --threads"))
        #expect(!FileManager.default.fileExists(atPath: "\(directory.path)/control"))
    }
}
