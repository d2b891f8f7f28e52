import BroadsideTestSupport
import Foundation
import Testing

/// A campaign in a file: read, overridden, written out and read back.
@Suite(.timeLimit(.minutes(60)))
struct CampaignFileTests {
    private let directory: TemporaryDirectory
    private let authority: TestAuthority

    init() throws {
        directory = try TemporaryDirectory()
        authority = try TestAuthority.shared()
        try FileManager.default.createDirectory(
            atPath: "\(directory.path)/night", withIntermediateDirectories: false)
        try directory.write("token,name\naabb,Jo\nccdd,Al\n", to: "night/list.csv")
        try directory.write(#"{"aps":{"alert":"{{name}}"}}"#, to: "night/hello.json")
        try directory.write(
            """
            // What goes out tonight.
            {
              tokens: 'list.csv', "payload": "hello.json", /* beside it */
              topic: 'com.example.app', priority: 0x5, rate: +2.5e2, expiration: '+2h',
              'auth-key': '\(authority.authKey)', 'key-id': "ABC123DEFG", 'team-id': 'DEF\\
            123GHIJ',
              'collapse-id': '{{name}}-1',
            }
            """, to: "night/c.json5")
    }

    private func send(_ arguments: [String], in folder: TemporaryDirectory? = nil) throws
        -> Finished
    {
        try Broadside.run(["send"] + arguments, in: folder ?? directory, limit: 30)
    }

    @Test func `A campaign file sets what options set, with paths relative to the file`() throws {
        let finished = try send(["--campaign", "\(directory.path)/night/c.json5", "--dry-run"])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(
            finished.output.contains("topic        com.example.app, push type alert, priority 5"))
        #expect(finished.output.contains("250 requests per second"))
        #expect(finished.output.contains("to send      2"))
    }

    @Test
    func `An option overrides the campaign file and drops what it makes meaningless`() throws {
        let file = "\(directory.path)/night/c.json5"
        let finished = try send(
            [
                "--campaign", file, "--dry-run", "--priority", "10", "--to", "aabb",
                "--collapse-id", "x", "--payload",
                try directory.write(Campaign.payload, to: "other.json"),
            ])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        #expect(
            finished.output.contains("priority 10") && finished.output.contains("rows         1\n"))
        let printed = try send(
            ["--campaign", file, "--print-campaign", "--auth-token-file", "/t", "--rate", "7"])
        let object = try JSONSerialization.jsonObject(with: Data(printed.output.utf8))
        let fields = try #require(object as? [String: Any])
        #expect(fields["rate"] as? Int == 7 && fields["auth-token-file"] as? String == "/t")
        #expect(fields["auth-key"] == nil && fields["key-id"] == nil)
    }

