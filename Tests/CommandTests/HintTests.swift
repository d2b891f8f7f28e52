import BroadsideTestSupport
import Foundation
import Testing

/// Names that people try, and values that are wrong: one line each, which names the value once and
/// offers one next step.
@Suite(.timeLimit(.minutes(60)))
struct HintTests {
    /// A call with one name that does not exist, and the hint for it.
    struct Hint: Sendable, CustomTestStringConvertible {
        var call: [String]
        var hint: String

        init(_ call: String, _ hint: String) {
            self.call = call.split(separator: " ").map(String.init)
            self.hint = hint
        }

        var testDescription: String { call.joined(separator: " ") }
    }

    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    static let hints: [Hint] = [
        .init("send --env dev", "--environment development"),
        .init("doctor --sandbox", "--environment development"),
        .init("send --config x", "--campaign FILE"),
        .init("doctor --config x", "--campaign FILE"),
        .init("send --webhook x", "--hook COMMAND"),
        .init("send --slack x", "--hook COMMAND"),
        .init("probe --on-finish x", "--hook COMMAND"),
        .init("send --holdout 5", "--split a=90"),
        .init("send --token x", "--to TOKEN"),
        .init("prune --token x", "did you mean --tokens?"),
        .init("send --ab-test x", "--split a=50,b=50"),
        .init("send --filter x=1", "write --where 'COLUMN = VALUE'"),
        .init("send --frequency-cap 1/1d", "--cap N/D"),
        .init("send --send-at 19:00", "--deliver-at 19:00"),
        .init("send --timezone x", "--zone-column NAME"),
        .init("send --quiet-hours x", "--quiet 22:00-08:00"),
        .init("send --key-command x", "--auth-key-command COMMAND"),
        .init("send --token-command x", "--auth-token-command COMMAND"),
        .init("doctor --auth-key-env x", "--auth-key env:NAME"),
        .init("send --no-tokens", "--keep-tokens no"),
        .init("send --date today", "broadside night --campaign FILE --ledgers DIR"),
        .init("probe --keep 3", "broadside night --campaign FILE --ledgers DIR"),
        .init("night --ledger x", "--ledgers DIR"),
        .init("night --resume", "remove it, or write --date DATE"),
        .init("night --to aabb", "broadside send --to TOKEN"),
        .init("send --channel x", "broadside channel and broadside broadcast"),
        .init("send --storage newest", "broadside channel"),
        .init("ledger export --tail", "write --follow"),
        .init("report --opens x", "--receipts FILE"),
        .init("tokens dedupe --newest-column x", "--newest COLUMN"),
        .init("send --p8-file x", "write --auth-key FILE"),
        .init("send --cert-file x", "write --certificate FILE"),
        .init("send --key-file x", "write --auth-key FILE"),
        .init("send --auth-key-file x", "did you mean --auth-key?"),
        .init("send --token-file x", "did you mean --tokens?"),
        .init("prune --output-file x", "did you mean --output?"),
        .init("send --test-file x", "--help lists all options"),
        .init("channels list", "did you mean channel?"),
        .init("broadcast --topic x", "write --app BUNDLE"),
        .init("channel read --channel-id x", "write --channel ID"),
        .init("nightly", "did you mean night?"),
        .init("push", "did you mean send?"),
        .init("clean", "did you mean prune?"),
        .init("watch", "did you mean status?"),
        .init("validate", "did you mean send --dry-run?"),
        .init("benchmark", "did you mean bench?"),
        .init("completion", "help --completion bash|zsh|fish"),
        .init("serve", "not a server"),
    ]

    @Test(arguments: hints)
    func `A guessed command or option leads to the one that does it`(hint: Hint) throws {
        let refused = try Broadside.run(hint.call, in: directory, limit: 120)
        #expect(refused.exitCode == 2 && refused.output.isEmpty)
        #expect(refused.errorLines.count == 1, "\(refused.errors)")
        let line = refused.errorLines.first ?? ""
        #expect(line.hasPrefix("broadside: unknown "), "\(line)")
        #expect(line.contains(hint.hint), "\(line)")
        #expect(line.count <= 200, "\(line)")
    }

