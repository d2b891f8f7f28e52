import BroadsideTestSupport
import Foundation
import Testing

/// The examples of each command: the same on every page, and true.
@Suite(.timeLimit(.minutes(60)))
struct ExampleTests {
    private struct Example {
        let purpose: String
        let call: String
    }

    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func run(_ arguments: [String]) throws -> String {
        let finished = try Broadside.run(arguments, in: directory, limit: 120)
        try #require(finished.exitCode == 0 && finished.errors.isEmpty, "\(arguments)")
        return finished.output
    }

    private func commands() throws -> [String] {
        try run(["help"]).matches(of: #/(?m)^  ([a-z]+) /#).map { String($0.1) }
    }

    /// What stands at the end of a command's help.
    private func examples(of command: String) throws -> [Example] {
        let page = try run([command, "--help"])
        let start = try #require(page.range(of: "\nExamples:\n"), "\(command)")
        return page[start.upperBound...].matches(of: #/(?m)^  (\S.*):\n((?: {4}.*\n)+)/#).map {
            match in
            let lines = match.2.split(separator: "\n").map { $0.dropFirst(4) }
            return Example(purpose: String(match.1), call: lines.joined(separator: "\n"))
        }
    }

    @Test
    func `Each command has one to three examples, the same in help, manual and reference`() throws {
        let reference = try run(["help", "--markdown"])
        let check = OptionCheck(directory: directory)
        let commands = try commands()
        try #require(commands.count > 9)
        for command in commands {
            let manual = try run(["help", "--man", command])
                .replacing("\\-", with: "-").replacing("\\e", with: "\\")
                .replacing("\\(aq", with: "'")
            let examples = try examples(of: command)
            #expect((1...3).contains(examples.count), "\(command)")
            #expect(manual.matches(of: /\n\.nf\n/).count == examples.count, "\(command)")
            for example in examples {
                #expect(example.call.hasPrefix("broadside \(command)"))
                // Nine columns stand before them in a manual page of 80.
                for line in example.call.split(separator: "\n") {
                    #expect(line.count <= 71, "\(line)")
                }
                #expect(
                    manual.contains(
                        "\n\(example.purpose):\n.PP\n.RS 2\n.nf\n\(example.call)\n.fi\n.RE\n"))
                #expect(
                    reference.contains("\n\(example.purpose):\n\n```sh\n\(example.call)\n```\n"))
                // The parser itself says what it does not know.
                for finding in try check.findings(inBlock: example.call) {
                    Issue.record("\(finding)")
                }
            }
        }
    }

    @Test func `Each command's examples run one after the other against a simulator`() throws {
        var told: Set<String> = []
        /// The Nth example of a command as a document shows it.
        func show(_ command: String, _ number: Int, _ directive: String = "") throws -> String {
            let example = try #require(try examples(of: command).dropFirst(number).first)
            told.insert(example.call)
            return "\(directive)\n```sh\n\(example.call)\n```\n"
        }
        func hidden(_ text: String) -> String { "<!-- test\n\(text)\n-->\n" }
        let background = "<!-- background: broadside send -->"

        var text = try show("simulate", 0, background) + hidden(Self.files)
        text += try show("simulate", 2) + show("tokens", 0) + show("tokens", 1)
        text += try show("tokens", 2) + hidden("(($(wc -l <one-per-user.csv) == 51))")
        text += try show("payload", 0) + show("payload", 1)
        text += hidden(Self.apple) + (try show("doctor", 0) + show("doctor", 2))
        text += hidden("grep -q '\"impossible-token\".*BadDeviceToken' apns.json")
        text += try show("send", 0)
        text += try show("channel", 0) + show("channel", 1) + hidden(Self.goal)
        text += try show("broadcast", 1) + show("broadcast", 0) + show("channel", 2)
        text += hidden("unset -f broadside") + (try show("payload", 2))
        text += try show("doctor", 1) + show("send", 1) + show("status", 0) + show("status", 1)
        text +=
            hidden(
                "mkdir nights; cp -r tonight nights/; "
                    + "{ echo token,time,country; sed 's/$/,2099-01-01,DE/' tokens.txt; } >opens.csv"
            )
            + (try show("report", 1) + show("report", 2))
        text += try show("report", 0) + show("ledger", 0) + show("ledger", 1)
        text += hidden("[[ $(wc -l <left.csv) == 1 ]]")
        text += try show("night", 1) + show("night", 0) + show("night", 2)
        text += try show("prune", 0)
        text += hidden("grep -vxFf dead.txt tokens.txt | cmp - tokens.clean.txt")
        text += hidden("(($(wc -l <dead.txt) > 100))") + (try show("probe", 0))
        text += try show("probe", 1)
        text += try hidden(Self.interrupted) + show("send", 2) + show("prune", 1) + show("prune", 2)
        text += try hidden(Self.slow) + show("control", 0) + show("control", 1) + show("control", 2)
        text += try hidden("wait $! || test $? = 3\n" + Self.shards) + show("ledger", 2)
        text += try hidden(Self.relay) + show("feedback", 0)
        text += hidden("interrupt 0")
        text += try show("simulate", 1, background) + hidden(Self.goaway)
        for finding in try DocumentedStory(name: "examples", text: text).run() {
            Issue.record("\(finding)")
        }
        // `docs/how-to/machines.md` runs those of bench, in a shorter time.
        let guide = try String(
            contentsOfFile: Tool.packageRoot + "/docs/how-to/machines.md", encoding: .utf8)
        for example in try commands().flatMap(examples) {
            #expect(
                told.contains(example.call) || guide.contains("\n\(example.call)\n"),
                "\(example.call)")
        }
    }

    // MARK: what a reader has

    private static let files = """
        cp apns/tokens.txt tokens.txt
        awk 'NR == 1 { print "token,user_id,registered_at" }
            { print $1 "," NR % 50 ",2026-01-01T00:00:00Z" }' \\
            tokens.txt >tokens.csv
        echo '{"aps":{"alert":"Good evening"}}' >payload.json
        mkdir texts
        echo '{"aps":{"alert":"Guten Abend"}}' >texts/de.json
        $(sed -n 's/ --tokens TOKENS.*//p' "${said[0]}") --tokens tokens.txt \\
            --payload payload.json --print-campaign >evening.json5
        # is_under_way LEDGER: some of its rows have been answered.
        is_under_way() { broadside ledger stats --ledger "$1" | grep -q 'accepted *[1-9]'; }
        """

    /// A simulator that knows this key, team and topic.
    private static let apple = """
        environment=(--listen 127.0.0.1:0 --state apple --environment development)
        broadside simulate "${environment[@]}" >made 2>&1 &
        await grep -q listening made
        kill $! && wait $!
        key=$(basename apple/AuthKey_*.p8 .p8)
        team=$(sed -n 's/.*"team_id" *: *"\\([A-Z0-9]*\\)".*/\\1/p' apple/config.json | tail -n 1)
        mv apple/$key.p8 apple/AuthKey_XXXXXXXXXX.p8
        mv apple/$key.pub.pem apple/AuthKey_XXXXXXXXXX.pub.pem
        sed -i "s/${key#AuthKey_}/XXXXXXXXXX/g; s/$team/YYYYYYYYYY/g" apple/config.json
        sed -i s/com.example.Broadside/com.example.MyApp/g apple/config.json
        cp apple/AuthKey_XXXXXXXXXX.p8 .
        broadside simulate "${environment[@]}" --issue-tokens 1 >apple.txt &
        background+=($!)
        await grep -q '^broadside send' apple.txt
        broadside() {
            command broadside "$@" --endpoint "$(sed -n 's/listening on //p' apple.txt)" \\
                --ca-file apple/ca.pem
        }
        """

    private static let goal = """
        grep -qx "XW6Lh1Y1xIPMYq5jlLkMJw==" "$printed"
        cat >goal.json <<END
        {"aps":{"timestamp":$(date +%s),"event":"update","content-state":{"home":2,"away":1}}}
        END
        """

    private static let interrupted = """
        mv tonight monday
        broadside send --campaign evening.json5 --rate 100 --ledger tonight &
        await is_under_way tonight
        kill -INT $!
        wait $! || true
        broadside send --campaign evening.json5 --ledger tuesday
        rm tokens.clean.txt
        """

    private static let slow = """
        for copy in {1..100}; do cat tokens.txt; done >long.txt
        rm -r tonight
        broadside send --campaign evening.json5 --tokens long.txt --rate 100 --ledger tonight &
        await is_under_way tonight
        await broadside control --ledger tonight status
        """

    private static let shards = """
        for part in 1 2 3; do
            broadside send --campaign evening.json5 --shard $part/3 --ledger part$part
        done
        """

    private static let relay = """
        broadside simulate --listen 127.0.0.1:0 --state relay --binary-listen 127.0.0.1:0 \\
            --feedback-listen 127.0.0.1:2196 >relay.txt &
        background+=($!)
        await grep -q '^broadside feedback' relay.txt
        """

    private static let goaway = """
        broadside send --campaign evening.json5 --ledger anew
        kill -INT "${background[-1]}"
        wait "${background[-1]}"
        grep -q "scenario: goaway" "${said[-1]}"
        """
}
