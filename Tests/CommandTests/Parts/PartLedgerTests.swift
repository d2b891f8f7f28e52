import BroadsideTestSupport
import Foundation
import Testing

/// Ledgers of a campaign's parts that were lost, copied, moved or mixed up: no row is sent twice.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct PartLedgerTests {
    private static let id = "0123456789abcdef"
    private let files = FileManager.default
    private let server: LocalAPNs
    private let campaign: Campaign
    private let lists: [String]
    private let tokens: [DeviceTokens]

    /// Two parts, of each of which twenty rows are sent.
    init() throws {
        server = try LocalAPNs()
        campaign = try Campaign(rows: 1)
        tokens = [40, 60].map { DeviceTokens(count: $0) }
        lists = try tokens.enumerated().map { [campaign] part, tokens in
            try campaign.directory.write(tokens.list(), to: "list-\(part + 1).txt")
        }
        for part in 1...2 { try send(part, ["--limit", "20"]) }
    }

    private func path(_ name: String) -> String { "\(campaign.directory.path)/\(name)" }

    @discardableResult
    private func send(
        _ part: Int, ledger: String? = nil, exitCode: Int32 = 0,
        _ more: [String] = ["--resume-or-begin"]
    ) throws -> Finished {
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--part", "\(part)/2", "--campaign-id", Self.id, "--tokens", lists[part - 1],
                "--ledger", path(ledger ?? "ledger-\(part)"),
            ] + more)
        #expect(sent.exitCode == exitCode, "\(sent.errors)")
        if exitCode != 0 { #expect(sent.errorLines.count == 1, "\(sent.errors)") }
        return sent
    }

    /// Every row of both parts was sent, and none twice.
    private func expectExact() throws {
        let all = tokens.flatMap { tokens in (0..<tokens.count).map { tokens.token($0) } }
        #expect(try server.finish().map { $0[4] }.sorted() == all.sorted())
    }

    @Test func `A part whose ledger is lost does not begin again`() throws {
        try files.moveItem(atPath: path("ledger-1"), toPath: path("away"))
        for more in [[], ["--resume-or-begin"]] {
            let refused = try send(1, exitCode: 7, more)
            #expect(
                refused.errors.contains("the ledger of part 1/2 of campaign \(Self.id) was lost"),
                "\(refused.errors)")
            #expect(refused.errors.contains("/ledger-1 was started"), "\(refused.errors)")
            #expect(!files.fileExists(atPath: path("ledger-1")))
        }
        // Beside it, a second ledger of the same part.
        try send(1, ledger: "second", exitCode: 7, [])
        // An empty directory is not a ledger either.
        try files.createDirectory(atPath: path("ledger-1"), withIntermediateDirectories: false)
        try send(1, exitCode: 7)
        try files.removeItem(atPath: path("ledger-1"))
        for more in ["--resume", "--must-resume"] {
            let none = try send(1, exitCode: 2, [more])
            #expect(none.errors.contains("contains no ledger"), "\(none.errors)")
        }
        try files.moveItem(atPath: path("away"), toPath: path("ledger-1"))
        for part in 1...2 { try send(part) }
        try expectExact()
    }

    @Test func `A part's ledger without its claim is refused with what to do`() throws {
        let place = path("place")
        try files.createDirectory(atPath: place, withIntermediateDirectories: false)
        let claim = ".broadside-\(Self.id)-1-2.2"
        try files.moveItem(atPath: path(claim), toPath: "\(place)/\(claim)")
        let refused = try send(1, exitCode: 7)
        #expect(refused.errors.contains("\(claim) beside it, or remove "))
        try files.moveItem(atPath: "\(place)/\(claim)", toPath: path(claim))
        for part in 1...2 { try send(part) }
        try expectExact()
    }

    @Test func `A part's ledger may be moved, and a copy left behind is refused`() throws {
        let place = path("place")
        try files.createDirectory(atPath: place, withIntermediateDirectories: false)
        try files.copyItem(atPath: path("ledger-1"), toPath: "\(place)/ledger")
        try send(1, ledger: "place/ledger", ["--resume", "--limit", "30"])
        try send(1, exitCode: 7)
        try files.removeItem(atPath: path("ledger-1"))
        let lost = try send(1, exitCode: 7)
        #expect(lost.errors.contains("/place/ledger was started"), "\(lost.errors)")
        try send(1, ledger: "place/ledger")
        try send(2)
        try expectExact()
    }

    @Test func `Swapped ledgers of parts are refused and send nothing`() throws {
        for (from, to) in [("1", "3"), ("2", "1"), ("3", "2")] {
            try files.moveItem(atPath: path("ledger-\(from)"), toPath: path("ledger-\(to)"))
        }
        for part in 1...2 { try send(part, exitCode: 2) }
        for part in 1...2 { try send(part, ledger: "ledger-\(3 - part)") }
        try expectExact()
    }

    @Test func `A repaired ledger replaces the damaged one`() throws {
        let repaired = try Broadside.run(
            ["ledger", "repair", "--ledger", path("ledger-1"), "--output", path("repaired")],
            in: campaign.directory)
        #expect(repaired.exitCode == 0, "\(repaired.errors)")
        try send(1, ledger: "repaired")
        try send(1, exitCode: 7)
        try send(2)
        try expectExact()
    }

    @Test func `Another number of parts is refused, sends nothing and leaves no ledger`() throws {
        let refused = try campaign.send(
            to: server.endpoint,
            [
                "--part", "2/3", "--campaign-id", Self.id, "--tokens", lists[1], "--ledger",
                path("third"),
            ])
        #expect(refused.exitCode == 2 && refused.errorLines.count == 1, "\(refused.errors)")
        let cause = "--part 2/3: the campaign of --campaign-id was begun in 2 parts"
        #expect(refused.errors.contains(cause), "\(refused.errors)")
        let advice = "write K/2. If no row of the campaign was sent, remove that file\n"
        #expect(refused.errors.hasSuffix(advice), "\(refused.errors)")
        #expect(!files.fileExists(atPath: path("third")))
        for part in 1...2 { try send(part) }
        try expectExact()
    }

    // MARK: Copies in a merged ledger

    private func ledger(_ words: [String]) throws -> Finished {
        let done = try Broadside.run(["ledger"] + words, in: campaign.directory)
        #expect(done.exitCode == 0, "\(done.errors)")
        return done
    }

    /// Ends a run of the first part before its last row, and merges both parts.
    private func mergeUnfinished() throws -> String {
        let run = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--part", "1/2", "--campaign-id", Self.id, "--tokens", lists[0], "--ledger",
                    path("ledger-1"), "--resume", "--rate", "1",
                ]), in: campaign.directory)
        let stats = ["ledger", "stats", "--ledger", path("ledger-1")]
        try run.wait {
            // More than were sent before: the run sends, and can be asked to stop.
            let words = try Broadside.run(stats, in: campaign.directory).output
                .split(whereSeparator: \.isWhitespace)
            guard let place = words.firstIndex(of: "accepted") else { return false }
            return Int(words[place + 1]) ?? 0 > 20
        }
        run.send(signal: SIGINT)
        #expect(try run.wait(limit: 60).exitCode == 3)
        return try ledger(
            ["merge", "--output", path("merged"), path("ledger-1"), path("ledger-2")]
        ).output
    }

    @Test func `No run sends from a copy in a merged ledger, and each message names the original`()
        throws
    {
        let merged = try mergeUnfinished()
        #expect(
            merged.contains("not finished: \(path("ledger-1")): resume the originals"), "\(merged)")
        let original = URL(filePath: path("ledger-1")).resolvingSymlinksInPath().path
        let whole = try send(1, ledger: "merged", exitCode: 2)
        let finished = URL(filePath: path("ledger-2")).resolvingSymlinksInPath().path
        #expect(
            whole.errors.contains(
                "resume each of them: \(original); with --retry also \(finished)\n"),
            "\(whole.errors)")
        _ = try ledger(
            ["repair", "--ledger", path("merged/part-0001"), "--output", path("repaired")])
        _ = try ledger(["merge", "--output", path("again"), path("merged")])
        try files.copyItem(atPath: path("merged/part-0001"), toPath: path("moved"))
        for copy in ["merged/part-0001", "again/part-0001", "repaired", "moved"] {
            for more in [["--resume"], ["--must-resume"], ["--resume", "--retry", "unknown"]] {
                let refused = try send(1, ledger: copy, exitCode: 2, more)
                #expect(refused.errors.hasSuffix(": resume \(original)\n"), "\(refused.errors)")
            }
        }
        // As earlier versions made them.
        try files.removeItem(atPath: path("merged/part-0001/copy-of"))
        let unmarked = try send(1, ledger: "merged/part-0001", exitCode: 2)
        #expect(unmarked.errors.contains("it was copied from"), "\(unmarked.errors)")

        let report = try Broadside.run(
            ["report", "--ledger", path("again"), "--output", path("report.html")],
            in: campaign.directory)
        #expect(report.exitCode == 0, "\(report.errors)")
        let page = try String(contentsOfFile: path("report.html"), encoding: .utf8)
        #expect(page.contains("--ledger \(original) ") || page.contains("\(original): "))
        #expect(!page.contains("again/part-0001"))

        for part in 1...2 { try send(part) }
        try expectExact()
    }

    @Test func `A merged ledger whose ledgers are all finished is finished`() throws {
        _ = try mergeUnfinished()
        // Earlier versions let copies be resumed: the merged ledger's own manifest is older then.
        try files.createDirectory(atPath: path("place"), withIntermediateDirectories: false)
        try files.moveItem(atPath: path("merged/part-0001"), toPath: path("place/moved"))
        try files.removeItem(atPath: path("place/moved/copy-of"))
        try send(1, ledger: "place/moved")
        try files.moveItem(atPath: path("place/moved"), toPath: path("merged/part-0001"))
        let verified = try ledger(["verify", "--ledger", path("merged")]).output
        #expect(verified.contains(", finished"), "\(verified)")
        let stats = try ledger(["stats", "--json", "--ledger", path("merged")]).output
        #expect(stats.contains("\"complete\""), "\(stats)")
        try send(2)
    }
}
