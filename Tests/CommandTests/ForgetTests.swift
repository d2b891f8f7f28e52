import BroadsideTestSupport
import Foundation
import Testing

/// `ledger forget`, judged by code that is not ours: `Tests/Judge/forgotten_devices.py`.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ForgetTests {
    private let server: LocalAPNs
    private let campaign: Campaign
    private var folder: String { campaign.directory.path }

    init() throws {
        server = try LocalAPNs(["--unregistered", "0.3", "--bad-token", "0.1", "--seed", "5"])
        campaign = try Campaign(rows: 400)
    }

    // MARK: Helpers

    /// Rows whose devices are erased: some of the first chunk, and the last.
    private static let rows = Array(3..<23) + [399]

    /// Writes a list of the devices of rows.
    private func devices(_ rows: [Int] = rows) throws -> String {
        try campaign.directory.write(
            rows.map { campaign.tokens.token($0) + "\n" }.joined(), to: "erase.txt")
    }

    private func forget(_ devices: String, _ ledgers: [String]) throws -> Finished {
        try Broadside.run(
            ["ledger", "forget", "--tokens", devices] + ledgers.flatMap { ["--ledger", $0] },
            in: campaign.directory)
    }

    private func copy(_ ledger: String) throws -> String {
        let copy = campaign.directory.fresh("before")
        try FileManager.default.copyItem(atPath: ledger, toPath: copy)
        return copy
    }

    /// Compares a ledger with what it was; the output has the numbers of changed records.
    private func judge(_ before: String, _ after: String, _ devices: String) throws -> String {
        let judged = try campaign.judgeErasure(of: devices, in: after, before: before)
        #expect(judged.exitCode == 0, "\(judged.output.prefix(2_000))\(judged.errors)")
        return judged.output
    }

    /// Forgets devices, holds the ledger against what it was, and repeats it, which changes nothing.
    private func forgetAndJudge(_ ledger: String, _ devices: String) throws -> String {
        let before = try copy(ledger)
        let statistics = try campaign.statistics()
        let finished = try forget(devices, [ledger])
        #expect(finished.exitCode == 0 && finished.errors.isEmpty, "\(finished.errors)")
        let changes = try judge(before, ledger, devices)
        #expect(try campaign.statistics() == statistics)
        let verified = try campaign.ledger("verify")
        #expect(verified.exitCode == 0, "\(verified.errors)")
        let after = try copy(ledger)
        let again = try forget(devices, [ledger])
        #expect(
            again.output.contains("contains none of the devices: nothing changed"),
            "\(again.output)")
        let difference = try Subprocess(
            "diff", ["-r", after, ledger], in: campaign.directory
        ).wait(limit: 60)
        #expect(difference.exitCode == 0, "\(difference.output)")
        return finished.output + changes
    }

    private func token(_ row: Int) -> String { campaign.tokens.token(row) }

    // MARK: What is erased

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
        #expect(changes.contains("forgot 21 devices, 21 verdicts (\(accepted) accepted, "))
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
                ["would forget 21 devices, 21 verdicts (", "would forget 1 device, "]
            ),
            ([5], "1 ledger", ["would forget 1 device, 1 verdict (", "nothing would change"]),
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
        #expect(confirmed.output.contains("forgot 2 devices, 2 verdicts"))
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

    @Test(arguments: ["lines", "csv", "tsv", "jsonl"])
    func `A list from standard input loses the rows of erased devices and keeps its places`(
        format: String
    ) throws {
        func line(_ row: Int) -> String {
            let token = row % 3 == 0 ? token(row).uppercased() : token(row)
            return switch format {
            case "csv": "\"Zo\u{eb}, \(row)\",\"\(token)\",\(row)"
            case "tsv": "n\(row)\t\(token)\t\\N"
            case "jsonl": #"{"token":"\#(token)","name":"Zo\u00eb","n":\#(row)}"#
            default: row == 5 ? "<\(token.prefix(8)) \(token.dropFirst(8))>" : token
            }
        }
        let header = ["csv": "name,token,n\n", "tsv": "name\ttoken\tn\n"][format] ?? ""
        let text = try campaign.directory.write(
            header + (0..<400).map { line($0) + "\n" }.joined(), to: "piped")
        // Half of it is sent: rows that remain belong to the devices as well.
        let stopped = try Broadside.run(
            campaign.arguments(
                to: server.endpoint,
                ["--tokens", "-", "--format", format, "--limit", "200", "--reactors", "2"]),
            in: campaign.directory, input: text)
        #expect(stopped.exitCode == 0, "\(stopped.errors)")
        let found = try forgetAndJudge(campaign.ledger, try devices())
        #expect(found.contains("21 rows of its list"), "\(found)")
        #expect(found.contains("rows 21"), "\(found)")
        let resume = campaign.arguments(
            to: server.endpoint,
            ["--tokens", "-", "--format", format, "--resume", "--max-invalid", "100"])
        let longer = try campaign.directory.write(
            try String(contentsOfFile: text, encoding: .utf8) + line(0) + "\n", to: "longer")
        let refused = try Broadside.run(resume, in: campaign.directory, input: longer)
        #expect(refused.exitCode == 2, "\(refused.errors)")
        #expect(
            refused.errors.contains("bytes; rows that ledger forget erased were not compared)")
                && refused.errors.contains(" devices have or may have got this ledger's campaign"),
            "\(refused.errors)")
        // The same list again: a scheduler repeats the command as it is.
        let rest = try Broadside.run(resume, in: campaign.directory, input: text)
        #expect(rest.exitCode == 0, "\(rest.errors)")
        let rows = try campaign.export()
        #expect(rows.count == 400 && rows[399].state == "invalid", "\(rows.count)")
        #expect(rows[30].token == token(30) && rows[30].line == 31 + (header.isEmpty ? 0 : 1))
        #expect(try server.finish().count { $0[4] == token(399) } == 0)
    }

    /// Half of the list is sent, and the last rows remain. Then the list is complete.
    @Test func `A resume sends nothing to an erased device whose row remains`() throws {
        let stopped = try campaign.send(to: server.endpoint, ["--limit", "200"])
        #expect(stopped.exitCode == 0, "\(stopped.errors)")
        let found = try forgetAndJudge(campaign.ledger, try devices([3, 201, 399]))
        #expect(found.contains("2 rows that a resume will not send"), "\(found)")
        let rest = try campaign.send(to: server.endpoint, ["--resume", "--max-invalid", "0"])
        #expect(rest.exitCode == 0, "\(rest.errors)")
        let rows = try campaign.export()
        #expect(rows.count == 400)
        for row in [201, 399] {
            #expect(rows[row].state == "skipped" && rows[row].reason == "Suppressed")
            #expect(rows[row].token == "forgotten-0000000000000000", "\(rows[row].token)")
            let search = try campaign.ledger("find", ["--token", token(row)])
            #expect(search.exitCode == 1, "\(search.output)")
        }
        #expect(try campaign.ledger("verify").exitCode == 0)
        let requests = try server.finish()
        #expect(requests.count == 398)
        #expect(requests.allSatisfy { ![token(201), token(399)].contains($0[4]) })
    }

    /// The list has ten rows that are sent first, of which six are erased, and ten others, of which
    /// four are erased.
    @Test(arguments: ["lines", "csv", "jsonl"])
    func `Rows of erased devices in a list from standard input do not count for --max-invalid`(
        format: String
    ) throws {
        let header = format == "csv" ? "token,n\n" : ""
        let lines = (0..<20).map { row in
            switch format {
            case "csv": "\(token(row)),\(row)\n"
            case "jsonl": "{\"token\":\"\(token(row))\"}\n"
            default: token(row) + "\n"
            }
        }
        func send(_ limit: Int, _ more: [String] = ["--resume"]) throws -> Finished {
            let isFirst = more.isEmpty
            let input =
                isFirst
                ? try campaign.directory.write(header + lines.joined(), to: "piped") : "/dev/null"
            return try Broadside.run(
                campaign.arguments(
                    to: server.endpoint,
                    ["--tokens", "-", "--format", format, "--limit", "\(limit)"] + more),
                in: campaign.directory, input: input)
        }
        #expect(try send(10, []).exitCode == 0)
        _ = try forgetAndJudge(campaign.ledger, try devices(Array(2..<8) + Array(11..<15)))
        // The second resume knows from the ledger alone that four invalid rows were erased.
        for limit in [15, 19, 20, 20] {
            let resumed = try send(limit)
            #expect(resumed.exitCode == 0, "\(limit): \(resumed.errors)")
        }
        let states = try campaign.export().map(\.state)
        #expect(states.count == 20 && states.count { $0 == "invalid" } == 4, "\(states)")
        #expect(states[11..<15].allSatisfy { $0 == "invalid" }, "\(states)")
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

    @Test
    func `A run between waves holds its ledger, and a resume after an erasure sends the others`()
        throws
    {
        let list = try campaign.directory.write(
            "token,tz\n"
                + (0..<400).map { "\(token($0)),\(TwoWaves.zone($0))\n" }.joined(), to: "piped")
        let options =
            [
                "--tokens", "-", "--format", "csv", "--split", "a=30,b=50", "--split-salt", "s",
                "--max-invalid", "100",
            ] + TwoWaves().options
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, options), in: campaign.directory, input: list)
        try TwoWaves.wait(sending, of: campaign)
        let devices = try devices()
        let held = try forget(devices, [campaign.ledger])
        #expect(held.exitCode == 7, "\(held.errors)")
        sending.send(signal: SIGTERM)
        #expect(try sending.wait().exitCode == 3)

        let arms = try campaign.ledger("stats", ["--json"]).output
        #expect(arms.contains("\"holdout\""), "\(arms)")
        let changes = try forgetAndJudge(campaign.ledger, devices)
        #expect(changes.contains("21 rows of its list"), "\(changes)")
        #expect(try campaign.ledger("stats", ["--json"]).output == arms)

        let later = try LocalAPNs(clock: TwoWaves.later)
        let rest = try Broadside.run(
            campaign.arguments(to: later.endpoint, options + ["--resume"]),
            in: campaign.directory, input: "/dev/null",
            environment: FakeTime.fixed(TwoWaves.later))
        #expect(rest.exitCode == 0, "\(rest.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
        let rows = try campaign.export()
        let requests = try [server.finish(), later.finish()].map { Set($0.map { $0[4] }) }
        #expect(requests[0].isDisjoint(with: requests[1]) && !requests[1].isEmpty)
        for row in 0..<400 {
            let wasSent = requests[TwoWaves.isLater(row) ? 1 : 0].contains(token(row))
            if TwoWaves.isLater(row), Self.rows.contains(row) {
                // Its row is asterisks by now, unless it had a verdict before.
                #expect(!wasSent && ["invalid", "skipped"].contains(rows[row].state), "row \(row)")
            } else {
                #expect(wasSent == (rows[row].state != "skipped"), "row \(row)")
            }
        }
        let judged = try campaign.judgeAbsence(of: devices)
        #expect(judged.exitCode == 0, "\(judged.output.prefix(2_000))\(judged.errors)")
    }

    @Test func `A resume after an erasure skips the rows that the first start skipped`() throws {
        let server = try LocalAPNs()
        let history = "\(campaign.directory.path)/history"
        let half = try campaign.directory.write(
            (200..<400).map { token($0) + "\n" }.joined(), to: "half")
        #expect(
            try campaign.send(to: server.endpoint, ["--tokens", half, "--ledger", history]).exitCode
                == 0)
        let options = ["--tokens", "-", "--cap", "1/7d", "--history", history]
        let first = try Broadside.run(
            campaign.arguments(to: server.endpoint, options + ["--limit", "100"]),
            in: campaign.directory, input: campaign.list)
        #expect(first.exitCode == 0, "\(first.errors)")
        _ = try forgetAndJudge(campaign.ledger, devices([3, 4]))
        // Another ledger is in the place of the one that the search has read.
        try FileManager.default.removeItem(atPath: history)
        let one = try campaign.directory.write(token(0) + "\n", to: "one")
        #expect(
            try campaign.send(to: server.endpoint, ["--tokens", one, "--ledger", history]).exitCode
                == 0)
        let rest = try Broadside.run(
            campaign.arguments(to: server.endpoint, options + ["--resume"]),
            in: campaign.directory, input: "/dev/null")
        #expect(rest.exitCode == 0, "\(rest.errors)")
        let rows = try campaign.export()
        #expect(rows[200...].allSatisfy { $0.state == "skipped" })
        #expect(rows[5..<200].allSatisfy { $0.state == "accepted" })
    }

    // MARK: What is refused

    @Test func `A list of devices that is empty or has a bad row is refused and changes nothing`()
        throws
    {
        _ = try campaign.send(to: server.endpoint)
        let before = try copy(campaign.ledger)
        for (text, problem) in [
            ("", "no row"), ("\(token(3))\nzz\n\(token(4))\n", "line 2"),
            ("token,n\n\(token(3)),1\n,2\n", "line 3"),
        ] {
            let file = try campaign.directory.write(
                text, to: text.contains(",") ? "bad.csv" : "bad.txt")
            let finished = try forget(file, [campaign.ledger])
            #expect(
                finished.exitCode == 2 && finished.errors.contains(problem), "\(finished.errors)")
        }
        let difference = try Subprocess(
            "diff", ["-r", before, campaign.ledger], in: campaign.directory
        ).wait(limit: 60)
        #expect(difference.exitCode == 0, "\(difference.output)")
        #expect(try forget(devices(), ["\(folder)/nothing"]).exitCode == 2)
        let without = try Broadside.run(
            ["ledger", "forget", "--ledger", campaign.ledger], in: campaign.directory)
        #expect(without.exitCode == 2 && without.errors.contains("--tokens FILE"))
    }

    @Test func `A file that is not the ledger's own is refused by its name`() throws {
        _ = try campaign.send(to: server.endpoint)
        try campaign.directory.write(token(3), to: "ledger/rows.csv")
        let finished = try forget(devices(), [campaign.ledger])
        #expect(
            finished.exitCode == 2 && finished.errors.contains("rows.csv"), "\(finished.errors)")
    }

    @Test func `A ledger that a run holds is exit 7, and a damaged one is exit 5`() throws {
        let sending = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "10"]), in: campaign.directory)
        try sending.wait { (try? campaign.statistics().accepted) ?? 0 > 0 }
        let held = try forget(devices(), [campaign.ledger])
        #expect(held.exitCode == 7, "\(held.errors)")
        sending.send(signal: SIGTERM)
        _ = try sending.wait()
        #expect(try forget(devices(), [campaign.ledger]).exitCode == 0)
        let segment = "\(campaign.ledger)/segment-0001-00"
        var bytes = try #require(FileManager.default.contents(atPath: segment))
        bytes[50] ^= 1
        try bytes.write(to: URL(filePath: segment))
        let damaged = try forget(devices(), [campaign.ledger])
        #expect(
            damaged.exitCode == 5 && damaged.errors.contains("ledger repair"), "\(damaged.errors)")
    }

    // MARK: What can't be read

    /// A process of root without the rights over other users' files.
    private func withoutRights(_ words: [String]) throws -> Finished {
        try Subprocess(
            "setpriv",
            [
                "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps",
                "-dac_override,-dac_read_search", Broadside.path(),
            ] + words, in: campaign.directory
        ).wait(limit: 60)
    }

    @Test(.enabled(if: geteuid() == 0, "only root can make a ledger of another user"))
    func `A ledger of another user makes forget, find and --cap exit 5, and the others are used`()
        throws
    {
        let (own, other) = ("\(folder)/nights/own", "\(folder)/nights/other")
        try FileManager.default.createDirectory(
            atPath: "\(folder)/nights", withIntermediateDirectories: false)
        for ledger in [own, other] {
            let sent = try campaign.send(to: server.endpoint, ["--ledger", ledger])
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        let user = 61_235
        #expect(chown(other, uid_t(user), gid_t(user)) == 0)
        let nights = ["--ledger", "\(folder)/nights"]
        for more in [["--dry-run"], []] {
            let erased = try withoutRights(
                ["ledger", "forget", "--token", token(3)] + nights + more)
            #expect(erased.exitCode == 5, "\(erased.errors)")
            #expect(erased.output.contains("\(own): "), "\(erased.output)")
            #expect(erased.errors.contains("--ledger \(other): "), "\(erased.errors)")
            #expect(erased.errors.contains("not erased: run the same"), "\(erased.errors)")
        }
        for (row, output) in [(3, ""), (4, "row 4 ")] {
            let found = try withoutRights(["ledger", "find", "--token", token(row)] + nights)
            #expect(found.exitCode == 5 && found.errors.contains(other), "\(found.errors)")
            #expect(found.output.prefix(6) == output, "\(found.output)")
        }
        let next = "\(folder)/next"
        let refused = try withoutRights(
            campaign.arguments(
                to: server.endpoint,
                ["--ledger", next, "--cap", "1/1d", "--history", "\(folder)/nights"]))
        #expect(refused.exitCode == 5 && refused.errorLines.count == 1, "\(refused.errors)")
        #expect(refused.errors.contains("--history \(other): "), "\(refused.errors)")
        #expect(refused.errors.contains("or move it out of the folder"), "\(refused.errors)")
        #expect(!FileManager.default.fileExists(atPath: next))
        let sent = try withoutRights(
            campaign.arguments(
                to: server.endpoint, ["--ledger", next, "--skip-dead", "\(folder)/nights"]))
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.split(separator: "\n").count { $0.contains(other) } == 1)
    }
}
