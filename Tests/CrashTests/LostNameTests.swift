import BroadsideTestSupport
import Foundation
import Testing

/// A disk that can't sync a folder, so that a name in it may be lost in a power cut: `Tests/Shims/fail-calls.c`.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct LostNameTests {
    private let server: LocalAPNs
    private let campaign: Campaign
    private let environment: [String: String]

    init() throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: 40)
        let path = campaign.directory.path
        let library = try Shim.compile("fail-calls", in: campaign.directory)
        environment = ["LD_PRELOAD": library, "FAIL_FILE": "\(path)/fail"]
    }

    /// What becomes of syncing a folder: `folder` fails, `odd` is a file system that syncs none.
    private func fail(_ word: String) throws {
        try campaign.directory.write(word, to: "fail")
    }

    private func send(_ more: [String] = []) throws -> Finished {
        try campaign.send(to: server.endpoint, more, environment: environment)
    }

    @Test func `A ledger whose directory entry cannot be synced is not begun`() throws {
        try fail("folder")
        for more in [[], ["--resume-or-begin"]] {
            let failed = try send(more)
            #expect(failed.exitCode == 5)
            // The folder that the ledger is in, not the ledger's own.
            #expect(
                failed.errors.contains(
                    "the folder of \(campaign.ledger) can't be synced: Input/output error"),
                "\(failed.errors)")
            #expect(failed.errorLines.count == 1, "\(failed.errors)")
            #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        }
        try fail("")
        #expect(try send(["--limit", "10"]).exitCode == 0)
        try fail("folder")
        #expect(try send(["--resume"]).exitCode == 5)
        // A file system that has nothing to sync there.
        try fail("odd")
        #expect(try send(["--resume"]).exitCode == 0)
        #expect(try server.finish().count == 40)
    }

    @Test func `An output whose directory entry cannot be synced is exit 5`() throws {
        #expect(try send().exitCode == 0)
        let output = "\(campaign.directory.path)/output"
        let commands = [
            ["ledger", "export", "--ledger", campaign.ledger],
            ["prune", "--ledger", campaign.ledger, "--tokens", campaign.list],
            ["tokens", "dedupe", "--tokens", campaign.list],
            ["report", "--ledger", campaign.ledger],
        ]
        for command in commands {
            for (word, code) in [("folder", Int32(5)), ("odd", 0), ("", 0)] {
                try fail(word)
                let done = try Broadside.run(
                    command + ["--output", output], in: campaign.directory,
                    environment: environment)
                #expect(done.exitCode == code, "\(command): \(done.errors)")
                guard code == 5 else { continue }
                #expect(
                    done.errors.contains("\(output) is written, but its folder can't be synced: "),
                    "\(done.errors)")
            }
        }
    }
}
