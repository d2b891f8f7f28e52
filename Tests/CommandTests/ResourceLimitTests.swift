import Foundation
import TestSupport
import Testing

/// Limits of the system are raised where that is allowed, and named where it isn't.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ResourceLimitTests {
    /// Runs a send under a shell that sets limits first. Locked memory is counted only where
    /// CAP_IPC_LOCK is missing, which root can do without.
    private func send(
        _ limits: String, isPrivileged: Bool = true, _ campaign: Campaign, to endpoint: String,
        _ more: [String]
    ) throws -> Finished {
        let drop = !isPrivileged && geteuid() == 0
        let command = (drop ? "setpriv --bounding-set -ipc_lock " : "") + "\"$0\" \"$@\""
        return try Subprocess(
            "bash",
            ["-c", "\(limits) && exec \(command)", Broadside.path()]
                + campaign.arguments(to: endpoint, more), in: campaign.directory
        ).wait(limit: 60)
    }

    @Test("Too few files for the connections asked for is one line, before anything is begun")
    func tooFew() throws {
        let campaign = try Campaign(rows: 10)
        let finished = try send(
            "ulimit -n 256", campaign, to: "127.0.0.1:1", ["--connections", "1000"])
        #expect(finished.exitCode == 2)
        #expect(finished.errorLines.count == 1)
        #expect(finished.errors.contains("--connections 1000 needs 1036 open files"))
        #expect(finished.errors.contains("no more than 256"))
        #expect(finished.errors.contains("ulimit -n 1036"))
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
    }

    @Test("Low limits that may be raised are raised")
    func raised() throws {
        let server = try Nghttpd(isVerbose: false)
        let campaign = try Campaign(rows: 300)
        let finished = try send(
            "ulimit -Sn 64 && ulimit -Sl 64", isPrivileged: false, campaign, to: server.endpoint,
            ["--connections", "60", "--summary", "-"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(try SendSummary(json: finished.output).accepted == 300)
    }

    @Test("Too little lockable memory for all reactors is one line, before anything is begun")
    func tooLittleMemory() throws {
        let campaign = try Campaign(rows: 10)
        let finished = try send(
            "ulimit -l 400", isPrivileged: false, campaign, to: "127.0.0.1:1",
            ["--connections", "8", "--reactors", "8"])
        #expect(finished.exitCode == 1)
        #expect(finished.errorLines.count == 1)
        #expect(finished.errors.contains("raise the locked-memory limit (ulimit -l)"))
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
    }
}
