import BroadsideTestSupport
import Foundation
import Testing

/// `ledger forget` in the middle of a campaign: a list from standard input, and later runs.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ForgetResumeTests: ErasureSuite {
    private let server: LocalAPNs
    let campaign: Campaign

    init() throws { (server, campaign) = try Self.start() }

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
}
