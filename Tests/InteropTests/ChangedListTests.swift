import BroadsideTestSupport
import Foundation
import Testing

/// Lists that are not, at their end or at the next start, what they were at the beginning.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ChangedListTests {
    /// How a list comes to be another one while it is read.
    enum Change: String, CaseIterable, Sendable {
        /// In the middle of a row, at the end of one, wholly.
        case cutInRow, cutAtRow, emptied
        case longer, rewritten, replaced
    }

    enum Form: String, CaseIterable, Sendable { case plain, gz, zst, stdin }

    static let cases: [(Form, Change)] = TestSize.cases(
        Form.allCases.flatMap { form in Change.allCases.map { (form, $0) } },
        otherwise: Change.allCases.map { (.plain, $0) } + [
            (.gz, .cutInRow), (.gz, .rewritten), (.zst, .cutAtRow), (.zst, .longer),
            (.stdin, .emptied), (.stdin, .replaced),
        ])

    private static func change(_ path: String, _ change: Change) throws {
        let bytes = try Data(contentsOf: URL(filePath: path))
        let file = open(path, O_RDWR | O_CLOEXEC)
        defer { close(file) }
        func put(_ text: Data, at offset: Int) {
            let count = text.withUnsafeBytes {
                pwrite(file, $0.baseAddress, $0.count, off_t(offset))
            }
            #expect(count == text.count)
        }
        // What is sent at the beginning was read already.
        let half = bytes.count / 2 / 65 * 65
        switch change {
        case .cutInRow: #expect(ftruncate(file, off_t(half + 20)) == 0)
        case .cutAtRow: #expect(ftruncate(file, off_t(half)) == 0)
        case .emptied: #expect(ftruncate(file, 0) == 0)
        case .longer: put(bytes.prefix(6500), at: bytes.count)
        case .rewritten: put(Data(bytes[half...].reversed()), at: half)
        case .replaced:
            try Data(bytes.reversed()).write(to: URL(filePath: path + ".new"))
            #expect(rename(path + ".new", path) == 0)
        }
    }

    @Test(arguments: cases)
    func `A list that changes while it is read is exit 5, and no partial row is sent`(
        form: Form, change: Change
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 6000)
        let whole = try Data(contentsOf: URL(filePath: campaign.list))
        var list = campaign.list
        if form == .gz || form == .zst {
            list = try (form == .gz ? Packing.gzip : Packing.zstd).write(
                Array(whole), to: "packed.txt", in: campaign.directory)
        }
        let read = form == .stdin ? "\(campaign.ledger)/tokens" : list
        let more = ["--tokens", form == .stdin ? "-" : list, "--summary", "-"]
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, more + ["--rate", "200"]),
            in: campaign.directory, input: form == .stdin ? campaign.list : nil)
        try campaign.waitForRows(process)
        let original = try Data(contentsOf: URL(filePath: read))
        try Self.change(read, change)
        // It reads on at once, unless it has found the change already.
        try campaign.control("rate", "unlimited")
        let ended = try process.wait(limit: 120)
        #expect(ended.exitCode == 5, "\(ended.errors)")
        #expect(ended.errorLines.count == 1, "\(ended.errors)")
        #expect(ended.errors.contains("changed while it was read"), "\(ended.errors)")
        let summary = try SendSummary(json: ended.output)
        #expect(summary.outcome == "error" && summary.invalid == 0, "\(summary)")
        #expect(summary.remaining != 0, "\(summary)")
        let verified = try campaign.ledger("verify")
        #expect(verified.exitCode == 0 && verified.output.contains("not finished"))

        try original.write(to: URL(filePath: read))
        let rest = try campaign.send(to: server.endpoint, more + ["--resume"])
        #expect(rest.exitCode == 0, "\(rest.errors)")
        #expect(try SendSummary(json: rest.output).accepted == 6000)
        let tokens = try server.finish().map { $0[4] }
        #expect(tokens.count == 6000 && Set(tokens) == Set((0..<6000).map(campaign.tokens.token)))
    }

    /// What a finished campaign's list became, and what it was sent with.
    struct Another: Sendable, CustomTestStringConvertible {
        var testDescription: String
        var more: [String]
        /// The lines of the list, header first.
        var edit: @Sendable (inout [String]) -> Void

        init(
            _ name: String, more: [String] = [], edit: @escaping @Sendable (inout [String]) -> Void
        ) {
            (testDescription, self.more, self.edit) = (name, more, edit)
        }
    }

    static let others: [Another] = [
        .init(
            "one digit",
            edit: { $0[120] = ($0[120].hasPrefix("0") ? "1" : "0") + $0[120].dropFirst() }),
        .init("two rows swapped", edit: { $0.swapAt(50, 250) }),
        .init("the last row", edit: { $0[300] = String($0[300].reversed()) }),
        .init("all rows", edit: { $0[1...].reverse() }),
        .init("the header", edit: { $0[0] = "other,token" }),
        .init("a part of it", more: ["--shard", "2/2"], edit: { $0.swapAt(250, 251) }),
        .init("by rows", more: ["--duplicates", "skip"], edit: { $0.swapAt(250, 251) }),
        .init("as far as it was sent", more: ["--limit", "100"], edit: { $0.swapAt(3, 4) }),
    ]

    /// Takes out of a manifest what version 0.1.0 did not write.
    private static let older = """
        import json, sys, zlib
        path = sys.argv[1]
        manifest = json.load(open(path))
        for name in ("listHash", "headerHash"):
            manifest.pop(name, None)
        manifest["version"] = 1
        manifest["checksum"] = 0
        text = json.dumps(manifest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        manifest["checksum"] = zlib.crc32(text.encode())
        open(path, "w").write(json.dumps(manifest))
        """

    private func makeOlder(_ campaign: Campaign) throws {
        try Subprocess.run(
            "python3", ["-c", Self.older, "\(campaign.ledger)/manifest.json"],
            in: campaign.directory)
    }

    /// With a ledger of this version, and some of them with an older one.
    private static let othersAndAges: [(Another, Bool)] =
        others.map { ($0, false) }
        + others.filter { other in
            TestSize.isFull
                || ["one digit", "the header", "a part of it"].contains(other.testDescription)
        }.map { ($0, true) }

    @Test(arguments: othersAndAges)
    func `A finished campaign with another list of the same size is refused`(
        other: Another, isOlder: Bool
    ) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 300)
        var lines = ["token,other"] + (0..<300).map { campaign.tokens.token($0) + ",x" }
        let original = lines.joined(separator: "\n") + "\n"
        let list = try campaign.directory.write(original, to: "list.csv")
        let more = ["--tokens", list] + other.more
        let sent = try campaign.send(to: server.endpoint, more)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let total = try server.tally(campaign.tokens).total
        if isOlder { try makeOlder(campaign) }
        let manifest = try Data(contentsOf: URL(filePath: "\(campaign.ledger)/manifest.json"))

        other.edit(&lines)
        try campaign.directory.write(lines.joined(separator: "\n") + "\n", to: "list.csv")
        let refused = try campaign.send(to: server.endpoint, more + ["--resume"])
        // Nothing of an older ledger says what its header was.
        if !(isOlder && other.testDescription == "the header") {
            #expect(refused.exitCode == 2, "\(refused.errors)")
            #expect(refused.errorLines.count == 1, "\(refused.errors)")
        }
        #expect(
            try Data(contentsOf: URL(filePath: "\(campaign.ledger)/manifest.json")) == manifest)

        try campaign.directory.write(original, to: "list.csv")
        let again = try campaign.send(to: server.endpoint, more + ["--resume"])
        #expect(again.exitCode == 0, "\(again.errors)")
        #expect(try server.tally(campaign.tokens).total == total)
    }

    /// What is at the list's path when rows are exported.
    enum Morning: String, CaseIterable, Sendable {
        case nothing, sameSize, otherSize, otherHeader, otherColumns
    }

    /// Checks an export without its list: one warning, all rows, lines and accepted tokens left out.
    private func expectWithoutList(
        _ finished: Finished, _ output: String, as whole: [ExportedRow], _ name: Comment
    ) throws {
        #expect(finished.exitCode == 0, "\(name): \(finished.errors)")
        #expect(finished.errors.split(separator: "\n").count == 1, "\(name): \(finished.errors)")
        #expect(
            finished.errors.contains(
                "no run reserved: use --tokens to name the list that was sent"),
            "\(name): \(finished.errors)")
        // Followed rows come in another order.
        let rows = try ExportedRow.read(output).sorted { $0.identifier < $1.identifier }
        let whole = whole.sorted { $0.identifier < $1.identifier }
        #expect(rows.map(\.identifier) == whole.map(\.identifier), name)
        #expect(rows.map(\.state) == whole.map(\.state), name)
        #expect(rows.allSatisfy { $0.line == nil }, name)
        #expect(
            rows.map(\.token) == whole.map { $0.state == "accepted" ? "" : $0.token }, name)
    }

    @Test(arguments: Morning.allCases)
    func `Exports continue without a list that is gone or another one, with a warning`(
        morning: Morning
    ) throws {
        let server = try LocalAPNs(["--unregistered", "0.3"])
        let campaign = try Campaign(rows: 300)
        var lines = ["token,other"] + (0..<300).map { campaign.tokens.token($0) + ",x" }
        let list = try campaign.directory.write(
            lines.joined(separator: "\n") + "\n", to: "list.csv")
        let more = ["--tokens", list, "--abort-after", "1000"]
        #expect(try campaign.send(to: server.endpoint, more).exitCode == 0)
        let shards = try [1, 2].map { number in
            let ledger = campaign.directory.fresh("shard")
            let sent = try campaign.send(
                to: server.endpoint, more + ["--shard", "\(number)/2", "--ledger", ledger])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            return ledger
        }
        let merged = campaign.directory.fresh("merged")
        let merge = try Broadside.run(
            ["ledger", "merge", "--output", merged] + shards, in: campaign.directory)
        #expect(merge.exitCode == 0, "\(merge.errors)")
        func export(_ more: [String]) throws -> Finished {
            try Broadside.run(["ledger", "export"] + more, in: campaign.directory)
        }
        let whole = try campaign.export()
        let wholeMerged = try ExportedRow.read(export(["--ledger", merged]).output)
        #expect(Set(whole.map(\.state)) == ["accepted", "rejected"])

        switch morning {
        case .nothing: try FileManager.default.removeItem(atPath: list)
        case .sameSize: lines[1...].reverse()
        case .otherSize: lines.removeLast()
        // The same column has other cells now.
        case .otherHeader: lines[0] = "other,token"
        case .otherColumns: lines[0] = "device,x"
        }
        if morning != .nothing {
            try campaign.directory.write(lines.joined(separator: "\n") + "\n", to: "list.csv")
        }
        let plain = try campaign.ledger("export")
        try expectWithoutList(plain, plain.output, as: whole, "plain")
        let file = campaign.directory.fresh("rows.csv")
        let written = try campaign.ledger("export", ["--output", file])
        try expectWithoutList(
            written, String(contentsOfFile: file, encoding: .utf8), as: whole, "to a file")
        let followed = try campaign.ledger("export", ["--follow"])
        try expectWithoutList(followed, followed.output, as: whole, "followed")
        let ofShards = try export(["--ledger", merged])
        try expectWithoutList(ofShards, ofShards.output, as: wholeMerged, "merged")
        guard morning == .sameSize else { return }
        for more in [[], ["--follow"]] {
            let named = try campaign.ledger("export", ["--tokens", list] + more)
            #expect(named.exitCode == 2 && named.errorLines.count == 1, "\(named.errors)")
            #expect(named.errors.contains("--tokens \(list): it is not the list"))
            #expect(named.errors.contains("name the list that was sent"), "\(named.errors)")
        }
    }

    @Test func `An export has lines and tokens up to the chunk from which the list is another one`()
        throws
    {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 6_000)
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        var bytes = try Data(contentsOf: URL(filePath: campaign.list))
        bytes.replaceSubrange(bytes.count - 65..<bytes.count - 1, with: bytes[0..<64])
        try bytes.write(to: URL(filePath: campaign.list))
        let exported = try campaign.ledger("export")
        #expect(exported.exitCode == 0, "\(exported.errors)")
        #expect(exported.errors.split(separator: "\n").count == 1, "\(exported.errors)")
        let rows = try ExportedRow.read(exported.output)
        let known = rows.prefix { $0.line != nil }
        #expect(rows.count == 6_000 && (1..<6_000).contains(known.count))
        #expect(known.enumerated().allSatisfy { $1.token == campaign.tokens.token($0) })
        #expect(rows[known.count...].allSatisfy { $0.line == nil && $0.token.isEmpty })
        #expect(exported.errors.contains("differs on line \(known.count + 1) or later"))
    }

    @Test(arguments: ["suppress", "duplicates"], [false, true])
    func `Suppressed rows and duplicates are those of the list as it is now`(
        option: String, isOlder: Bool
    ) throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 200)
        var lines = (0..<200).map(campaign.tokens.token)
        // The row 180 is not to be sent.
        if option == "duplicates" { lines[180] = lines[10] }
        let original = lines.joined(separator: "\n") + "\n"
        try campaign.directory.write(original, to: "tokens.txt")
        let out = try campaign.directory.write(lines[180] + "\n", to: "out.txt")
        let more = option == "suppress" ? ["--suppress", out] : ["--duplicates", "skip"]
        let begun = try campaign.send(
            to: server.endpoint, more + ["--limit", "50", "--connections", "1"])
        #expect(begun.exitCode == 0, "\(begun.errors)")
        if isOlder { try makeOlder(campaign) }

        // Both in the part that no run has reserved.
        lines.swapAt(180, 190)
        try campaign.directory.write(lines.joined(separator: "\n") + "\n", to: "tokens.txt")
        let resumed = try campaign.send(to: server.endpoint, more + ["--resume"])
        let taken = try server.tally(campaign.tokens)
        #expect(taken.repeated == 0, "\(taken)")
        guard isOlder else {
            #expect(resumed.exitCode == 2, "\(resumed.errors)")
            #expect(taken.total == 50)
            return
        }
        // Nobody knows what its list was: the rows are looked for again, in the one that is there.
        #expect(resumed.exitCode == 0, "\(resumed.errors)")
        #expect(taken.total == 199 && taken.missing == 1, "\(taken)")
        let skipped = try campaign.export(["--state", "skipped"])
        #expect(skipped.map(\.line) == [191])
    }
}
