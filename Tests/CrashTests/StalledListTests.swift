import Foundation
import TestSupport
import Testing

/// The disk below the token list hangs in the middle of a run: nobody waits for it who has decided to end.
@Suite(.timeLimit(.minutes(60)))
struct StalledListTests {
    @Test(arguments: ["SIGINT", "SIGINT twice", "SIGTERM", "--deadline", "control stop"])
    func `A read of the list that never ends keeps no end waiting`(what: String) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 40_000)
        let directory = campaign.directory
        let library = try Shim.compile("hang-at-read", in: directory)
        let from = "\(directory.path)/hang"
        let more = what == "--deadline" ? ["--deadline", "8s"] : []
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "4000"] + more), in: directory,
            environment: [
                "LD_PRELOAD": library, "HANG_FROM": from, "HANG_FILE": campaign.list,
            ])
        defer { sending.send(signal: SIGKILL) }
        try campaign.waitForRows(sending)
        _ = try directory.write("", to: "hang")
        try sending.wait { (try? Data(contentsOf: URL(filePath: from)))?.isEmpty == false }

        switch what {
        case "SIGTERM": sending.send(signal: SIGTERM)
        case "SIGINT": sending.send(signal: SIGINT)
        case "SIGINT twice":
            sending.send(signal: SIGINT)
            usleep(300_000)
            sending.send(signal: SIGINT)
        case "control stop":
            let told = try Broadside.run(
                ["control", "--ledger", campaign.ledger, "stop"], in: directory)
            #expect(told.exitCode == 0, "\(told.errors)")
        default: break
        }
        let stopped = try sending.wait(limit: 60)
        #expect(stopped.exitCode == 3, "\(stopped.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)

        let resumed = try campaign.send(to: server.endpoint, ["--resume"] + Self.later(what))
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        let taken = try server.finish().map { $0[4] }
        #expect(taken.count == 40_000 && Set(taken).count == 40_000)
    }

    /// A deadline counts from a campaign's first start.
    private static func later(_ what: String) -> [String] {
        what == "--deadline" ? ["--deadline", "1h"] : []
    }
}
