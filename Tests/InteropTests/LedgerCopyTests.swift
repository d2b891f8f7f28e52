import BroadsideTestSupport
import Foundation
import Testing

/// Copies of a ledger: only the newest attempt continues.
@Suite(.timeLimit(.minutes(60)))
struct LedgerCopyTests {
    private let files = FileManager.default
    private let server: RecordingServer
    private let campaign: Campaign

    /// A campaign of which ten rows are sent.
    init() throws {
        server = try RecordingServer(
            "plain", ["--detail", (1...200).map(String.init).joined(separator: ",")])
        campaign = try Campaign(rows: 60)
        try send(10)
    }

    /// Resumes a ledger up to a row.
    @discardableResult
    private func send(
        _ limit: Int, ledger: String? = nil, exitCode: Int32 = 0,
        more: [String] = []
    ) throws -> Finished {
        let sent = try campaign.send(
            to: server.endpoint,
            ["--ledger", ledger ?? campaign.ledger, "--resume-or-begin", "--limit", "\(limit)"]
                + more)
        #expect(sent.exitCode == exitCode, "\(sent.errors)")
        return sent
    }

    private func requestCount() throws -> Int {
        try server.events().compactMap(\.fields).count
    }

    /// The claims that are in a folder.
    private func claims(_ folder: String) throws -> [String] {
        try files.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix(".broadside-") }
    }

    private func folder(_ name: String) throws -> String {
        let path = "\(campaign.directory.path)/\(name)"
        try files.createDirectory(atPath: path, withIntermediateDirectories: false)
        return path
    }

    @Test(arguments: ["copy", "elsewhere/ledger"])
    func `A copy resumed after the original continued is refused`(name: String) throws {
        _ = try folder("elsewhere")
        let copy = "\(campaign.directory.path)/\(name)"
        try files.copyItem(atPath: campaign.ledger, toPath: copy)
        try send(20)
        let refused = try send(30, ledger: copy, exitCode: 7)
        #expect(refused.errors.contains("is an old copy"), "\(refused.errors)")
        let planned = try send(30, ledger: copy, exitCode: 7, more: ["--dry-run"])
        #expect(planned.errors.contains("is an old copy"), "\(planned.errors)")
        #expect(refused.errors.contains("/ledger (/"), "\(refused.errors)")
        #expect(try requestCount() == 20)
        try send(60)
        #expect(try server.tally(campaign.tokens).isExact)
        #expect(try claims(campaign.directory.path).count == 1)
    }

    @Test func `If the copy was resumed first, the original is refused`() throws {
        let copy = "\(campaign.directory.path)/copy"
        try files.copyItem(atPath: campaign.ledger, toPath: copy)
        try send(20, ledger: copy)
        let refused = try send(60, exitCode: 7)
        #expect(refused.errors.contains("/copy (/"), "\(refused.errors)")
        try send(60, ledger: copy)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `A ledger may be moved, and a copy left behind is refused`() throws {
        let place = try folder("archive")
        let copy = "\(campaign.directory.path)/copy"
        try files.copyItem(atPath: campaign.ledger, toPath: copy)
        try files.moveItem(atPath: campaign.ledger, toPath: "\(place)/ledger")
        try send(20, ledger: "\(place)/ledger")
        try send(30, ledger: copy, exitCode: 7)
        try send(60, ledger: "\(place)/ledger")
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `A ledger whose claim is missing continues, with a warning`() throws {
        let claim = try #require(try claims(campaign.directory.path).first)
        try files.removeItem(atPath: "\(campaign.directory.path)/\(claim)")
        let first = try send(20, more: ["--log", "json"])
        #expect(first.errors.contains("warning: \(campaign.ledger) was copied or restored"))
        #expect(first.errors.contains(#""event":"ledger-copied""#), "\(first.errors)")
        // It has its claim again.
        let copy = "\(campaign.directory.path)/copy"
        try files.copyItem(atPath: campaign.ledger, toPath: copy)
        let last = try send(60)
        #expect(!last.errors.contains("warning"), "\(last.errors)")
        try send(60, ledger: copy, exitCode: 7)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `A ledger without its claim where none can be made continues, with both warnings`()
        throws
    {
        let claim = try #require(try claims(campaign.directory.path).first)
        try files.removeItem(atPath: "\(campaign.directory.path)/\(claim)")
        let place = try folder("archive")
        let moved = "\(place)/ledger"
        try files.moveItem(atPath: campaign.ledger, toPath: moved)
        try files.setAttributes([.posixPermissions: 0o555], ofItemAtPath: place)
        defer { try? files.setAttributes([.posixPermissions: 0o755], ofItemAtPath: place) }
        let rights = "-dac_override,-dac_read_search"
        let arguments =
            try [
                "--bounding-set", rights, "--inh-caps", rights, Broadside.path(),
            ] + campaign.arguments(to: server.endpoint, ["--ledger", moved, "--resume"])
        let sent = try Subprocess("setpriv", arguments, in: campaign.directory).wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.contains("warning: \(moved) was copied or restored"), "\(sent.errors)")
        #expect(sent.errors.contains("broadside can't make a claim there"), "\(sent.errors)")
    }

    @Test func `A backup that takes the place of the ledger is refused, also a day later`() throws {
        let backup = "\(campaign.directory.path)/backup"
        try files.copyItem(atPath: campaign.ledger, toPath: backup)
        try send(60)
        try files.removeItem(atPath: campaign.ledger)
        try files.moveItem(atPath: backup, toPath: campaign.ledger)
        let refused = try send(60, exitCode: 7)
        #expect(refused.errors.contains("started in another copy of it"), "\(refused.errors)")
        #expect(refused.errors.contains("if that copy is lost, each row"), "\(refused.errors)")
        #expect(refused.errorLines.count == 1, "\(refused.errors)")
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `Commands that read an old copy warn once, and --cap refuses it`() throws {
        let (ledger, place) = (campaign.ledger, campaign.directory.path)
        try files.copyItem(atPath: ledger, toPath: "\(place)/backup")
        try send(60)
        try files.removeItem(atPath: ledger)
        try files.moveItem(atPath: "\(place)/backup", toPath: ledger)
        try expectOldCopy(ledger, named: ledger)
        let repaired = try campaign.ledger("repair", ["--output", "\(place)/repaired"])
        #expect(repaired.exitCode == 0 && repaired.errorLines.isEmpty, "\(repaired.errors)")
        #expect(repaired.errors.split(separator: "warning: \(ledger) is an old copy: ").count == 2)
        let next = ["--ledger", "\(place)/next"]
        let sent = try campaign.send(to: server.endpoint, next + ["--skip-dead", ledger])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.contains("warning: --skip-dead \(ledger) is an old copy"))
    }

    @Test func `A repaired ledger is an old copy once the original has continued`() throws {
        let repaired = "\(campaign.directory.path)/repaired"
        #expect(try campaign.ledger("repair", ["--output", repaired]).exitCode == 0)
        try expectNewest(repaired)
        try send(60)
        try expectOldCopy(repaired, named: repaired)
        // A repair may add segments, so that the old copy is longer.
        try Data(count: 1 << 20).write(to: URL(filePath: "\(repaired)/segment-0099-00"))
        let capped = try campaign.send(
            to: server.endpoint,
            [
                "--ledger", "\(campaign.directory.path)/next", "--cap", "1/1d", "--history",
                repaired, "--history", campaign.ledger,
            ])
        #expect(capped.exitCode == 0, "\(capped.errors)")
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test(arguments: ["shard", "part"])
    func `A merged ledger is an old copy once a run has continued an original`(
        division: String
    ) throws {
        let place = try folder("originals")
        let id = division == "part" ? ["--campaign-id", "0123456789abcdef"] : []
        func send(_ number: Int, _ limit: Int) throws {
            // The lists of two parts must differ.
            let tokens = DeviceTokens(seed: campaign.tokens.seed, count: 60 + number)
            let list =
                division == "part"
                ? try campaign.directory.write(tokens.list(), to: "list-\(number).txt")
                : campaign.list
            try self.send(
                limit, ledger: "\(place)/\(number)",
                more: ["--\(division)", "\(number)/2", "--tokens", list] + id)
        }
        try send(1, 100)
        try send(2, 5)
        let merged = "\(campaign.directory.path)/merged"
        let made = try Broadside.run(
            ["ledger", "merge", "--output", merged, "\(place)/1", "\(place)/2"],
            in: campaign.directory)
        #expect(made.exitCode == 0, "\(made.errors)")
        try expectNewest(merged)
        #expect(!made.errors.contains("old copy"), "\(made.errors)")
        let old = "\(place)/2-old"
        try files.copyItem(atPath: "\(place)/2", toPath: old)
        try send(2, 100)
        try expectOldCopy(merged, named: "\(merged)/\(division)-0002")
        let late = try Broadside.run(
            ["ledger", "merge", "--output", "\(place)/late", "\(place)/1", old],
            in: campaign.directory)
        #expect(late.exitCode == 0, "\(late.errors)")
        #expect(
            late.errors.contains("broadside: warning: \(old) is an old copy: ")
                && late.errors.contains("are missing in \(place)/late: merge the newer copy\n"),
            "\(late.errors)")
    }

    /// A command that reads the ledger does not warn.
    private func expectNewest(_ ledger: String) throws {
        let read = try Broadside.run(
            ["ledger", "stats", "--ledger", ledger], in: campaign.directory)
        #expect(read.exitCode == 0 && read.errors.isEmpty, "\(read.errors)")
    }

    /// Commands that read the ledger warn once about an old copy, and `--cap` refuses it.
    ///
    /// - Parameter copy: The old copy: the ledger, or one of the copies in a merged ledger.
    private func expectOldCopy(_ ledger: String, named copy: String) throws {
        let place = campaign.directory.path
        let page = "\(place)/page.html"
        let token = campaign.tokens.token(0)
        for words in [
            ["ledger", "stats", "--ledger", ledger], ["ledger", "export", "--ledger", ledger],
            ["ledger", "verify", "--ledger", ledger], ["status", ledger],
            ["ledger", "find", "--ledger", ledger, "--token", token],
            ["report", "--ledger", ledger, "--output", page],
            ["report", "--all", ledger, "--output", page],
            ["prune", "--ledger", ledger, "--tokens", campaign.list, "--dry-run"],
        ] {
            let read = try Broadside.run(words, in: campaign.directory)
            #expect(read.exitCode == 0, "\(words): \(read.errors)")
            #expect(
                read.errors.split(separator: "\n").count { $0.contains("\(copy) is an old copy") }
                    == 1,
                "\(words): \(read.errors)")
        }
        let capped = try campaign.send(
            to: server.endpoint,
            ["--ledger", "\(place)/next", "--cap", "1/1d", "--history", ledger])
        #expect(capped.exitCode == 7 && capped.errorLines.count == 1, "\(capped.errors)")
        #expect(capped.errors.contains("--history \(copy) is an old copy"), "\(capped.errors)")
        #expect(!files.fileExists(atPath: "\(place)/next"))
    }

    /// What a crash leaves before the claim, and behind it before that is noted.
    @Test(arguments: [false, true])
    func `A crash beside the claim leaves a ledger that can be resumed`(isClaimed: Bool) throws {
        let epoch = "\(campaign.ledger)/epoch"
        // Only the first line: a record of an earlier version has no checksum.
        let words = try String(contentsOfFile: epoch, encoding: .utf8).prefix { $0 != "\n" }
            .split(separator: " ")
        try #require(words.count == 4 && words[0] == "2" && words[1] == "2")
        let claim = try #require(try claims(campaign.directory.path).first).dropLast()
        try "2 3 00112233445566ff \(words[3])\n".write(
            toFile: epoch, atomically: false, encoding: .utf8)
        if isClaimed {
            try "00112233445566ff \(campaign.ledger)\n".write(
                toFile: "\(campaign.directory.path)/\(claim)3", atomically: false, encoding: .utf8)
        }
        try send(60)
        #expect(try server.tally(campaign.tokens).isExact)
        #expect(try claims(campaign.directory.path) == ["\(claim)5"])
    }

    @Test func `Of two copies that claimed the same attempt one is refused`() throws {
        let epoch = "\(campaign.ledger)/epoch"
        // Only the first line: a record of an earlier version has no checksum.
        let words = try String(contentsOfFile: epoch, encoding: .utf8).prefix { $0 != "\n" }
            .split(separator: " ")
        try "2 2 00112233445566ff \(words[3])\n".write(
            toFile: epoch, atomically: false, encoding: .utf8)
        try send(20, exitCode: 7)
        #expect(try requestCount() == 10)
    }

    @Test func `A ledger without its file epoch is refused, and says how it can continue`() throws {
        try files.removeItem(atPath: "\(campaign.ledger)/epoch")
        let name = try #require(try claims(campaign.directory.path).first)
        let claim = "\(campaign.directory.path)/\(name)"
        let message = "\(campaign.ledger)/epoch is missing"
        let refused = try send(60, exitCode: 7)
        #expect(refused.errorLines.count == 1, "\(refused.errors)")
        #expect(refused.errors.contains(message), "\(refused.errors)")
        #expect(
            refused.errors.contains("was or will be resumed, remove /")
                && refused.errors.hasSuffix("/\(name)\n"), "\(refused.errors)")
        let verified = try campaign.ledger("verify")
        #expect(verified.exitCode == 0 && verified.output.contains("\n\(message)"), "\(verified)")
        let repaired = "\(campaign.directory.path)/repaired"
        let done = try campaign.ledger("repair", ["--output", repaired])
        #expect(done.exitCode == 0 && done.output.contains(message), "\(done)")
        // While the original is there, nothing shows that the new copy is the one to continue.
        let other = try send(60, ledger: repaired, exitCode: 7)
        #expect(other.errors.contains("/ledger (/"), "\(other.errors)")
        #expect(try requestCount() == 10)

        // As the message says.
        try files.removeItem(atPath: claim)
        #expect(try campaign.ledger("verify").output.split(separator: "\n").count == 1)
        try send(60)
        #expect(try server.tally(campaign.tokens).isExact)
        try send(60, ledger: repaired, exitCode: 7)
    }

    @Test func `A ledger of an earlier version gets its first claim when it is resumed`() throws {
        try files.removeItem(atPath: "\(campaign.ledger)/epoch")
        for name in try claims(campaign.directory.path) {
            try files.removeItem(atPath: "\(campaign.directory.path)/\(name)")
        }
        let copy = "\(campaign.directory.path)/copy"
        try files.copyItem(atPath: campaign.ledger, toPath: copy)
        try send(20)
        try send(30, ledger: copy, exitCode: 7)
        try send(60)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `Reading a copy, or a claim that is a link, changes nothing`() throws {
        let copy = "\(campaign.directory.path)/copy"
        try files.copyItem(atPath: campaign.ledger, toPath: copy)
        try send(20)
        for words in [["stats"], ["verify"], ["export"]] {
            let read = try Broadside.run(
                ["ledger"] + words + ["--ledger", copy], in: campaign.directory)
            #expect(read.exitCode == 0, "\(read.errors)")
        }
        let claim = try #require(try claims(campaign.directory.path).first)
        #expect(claim.hasSuffix(".4"))
        let target = "\(campaign.directory.path)/target"
        #expect(symlink(target, "\(campaign.directory.path)/\(claim.dropLast())5") == 0)
        try send(60, exitCode: 7)
        #expect(!files.fileExists(atPath: target))
    }

    @Test func `A finished campaign claims nothing, and one with rows to retry does`() throws {
        let finished = try campaign.send(
            to: server.endpoint, ["--ledger", campaign.ledger, "--resume"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let before = try claims(campaign.directory.path)
        let again = try campaign.send(
            to: server.endpoint, ["--ledger", campaign.ledger, "--resume"])
        #expect(again.exitCode == 0 && again.errors.contains("is finished: nothing is sent"))
        #expect(try claims(campaign.directory.path) == before)
        let retried = try campaign.send(
            to: server.endpoint, ["--ledger", campaign.ledger, "--resume", "--retry", "failed"])
        #expect(retried.exitCode == 0, "\(retried.errors)")
        #expect(try claims(campaign.directory.path) != before)
    }

    /// What makes segments unreadable: one is lost, or a file of another run is among them.
    @Test(arguments: [true, false])
    func `A resume refused for its segments claims nothing, and the repaired copy continues`(
        isLost: Bool
    ) throws {
        let segment = "\(campaign.ledger)/segment-0001-00"
        if isLost {
            try files.removeItem(atPath: segment)
        } else {
            try files.copyItem(atPath: segment, toPath: "\(campaign.ledger)/segment-0009-00")
        }
        let before = try claims(campaign.directory.path)
        let repaired = "\(campaign.directory.path)/repaired"
        let made = try Broadside.run(
            ["ledger", "repair", "--ledger", campaign.ledger, "--output", repaired],
            in: campaign.directory)
        #expect(made.exitCode == 0, "\(made.errors)")
        for _ in 0..<2 {
            let refused = try send(60, exitCode: 5)
            #expect(refused.errors.contains("broadside ledger repair"), "\(refused.errors)")
        }
        #expect(try claims(campaign.directory.path) == before)
        #expect(try requestCount() == 10)
        // Without the lost segment, its rows may have been sent.
        try send(60, ledger: repaired, exitCode: isLost ? 6 : 0)
        #expect(try server.tally(campaign.tokens).isExact)
        try send(60, exitCode: 7)
    }

    @Test func `A resume that is refused for its list or its options claims nothing`() throws {
        let before = try claims(campaign.directory.path)
        var text = campaign.tokens.list()
        text[0] = text[0] == UInt8(ascii: "0") ? UInt8(ascii: "1") : UInt8(ascii: "0")
        let other = try campaign.directory.write(text, to: "other")
        try send(60, exitCode: 2, more: ["--tokens", other])
        #expect(try claims(campaign.directory.path) == before)
        try send(60)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `A list that turns out to be wrong leaves no claim`() throws {
        let before = try claims(campaign.directory.path)
        // Nothing of it can be sent, and what is wrong comes behind the rows that are looked at first.
        let optedOut = DeviceTokens(count: 1000).list()
        let wrong = try campaign.directory.write(
            optedOut + Array(String(repeating: "no token\n", count: 12_000).utf8), to: "wrong")
        let second = "\(campaign.directory.path)/second"
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--ledger", second, "--tokens", wrong,
                "--suppress", try campaign.directory.write(optedOut, to: "opted-out"),
            ])
        #expect(sent.exitCode == 2, "\(sent.errors)")
        #expect(!files.fileExists(atPath: second))
        #expect(try claims(campaign.directory.path) == before)
    }
}
