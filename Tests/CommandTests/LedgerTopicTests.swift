import BroadsideTestSupport
import Foundation
import Testing

/// The ledger of a campaign whose rows name their topics: what it says of each row, by the reading of
/// `Tests/Judge/row_topics.py`, and whose dead tokens it names.
@Suite(.timeLimit(.minutes(60)))
struct LedgerTopicTests {
    private static let apps = ["com.example.app", "com.example.other", "com.example.third"]
    private static let tokenCount = 150

    private let campaign: Campaign
    private let list: String

    init() throws { try self.init(tokenCount: Self.tokenCount) }

    /// Each token has a row of each app.
    private init(tokenCount: Int) throws {
        let campaign = try Campaign(rows: tokenCount)
        let rows = (0..<3 * tokenCount).map {
            "\(campaign.tokens.token($0 / 3)),\(Self.apps[$0 % 3])\n"
        }
        self.campaign = campaign
        list = try campaign.directory.write("token,app\n" + rows.joined(), to: "apps.csv")
    }

    /// A server to which all tokens are dead under the second app.
    private func server() throws -> RecordingServer {
        try RecordingServer(
            "topics", ["--refuse", "\(Self.apps[1])=410:Unregistered"], script: "topics.py")
    }

    private func arguments(_ server: RecordingServer, _ more: [String]) -> [String] {
        campaign.arguments(
            to: server.endpoint,
            ["--tokens", list, "--reactors", "2", "--connections", "4"]
                + (more.contains("--topic") ? [] : ["--topic", "{{app}}"]) + more)
    }

    private func send(_ server: RecordingServer, _ more: [String] = []) throws {
        let sent = try Broadside.run(arguments(server, more), in: campaign.directory)
        #expect(sent.exitCode == 0 || sent.exitCode == 6, "\(sent.errors)")
    }

    private func run(_ arguments: [String], exitCode: Int32 = 0) throws -> Finished {
        let finished = try Broadside.run(arguments, in: campaign.directory)
        #expect(finished.exitCode == exitCode, "\(finished.errors)")
        return finished
    }

    /// Holds a ledger, its export and its counts against the list.
    private func judge(_ ledger: String) throws {
        let export = campaign.directory.fresh("export.csv")
        _ = try run(
            ["ledger", "export", "--ledger", ledger, "--tokens", list, "--output", export])
        let stats = try run(["ledger", "stats", "--ledger", ledger, "--json"]).output
        let counts = try campaign.directory.write(stats, to: "stats.json")
        let judged = try Subprocess(
            "python3",
            [Tool.packageRoot + "/Tests/Judge/row_topics.py", ledger, list, export, counts],
            in: campaign.directory
        ).wait(limit: 60)
        #expect(judged.exitCode == 0, "\(judged.output.prefix(2_000))\(judged.errors)")
        let verified = try run(["ledger", "verify", "--ledger", ledger])
        #expect(verified.output.contains("sound"))
    }

    @Test func `A run that is killed leaves each verdict with its topic, and so does a repair`()
        throws
    {
        // So many rows that each kill comes in the middle of a run.
        try Self(tokenCount: 400).expectTopicsAfterKills()
    }

    private func expectTopicsAfterKills() throws {
        let server = try server()
        for kill in 0..<3 {
            let sending = try Broadside.start(
                arguments(server, ["--rate", "400", "--resume-or-begin"]), in: campaign.directory)
            try campaign.waitForRows(sending)
            usleep(UInt32(200_000 + 90_000 * kill))
            sending.send(signal: SIGKILL)
            _ = try sending.wait()
        }
        try send(server, ["--resume-or-begin"])
        try judge(campaign.ledger)
        let first = "\(campaign.ledger)/segment-0001-00"
        var bytes = try Data(contentsOf: URL(fileURLWithPath: first))
        bytes[bytes.count / 2] ^= 1
        try bytes.write(to: URL(fileURLWithPath: first))
        let repaired = campaign.directory.fresh("repaired")
        _ = try run(["ledger", "repair", "--ledger", campaign.ledger, "--output", repaired])
        try judge(repaired)
    }

