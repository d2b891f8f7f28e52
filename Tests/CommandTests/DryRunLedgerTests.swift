import BroadsideTestSupport
import Foundation
import Testing

/// `--dry-run` says of the ledger what the run would say, with the same exit code, and touches nothing.
@Suite(.timeLimit(.minutes(60)))
struct DryRunLedgerTests {
    private let server: LocalAPNs
    private let campaign: Campaign
    private var path: String { campaign.directory.path }

    init() throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: 20)
    }

    /// All files, but for what the commands that were run said.
    private var files: [String] {
        let all = FileManager.default.subpaths(atPath: path) ?? []
        return all.filter { !$0.hasSuffix("-stdout") && !$0.hasSuffix("-stderr") }.sorted()
    }

    /// Runs it for show, then in earnest.
    private func expectSame(_ code: Int32, _ more: [String], _ says: String) throws {
        let before = files
        for dry in [["--dry-run"], []] {
            let done = try campaign.send(to: server.endpoint, more + dry)
            #expect(done.exitCode == code, "\(more + dry): \(done.errors)")
            #expect(says.isEmpty || done.errors.contains(says), "\(more + dry): \(done.errors)")
            if !dry.isEmpty { #expect(files == before) }
        }
    }

    @Test
    func `A dry run of a merged ledger, a copy or another campaign's ledger refuses to resume`()
        throws
    {
        for part in ["1", "2"] {
            let sent = try campaign.send(
                to: server.endpoint,
                ["--shard", "\(part)/2", "--ledger", "\(path)/shard-\(part)"])
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        let merged = "\(path)/merged"
        let done = try Broadside.run(
            ["ledger", "merge", "--output", merged, "\(path)/shard-1", "\(path)/shard-2"],
            in: campaign.directory)
        #expect(done.exitCode == 0, "\(done.errors)")
        try expectSame(2, ["--ledger", merged, "--resume"], "was merged from several")
        try expectSame(
            2, ["--ledger", "\(merged)/shard-0001", "--resume", "--shard", "1/2"],
            "is a copy in a merged ledger")
        try expectSame(
            2, ["--ledger", "\(path)/shard-1", "--resume"], "belongs to another campaign")
        try expectSame(2, ["--ledger", "\(path)/shard-1"], "exists: name a new directory")
        try expectSame(
            0, ["--ledger", "\(path)/shard-1", "--resume", "--shard", "1/2"], "")
        #expect(try server.finish().count == 20)
    }

    @Test func `A dry run of another directory or of a ledger without manifest refuses to resume`()
        throws
    {
        try FileManager.default.createDirectory(
            atPath: "\(path)/mine", withIntermediateDirectories: false)
        try campaign.directory.write("text", to: "mine/notes.txt")
        try expectSame(
            2, ["--ledger", "\(path)/mine", "--resume"], "is neither empty nor a ledger")
        try expectSame(2, ["--must-resume"], "contains no ledger")
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        try FileManager.default.removeItem(atPath: "\(campaign.ledger)/manifest.json")
        try expectSame(5, ["--resume"], "its manifest.json is missing")
        #expect(try server.finish().count == 20)
    }
}
