import BroadsideTestSupport
import Foundation
import Testing

/// Copies of a ledger that are made while its run is sending: they are from before what it reserved later.
@Suite(.timeLimit(.minutes(60)))
struct RunningCopyTests {
    /// State of the original after the copy was made.
    enum Original: CaseIterable {
        case ended, killed, runs
    }

    private static let part = ["--part", "1/2", "--campaign-id", "0123456789abcdef"]
    private static let cases: [(Original, [String])] = TestSize.cases(
        Original.allCases.flatMap { [($0, []), ($0, part)] },
        otherwise: [(.ended, []), (.killed, part), (.runs, []), (.runs, part)])

    private let files = FileManager.default
    private let server: LocalAPNs
    private let campaign: Campaign
    private let copy: String

    init() throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: 12_000)
        copy = "\(campaign.directory.path)/copy"
    }

    private func start(_ more: [String] = []) throws -> Subprocess {
        let run = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "500"] + more),
            in: campaign.directory)
        // A copy from before the first segment is damaged, not old.
        try campaign.waitForRows(run)
        return run
    }

    private func accepted() throws -> Int { try campaign.statistics().accepted }

    /// Waits for more than so many rows; at this rate a look twice a second is enough.
    private func wait(_ run: Subprocess, for rows: Int) throws {
        try run.wait {
            usleep(500_000)
            return try accepted() > rows
        }
    }

    /// Makes the copy, by a command that copies sockets, and waits until more rows are sent than a
    /// reservation has.
    private func copyLedger(beside run: Subprocess) throws {
        // Once more if a file that is replaced was gone meanwhile.
        try run.wait {
            try? files.removeItem(atPath: copy)
            return
                (try? Subprocess.run(
                    "/bin/cp", ["-a", campaign.ledger, copy], in: campaign.directory)) != nil
        }
        let before = try accepted()
        try wait(run, for: before + 2500)
    }

    private func resume(_ ledger: String, _ more: [String] = []) throws -> Finished {
        try campaign.send(to: server.endpoint, ["--ledger", ledger, "--resume"] + more)
    }

    private func refuseCopy(_ more: [String] = []) throws {
        for _ in 0..<2 {
            let refused = try resume(copy, more)
            #expect(refused.exitCode == 7, "\(refused.errors)")
            #expect(refused.errors.contains("is an old copy"), "\(refused.errors)")
            #expect(refused.errorLines.count == 1, "\(refused.errors)")
        }
    }

    @Test(arguments: cases)
    func `A copy of a running ledger is refused, and the original continues`(
        original: Original, part: [String]
    ) throws {
        let run = try start(part)
        defer { run.send(signal: SIGKILL) }
        try copyLedger(beside: run)
        if original == .killed { run.send(signal: SIGKILL) }
        if original == .ended { run.send(signal: SIGTERM) }
        if original != .runs { #expect(try run.wait().exitCode == (original == .ended ? 3 : -9)) }
        try refuseCopy(part)
        if original == .runs {
            run.send(signal: SIGTERM)
            #expect(try run.wait().exitCode == 3)
        }
        let resumed = try resume(campaign.ledger, part)
        #expect([0, 6].contains(resumed.exitCode), "\(resumed.errors)")
        let sent = try server.finish().map { $0[4] }
        #expect(Set(sent).count == sent.count && sent.count > 2500)
    }

    /// The claim knows what was on disk: what is wrong before that place was not lost with the power.
    @Test func `A wrong bit in synced data is damage`() throws {
        let run = try start()
        defer { run.send(signal: SIGKILL) }
        try wait(run, for: 500)
        run.send(signal: SIGKILL)
        #expect(try run.wait().exitCode == -9)
        let name = try #require(
            files.contentsOfDirectory(atPath: campaign.directory.path).first {
                $0.hasPrefix(".broadside-")
            })
        let claim = try Data(
            contentsOf: URL(fileURLWithPath: "\(campaign.directory.path)/\(name)"))
        let durable = (0..<8).reduce(0) { $0 | Int(claim[8192 + $1]) << (8 * $1) }
        let segment = URL(fileURLWithPath: "\(campaign.ledger)/segment-0001-00")
        // Behind it nothing is left that tells of it.
        var bytes = try Data(contentsOf: segment).prefix(durable)
        #expect(bytes.count == durable && durable > 200)
        bytes[durable - 20] ^= 4
        try bytes.write(to: segment)
        for refused in [
            try campaign.ledger("verify"), try resume(campaign.ledger), try resume(campaign.ledger),
        ] {
            #expect(refused.exitCode == 5, "\(refused.output) \(refused.errors)")
            #expect(refused.errors.contains("a block is damaged: broadside ledger repair"))
        }
        let sent = try server.finish().map { $0[4] }
        #expect(Set(sent).count == sent.count && sent.count > 500)
    }

    @Test func `A copy of a running ledger in the original's place is refused`() throws {
        let run = try start()
        defer { run.send(signal: SIGKILL) }
        try copyLedger(beside: run)
        run.send(signal: SIGTERM)
        #expect(try run.wait().exitCode == 3)
        try files.removeItem(atPath: campaign.ledger)
        try files.moveItem(atPath: copy, toPath: campaign.ledger)
        #expect(try resume(campaign.ledger).exitCode == 7)
    }

    @Test func `A repaired copy of a running ledger can be resumed on request`() throws {
        let run = try start()
        defer { run.send(signal: SIGKILL) }
        try copyLedger(beside: run)
        run.send(signal: SIGKILL)
        _ = try run.wait()
        try files.removeItem(atPath: campaign.ledger)
        let repaired = "\(copy)-repaired"
        let refused = try resume(copy)
        #expect(refused.exitCode == 7, "\(refused.errors)")
        #expect(refused.errors.contains("--output \(repaired) "), "\(refused.errors)")
        let made = try Broadside.run(
            ["ledger", "repair", "--ledger", copy, "--output", repaired], in: campaign.directory)
        #expect(made.exitCode == 0, "\(made.errors)")
        let resumed = try resume(repaired)
        #expect([0, 6].contains(resumed.exitCode), "\(resumed.errors)")
        #expect(!files.fileExists(atPath: "\(repaired)/repaired"))
        #expect(try resume(copy).exitCode == 7)
    }
}
