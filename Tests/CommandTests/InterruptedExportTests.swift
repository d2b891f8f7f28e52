import BroadsideTestSupport
import Foundation
import Testing

/// What an export says of runs that were interrupted, whatever the list's form: each row of the
/// list once, with its own line and token. The lists are written row by row, so that what is
/// expected comes from no reader of ours.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct InterruptedExportTests {
    /// A list, and where each of its rows starts.
    fileprivate struct WrittenList {
        var text: [UInt8] = []
        var rows: [(line: Int, offset: Int, token: String)] = []
        private var line = 1

        init(_ form: String, count: Int) {
            let tokens = DeviceTokens(count: count)
            if form == "marked" { text = [0xef, 0xbb, 0xbf] }
            switch form {
            case "csv": add("name,token,note\r\n")
            case "tsv": add("token\tnote\n")
            default: break
            }
            for number in 0..<count {
                let token = tokens.token(number)
                // Blank lines are not rows, and are counted as lines.
                if number % 97 == 5 { add("\n") }
                rows.append((line, text.count, token))
                switch form {
                case "csv":
                    let note = number % 5 == 0 ? "\"one\n\"\"two\"\", three\n\"" : "x"
                    add("\"name \(number)\",\(token),\(note)\r\n")
                case "tsv": add("\(token)\t\(number % 7 == 0 ? "\"a b" : "plain")\n")
                case "jsonl": add("{\"name\":\"\(number)\",\"token\":\"\(token)\"}\n")
                default: add(number % 3 == 0 ? "  \(token.uppercased())\r\n" : "\(token)\n")
                }
            }
            // Wider than what is read at once, and the last one without a line end.
            text.removeLast()
        }

        private mutating func add(_ part: String) {
            text += part.utf8
            line += part.utf8.count { $0 == 0x0a }
        }
    }

    struct Case: Sendable, CustomStringConvertible {
        var form: String
        var packing: Packing? = .plain
        var options: [String] = []
        var limit: Int?
        var shards = 1
        var description: String {
            "\(form) \(packing?.rawValue ?? "stdin") \(options) limit \(limit ?? 0) of \(shards)"
        }

        /// The rows that belong to a shard: by the byte at which they start, or by their numbers.
        fileprivate func rows(_ list: WrittenList, shard: Int) -> [(line: Int, token: String)] {
            let size = list.text.count
            let bounds = size * (shard - 1) / shards..<size * shard / shards
            let own = list.rows.enumerated().filter { number, row in
                packing == .plain
                    ? bounds.contains(row.offset) : number % shards == shard - 1
            }
            return own.prefix(limit ?? .max).map { ($0.element.line, $0.element.token) }
        }
    }

    /// Those that are unlike each other. `Tests/Judge/judge_runs.py` draws lists, options and interruptions at random.
    private static let fewCases: [Case] = [
        Case(form: "csv", packing: nil, limit: 5_000),
        Case(form: "lines", packing: .gzip, options: ["--canary", "150"]),
        Case(form: "csv", limit: 1_500, shards: 2),
    ]
    private static let otherCases: [Case] = [
        Case(form: "lines"), Case(form: "marked"), Case(form: "csv"), Case(form: "tsv"),
        Case(form: "jsonl"), Case(form: "lines", packing: .gzip), Case(form: "csv", packing: .zstd),
        Case(form: "jsonl", packing: .gzip), Case(form: "lines", packing: nil),
        Case(form: "lines", limit: 4_048), Case(form: "tsv", packing: .zstd, limit: 5_999),
        Case(form: "lines", options: ["--duplicates", "skip"]),
        Case(form: "csv", options: ["--canary", "150"]),
        Case(form: "csv", shards: 2), Case(form: "lines", packing: .gzip, shards: 3),
        Case(form: "jsonl", packing: .zstd, limit: 1_700, shards: 2),
        Case(form: "lines", packing: nil, limit: 1_700, shards: 2),
    ]

    @Test(
        arguments: TestSize.cases(fewCases + otherCases, otherwise: fewCases)
    )
    func `Each row of an interrupted run is exported once, with its line and token`(_ given: Case)
        throws
    {
        let server = try LocalAPNs(["--unregistered", "0.03"])
        let campaign = try Campaign(rows: 1)
        let list = WrittenList(given.form, count: 6_001)
        let file = try (given.packing ?? .plain).write(
            list.text, to: "list.\(given.form == "marked" ? "txt" : given.form)",
            in: campaign.directory)
        var ledgers: [String] = []
        var all: [(line: Int, token: String)] = []
        for shard in 1...given.shards {
            let ledger = "\(campaign.directory.path)/ledger-\(shard)"
            ledgers.append(ledger)
            let rows = given.rows(list, shard: shard)
            all += rows
            for (instant, signal) in [(0.02, SIGKILL), (0.2, SIGINT), (0.1, SIGKILL)] {
                try interrupt(
                    given, campaign, server, file: file, shard: shard, ledger: ledger,
                    after: instant, signal)
                try check(ledger, rows, in: campaign)
            }
        }
        guard given.shards > 1 else { return }
        let merged = "\(campaign.directory.path)/merged"
        let finished = try Broadside.run(
            ["ledger", "merge", "--output", merged] + ledgers, in: campaign.directory)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        try check(merged, all.sorted { $0.line < $1.line }, in: campaign)
    }

    private func interrupt(
        _ given: Case, _ campaign: Campaign, _ server: LocalAPNs, file: String, shard: Int,
        ledger: String, after seconds: Double, _ signal: Int32
    ) throws {
        var options =
            given.options + ["--ledger", ledger, "--resume-or-begin", "--connections", "1"]
        options += ["--rate", "2500", "--tokens", given.packing == nil ? "-" : file]
        if given.form != "lines", given.form != "marked" { options += ["--format", given.form] }
        if given.shards > 1 { options += ["--shard", "\(shard)/\(given.shards)"] }
        if let limit = given.limit { options += ["--limit", "\(limit)"] }
        let process = try Broadside.start(
            campaign.arguments(to: server.endpoint, options), in: campaign.directory,
            input: given.packing == nil ? file : nil)
        try process.wait { FileManager.default.fileExists(atPath: "\(ledger)/manifest.json") }
        usleep(useconds_t(seconds * 1e6))
        process.send(signal: signal)
        let ended = try process.wait(limit: 120)
        // One that has not begun to take signals yet is ended by each.
        #expect([0, 3, 6, -signal].contains(ended.exitCode), "\(ended.errors)")
    }

    /// All states together are the campaign's rows, and all commands agree how many there are.
    private func check(
        _ ledger: String, _ rows: [(line: Int, token: String)], in campaign: Campaign
    ) throws {
        let states = [
            "accepted", "rejected", "invalid", "skipped", "failed", "unknown", "remaining",
            "in-doubt",
        ]
        let exported = try Broadside.run(
            ["ledger", "export", "--ledger", ledger] + states.flatMap { ["--state", $0] },
            in: campaign.directory)
        #expect(exported.exitCode == 0, "\(exported.errors)")
        let found = try ExportedRow.read(exported.output)
        #expect(found.count == rows.count)
        let wrong = zip(found, rows).first { $0.line != $1.line || $0.token != $1.token }
        #expect(wrong == nil, "\(String(describing: wrong))")
        let stats = try Broadside.run(
            ["ledger", "stats", "--json", "--ledger", ledger], in: campaign.directory)
        let summary = try SendSummary(json: stats.output)
        #expect(summary.rows == nil || summary.rows == rows.count)
        #expect(summary.accepted == found.count { $0.state == "accepted" })
        if let remaining = summary.remaining {
            #expect(remaining == found.count { ["remaining", "in-doubt"].contains($0.state) })
        }
        let verified = try Broadside.run(
            ["ledger", "verify", "--ledger", ledger], in: campaign.directory)
        #expect(verified.exitCode == 0, "\(verified.errors)")
    }
}
