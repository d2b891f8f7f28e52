import BroadsideTestSupport
import Foundation
import Testing

/// Parts of a list that are sent by themselves, and their ledgers as one.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ShardTests {
    private static let count = 1_200

    /// A list's bytes, by its form.
    private func write(_ form: String, _ tokens: DeviceTokens, in directory: TemporaryDirectory)
        throws -> String
    {
        switch form {
        case "plain": return try directory.write(tokens.list(), to: "list.txt")
        case "gzip": return try Packing.gzip.write(tokens.list(), to: "list.txt", in: directory)
        default:
            // Line ends inside quotes, where a cutter that does not count quotes sees rows.
            let rows = (0..<tokens.count).map { row in
                let note = row % 3 == 0 ? "\"\n\(tokens.token(0)),x\n\"\"\n,\n\"" : "x"
                return row % 2 == 0
                    ? "\(note),\(tokens.token(row))\n" : "\(note),\"\(tokens.token(row))\"\r\n"
            }
            return try directory.write("note,token\n" + rows.joined(), to: "list.csv")
        }
    }

    @Test(arguments: ["plain", "quoted", "gzip"])
    func `Shards 1/7 to 7/7 have each row once and merge into one`(form: String) throws {
        let server = try LocalAPNs(["--unregistered", "0.05"])
        let whole = try Campaign(rows: Self.count)
        let list = try write(form, whole.tokens, in: whole.directory)
        #expect(try whole.send(to: server.endpoint, ["--tokens", list]).exitCode == 0)
        let expected = try whole.export()
        var ledgers: [String] = []
        var rows: [Int] = []
        var exported: [String: String] = [:]
        for shard in 1...7 {
            let ledger = "\(whole.directory.path)/ledger-\(shard)"
            ledgers.append(ledger)
            let more = [
                "--tokens", list, "--shard", "\(shard)/7", "--ledger", ledger, "--summary", "-",
            ]
            // One of them in two runs.
            if shard == 4 {
                let first = try whole.send(to: server.endpoint, more + ["--limit", "50"])
                #expect(try SendSummary(json: first.output).rows == 50)
            }
            let sent = try whole.send(to: server.endpoint, more + (shard == 4 ? ["--resume"] : []))
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let summary = try SendSummary(json: sent.output)
            rows.append(summary.rows ?? -1)
            #expect(summary.remaining == 0 && summary.accepted + summary.rejected == summary.rows)
            let part = try Broadside.run(
                ["ledger", "export", "--ledger", ledger], in: whole.directory)
            for line in part.output.split(separator: "\n").dropFirst() {
                let number = String(line.prefix { $0 != "," })
                #expect(exported.updateValue(String(line), forKey: number) == nil)
            }
        }
        #expect(rows.reduce(0, +) == Self.count && rows.allSatisfy { $0 > 100 }, "\(rows)")
        #expect(exported.count == Self.count)

        let merged = "\(whole.directory.path)/merged"
        let result = try Broadside.run(
            ["ledger", "merge", "--output", merged] + ledgers.reversed(), in: whole.directory)
        #expect(result.exitCode == 0, "\(result.errors)")
        try expectOne(merged, whole, expected, parts: exported)

        // Each row arrived twice: from the whole, and from its shard.
        let journal = try server.finish().map { $0[4] }
        let arrived = Dictionary(grouping: journal) { $0 }.mapValues(\.count)
        #expect(arrived.count == Self.count && arrived.values.allSatisfy { $0 == 2 })
    }

    /// The merged ledger says what the whole one says, with the shards' own apns-ids.
    private func expectOne(
        _ merged: String, _ whole: Campaign, _ expected: [ExportedRow], parts: [String: String]
    ) throws {
        func ledger(_ words: String...) throws -> Finished {
            try Broadside.run(["ledger"] + words + ["--ledger", merged], in: whole.directory)
        }
        let verified = try ledger("verify")
        #expect(verified.exitCode == 0 && verified.output.contains("finished, 7 shards"))
        let summary = try SendSummary(json: ledger("stats", "--json").output)
        let original = try whole.statistics()
        #expect(summary.rows == Self.count && summary.accepted == original.accepted)
        #expect(summary.rejected == original.rejected && summary.reasons == original.reasons)

        let output = "\(whole.directory.path)/merged.csv.zst"
        #expect(try ledger("export", "--output", output).exitCode == 0)
        let text = String(
            decoding: try Packing.unpack(output, in: whole.directory), as: UTF8.self)
        let lines = text.split(separator: "\n").dropFirst().map(String.init)
        func number(_ line: String) -> String { String(line.prefix { $0 != "," }) }
        let numbers = expected.map { String($0.line ?? 0) }
        #expect(lines.map(number) == numbers)
        for line in lines {
            #expect(parts[number(line)] == line)
        }
        for (line, (number, row)) in zip(lines, zip(numbers, expected)) {
            #expect(line.hasPrefix("\(number),\(row.token),\(row.state),"))
        }
        // The rows of one state, through long stretches without any.
        let rejected = try ledger("export", "--state", "rejected").output
        #expect(
            rejected.split(separator: "\n").dropFirst().map(String.init)
                == lines.filter { $0.contains(",rejected,") })
        // Any shard's apns-id is found.
        for line in [lines[3], lines[700], lines[1_190]] {
            let identifier = line.split(separator: ",", omittingEmptySubsequences: false)[7]
            let found = try ledger("find", "--apns-id", String(identifier))
            #expect(found.exitCode == 0 && found.output.contains(identifier))
        }
        // Prune takes it as it takes the whole.
        var pruned: [Data?] = []
        for (name, ledger) in [("one", merged), ("two", whole.ledger)] {
            let file = "\(whole.directory.path)/\(name)"
            let done = try Broadside.run(
                ["prune", "--ledger", ledger, "--tokens", whole.list, "--output", file],
                in: whole.directory)
            #expect(done.exitCode == 0, "\(done.errors)")
            pruned.append(FileManager.default.contents(atPath: file))
        }
        #expect(pruned[0] != nil && pruned[0] == pruned[1])
        #expect(pruned[0].map { $0.count == 65 * original.accepted } == true)
    }

    @Test(arguments: [1, 2, 3, 5])
    func `A short list in many shards has each row in exactly one`(rows: Int) throws {
        let server = try Nghttpd()
        let campaign = try Campaign(rows: rows)
        let list = try campaign.directory.write(
            "\u{feff}token\r\n\n" + (0..<rows).map { campaign.tokens.token($0) + "\n\n" }.joined(),
            to: "short.csv")
        var counts: [Int] = []
        for shard in 1...4 {
            let options = [
                "--tokens", list, "--shard", "\(shard)/4", "--summary", "-", "--ledger",
                "\(campaign.directory.path)/ledger-\(shard)",
            ]
            let dry = try campaign.send(to: server.endpoint, options + ["--dry-run"])
            let sent = try campaign.send(to: server.endpoint, options)
            let count = try SendSummary(json: sent.output).accepted
            for ended in [dry, sent] {
                #expect(ended.exitCode == 0, "\(ended.errors)")
                let isWarned = ended.errors.contains("no row of the list is in this part")
                #expect(isWarned == (count == 0), "\(ended.errors)")
            }
            counts.append(count)
        }
        #expect(counts.reduce(0, +) == rows)
        #expect(try server.tally(campaign.tokens).isExact)
        // By the byte on which each row starts.
        let text = try #require(FileManager.default.contents(atPath: list))
        var expected = [0, 0, 0, 0]
        for row in 0..<rows {
            let start = try #require(text.range(of: Data(campaign.tokens.token(row).utf8)))
            let shard = (0..<4).last { start.lowerBound >= text.count * $0 / 4 }
            expected[shard ?? 0] += 1
        }
        #expect(counts == expected)
    }

    private struct Said: Decodable {
        var rows: UInt64?
        var rows_estimated: Bool?
    }

    /// By bytes a shard's end is known, but for the last one's; by rows the list's end is not.
    @Test(arguments: [("bytes", "2/3", false), ("bytes", "3/3", true), ("rows", "2/3", true)])
    func `The counts of a shard in progress are about its own rows`(
        kind: String, shard: String, isEstimate: Bool
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 30_000)
        let isByBytes = kind == "bytes"
        let metricsFile = "\(campaign.directory.path)/metrics"
        let run = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--tokens", isByBytes ? campaign.list : "-", "--shard", shard, "--rate", "200",
                    "--metrics", metricsFile,
                ]),
            in: campaign.directory, input: isByBytes ? nil : campaign.list)
        func ask(_ words: String...) throws -> Said {
            let finished = try Broadside.run(words + ["--json"], in: campaign.directory)
            return (try? JSONDecoder().decode(Said.self, from: Data(finished.output.utf8)))
                ?? Said()
        }
        try run.wait {
            // The first metrics may be older than the first count.
            let metrics = (try? String(contentsOfFile: metricsFile, encoding: .utf8)) ?? ""
            return try metrics.contains("\nbroadside_list_rows ")
                && ask("status", campaign.ledger).rows != nil
        }
        let status = try ask("status", campaign.ledger)
        let control = try ask("control", "--ledger", campaign.ledger, "status")
        for said in [status, control] {
            #expect((9900...10_100).contains(try #require(said.rows)), "\(said)")
            #expect(isEstimate || said.rows == 10_000)
            #expect(said.rows_estimated == isEstimate)
        }
        let metrics = try String(contentsOfFile: metricsFile, encoding: .utf8)
        let gauge = try #require(metrics.firstMatch(of: /\nbroadside_list_rows ([0-9]+)\n/))
        #expect((9900...10_100).contains(try #require(Int(gauge.1))))
        run.send(signal: SIGINT)
        #expect(try run.wait().exitCode == 3)
    }

    @Test func `A merged ledger has the worst end of its shards, and counts them once`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 40)
        let path = campaign.directory.path
        func send(_ name: String, _ more: [String]) throws -> Int32 {
            try campaign.send(
                to: server.endpoint, ["--ledger", "\(path)/\(name)", "--name", "sale"] + more
            ).exitCode
        }
        #expect(try send("one", ["--shard", "1/2"]) == 0)
        #expect(try send("two", ["--shard", "2/2", "--deadline", "1s", "--rate", "8"]) == 3)
        let merged = try Broadside.run(
            ["ledger", "merge", "--output", "\(path)/merged", "\(path)/one", "\(path)/two"],
            in: campaign.directory)
        #expect(merged.exitCode == 3 || merged.exitCode == 0, "\(merged.errors)")
        let status = try Broadside.run(
            ["status", "\(path)/merged", "--json"], in: campaign.directory)
        #expect(status.output.contains(#""state":"stopped""#), "\(status.output)")
        #expect(status.output.contains(#""name":"sale""#), "\(status.output)")
        #expect(!status.output.contains(#""started_at_ms":null"#), "\(status.output)")
        let page = try Broadside.run(
            ["report", "--ledger", "\(path)/merged"], in: campaign.directory)
        #expect(page.output.contains("<h1>Stopped after "), "\(page.output.prefix(9_000))")
        #expect(!page.output.contains("less than a second"))
        let all = try Broadside.run(["report", "--all", path, "--json"], in: campaign.directory)
        #expect(all.output.ranges(of: #""name":"sale""#).count == 1, "\(all.output)")
    }

    @Test func `Shards that are not a whole campaign are not merged`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 30)
        let path = campaign.directory.path
        func send(_ name: String, _ more: [String]) throws {
            let sent = try campaign.send(
                to: server.endpoint, ["--ledger", "\(path)/\(name)"] + more)
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        try send("one", ["--shard", "1/2"])
        try send("two", ["--shard", "2/2"])
        try send("again", ["--shard", "2/2"])
        try send("other", ["--shard", "2/2", "--collapse-id", "x"])
        try send("whole", [])
        for (names, says) in [
            (["one"], ["shard 2/2"]), (["one", "one"], ["one", "same ledger"]),
            (["one", "two", "again"], ["two", "again", "same shard"]),
            (["one", "other"], ["other", "collapse id"]),
            (["one", "whole"], ["whole", "--shard"]),
            (["one", "nothing"], ["nothing", "No such file"]), ([], ["merge"]),
        ] {
            let finished = try Broadside.run(
                ["ledger", "merge", "--output", "\(path)/merged"] + names.map { "\(path)/\($0)" },
                in: campaign.directory)
            #expect(finished.exitCode == 2 && finished.errorLines.count == 1, "\(finished.errors)")
            for words in says { #expect(finished.errors.contains(words), "\(finished.errors)") }
            #expect(access("\(path)/merged", F_OK) != 0)
        }
        // A damaged one is named, and nothing is left of the merge.
        let segment = URL(filePath: "\(path)/two/segment-0001-00")
        var bytes = try Data(contentsOf: segment)
        bytes[60] ^= 1
        try bytes.write(to: segment)
        let damaged = try Broadside.run(
            ["ledger", "merge", "--output", "\(path)/merged", "\(path)/one", "\(path)/two"],
            in: campaign.directory)
        #expect(damaged.exitCode == 5 && damaged.errors.contains("two"), "\(damaged.errors)")
        #expect(access("\(path)/merged", F_OK) != 0)
    }
}