    @Test
    func
        `--print-campaign prints a file that means the same from another directory and sends nothing`()
        throws
    {
        let first = try send(
            [
                "--campaign", "\(directory.path)/night/c.json5", "--print-campaign", "--ledger",
                "l",
                "--summary", "-", "--payload-by", "name=by", "--yes",
            ])
        #expect(first.exitCode == 0 && first.errors.isEmpty, "\(first.errors)")
        let object = try JSONSerialization.jsonObject(with: Data(first.output.utf8))
        let fields = try #require(object as? [String: Any])
        #expect(fields["tokens"] as? String == "\(directory.path)/night/list.csv")
        let here = FileManager.default.currentDirectoryPath
        #expect(fields["payload-by"] as? String == "name=\(here)/by")
        #expect(fields["summary"] as? String == "-" && fields["yes"] as? Bool == true)
        #expect(fields["team-id"] as? String == "DEF123GHIJ" && fields["priority"] as? Int == 5)
        #expect(
            fields["rate"] as? Double == 250 && fields["collapse-id"] as? String == "{{name}}-1")
        let elsewhere = try TemporaryDirectory()
        let file = try elsewhere.write(first.output, to: "printed.json5")
        let second = try send(["--campaign", file, "--print-campaign"], in: elsewhere)
        #expect(second.output == first.output, "\(second.errors)")
        #expect(!FileManager.default.fileExists(atPath: "\(here)/l"))
    }

    @Test func `probe takes a campaign file with its own options`() throws {
        let file = try directory.write(
            "{tokens: 'night/list.csv', topic: 'com.example.app', 'then-prune': 'out.csv'}",
            to: "probe.json5")
        let finished = try Broadside.run(
            ["probe", "--campaign", file, "--print-campaign"], in: directory, limit: 30)
        #expect(finished.output.contains("\"then-prune\": \"\(directory.path)/out.csv\""))
        #expect(finished.output.contains("\"topic\": \"com.example.app\""))
        let other = try directory.write("{paylod: 'x'}", to: "wrong.json5")
        let wrong = try Broadside.run(["probe", "--campaign", other], in: directory, limit: 30)
        #expect(wrong.exitCode == 2 && wrong.errors.contains("unknown key 'paylod'"))
    }

    private static let outputs =
        "metrics: 'm.prom', report: 'r.html', summary: 's.json', control: 'c', 'trace-frames': 't', hook: 'h'"

    /// Keys of the campaign that a command prints, and its messages.
    private func printed(_ arguments: [String]) throws -> (keys: Set<String>, errors: String) {
        let finished = try Broadside.run(
            arguments + ["--print-campaign"], in: directory, limit: 30)
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let object = try JSONSerialization.jsonObject(with: Data(finished.output.utf8))
        return (Set(try #require(object as? [String: Any]).keys), finished.errors)
    }

    @Test
    func `A test on one device leaves the file's outputs, conditions and times to the campaign`()
        throws
    {
        let file = try directory.write(
            """
            {tokens: 'night/list.csv', payload: 'night/hello.json', topic: 'com.example.app',
            \(Self.outputs), log: 'json', suppress: 's.txt', where: 'x = 1', 'deliver-at': '19:00',
            'zone-column': 'tz', cap: '3/7d', history: 'nights', 'skip-dead': 'nights'}
            """, to: "full.json5")
        let test = try printed(
            [
                "send", "--campaign", file, "--to", "aabb", "--report", "own.html", "--where",
                "y = 2",
            ])
        #expect(
            test.keys == ["payload", "topic", "to", "log", "suppress", "report", "where"],
            "\(test.keys)")
        #expect(
            test.errors.contains(
                "send --to ignores metrics, summary, control, trace-frames, hook, which belong"))
        #expect(
            test.errors.contains(
                "ignores deliver-at, zone-column, cap, history, skip-dead, because it sends to one")
        )
        // What a campaign for one device names itself is for its own runs.
        let own = try directory.write(
            "{to: 'aabb', payload: 'night/hello.json', \(Self.outputs)}", to: "own.json5")
        #expect(try printed(["send", "--campaign", own]).keys.contains("metrics"))
    }

    @Test func `A probe takes a send's campaign file without its times, outputs and hook`() throws {
        let file = try directory.write(
            """
            {tokens: 'night/list.csv', payload: 'night/hello.json', topic: 'com.example.app',
            \(Self.outputs), 'deliver-at': '19:00', 'zone-column': 'tz', 'zone-default': 'UTC',
            on: '2030-01-02', late: 'skip', quiet: '22:00-07:00', where: 'x = 1'}
            """, to: "send.json5")
        let probe = try printed(["probe", "--campaign", file, "--metrics", "probe.prom"])
        #expect(probe.keys == ["tokens", "topic", "where", "metrics"], "\(probe.keys)")
        #expect(
            probe.errors.contains(
                "probe ignores report, summary, control, trace-frames, hook, which"))
    }

    @Test(arguments: [
        ("'payload-by': 'name=by'", "'payload-by'", ["--payload-by", "name=by"]),
        (
            "split: 'a=50,b=50', 'split-salt': 'x', arms: {a: {payload: 'night/hello.json'}}",
            "'arms'", ["--arm", "a=night/hello.json"]
        ),
    ])
    func `A payload on the command line is refused if the file chooses the payloads of rows`(
        choice: String, says: String, again: [String]
    ) throws {
        let file = try directory.write(
            "{tokens: 'night/list.csv', payload: 'night/hello.json', topic: 'com.example.app', \(choice)}",
            to: "by.json5")
        let call = ["--campaign", file, "--payload", "fix.json", "--print-campaign"]
        let refused = try send(call)
        #expect(refused.exitCode == 2 && refused.output.isEmpty)
        #expect(
            refused.errors.contains("--payload does not replace \(says) of the campaign file"),
            "\(refused.errors)")
        #expect(try send(call + again).exitCode == 0)
    }

    @Test
    func `doctor, tokens check, payload check and prune take their options from a campaign file`()
        throws
    {
        let file = "\(directory.path)/night/c.json5"
        func run(_ arguments: String...) throws -> Finished {
            try Broadside.run(arguments + ["--campaign", file], in: directory, limit: 60)
        }
        let tokens = try run("tokens", "check", "--json")
        #expect(tokens.exitCode == 0, "\(tokens.errors)")
        #expect(tokens.output.contains(#""rows":2"#), "\(tokens.output)")
        let payload = try run("payload", "check")
        #expect(
            payload.exitCode == 0 && payload.output.contains("can be sent"), "\(payload.errors)")
        // Nothing listens there.
        let doctor = try run("doctor", "--endpoint", "127.0.0.1:1")
        #expect(doctor.exitCode == 1, "\(doctor.errors)")
        #expect(doctor.output.contains("signing key ABC123DEFG of team DEF123GHIJ"))
        let prune = try run("prune", "--ledger", "/nowhere", "--output", "clean.csv")
        #expect(prune.exitCode == 2 && prune.errors.contains("/nowhere"), "\(prune.errors)")
        #expect(!prune.errors.contains("--tokens is missing"))
        // What it names is not written over, though the command has no use for it.
        let over = try run(
            "prune", "--ledger", "/nowhere", "--output", "\(directory.path)/night/hello.json")
        #expect(over.exitCode == 2 && over.errors.contains("--payload reads"), "\(over.errors)")
        // A slip is still one.
        try directory.write("{ topc: 'x' }", to: "night/slip.json5")
        let slip = try Broadside.run(
            ["doctor", "--campaign", "\(directory.path)/night/slip.json5"], in: directory)
        #expect(slip.exitCode == 2 && slip.errors.contains("'topc'"), "\(slip.errors)")
        try directory.write("{ protocol: 'binary' }", to: "night/gateway.json5")
        let gateway = try Broadside.run(
            ["doctor", "--campaign", "\(directory.path)/night/gateway.json5"], in: directory)
        #expect(
            gateway.exitCode == 2 && gateway.errors.contains("only the provider API"),
            "\(gateway.errors)")
        let dedupe = try run("tokens", "dedupe", "--output", "x.csv")
        #expect(dedupe.exitCode == 2 && dedupe.errors.contains("--campaign"), "\(dedupe.errors)")
    }
}
