import BroadsideTestSupport
import Foundation
import Testing

/// A run whose ledger a newer attempt takes over while it still runs or is stopped, because its lock was
/// lost: it sends no row of a reservation that the newer one may not know.
@Suite(.timeLimit(.minutes(60)))
struct TakenOverTests {
    private let server: LocalAPNs
    private let campaign: Campaign

    init() throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: 12_000)
    }

    private func start(rate: Int, _ more: [String]) throws -> Subprocess {
        try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "\(rate)"] + more),
            in: campaign.directory)
    }

    @Test(arguments: [true, false], [[], ["--part", "1/2", "--campaign-id", "0123456789abcdef"]])
    func `Of two runs of one ledger the older one ends, and no row is sent twice`(
        isStopped: Bool, part: [String]
    ) throws {
        // It has 40 s of work, so that it does not end before the newer one begins.
        let older = try start(rate: 300, part + ["--reactors", "2", "--connections", "4"])
        defer { older.send(signal: SIGKILL) }
        try older.wait { (try? campaign.statistics().accepted) ?? 0 > 100 }
        if isStopped { older.send(signal: SIGSTOP) }
        try FileManager.default.removeItem(atPath: "\(campaign.ledger)/lock")
        let newer = try start(rate: 3_000, part + ["--resume"])
        defer { newer.send(signal: SIGKILL) }
        // The newer one's first reservation ends the older one in any case.
        if isStopped {
            #expect([0, 6].contains(try newer.wait().exitCode))
            older.send(signal: SIGCONT)
        }
        let ended = try older.wait()
        #expect(ended.exitCode == 7, "\(ended.errors)")
        #expect(
            ended.errorLines.last?.contains("a newer attempt has taken over this ledger") == true,
            "\(ended.errors)")
        let finished = try newer.wait()
        #expect([0, 6].contains(finished.exitCode), "\(finished.errors)")
        // What the older one did at its end has changed nothing.
        let verified = try campaign.ledger("verify")
        #expect(verified.output.contains("finished"), "\(verified.errors)")
        let statistics = try campaign.statistics()
        #expect(statistics.accepted + statistics.unknown == 12_000, "\(statistics)")
        let sent = try server.finish().map { $0[4] }
        #expect(Set(sent).count == sent.count)
        #expect(sent.count >= statistics.accepted)
        let accepted = Set(try campaign.export(["--state", "accepted"]).map(\.token))
        #expect(accepted.isSubset(of: Set(sent)))
    }
}