    @Test(
        arguments: [
            ("auth-key-file", "auth-key"), ("apns-priority", "priority"), ("max-rate", "rate"),
        ])
    func `A guessed key of a campaign file leads to the same option as on the command line`(
        key: String, option: String
    ) throws {
        let file = try directory.write("{'\(key)':'x'}", to: "c.json5")
        let refused = try Broadside.run(["send", "--campaign", file], in: directory, limit: 60)
        #expect(refused.exitCode == 2 && refused.errorLines.count == 1, "\(refused.errors)")
        #expect(refused.errors.contains("'\(key)': did you mean \(option)?"), "\(refused.errors)")
    }

    @Test func `A suggested path is quoted for the shell`() throws {
        let list = try directory.write("", to: "excel list.csv")
        let folder = directory.path + "/my dir"
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: false)
        for (call, suggestion) in [
            (["tokens", "check", list], "did you mean --tokens '\(list)'?"),
            (["report", "--output", "x", folder], "--ledger '\(folder)'?"),
            (["control", folder, "pause"], "did you mean --ledger '\(folder)'?"),
        ] {
            let refused = try Broadside.run(call, in: directory, limit: 60)
            #expect(refused.exitCode == 2 && refused.errors.contains(suggestion), "\(refused)")
        }
    }

    @Test func `A hint names only options of the command or of another that it names`() throws {
        let pages = try Dictionary(
            uniqueKeysWithValues: Set(
                Self.hints.compactMap(\.call.first) + ["send", "ledger", "night"]
            )
            .map { command in
                let page = try Broadside.run([command, "--help"], in: directory, limit: 120)
                return (command, page.exitCode == 0 ? page.output : "")
            })
        for hint in Self.hints {
            let line = try Broadside.run(hint.call, in: directory, limit: 120).errors
            let named = pages.filter { line.contains(" \($0.key) --") }.map(\.value)
            let texts = named + [pages[hint.call[0]] ?? "", pages["ledger"] ?? ""]
            let advice = line.split(separator: ": ", maxSplits: 2).last ?? ""
            for match in advice.matches(of: #/ --([a-z-]+)/#)
            where !["arm", "on-calendar", "completion", "help"].contains(match.1) {
                #expect(texts.contains { $0.contains("  --\(match.1)") }, "\(line)")
            }
        }
    }

    /// A value of an option that is wrong, and what the error advises.
    static let values: [Hint] = [
        .init("bench --connections 10,000", "from 1 to 10,000: did you mean 10000?"),
        .init("bench --connections 10.0", "from 1 to 10,000: did you mean 10?"),
        .init("bench --connections 2.5", "from 1 to 10,000: write digits, such as 10"),
        .init("bench --connections 2,5", "from 1 to 10,000: write digits, such as 10"),
        .init("bench --connections 1.000", "from 1 to 10,000: write digits, such as 10"),
        .init("bench --connections 10001", "from 1 to 10,000: write 10000 or less"),
        .init("bench --connections -5", "from 1 to 10,000: write 1 or more"),
        .init("bench --connections many", "write digits, such as 10"),
        .init("doctor --topic a --auth-token-file x --port 80", "use 443 or 2197, or --endpoint"),
        .init("bench --duration 1s0", "write it like 500ms, 30s, 15m, 2h or 1d"),
        .init("bench --duration 1h", "'1h' is not a duration from 100ms to 10m"),
        .init("simulate --state x --seed -1", "write digits"),
        .init("payload check --payload x --push-type allert", "did you mean alert?"),
        .init("payload check --payload x --push-type x", "use one of alert, background"),
    ]

    @Test(arguments: values)
    func `A wrong value is named once with one next step`(hint: Hint) throws {
        let refused = try Broadside.run(hint.call, in: directory, limit: 120)
        #expect(refused.exitCode == 2 && refused.output.isEmpty)
        #expect(refused.errorLines.count == 1, "\(refused.errors)")
        let line = refused.errorLines.first ?? ""
        #expect(line.contains(hint.hint), "\(line)")
        let value = "'\(hint.call.last ?? "")'"
        #expect(line.ranges(of: value).count == 1, "\(line)")
        #expect(!(line.contains("did you mean") && line.contains("one of")), "\(line)")
    }

    @Test func `Each option of send refuses a malformed value in one line that names it`() throws {
        let campaign = try Campaign(rows: 1)
        let page = try Broadside.run(["send", "--help"], in: directory).output
        let options = page.matches(of: #/(?m)^  --([a-z-]+) (\S+)(?: .*)?$/#)
            .map { (String($0.1), String($0.2)) }
            .filter { ["N", "P", "D", "K/N", "TYPE", "WHEN", "KEY=VALUE"].contains($0.1) }
        try #require(options.count > 20, "\(options)")
        for (option, _) in options {
            let refused = try Broadside.run(
                campaign.arguments(
                    to: "127.0.0.1:1", ["--\(option)", "b@d"], without: [option]),
                in: directory, limit: 120)
            #expect(refused.exitCode == 2, "\(option)")
            #expect(refused.errorLines.count == 1, "\(refused.errors)")
            #expect(
                refused.errors.hasPrefix("broadside: --\(option) 'b@d' is "), "\(refused.errors)")
            #expect(refused.errors.ranges(of: "b@d").count == 1, "\(refused.errors)")
            #expect(refused.errors.ranges(of: ": ").count == 2, "\(refused.errors)")
        }
    }

    @Test(arguments: [(nil, 80), ("60", 60), ("100", 100), ("500", 120), ("0", 80), ("x", 80)])
    func `Help is as wide as COLUMNS says, 80 without a terminal`(columns: String?, most: Int)
        throws
    {
        var variables: [String: String] = [:]
        if let columns { variables["COLUMNS"] = columns }
        for page in [["send", "--help"], ["simulate", "-h"], ["help"]] {
            let help = try Broadside.run(page, in: directory, environment: variables)
            // Examples are never cut.
            let cut = help.output.range(of: "\nExamples:\n")?.lowerBound
            let lines = help.output[..<(cut ?? help.output.endIndex)].split(separator: "\n")
            let longest = lines.map(\.count).max() ?? 0
            #expect(longest <= most && longest > most - 20, "\(page) \(longest)")
        }
    }

    @Test func `-h shows the options that are marked for the command's overview`() throws {
        let pages: [(String, [String])] = [
            ("simulate", ["issue-tokens", "scenario", "listen", "state"]),
            ("doctor", ["topic", "auth-key", "key-id", "team-id", "environment"]),
            ("probe", ["campaign", "then-prune", "ledger"]),
            ("bench", ["duration", "latency", "json"]),
        ]
        for (command, options) in pages {
            let page = try Broadside.run([command, "-h"], in: directory).output
            for option in options { #expect(page.contains("\n  --\(option)"), "\(command)") }
            #expect(page.contains("\nCommon options:\n"), "\(command)")
        }
    }

    @Test func `Counts have separators in text and none in JSON`() throws {
        let tokens = DeviceTokens(count: 1234).list()
        let list = "\(directory.path)/tokens.txt"
        try Data(tokens).write(to: URL(fileURLWithPath: list))
        let check = ["tokens", "check", "--tokens", list]
        let text = try Broadside.run(check, in: directory).output
        #expect(text.contains("rows         1,234\n"), "\(text)")
        #expect(text.contains("result       1,234 would be sent, 0 recorded as invalid\n"))
        let json = try Broadside.run(check + ["--json"], in: directory).output
        #expect(json.contains("\"rows\":1234,"), "\(json)")
        let dedupe = try Broadside.run(
            ["tokens", "dedupe", "--tokens", list, "--output", "\(directory.path)/once.txt"],
            in: directory)
        #expect(dedupe.errors.contains("kept         1,234"), "\(dedupe.errors)")
    }
}