    @Test func `Shards that number their topics otherwise keep them in one ledger`() throws {
        let server = try server()
        var shards: [String] = []
        for shard in 1...2 {
            shards.append("\(campaign.directory.path)/shard-\(shard)")
            try send(server, ["--shard", "\(shard)/2", "--ledger", shards[shard - 1]])
        }
        let merged = campaign.directory.fresh("merged")
        _ = try run(["ledger", "merge", "--output", merged] + shards)
        try judge(merged)
        let found = try run(
            ["ledger", "find", "--ledger", merged, "--token", campaign.tokens.token(7)])
        for app in Self.apps { #expect(found.output.contains(", topic \(app),")) }
        let json = try run(
            ["ledger", "find", "--ledger", merged, "--token", campaign.tokens.token(7), "--json"])
        for app in Self.apps { #expect(json.output.contains("\"topic\":\"\(app)\"")) }
    }

    @Test func `A follower writes the topics, and an erasure keeps them`() throws {
        try send(try server())
        let (export, followed) = (
            try campaign.export(["--tokens", list]),
            try run(["ledger", "export", "--ledger", campaign.ledger, "--tokens", list, "--follow"])
        )
        func topics(_ rows: [ExportedRow]) -> [Int: String] {
            Dictionary(rows.map { ($0.line ?? 0, $0.topic) }, uniquingKeysWith: { $0 + $1 })
        }
        #expect(try topics(ExportedRow.read(followed.output)) == topics(export))
        let expected: [String] = (0..<3 * Self.tokenCount).map { Self.apps[$0 % 3] }
        #expect(export.map(\.topic) == expected)
        let devices = try campaign.directory.write(
            (0..<40).map { "\(campaign.tokens.token($0 * 3))\n" }.joined(), to: "devices.txt")
        let before = campaign.directory.fresh("before")
        try FileManager.default.copyItem(atPath: campaign.ledger, toPath: before)
        _ = try run(["ledger", "forget", "--tokens", devices, "--ledger", campaign.ledger])
        let judged = try Subprocess(
            "python3",
            [
                Tool.packageRoot + "/Tests/Judge/forgotten_devices.py", before, campaign.ledger,
                devices,
            ], in: campaign.directory
        ).wait(limit: 60)
        #expect(judged.exitCode == 0, "\(judged.output.prefix(2_000))\(judged.errors)")
        try judge(campaign.ledger)
    }

    // MARK: Dead tokens

    private func prune(_ more: [String], exitCode: Int32 = 0) throws -> Set<String> {
        let output = campaign.directory.fresh("pruned")
        let finished = try run(
            ["prune", "--output", output, "--max-removed", "100"]
                + (more.contains("--ledger") ? [] : ["--ledger", campaign.ledger]) + more,
            exitCode: exitCode)
        guard finished.exitCode == 0 else { return [finished.errors] }
        let lines = try String(contentsOfFile: output, encoding: .utf8).split(separator: "\n")
        return Set(lines.dropFirst(more.contains(list) ? 1 : 0).map(String.init))
    }

    @Test func `Prune removes the rows whose token is dead under their own topic`() throws {
        try send(try server())
        let rows = try String(contentsOfFile: list, encoding: .utf8).split(separator: "\n")
            .dropFirst().map(String.init)
        let living = Set(rows.filter { !$0.hasSuffix(",\(Self.apps[1])") })
        #expect(living.count == 2 * Self.tokenCount)
        #expect(try prune(["--tokens", list]) == living)
        #expect(try prune(["--tokens", list, "--topic", "{{app}}"]) == living)
        // A list of one app, without columns.
        let all = Set((0..<Self.tokenCount).map { campaign.tokens.token($0) })
        #expect(try prune(["--tokens", campaign.list, "--topic", Self.apps[0]]) == all)
        #expect(try prune(["--tokens", campaign.list, "--topic", Self.apps[1]]).isEmpty)
        let unnamed = try prune(["--tokens", campaign.list], exitCode: 2).first ?? ""
        #expect(unnamed.contains("--topic"), "\(unnamed)")
        let other = "\(campaign.directory.path)/other"
        try send(try server(), ["--ledger", other, "--topic", Self.apps[0]])
        let both = ["--tokens", list, "--ledger", campaign.ledger, "--ledger", other]
        let mixed = try prune(both, exitCode: 2).first ?? ""
        #expect(mixed.contains("--topic"), "\(mixed)")
        #expect(try prune(both + ["--topic", "{{app}}"]) == living)
    }

    @Test func `A dead token is skipped under the topic for which it was reported, and no other`()
        throws
    {
        try send(try server())
        func skipped(_ name: String, _ more: [String]) throws -> [Int] {
            let ledger = "\(campaign.directory.path)/\(name)"
            try send(try server(), ["--ledger", ledger, "--skip-dead", campaign.ledger] + more)
            if !more.contains("--topic") { try judge(ledger) }
            let export = try run(
                ["ledger", "export", "--ledger", ledger, "--tokens", list, "--reason", "DeadToken"])
            return try ExportedRow.read(export.output).map { ($0.line ?? 0) - 2 }
        }
        let rows = 0..<3 * Self.tokenCount
        #expect(try skipped("rows", []) == rows.filter { $0 % 3 == 1 })
        // The first row of each token is sent, the others are its copies.
        #expect(try skipped("once", ["--duplicates", "skip"]).isEmpty)
        #expect(try skipped("first", ["--topic", Self.apps[0]]) == [])
        #expect(try skipped("second", ["--topic", Self.apps[1]]) == Array(rows))
    }
}
