import Foundation
import TestSupport
import Testing

/// Limits of the system are raised where that is allowed, and named where it isn't.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ResourceLimitTests {
    /// Runs a send under a shell that sets limits first.
    private func send(
        _ limits: String, _ campaign: Campaign, to endpoint: String, _ more: [String]
    ) throws -> Finished {
        try Subprocess(
            "bash",
            ["-c", "\(limits) && exec \"$0\" \"$@\"", Broadside.path()]
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

    @Test("A low limit that may be raised is raised; no memory need be lockable")
    func raised() throws {
        let server = try Nghttpd(isVerbose: false)
        let campaign = try Campaign(rows: 300)
        let finished = try send(
            "ulimit -Sn 64 && ulimit -l 0", campaign, to: server.endpoint,
            ["--connections", "60", "--summary", "-"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(try SendSummary(json: finished.output).accepted == 300)
    }
}
