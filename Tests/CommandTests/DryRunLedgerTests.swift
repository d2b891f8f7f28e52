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

    @Test(arguments: [
        ("report", "nowhere/page.html", "No such file or directory"),
        ("summary", "nowhere/summary.json", "No such file or directory"),
        ("trace-frames", "nowhere/frames", "No such file or directory"),
        ("metrics", "nowhere/metrics.prom", "No such file or directory"),
        ("metrics", ":99999", "99999 is not a port"),
        ("metrics", "foo:bar:baz", "write ./foo:bar:baz for a file of that name"),
        ("report", "-", "standard output is not supported"),
        ("trace-frames", "-", "standard output is not supported"),
        ("metrics", "-", "standard output is not supported"),
        ("control", "-", "standard output is not supported"),
        ("control", "nowhere/socket", "No such file or directory"),
        ("control", String(repeating: "a", count: 120), "is longer than 107 bytes"),
        ("ledger", "nowhere/ledger", "No such file or directory"),
    ])
    func `A dry run refuses an output that the run cannot open, and writes nothing`(
        option: String, value: String, says: String
    ) throws {
        try expectSame(2, ["--\(option)", value], "--\(option) \(value)")
        try expectSame(2, ["--\(option)", value], says)
        #expect(try server.finish().isEmpty)
    }

    @Test func `A dry run of a run that continues counts only what is left to send`() throws {
        let list = try Campaign(rows: 1_200)
        func send(_ more: [String]) throws -> Finished {
            try list.send(to: server.endpoint, more)
        }
        let fresh = try send(["--dry-run"])
        #expect(fresh.output.contains("to send      1,200\n"), "\(fresh.output)")
        #expect(!fresh.output.contains("settled"), "\(fresh.output)")
        #expect(try send(["--limit", "200"]).exitCode == 0)
        let left = try send(["--resume", "--dry-run"])
        #expect(left.exitCode == 0, "\(left.errors)")
        for words in [
            "rows         1,200\n", "to send      1,000\n",
            "settled      200 by earlier runs, and not sent again\n", "invalid      0\n",
        ] { #expect(left.output.contains(words), "\(words): \(left.output)") }
        let limited = try send(["--resume", "--limit", "250", "--dry-run"])
        #expect(limited.output.contains("to send      50\n"), "\(limited.output)")
        #expect(try send(["--resume"]).exitCode == 0)
        let none = try send(["--resume", "--dry-run"])
        #expect(
            none.output.contains("to send      0\n") && none.output.contains("settled      1,200 "),
            "\(none.output)")
        #expect(none.errors.isEmpty, "\(none.errors)")
        // Another list of the same size is refused, as by the run.
        let text = try String(contentsOfFile: list.list, encoding: .utf8)
        try text.split(separator: "\n").reversed().map { "\($0)\n" }.joined()
            .write(toFile: list.list, atomically: true, encoding: .utf8)
        for more in [["--dry-run"], []] {
            let other = try send(["--resume"] + more)
            #expect(other.exitCode == 2, "\(other.errors)")
            #expect(
                other.errors.contains("is not the list with which this campaign began")
                    || other.errors.contains("the list's content differs"), "\(other.errors)")
        }
        #expect(try server.finish().count == 1_200)
    }

    @Test
    func `A dry run of a run that continues shows the waves without the rows that are settled`()
        throws
    {
        let list = try Campaign(rows: 30)
        let tokens = try String(contentsOfFile: list.list, encoding: .utf8)
        let rows = tokens.split(separator: "\n").enumerated().map {
            "\($0.element),\(TwoWaves.zone($0.offset))\n"
        }
        let path = try list.directory.write("token,tz\n" + rows.joined(), to: "zones.csv")
        let options = ["--tokens", path] + TwoWaves().options
        let sending = try Broadside.start(
            list.arguments(to: server.endpoint, options), in: list.directory)
        try TwoWaves.wait(sending, of: list)
        sending.send(signal: SIGTERM)
        let first = try sending.wait()
        #expect(first.exitCode == 3, "\(first.errors)")
        let later = (0..<30).count(where: TwoWaves.isLater)
        try #require(try list.statistics().accepted == 30 - later)
        let dry = try list.send(to: server.endpoint, options + ["--resume", "--dry-run"])
        #expect(dry.exitCode == 0, "\(dry.errors)")
        #expect(
            dry.output.contains(": \(later) rows in Asia/Tokyo\n")
                && !dry.output.contains("in UTC") && dry.output.contains("to send      \(later)\n")
                && dry.output.contains("settled      \(30 - later) by"), "\(dry.output)")
    }

    @Test
    func `Another payload for a ledger is refused with the number of devices that have the first`()
        throws
    {
        let list = try Campaign(rows: 7)
        #expect(try list.send(to: server.endpoint).exitCode == 0)
        let other = try list.directory.write(#"{"aps":{"alert":"Other"}}"#, to: "other.json")
        for more in [[], ["--dry-run"]] {
            let refused = try list.send(
                to: server.endpoint, ["--resume", "--payload", other] + more)
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(
                refused.errors.contains(
                    "goes to its whole list, and 7 devices have or may have got this ledger's campaign"
                ),
                "\(refused.errors)")
        }
    }

    @Test func `A dry run says how many rows stay failed, unknown or in doubt`() throws {
        let resetting = try RecordingServer("reset")
        let list = try Campaign(rows: 30)
        #expect(try list.send(to: resetting.endpoint).exitCode == 6)
        let summary = try list.statistics()
        let open = summary.unknown + summary.failed
        try #require(open > 0)
        for (more, count) in [([], 0), (["--retry", "failed,unknown"], open)] {
            let dry = try list.send(to: resetting.endpoint, ["--resume", "--dry-run"] + more)
            #expect(dry.exitCode == 0, "\(dry.errors)")
            #expect(dry.output.contains("to send      \(count)\n"), "\(dry.output)")
        }
    }

    @Test func `A dry run whose rows are all skipped is warned about, as the run is`() throws {
        let list = try Campaign(rows: 1)
        let device = String(repeating: "ab", count: 32)
        try list.directory.write("token,country\n\(device),FR\n", to: "countries.csv")
        for dry in [["--dry-run"], []] {
            let done = try list.send(
                to: server.endpoint,
                [
                    "--tokens", "\(list.directory.path)/countries.csv", "--where", "country != FR",
                ] + dry)
            #expect(done.exitCode == 0, "\(done.errors)")
            #expect(
                done.errors.contains(
                    "warning: no row was left to send: 1 of the 1 rows are skipped (1 Filtered)"),
                "\(done.errors)")
        }
        let some = try list.send(
            to: server.endpoint,
            [
                "--tokens", "\(list.directory.path)/countries.csv", "--where", "country = FR",
                "--dry-run", "--ledger", "\(list.directory.path)/other",
            ])
        #expect(some.errors.isEmpty, "\(some.errors)")
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
