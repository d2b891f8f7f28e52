import BroadsideTestSupport
import Foundation
import Testing

/// Wall clocks that were never set, or that jump while a run sends.
@Suite(.timeLimit(.minutes(60)))
struct WrongClockTests {
    private let server: LocalAPNs
    private let campaign: Campaign

    init() throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: 400)
    }

    @Test(arguments: ["-60y", "-90y", "-45y"])
    func `A clock that was never set ends a run before it begins`(clock: String) throws {
        let environment = try FakeTime.fixed(clock)
        for more in [[], ["--dry-run"]] {
            let refused = try campaign.send(to: server.endpoint, more, environment: environment)
            #expect(refused.exitCode == 5, "\(refused.errors)")
            #expect(refused.errors.contains("clock was never set"), "\(refused.errors)")
            #expect(refused.errorLines.count == 1)
        }
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        // What needs no clock works.
        for command in [
            ["ledger", "stats", "--ledger", campaign.ledger],
            ["report", "--ledger", campaign.ledger, "--output", "\(campaign.directory.path)/page"],
            ["tokens", "check", "--tokens", campaign.list], ["status", campaign.ledger],
        ] {
            let done = try Broadside.run(
                command, in: campaign.directory, environment: environment)
            #expect(done.exitCode == 0, "\(command): \(done.errors)")
        }
        #expect(try server.finish().count == 400)
    }

    @Test func `A simulator runs with a clock that was never set`() throws {
        #expect(try LocalAPNs(clock: "-60y").finish().isEmpty)
    }

    /// The deadline counts on the monotonic clock. APNs' clock stays right: a token that is dated by the jumped one would be refused.
    @Test(arguments: ["+3h", "+2d", "-3h", "-60y", "+40m", "-40m"])
    func `A clock that jumps during a run does not end it`(jump: String) throws {
        let offset = try campaign.directory.write("+0", to: "offset")
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--rate", "200", "--log", "json", "--deadline", "1h", "--report",
                    "\(campaign.directory.path)/page.html",
                ]), in: campaign.directory, environment: FakeTime.following(offset))
        defer { sending.stop() }
        try campaign.waitForRows(sending)
        // The file is replaced, because the process may read it at any time.
        try jump.write(toFile: offset, atomically: true, encoding: .utf8)
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try campaign.ledger("verify").output.contains("400 accepted, finished"))
        let statuses = try server.finish().map { $0[5] }
        #expect(statuses.count == 400 && statuses.allSatisfy { $0 == "200" })
    }
}
