import BroadsideTestSupport
import Foundation
import Testing

/// The same list in each format and packing makes the same campaign.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct ListFormsTests {
    /// A row of an export in JSON Lines.
    struct Row: Decodable {
        var line: Int
        var token: String?
        var state: String
        var status: Int?
        var reason: String?
        var apns_id: String
    }

    static func export(_ campaign: Campaign, _ more: [String] = []) throws -> [Row] {
        let finished = try campaign.ledger("export", ["--format", "jsonl"] + more)
        guard finished.exitCode == 0 else { throw TestFailure(finished.errors) }
        var array = Data("[".utf8)
        array.append(contentsOf: finished.output.utf8.dropLast().map { $0 == 0x0a ? 0x2c : $0 })
        array.append(contentsOf: "]".utf8)
        return try JSONDecoder().decode([Row].self, from: array)
    }

    /// Each format, and each way to compress a list.
    private static let forms: [(format: String, packing: Packing)] = TestSize.cases(
        ["lines", "csv", "tsv", "jsonl"].flatMap { format in
            Packing.allCases.map { (format, $0) }
        },
        otherwise: [
            ("lines", .plain), ("csv", .plain), ("csv", .gzip), ("tsv", .plain), ("jsonl", .plain),
            ("jsonl", .zstd),
        ])

    @Test
    func `4,500 rows, 135 of them broken, have the same tokens, states and lines in each form`()
        throws
    {
        let list = BrokenList(count: 4_500, brokenCount: 135)
        let server = try LocalAPNs(["--unregistered", "0.02", "--bad-token", "0.01"])
        var states: [String]?
        var campaigns: Set<String> = []
        for (format, packing) in Self.forms {
            let (text, lines) = list.text(format)
            let campaign = try Campaign(rows: 0)
            let name = format == "lines" ? "list.txt" : "list.\(format)"
            let file = try packing.write(text, to: name, in: campaign.directory)
            let sent = try campaign.send(
                to: server.endpoint, ["--tokens", file, "--summary", "-"])
            #expect(sent.exitCode == 0, "\(format) \(packing): \(sent.errors)")
            let rows = try Self.export(campaign)
            #expect(rows.map(\.line) == lines, "\(format) \(packing)")
            let found = rows.map { "\($0.state) \($0.status ?? 0)" }
            #expect(states == nil || states == found, "\(format) \(packing)")
            states = found
            let wrong = zip(rows, list.rows).filter { row, expected in
                guard expected.token == nil else {
                    return row.state == "invalid" || row.token != expected.token
                }
                let isMissing = expected.text == nil && format != "lines"
                return row.state != "invalid"
                    || row.reason != (isMissing ? "MissingColumn" : "MalformedToken")
            }
            #expect(wrong.isEmpty, "\(format) \(packing): \(wrong.count), \(wrong.prefix(3))")
            campaigns.insert(String(rows[0].apns_id.prefix(23)))
            #expect(try campaign.ledger("verify").output.contains("finished"))
        }
        #expect(Set(states ?? []).count == 4)
        // What arrived, by campaign.
        var tokens: [String: [String]] = [:]
        for request in try server.finish() {
            tokens[String(request[3].prefix(23)), default: []].append(request[4])
        }
        #expect(Set(tokens.keys) == campaigns && tokens.count == Self.forms.count)
        let expected = list.rows.compactMap(\.token).sorted()
        for (_, found) in tokens { #expect(found.sorted() == expected) }
    }

    @Test(arguments: [
        Packing.gzip, .zstd,
    ])
    func `A list that is truncated behind its first 4 MiB is exit 5, and a resume finishes it`(
        packing: Packing
    ) throws {
        let campaign = try Campaign(rows: 4_000)
        let server = try Nghttpd(for: campaign.tokens)
        let whole = try packing.write(
            campaign.tokens.wideList(), to: "list.csv", in: campaign.directory)
        let packed = try Data(contentsOf: URL(filePath: whole))
        try packed.prefix(packed.count * 3 / 4).write(to: URL(filePath: whole))
        let first = try campaign.send(to: server.endpoint, ["--tokens", whole, "--summary", "-"])
        #expect(first.exitCode == 5)
        #expect(first.errorLines.count == 1 && first.errors.contains("cut off"), "\(first.errors)")
        #expect(first.errors.contains(whole) && first.errors.contains("--resume"))
        let sent = try SendSummary(json: first.output)
        #expect(sent.accepted > 0 && sent.accepted < 4_000 && sent.rows == nil)
        #expect(try campaign.ledger("verify").exitCode == 0)
        let early = try server.tally(campaign.tokens)
        #expect(early.total == sent.accepted && early.repeated == 0)

        try packed.write(to: URL(filePath: whole))
        let second = try campaign.send(
            to: server.endpoint, ["--tokens", whole, "--resume", "--summary", "-"])
        #expect(second.exitCode == 0, "\(second.errors)")
        #expect(try SendSummary(json: second.output).accepted == 4_000)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `A resume with a changed compressed list is refused`() throws {
        let campaign = try Campaign(rows: 3_000)
        let server = try Nghttpd(for: campaign.tokens)
        let file = try Packing.gzip.write(
            campaign.tokens.list(), to: "list", in: campaign.directory)
        let arguments = ["--tokens", file, "--limit", "1000"]
        #expect(try campaign.send(to: server.endpoint, arguments).exitCode == 0)
        // The same list compressed otherwise is the same list.
        let other = try Packing.zstd.write(
            campaign.tokens.list(), to: "other", in: campaign.directory)
        let same = try campaign.send(
            to: server.endpoint, ["--tokens", other, "--limit", "2000", "--resume"])
        #expect(same.exitCode == 0, "\(same.errors)")
        var text = campaign.tokens.list()
        text[65 * 1_500] ^= 1
        for changed in [text, DeviceTokens(count: 3_000).list()] {
            _ = try Packing.gzip.write(changed, to: "list", in: campaign.directory)
            let refused = try campaign.send(to: server.endpoint, ["--tokens", file, "--resume"])
            #expect(refused.exitCode == 2 && refused.errors.contains("--tokens \(file)"))
            #expect(refused.errors.contains("not the list"), "\(refused.errors)")
        }
        #expect(try server.tally(campaign.tokens).total == 2_000)
    }

    @Test func `Standard input is copied, and a resume does not need it`() throws {
        let campaign = try Campaign(rows: 4_000)
        let server = try Nghttpd(for: campaign.tokens)
        let packed = try Packing.gzip.write(
            campaign.tokens.list(), to: "list", in: campaign.directory)
        let arguments = { (more: [String]) in
            campaign.arguments(to: server.endpoint, ["--tokens", "-", "--summary", "-"] + more)
        }
        let first = try Broadside.run(
            arguments(["--limit", "1500"]), in: campaign.directory, input: packed)
        #expect(first.exitCode == 0, "\(first.errors)")
        let spool = "\(campaign.ledger)/tokens"
        #expect(
            FileManager.default.contents(atPath: spool).map(Array.init) == campaign.tokens.list())
        var information = stat()
        #expect(stat(spool, &information) == 0 && information.st_mode & 0o777 == 0o600)

        let second = try Broadside.run(arguments(["--resume"]), in: campaign.directory)
        #expect(second.exitCode == 0, "\(second.errors)")
        try expectComplete(campaign, summary: SendSummary(json: second.output))
        #expect(try server.tally(campaign.tokens).isExact)
        #expect(try campaign.export().map(\.token) == (0..<4_000).map(campaign.tokens.token))
    }

    @Test func `A resume takes standard input only if it is the first run's list`() throws {
        let campaign = try Campaign(rows: 2_000)
        let server = try Nghttpd(for: campaign.tokens)
        let whole = campaign.tokens.list()
        let packed = try Packing.gzip.write(whole, to: "list", in: campaign.directory)
        func send(_ more: [String], input: String?) throws -> Finished {
            try Broadside.run(
                campaign.arguments(to: server.endpoint, ["--tokens", "-"] + more),
                in: campaign.directory, input: input, limit: 60)
        }
        #expect(try send(["--limit", "500"], input: campaign.list).exitCode == 0)
        let manifest = "\(campaign.ledger)/manifest.json"
        let begun = try Data(contentsOf: URL(filePath: manifest))
        var digit = whole
        digit[65 * 1_900] ^= 1
        let others: [(list: [UInt8], says: String)] = [
            (DeviceTokens(count: 2_000).list(), "differs"),
            (digit, "byte 123501 differs"),
            (Array(whole.dropLast(65)), "it ends after 129935 bytes"),
            (whole + DeviceTokens(count: 1).list(), "it continues after 130000 bytes"),
        ]
        func refuseOthers() throws {
            for (list, says) in others {
                for packing in [Packing.plain, .zstd] {
                    let file = try packing.write(list, to: "other", in: campaign.directory)
                    let refused = try send(["--resume"], input: file)
                    #expect(refused.exitCode == 2, "\(says): \(refused.errors)")
                    #expect(refused.errorLines.count == 1, "\(refused.errors)")
                    #expect(refused.errors.contains("--tokens -"), "\(refused.errors)")
                    #expect(refused.errors.contains(says), "\(refused.errors)")
                    #expect(
                        refused.errors.contains(
                            "</dev/null to continue with the original list, or name another")
                            && refused.errors.contains("devices have or may have got"),
                        "\(refused.errors)")
                }
            }
            // Through a pipe, as it comes from another program.
            let other = try campaign.directory.write(digit, to: "other.txt")
            let piped = try Subprocess(
                "bash",
                ["-c", "cat '\(other)' | \"$0\" \"$@\"", Broadside.path()]
                    + campaign.arguments(to: server.endpoint, ["--tokens", "-", "--resume"]),
                in: campaign.directory
            ).wait(limit: 60)
            #expect(piped.exitCode == 2, "\(piped.errors)")
        }
        try refuseOthers()
        #expect(try Data(contentsOf: URL(filePath: manifest)) == begun)
        #expect(try server.tally(campaign.tokens).total == 500)

        let empty = try campaign.directory.write("", to: "empty")
        #expect(try send(["--resume", "--limit", "800"], input: empty).exitCode == 0)
        #expect(try send(["--resume", "--limit", "1000"], input: nil).exitCode == 0)
        let closed = try Subprocess(
            "bash",
            ["-c", "\"$0\" \"$@\" <&-", Broadside.path()]
                + campaign.arguments(
                    to: server.endpoint, ["--tokens", "-", "--resume", "--limit", "1200"]),
            in: campaign.directory
        ).wait(limit: 60)
        #expect(closed.exitCode == 0, "\(closed.errors)")
        #expect(try server.tally(campaign.tokens).total == 1_200)
        let rest = try send(["--resume", "--summary", "-"], input: packed)
        #expect(rest.exitCode == 0, "\(rest.errors)")
        try expectComplete(campaign, summary: SendSummary(json: rest.output))
        #expect(try server.tally(campaign.tokens).isExact)
        // Nothing is left to send: another list is another list all the same.
        try refuseOthers()
        #expect(try send(["--resume"], input: campaign.list).exitCode == 0)
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `A pipe that stays open and silent does not block a resume`() throws {
        let server = try Nghttpd()
        let campaign = try Campaign(rows: 600)
        let arguments = { (more: [String]) in
            campaign.arguments(to: server.endpoint, ["--tokens", "-", "--summary", "-"] + more)
        }
        let first = try Broadside.run(
            arguments(["--limit", "200"]), in: campaign.directory, input: campaign.list)
        #expect(first.exitCode == 0, "\(first.errors)")
        let pipe = "\(campaign.directory.path)/pipe"
        #expect(mkfifo(pipe, 0o600) == 0)
        let writer = open(pipe, O_RDWR | O_CLOEXEC)
        defer { close(writer) }
        // A signal is taken meanwhile.
        let stopped = try Broadside.start(
            arguments(["--resume"]), in: campaign.directory, input: pipe)
        // It blocks signals at its start, before it starts other threads.
        try stopped.wait {
            let threads = "/proc/\(stopped.identifier)/task"
            return try FileManager.default.contentsOfDirectory(atPath: threads).contains { thread in
                let status = try String(
                    contentsOfFile: "\(threads)/\(thread)/status", encoding: .utf8)
                let blocked = status.firstMatch(of: /SigBlk:\t([0-9a-f]+)/)
                    .flatMap { UInt64($0.1, radix: 16) }
                return (blocked ?? 0) & 1 << UInt64(SIGTERM - 1) != 0
            }
        }
        usleep(2_000_000)
        #expect(stopped.isRunning)
        stopped.send(signal: SIGTERM)
        let end = try stopped.wait()
        #expect(end.exitCode == 3 && end.errors.contains("standard input"), "\(end.errors)")
        let summary = try SendSummary(json: end.output)
        #expect(summary.outcome == "stopped" && summary.accepted == 200)

        let second = try Broadside.run(
            arguments(["--resume"]), in: campaign.directory, input: pipe, limit: 60)
        #expect(second.exitCode == 0, "\(second.errors)")
        #expect(second.errors.contains("warning: standard input is open"), "\(second.errors)")
        try expectComplete(campaign, summary: SendSummary(json: second.output))
        #expect(try server.tally(campaign.tokens).isExact)
    }

    @Test func `prune, export and probe take standard input`() throws {
        let server = try LocalAPNs(["--unregistered", "0.1"])
        let campaign = try Campaign(rows: 2_000)
        let packed = try Packing.zstd.write(
            campaign.tokens.list(), to: "list", in: campaign.directory)
        let output = "\(campaign.directory.path)/living.gz"
        var arguments = campaign.arguments(to: server.endpoint, ["--tokens", "-"])
        arguments[0] = "probe"
        let place = try #require(arguments.firstIndex(of: "--payload"))
        arguments.removeSubrange(place...(place + 1))
        let probed = try Broadside.run(
            arguments + ["--then-prune", output], in: campaign.directory, input: packed)
        #expect(probed.exitCode == 0, "\(probed.errors)")
        let rows = try campaign.export()
        let living = rows.filter { $0.state == "accepted" }.map { $0.token + "\n" }.joined()
        #expect(rows.count == 2_000 && living.utf8.count < 65 * 1_950)
        #expect(try Packing.unpack(output, in: campaign.directory) == Array(living.utf8))

        let again = "\(campaign.directory.path)/again"
        let pruned = try Broadside.run(
            ["prune", "--ledger", campaign.ledger, "--tokens", "-", "--output", again],
            in: campaign.directory, input: packed)
        #expect(pruned.exitCode == 0, "\(pruned.errors)")
        #expect(try Packing.unpack(again, in: campaign.directory) == Array(living.utf8))
        let spool = try campaign.ledger("export")
        let piped = try Broadside.run(
            ["ledger", "export", "--ledger", campaign.ledger, "--tokens", "-"],
            in: campaign.directory, input: packed)
        #expect(piped.exitCode == 0 && piped.output == spool.output, "\(piped.errors)")
    }

    @Test func `A list on standard input that cannot be sent leaves no ledger`() throws {
        let campaign = try Campaign(rows: 100)
        let packed = try Packing.zstd.write(
            campaign.tokens.list(), to: "list", in: campaign.directory)
        let half = try Data(contentsOf: URL(filePath: packed)).dropLast(9)
        try half.write(to: URL(filePath: packed))
        let table = try campaign.directory.write("name,device\na,aabb\n", to: "table")
        for (input, more, code, says) in [
            (packed, [String](), Int32(2), "standard input is cut off"),
            (table, [], 2, "has no column 'token'"),
            (table, ["--token-column", "device", "--payload", "/nowhere"], 2, "/nowhere"),
        ] {
            let finished = try Broadside.run(
                campaign.arguments(to: "127.0.0.1:1", ["--tokens", "-"] + more),
                in: campaign.directory, input: input, limit: 30)
            #expect(
                finished.exitCode == code && finished.errors.contains(says), "\(finished.errors)")
            #expect(access(campaign.ledger, F_OK) != 0)
        }
    }
}
