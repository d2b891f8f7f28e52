import BroadsideTestSupport
import Foundation
import Testing

/// What `ledger stats`, `find` and `merge` say and touch.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct LedgerCommandTests {
    private func json(_ text: String) throws -> [String: Any] {
        try #require(
            try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
    }

    @Test
    func `ledger stats of a run in progress says so and has null for unknown counts`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 3_000)
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--rate", "100"]), in: campaign.directory)
        try process.wait {
            (try? campaign.statistics())?.accepted ?? 0 > 0
        }
        #expect(try campaign.statistics().outcome == "running")
        let shown = try campaign.ledger("stats").output
        #expect(shown.contains(": running\n") && !shown.contains("may have been sent"))
        process.send(signal: SIGKILL)
        _ = try process.wait(limit: 60)
        #expect(
            try campaign.ledger("stats").output.hasSuffix(
                "rows in doubt may have been sent: a resume records them as unknown, or sends "
                    + "them again with --on-lost resend\n"))
        let killed = try json(try campaign.ledger("stats", ["--json"]).output)
        #expect(killed["outcome"] as? String == "stopped")
        #expect(killed["rows"] is NSNull && killed["remaining"] is NSNull)
        #expect(killed["peak_rss_bytes"] is NSNull && killed["connections"] is NSNull)
        let inDoubt = try #require(killed["in_doubt"] as? Int)
        #expect(try campaign.export(["--state", "in-doubt"]).count == inDoubt && inDoubt > 0)
    }

    @Test func `ledger find has the line and time of the export, in several ledgers`() throws {
        let server = try LocalAPNs()
        let first = try Campaign(rows: 40)
        #expect(try first.send(to: server.endpoint, ["--limit", "30"]).exitCode == 0)
        let other = "\(first.directory.path)/other"
        #expect(try first.send(to: server.endpoint, ["--ledger", other]).exitCode == 0)
        let token = first.tokens.token(7)
        let found = try first.ledger("find", ["--ledger", other, "--token", token, "--json"])
        #expect(found.exitCode == 0, "\(found.errors)")
        let rows = try #require(
            try JSONSerialization.jsonObject(with: Data(found.output.utf8)) as? [[String: Any]])
        #expect(rows.compactMap { $0["ledger"] as? String } == [first.ledger, other])
        let exported = try first.ledger("export", ["--format", "jsonl"])
        let line = try #require(exported.output.split(separator: "\n").first { $0.contains(token) })
        let expected = try json(String(line)) as NSDictionary
        var own = rows[0]
        own["ledger"] = nil
        #expect(own as NSDictionary == expected)
        #expect(own["line"] as? Int == 8)

        // Beyond the limit no row is the campaign's.
        let beyond = try first.ledger("find", ["--token", first.tokens.token(35), "--json"])
        #expect(beyond.exitCode == 1)
        #expect(try JSONSerialization.jsonObject(with: Data(beyond.output.utf8)) as? [Int] == [])
    }

    @Test func `ledger find shows the rows of sound ledgers beside a damaged one, and is exit 5`()
        throws
    {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 40)
        let nights = "\(campaign.directory.path)/nights"
        try FileManager.default.createDirectory(
            atPath: nights, withIntermediateDirectories: false)
        for night in 1...3 {
            let sent = try campaign.send(to: server.endpoint, ["--ledger", "\(nights)/\(night)"])
            #expect(sent.exitCode == 0, "\(sent.errors)")
        }
        let token = campaign.tokens.token(7)
        func find(_ more: [String], in folder: String) throws -> Finished {
            try Broadside.run(
                ["ledger", "find", "--ledger", folder, "--token"] + more, in: campaign.directory)
        }
        for name in ["segment-0001-00", "manifest.json"] {
            let file = URL(filePath: "\(nights)/2/\(name)")
            let whole = try Data(contentsOf: file)
            var damaged = whole
            damaged[100] ^= 1
            try damaged.write(to: file)
            let found = try find([token], in: nights)
            #expect(found.exitCode == 5 && found.errorLines.count == 1, "\(found.errors)")
            #expect(found.errors.contains("--ledger \(nights)/2"), "\(found.errors)")
            let paths: [String] = found.output.split(separator: "\n").map { line in
                String(line.prefix { $0 != ":" })
            }
            #expect(paths == ["\(nights)/1", "\(nights)/3"], "\(found.output)")
            let json = try find([token, "--json"], in: nights)
            let rows = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [Any]
            #expect(json.exitCode == 5 && rows?.count == 2, "\(json)")
            let none = try find(["abcd"], in: nights)
            #expect(none.exitCode == 5 && none.errors.contains("that could be searched"))
            let alone = try find([token], in: "\(nights)/2")
            #expect(alone.exitCode == 5 && alone.errorLines.count == 1, "\(alone.errors)")
            try whole.write(to: file)
        }
        // A mistake in the request is one error, not one for each ledger.
        let wrong = try find(["xyz"], in: nights)
        #expect(wrong.exitCode == 2 && wrong.errorLines.count == 1, "\(wrong.errors)")
    }

    @Test func `ledger export --reason has the rows with these reasons and no others`() throws {
        let server = try LocalAPNs(["--unregistered", "0.2", "--bad-token", "0.1"])
        let campaign = try Campaign(rows: 300)
        let sent = try campaign.send(
            to: server.endpoint, ["--limit", "250", "--abort-after", "300"])
        #expect(sent.exitCode == 3 || sent.exitCode == 0, "\(sent.errors)")
        let all = try campaign.export()
        func lines(_ reasons: [String], _ more: [String] = []) throws -> [Int?] {
            try campaign.export(reasons.flatMap { ["--reason", $0] } + more).map(\.line)
        }
        for reasons in [["Unregistered"], ["BadDeviceToken"], ["BadDeviceToken", "Unregistered"]] {
            let due = all.filter { reasons.contains($0.reason) }.map(\.line)
            #expect(try lines(reasons) == due && !due.isEmpty && due.count < 200)
            #expect(try lines(reasons, ["--state", "rejected", "--state", "remaining"]) == due)
            #expect(try lines(reasons, ["--state", "accepted"]).isEmpty)
        }
        let output = "\(campaign.directory.path)/none.csv"
        for (name, nearest) in [
            ("Unregisterd", "Unregistered"), ("unregistered", "Unregistered"),
            ("TimeOut", "Timeout"),
        ] {
            for more in [["--output", output], ["--follow", "--output", output]] {
                let slip = try campaign.ledger("export", ["--reason", name] + more)
                #expect(
                    slip.exitCode == 2
                        && slip.errors.contains(
                            "--reason '\(name)' is not a reason of APNs: did you mean \(nearest)?"),
                    "\(slip.errors)")
                #expect(!FileManager.default.fileExists(atPath: output), "nothing is written")
            }
        }
        let foreign = try campaign.ledger("export", ["--reason", "QuotaOfTheRelay"])
        #expect(
            foreign.exitCode == 0 && foreign.errors.contains("0 rows are exported"),
            "\(foreign.errors)")
    }

    @Test
    func `ledger merge refuses an output directory that is not a ledger and keeps it`() throws {
        let directory = try TemporaryDirectory()
        let path = "\(directory.path)/photos"
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false)
        let merged = try Broadside.run(
            ["ledger", "merge", "--output", "\(directory.path)/merged", path], in: directory)
        #expect(merged.exitCode == 2)
        #expect(try FileManager.default.contentsOfDirectory(atPath: path).isEmpty)
        #expect(!FileManager.default.fileExists(atPath: "\(directory.path)/merged"))
    }

    @Test func `Shards of different lists of one size are not merged`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 400)
        let other = try campaign.directory.write(
            DeviceTokens(count: 400).list(), to: "other.txt")
        func shard(_ number: Int, _ list: String, input: String? = nil) throws -> String {
            let ledger = campaign.directory.fresh("shard")
            let sent = try Broadside.run(
                campaign.arguments(
                    to: server.endpoint,
                    ["--tokens", list, "--shard", "\(number)/2", "--ledger", ledger]),
                in: campaign.directory, input: input)
            #expect(sent.exitCode == 0, "\(sent.errors)")
            return ledger
        }
        func merge(_ ledgers: [String]) throws -> (code: Int32, output: String) {
            let output = campaign.directory.fresh("merged")
            let done = try Broadside.run(
                ["ledger", "merge", "--output", output] + ledgers, in: campaign.directory)
            return (done.exitCode, output)
        }
        let one = try shard(1, campaign.list)
        #expect(try merge([one, try shard(2, other)]).code == 2)
        #expect(try merge([one, try shard(2, campaign.list)]).code == 0)

        let piped = try [1, 2].map { try shard($0, "-", input: campaign.list) }
        let merged = try merge(piped)
        let again = try merge([merged.output])
        #expect(merged.code == 0 && again.code == 0)
        let exported = try Broadside.run(
            ["ledger", "export", "--ledger", again.output], in: campaign.directory)
        #expect(try ExportedRow.read(exported.output).map(\.line) == Array(1...400))
    }
}
