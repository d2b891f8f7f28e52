import BroadsideTestSupport
import Foundation
import Testing

/// What `ledger forget` erases and what it leaves.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ForgetTests: ErasureSuite {
    private let server: LocalAPNs
    let campaign: Campaign

    init() throws { (server, campaign) = try Self.start() }

    @Test func `A ledger whose devices are erased has no byte of them and is otherwise the same`()
        throws
    {
        let finished = try campaign.send(
            to: server.endpoint, ["--reactors", "2", "--connections", "2"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let rows = try campaign.export()
        let accepted = Self.rows.count { rows[$0].state == "accepted" }
        let changes = try forgetAndJudge(campaign.ledger, try devices())
        #expect(changes.contains("21 of 21 devices found"), "\(changes)")
        #expect(changes.contains("accepted \(accepted) settled \(21 - accepted) "), "\(changes)")
        #expect(changes.contains("forgot 21 devices, 21 records (\(accepted) accepted, "))
        #expect(accepted > 5 && accepted < 20)

        // The list is where it was, and a finished run is still that.
        let again = try campaign.send(to: server.endpoint, ["--resume"])
        #expect(again.exitCode == 0, "\(again.errors)")
        for (row, exported) in try campaign.export().enumerated() {
            let isErased = Self.rows.contains(row)
            #expect(exported.token.hasPrefix("forgotten-") == isErased, "row \(row)")
            if isErased { #expect(exported.token.utf8.count == "forgotten-".utf8.count + 16) }
            #expect(exported.timestamp == rows[row].timestamp)
            #expect(exported.line == rows[row].line)
        }
        // A follower, and a search for a row, show the same.
        let followed = try ExportedRow.read(campaign.ledger("export", ["--follow"]).output)
        #expect(followed.count { $0.token.hasPrefix("forgotten-") } == 21)
        let found = try campaign.ledger("find", ["--json", "--apns-id", rows[3].identifier])
        #expect(found.exitCode == 0 && !found.output.contains(token(3)), "\(found.output)")
    }

    @Test func `--dry-run counts the devices in each ledger and changes no byte`() throws {
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        let list = try campaign.directory.write(token(399), to: "one.txt")
        let other = try campaign.send(
            to: server.endpoint, ["--tokens", list, "--ledger", "\(folder)/one"])
        #expect(other.exitCode == 0, "\(other.errors)")
        let before = try copy(campaign.ledger)
        for (rows, ledgers, lines) in [
            (
                Self.rows, "2 ledgers",
                ["would forget 21 devices, 21 records (", "would forget 1 device, "]
            ),
            ([5], "1 ledger", ["would forget 1 device, 1 record (", "nothing would change"]),
        ] {
            let finished = try Broadside.run(
                [
                    "ledger", "forget", "--dry-run", "--tokens", devices(rows), "--ledger",
                    campaign.ledger, "--ledger", "\(folder)/one",
                ], in: campaign.directory)
            #expect(finished.exitCode == 0 && finished.errors.isEmpty, "\(finished.errors)")
            for line in lines { #expect(finished.output.contains(line), "\(finished.output)") }
            #expect(
                finished.output.hasSuffix(
                    "\(rows.count) of \(rows.count) device\(rows.count == 1 ? "" : "s") found in "
                        + "\(ledgers); dry run: nothing was changed\n"), "\(finished.output)")
        }
        let difference = try Subprocess(
            "diff", ["-r", before, campaign.ledger], in: campaign.directory
        ).wait(limit: 60)
        #expect(difference.exitCode == 0, "\(difference.output)")
    }

    @Test func `A person at a terminal confirms an erasure, and --yes leaves the question out`()
        throws
    {
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        let before = try copy(campaign.ledger)
        func forget(_ typed: String, _ rows: [Int] = Self.rows, _ more: [String] = []) throws
            -> Finished
        {
            try Subprocess(
                "python3",
                [
                    "-c", ConfirmationTests.typing, typed, Broadside.path(), "ledger", "forget",
                    "--tokens", devices(rows), "--ledger", campaign.ledger,
                ] + more, in: campaign.directory
            ).wait(limit: 60)
        }
        for typed in ["no", "", "YES", "21"] {
            let refused = try forget(typed)
            #expect(refused.exitCode == 2, "\(typed): \(refused.output)")
            for words in [
                "would forget 21 devices", "21 of 21 devices found in 1 ledger. ", "Type yes",
                "not confirmed: nothing was erased",
            ] {
                #expect(refused.output.contains(words), "\(refused.output)")
            }
        }
        let difference = try Subprocess(
            "diff", ["-r", before, campaign.ledger], in: campaign.directory
        ).wait(limit: 60)
        #expect(difference.exitCode == 0, "\(difference.output)")
        let confirmed = try forget("yes", [3, 4])
        #expect(confirmed.exitCode == 0, "\(confirmed.output)")
        #expect(confirmed.output.contains("forgot 2 devices, 2 records"))
        let rest = try forget("", Self.rows, ["--yes"])
        #expect(rest.exitCode == 0 && !rest.output.contains("Type yes"), "\(rest.output)")
        #expect(rest.output.contains("forgot 19 devices"), "\(rest.output)")
        // Nothing is left to erase, so nothing is asked.
        let again = try forget("")
        #expect(again.exitCode == 0 && !again.output.contains("Type yes"), "\(again.output)")
    }

    @Test func `prune, --skip-dead, --cap and find do not know an erased device any more`() throws {
        _ = try campaign.send(to: server.endpoint)
        let before = try campaign.export()
        let dead = before.indices.filter { before[$0].reason == "Unregistered" }
        let living = before.indices.filter { before[$0].state == "accepted" }
        let erased = [dead[0], dead[1], living[0]]
        #expect(try forget(devices(erased), [campaign.ledger]).exitCode == 0)

        let pruned = "\(folder)/pruned.txt"
        let prune = try Broadside.run(
            [
                "prune", "--ledger", campaign.ledger, "--tokens", campaign.list, "--output", pruned,
            ], in: campaign.directory)
        #expect(prune.exitCode == 0, "\(prune.errors)")
        let left = try String(contentsOfFile: pruned, encoding: .utf8).split(separator: "\n")
        #expect(left.count == 400 - dead.count + 2)
        #expect(left.contains(Substring(token(dead[0]))))

        // One device that is erased and one that is not, by each question.
        let list = try campaign.directory.write(
            [dead[0], dead[2], living[0], living[1]].map { token($0) + "\n" }.joined(), to: "next")
        let next = try campaign.send(
            to: server.endpoint,
            [
                "--tokens", list, "--ledger", "\(folder)/next-night", "--skip-dead",
                campaign.ledger, "--cap", "1/30d", "--history", campaign.ledger, "--summary", "-",
            ])
        let summary = try SendSummary(json: next.output)
        #expect(summary.reasons["DeadToken"] == 1 && summary.reasons["FrequencyCap"] == 1)
        #expect(summary.skipped == 2 && summary.rows == 4)

        for (row, code) in [(dead[0], 1), (living[0], 1), (dead[2], 0), (living[1], 0)] {
            let found = try campaign.ledger("find", ["--token", token(row)])
            #expect(found.exitCode == Int32(code), "row \(row): \(found.errors)")
        }
    }

    @Test func `One device, or a column of another name, erases the same devices`() throws {
        let sent = try campaign.send(to: server.endpoint)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let one = try copy(campaign.ledger)
        let finished = try Broadside.run(
            ["ledger", "forget", "--ledger", one, "--token", token(3).uppercased()],
            in: campaign.directory)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        _ = try judge(campaign.ledger, one, devices([3]))
        let other = try copy(campaign.ledger)
        let list = try campaign.directory.write(
            "User;Device Token\nx;\(token(3))\n", to: "users.csv")
        let column = try Broadside.run(
            [
                "ledger", "forget", "--ledger", other, "--tokens", list, "--token-column",
                "device token",
            ],
            in: campaign.directory)
        #expect(column.exitCode == 0, "\(column.errors)")
        _ = try judge(campaign.ledger, other, devices([3]))
        for (options, words) in [
            (["--token", "zz"], "--token 'zz' is not a device token"),
            (["--token", token(3), "--tokens", list], "exclude each other"),
            ([], "--tokens FILE"), (["--tokens", list], "did you mean 'Device Token'?"),
        ] {
            let refused = try Broadside.run(
                ["ledger", "forget", "--ledger", other] + options, in: campaign.directory)
            #expect(refused.exitCode == 2 && refused.errors.contains(words), "\(refused.errors)")
        }
    }

    @Test func `A device named on the command line and in a page is erased from these files`()
        throws
    {
        let arguments = campaign.arguments(
            to: server.endpoint, ["--to", token(3)], without: ["tokens"])
        let finished = try Broadside.run(arguments, in: campaign.directory)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let page = try Broadside.run(
            ["report", "--ledger", campaign.ledger, "--output", "\(folder)/page.html"],
            in: campaign.directory)
        #expect(page.exitCode == 0, "\(page.errors)")
        try FileManager.default.copyItem(
            atPath: "\(folder)/page.html", toPath: "\(campaign.ledger)/report.html")
        let changes = try forgetAndJudge(campaign.ledger, try devices([3]))
        #expect(changes.contains("telemetry.json"), "\(changes)")
        #expect(
            changes.contains("chunks 1"), "a chunk of one row has a hash of the device: \(changes)")
        let manifest = try String(
            contentsOfFile: "\(campaign.ledger)/manifest.json", encoding: .utf8)
        #expect(!manifest.contains("listHash"))
    }

    @Test func `A device in a text that a user chose is erased from the manifest`() throws {
        let list = try campaign.directory.write(
            "token\n" + (0..<20).map { token($0) + "\n" }.joined(), to: "\(token(4)).csv")
        let (first, rest) = (token(4).prefix(8), token(4).dropFirst(8))
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--tokens", list, "--where", "token != \(token(4))", "--collapse-id", token(4),
                "--name", "for <\(first) \(rest)>", "--label", "for=\(first)-\(rest)",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let changes = try forgetAndJudge(campaign.ledger, try devices([4]))
        #expect(changes.contains("texts in manifest.json"), "\(changes)")
    }

    @Test func `What a kill left behind the last block becomes zero, and its temporary files go`()
        throws
    {
        let finished = try campaign.send(to: server.endpoint)
        #expect(finished.exitCode == 0)
        // As a kill leaves it: a part of a block, with a token and a fingerprint's place.
        let segment = "\(campaign.ledger)/segment-0001-00"
        var bytes = try #require(FileManager.default.contents(atPath: segment))
        let whole = bytes.count
        bytes.append(contentsOf: [1, 2, 3, 4, 200, 0, 0x0C, 0xB1, 9, 9, 9, 9, 9, 9, 9, 9])
        bytes.append(contentsOf: Self.packed(token(3)))
        try bytes.write(to: URL(filePath: segment))
        // And a list that was not yet in its place.
        try campaign.directory.write(token(3) + "\n", to: "ledger/.tokens.new")
        _ = try forgetAndJudge(campaign.ledger, try devices([3]))
        #expect(!FileManager.default.fileExists(atPath: "\(campaign.ledger)/.tokens.new"))
        let after = try #require(FileManager.default.contents(atPath: segment))
        #expect(after.count == bytes.count && after[whole...].allSatisfy { $0 == 0 })
    }

    private static func packed(_ token: String) -> [UInt8] {
        let digits = Array(token)
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(String(digits[$0...($0 + 1)]), radix: 16)!
        }
    }

    @Test func `Merged ledgers, and all ledgers of a folder, lose the devices`() throws {
        try FileManager.default.createDirectory(
            atPath: "\(folder)/nights", withIntermediateDirectories: false)
        for shard in 1...2 {
            let sent = try campaign.send(
                to: server.endpoint,
                ["--shard", "\(shard)/2", "--ledger", "\(folder)/nights/\(shard)"])
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        let merged = try Broadside.run(
            [
                "ledger", "merge", "--output", campaign.ledger, "\(folder)/nights/1",
                "\(folder)/nights/2",
            ],
            in: campaign.directory)
        #expect(merged.exitCode == 0, "\(merged.errors)")
        let devices = try devices()
        let changes = try forgetAndJudge(campaign.ledger, devices)
        #expect(changes.contains("21 of 21 devices found"), "\(changes)")

        let before = try copy("\(folder)/nights")
        let all = try forget(devices, ["\(folder)/nights"])
        #expect(all.output.split(separator: "\n").count == 3, "\(all.output)")
        _ = try judge(before, "\(folder)/nights", devices)
    }

    @Test func `A repair of a damaged ledger keeps erased devices as they are`() throws {
        // One request at a time: many blocks.
        let sent = try campaign.send(
            to: server.endpoint, ["--connections", "1", "--max-streams", "1"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let devices = try devices()
        #expect(try forget(devices, [campaign.ledger]).exitCode == 0)
        let expected = try campaign.export().map(\.token)
        // A damaged block, so that records are written again.
        let segment = "\(campaign.ledger)/segment-0001-00"
        var bytes = try #require(FileManager.default.contents(atPath: segment))
        bytes[bytes.count - 1] ^= 1
        try bytes.write(to: URL(filePath: segment))
        let repaired = "\(folder)/repaired"
        let repair = try campaign.ledger("repair", ["--output", repaired])
        #expect(repair.exitCode == 0, "\(repair.errors)")
        let export = try Broadside.run(
            ["ledger", "export", "--ledger", repaired, "--state", "rejected"],
            in: campaign.directory)
        let kept = Set(try ExportedRow.read(export.output).map(\.token))
        #expect(kept.contains { $0.hasPrefix("forgotten-") })
        #expect(kept.isSubset(of: expected))
    }
}
