import BroadsideTestSupport
import Foundation
import Testing

/// The disk below the claim on a ledger fails, or a limit is reached: that says nothing of other attempts.
@Suite(.timeLimit(.minutes(60)))
struct FailingClaimTests {
    private let server: LocalAPNs
    private let campaign: Campaign
    private let library: String

    init() throws {
        server = try LocalAPNs(["--latency", "400ms"])
        campaign = try Campaign(rows: 600)
        library = try Shim.compile("fail-files", in: campaign.directory)
    }

    /// The environment of a run in which calls fail once the file `fail` is there, or at once.
    private func failing(_ rule: String, atOnce: Bool = false) -> [String: String] {
        var environment = ["LD_PRELOAD": library, "FAIL_CALLS": rule]
        if !atOnce { environment["FAIL_FILE"] = "\(campaign.directory.path)/fail" }
        return environment
    }

    @Test(arguments: [EMFILE, EIO, ESTALE])
    func `A claim that cannot be read is exit 5 after the rows in flight are settled`(
        number: Int32
    ) throws {
        // A canary that passes is noted behind a look at the claim.
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                ["--canary", "20", "--max-streams", "10", "--connections", "1"]),
            in: campaign.directory, environment: failing("open \(number) .1"))
        defer { sending.stop() }
        try campaign.waitForRows(sending)
        try campaign.directory.write("", to: "fail")
        let ended = try sending.wait()
        #expect(ended.exitCode == 5, "\(ended.errors)")
        #expect(
            ended.errors.contains("it is not known whether its claim")
                && ended.errors.contains(String(cString: strerror(number))), "\(ended.errors)")
        #expect(!ended.errors.contains("a newer attempt"), "\(ended.errors)")
        let statistics = try campaign.statistics()
        #expect(statistics.in_doubt == 0 && statistics.unknown == 0, "\(statistics)")

        try FileManager.default.removeItem(atPath: "\(campaign.directory.path)/fail")
        let resumed = try campaign.send(to: server.endpoint, ["--resume", "--canary", "20"])
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        let sent = try server.finish().map { $0[4] }
        #expect(sent.count == 600 && Set(sent).count == 600)
    }

    @Test func `A claim that was removed counts as taken by a newer attempt`() throws {
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--canary", "20", "--rate", "100"]),
            in: campaign.directory)
        defer { sending.stop() }
        try campaign.waitForRows(sending)
        let directory = campaign.directory
        for name in try directory.names(in: directory.path) where name.hasPrefix(".broadside-") {
            try FileManager.default.removeItem(atPath: "\(directory.path)/\(name)")
        }
        let ended = try sending.wait()
        #expect(ended.exitCode == 7, "\(ended.errors)")
        #expect(ended.errors.contains("a newer attempt has taken over"))
    }

    @Test(arguments: [("open", EMFILE), ("fsync", EIO)])
    func `A claim that cannot be made at the end is a warning only`(
        call: String, number: Int32
    ) throws {
        let sent = try campaign.send(
            to: server.endpoint, ["--log", "json"],
            environment: failing("\(call) \(number) .2", atOnce: true))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(
            sent.errors.contains("warning: the ledger could not renew its claim at the end: "),
            "\(sent.errors)")
        #expect(sent.errors.contains(#""event":"ledger-copied""#))
        #expect(try campaign.ledger("verify").output.contains("600 accepted, finished"))
        // The same ledger continues.
        #expect(try campaign.send(to: server.endpoint, ["--resume"]).exitCode == 0)
        #expect(try server.finish().count == 600)
    }

    @Test func `A full disk at the start of a resume is exit 5 with the remedy`() throws {
        #expect(try campaign.send(to: server.endpoint, ["--limit", "100"]).exitCode == 0)
        let resumed = try campaign.send(
            to: server.endpoint, ["--resume"],
            environment: failing("open \(ENOSPC) .epoch.new", atOnce: true))
        #expect(resumed.exitCode == 5, "\(resumed.errors)")
        #expect(
            resumed.errors.contains("No space left on device: free some space on"),
            "\(resumed.errors)")
        #expect(!resumed.errors.contains("--resume"), "\(resumed.errors)")
        #expect(try campaign.send(to: server.endpoint, ["--resume"]).exitCode == 0)
        #expect(try server.finish().count == 600)
    }

    @Test(arguments: [".epoch.new", "segment-0001-00"])
    func `If a full disk ends a start that has begun the ledger, the message names --resume`(
        file: String
    ) throws {
        let stopped = try campaign.send(
            to: server.endpoint, environment: failing("open \(ENOSPC) \(file)", atOnce: true))
        #expect(stopped.exitCode == 5, "\(stopped.errors)")
        #expect(
            stopped.errors.contains("free some space on")
                && stopped.errors.contains("so the next start needs --resume"),
            "\(stopped.errors)")
        #expect(try campaign.send(to: server.endpoint).exitCode == 2)
        #expect(try campaign.send(to: server.endpoint, ["--resume"]).exitCode == 0)
        #expect(try server.finish().count == 600)
    }

    @Test(arguments: [EMFILE, EIO, ESTALE])
    func `A folder of claims that cannot be opened is exit 5`(
        number: Int32
    ) throws {
        #expect(try campaign.send(to: server.endpoint, ["--limit", "100"]).exitCode == 0)
        // The folder of the ledger, by its name in the ledger.
        let resumed = try campaign.send(
            to: server.endpoint, ["--resume"],
            environment: failing("open \(number) /ledger/..", atOnce: true))
        #expect(resumed.exitCode == 5, "\(resumed.errors)")
        #expect(try server.finish().count == 100)
    }
}
