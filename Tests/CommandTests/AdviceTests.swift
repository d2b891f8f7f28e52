import BroadsideTestSupport
import Foundation
import Testing

/// Causes x advice, with the command and the local APNs: each cause is provoked, then exit code, last
/// line and report are looked at, and the command line that they give is pasted into a shell.
@Suite(.timeLimit(.minutes(60)))
struct AdviceTests: AdviceReading {
    // MARK: Interrupted: the advice finishes the campaign

    /// 2,000 rows take 40 seconds: what a test does after the first response comes before the last one.
    private static let slow = ["--rate", "50"]

    /// The advised command line, which sends the rest soon.
    private func hurried(_ command: String) -> String {
        command.replacingOccurrences(of: "--rate 50", with: "--rate 1500")
    }

    @Test(arguments: ["signal", "control", "deadline"])
    func `After an interruption the printed command finishes the campaign`(way: String) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 2000)
        let socket = "\(campaign.directory.path)/control"
        let deadline = way == "deadline" ? ["--deadline", "10s"] : []
        let process = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                ["--name", "it's \"<late>\"", "--control", socket] + Self.slow + deadline),
            in: campaign.directory)
        func steer(_ word: String) throws -> Finished {
            try Broadside.run(["control", socket, word], in: campaign.directory)
        }
        while process.isRunning {
            let status = try steer("status")
            if status.exitCode == 0,
                let match = status.output.firstMatch(of: /accepted +([0-9]+)/),
                Int(match.1) ?? 0 > 0
            {
                break
            }
        }
        switch way {
        case "signal": process.send(signal: SIGINT)
        case "control": #expect(try steer("stop").exitCode == 0)
        default: break
        }
        let command = try advised(
            try process.wait(), campaign, exitCode: 3,
            says: [
                "signal": "stopped by a signal", "control": "stopped by broadside control",
                "deadline": "the deadline has passed",
            ][way]!)
        #expect(command.contains("--resume") && !command.contains("--deadline"))
        let pasted = try paste(hurried(command), campaign)
        #expect(pasted.exitCode == 0, "\(pasted.errors)")
        #expect(try campaign.statistics().accepted == 2000)
        // Nothing is left to be done.
        #expect(!commands(try report(campaign)).contains { $0.contains("--resume") })
        // Pasted elsewhere it goes there first.
        let elsewhere = try TemporaryDirectory()
        _ = try server.finish()
        let page = try Broadside.run(["report", "--ledger", campaign.ledger], in: elsewhere)
        #expect(page.exitCode == 0)
    }

    // MARK: Refused: the advice never repeats it

    struct Refused: CustomTestStringConvertible, Sendable {
        var name: String
        var server: [String] = []
        var options: [String] = []
        var says: [String]
        /// What the pasted command line ends with, and says.
        var exitCode: Int32
        var finds: String
        var testDescription: String { name }
    }

    static let refused: [Refused] = [
        Refused(
            name: "InvalidProviderToken", options: ["--key-id", "ZZZZZZZZZZ"],
            says: ["403 InvalidProviderToken", "--key-id", "doctor"], exitCode: 4,
            finds: "InvalidProviderToken"),
        Refused(
            name: "TopicDisallowed", options: ["--topic", "com.example.stranger"],
            says: ["400 TopicDisallowed", "begin a new ledger"], exitCode: 4,
            finds: "TopicDisallowed"),
        Refused(
            name: "BadDeviceToken", server: ["--bad-token", "1"],
            says: ["400 BadDeviceToken", "--environment", "begin a new ledger"], exitCode: 0,
            finds: "rejected,400,BadDeviceToken"),
        Refused(
            name: "canary", server: ["--bad-token", "0.5"], options: ["--canary", "40"],
            says: ["of the canary's", "--canary-max-rejected"], exitCode: 0,
            finds: "rejected,400,BadDeviceToken"),
    ]

    @Test(arguments: refused)
    func `After a 403 the doctor checks the credential instead of resending`(one: Refused) throws {
        let server = try LocalAPNs(one.server + ["--seed", "3"])
        let campaign = try Campaign(rows: 400)
        let sent = try campaign.send(to: server.endpoint, one.options)
        let command = try advised(sent, campaign, exitCode: 4, says: one.says[0])
        for word in one.says { #expect(sent.errors.contains(word), "\(sent.errors)") }
        let before = try campaign.statistics()
        let page = try report(campaign)
        // A guard may be lifted; the same command line is not called for.
        for line in commands(page) where line.contains("--resume") {
            #expect(line.contains("--canary-max-rejected 100"), "\(line)")
        }
        #expect(page.contains("class=\"status bad\""))
        let pasted = try paste(command, campaign)
        #expect(pasted.exitCode == one.exitCode, "\(command)\n\(pasted.errors)")
        #expect(
            (pasted.output + pasted.errors).contains(one.finds), "\(pasted.output)\(pasted.errors)")
        #expect(try campaign.statistics() == before)
        if let lifted = commands(page).first(where: { $0.contains("--resume") }) {
            let finished = try paste(lifted, campaign)
            #expect(finished.exitCode == 0, "\(finished.errors)")
            #expect(try campaign.statistics().remaining == 0)
        }
        _ = try server.finish()
    }

    // MARK: Unreachable

    @Test(arguments: ["connect", "resolve", "tls", "silent"])
    func `After a failed connection the doctor is advised before a resume`(trouble: String) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 20)
        let silent = try SilentPort()
        let endpoint = [
            "connect": "127.0.0.1:\(try Ports.free())", "resolve": "no-such-name.invalid:443",
            "tls": server.endpoint, "silent": "127.0.0.1:\(silent.port)",
        ][trouble]!
        let foreign = try LocalAuthorities.other(in: campaign.directory)
        let report = "\(campaign.directory.path)/report.html"
        let sent = try campaign.send(
            to: endpoint,
            ["--give-up-after", "3s", "--report", report]
                + (trouble == "tls" ? ["--ca-file", foreign] : []))
        let page = try String(contentsOfFile: report, encoding: .utf8)
        let command = try advised(sent, campaign, exitCode: 1, says: "gave up on", page: page)
        #expect(command.contains(" doctor ") && !command.contains("--ledger"))
        let pasted = try paste(command, campaign)
        #expect(pasted.exitCode == 1, "\(command)\n\(pasted.output)\(pasted.errors)")
        // Nothing was sent: once it can be reached, the second one begins again, as would the first command.
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        let begins = try #require(commands(page).dropFirst().first)
        #expect(!begins.contains("--resume"))
        let corrected = begins.replacingOccurrences(of: endpoint, with: server.endpoint)
            .replacingOccurrences(of: foreign, with: campaign.authority.caFile)
            // The server is well, but may be slow.
            .replacingOccurrences(of: "--give-up-after 3s", with: "--give-up-after 60s")
        #expect(try paste(corrected, campaign).exitCode == 0, "\(corrected)")
        #expect(try campaign.statistics().accepted == 20)
        _ = try server.finish()
    }

    // MARK: Elsewhere

    @Test
    func `The report's resume command of a run in another directory changes to it first`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 2000)
        // Relative names: the list, the payload, the ledger.
        let names = ["--tokens", "tokens.txt", "--payload", "payload.json", "--ledger", "night"]
        let words = campaign.arguments(to: server.endpoint, names + Self.slow)
        let sending = try Subprocess(
            "bash",
            ["-c", "cd \"$0\" && exec \"$@\"", campaign.directory.path, Broadside.path()]
                + words, in: campaign.directory)
        let ledger = "\(campaign.directory.path)/night"
        try sending.wait {
            let told = try Broadside.run(
                ["ledger", "stats", "--json", "--ledger", ledger], in: campaign.directory)
            return (try? SendSummary(json: told.output).accepted) ?? 0 > 0
        }
        sending.send(signal: SIGTERM)
        let sent = try sending.wait()
        #expect(sent.exitCode == 3, "\(sent.errors)")
        let other = try TemporaryDirectory()
        let page = try Broadside.run(["report", "--ledger", ledger], in: other)
        let command = try #require(commands(page.output).first)
        #expect(command.hasPrefix("cd "), "\(command)")
        let pasted = try Subprocess("bash", ["-c", hurried(command)], in: other)
            .wait(limit: 120)
        #expect(pasted.exitCode == 0, "\(command)\n\(pasted.errors)")
        _ = try server.finish()
    }

    // MARK: What others wrote

    /// Python's html.parser, json and a reader of the exposition format judge what a browser, a
    /// program and Prometheus would make of hostile words.
    @Test
    func `Combining marks in names hide no markup, quotes or escapes in HTML, JSON and metrics`()
        throws
    {
        let server = try LocalAPNs(["--unregistered", "0.5"])
        let name = "a<\u{301}script>\"\u{301} onload='\u{301}x'&\u{301}\\\u{301}\u{202e}"
        let alert = "<\u{301}img src=x onerror=\u{301}\"y\"\u{301}>"
        let payload = try JSONEncoder().encode(["aps": ["alert": alert]])
        let campaign = try Campaign(rows: 200, payload: String(decoding: payload, as: UTF8.self))
        let path = campaign.directory.path
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--name", String(name.dropLast()), "--report", "\(path)/page.html", "--metrics",
                "\(path)/metrics", "--summary", "\(path)/summary.json", "--log", "json",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        try campaign.directory.write(sent.errors, to: "log")
        // What turns the direction of a line is no name.
        let turned = try campaign.send(to: server.endpoint, ["--name", "x\u{202e}y"])
        #expect(turned.exitCode == 2 && turned.errors.contains("--name"), "\(turned.errors)")
        let judge = """
            import html.parser, json, sys
            path, name, alert = sys.argv[1:]
            known = set('''html head meta link title style body main header p span h1 h2 h3 dl dt dd
            ul li b div figure figcaption svg desc g path line text details summary table thead tbody
            tr th td code footer'''.split())
            class Judge(html.parser.HTMLParser):
                def __init__(self): super().__init__(); self.text = ''; self.bad = []; self.titles = []; self.tag = ''
                def handle_starttag(self, tag, attributes):
                    names = [key for key, _ in attributes]
                    if tag not in known or any(key.startswith('on') for key in names) or 'src' in names:
                        self.bad.append((tag, attributes))
                    self.tag = tag
                def handle_data(self, data):
                    self.text += data
                    if self.tag == 'title': self.titles.append(data); self.tag = ''
            judge = Judge(); judge.feed(open(path + '/page.html', encoding='utf-8').read()); judge.close()
            assert not judge.bad, judge.bad
            assert judge.text.count(name) >= 2 and alert in judge.text
            assert judge.titles[0].startswith(name + ': '), judge.titles
            assert json.load(open(path + '/summary.json'))['name'] == name
            lines = [json.loads(l) for l in open(path + '/log') if l.startswith('{')]
            assert lines and all(l['name'] == name and len(l['campaign']) == 16 for l in lines), lines
            info = [l for l in open(path + '/metrics', encoding='utf-8') if l.startswith('broadside_info')]
            rest, value = iter(info[0].split('name="', 1)[1]), ''
            for one in rest:
                if one == '"': break
                value += next(rest) if one == chr(92) else one
            assert value == name, info
            rest = ''.join(rest)
            assert rest.startswith(',version="') and rest.endswith('"} 1' + chr(10)), info
            print('equal')
            """
        let file = try campaign.directory.write(judge, to: "judge.py")
        let judged = try Subprocess(
            "python3", [file, path, String(name.dropLast()), alert], in: campaign.directory
        ).wait(limit: 60)
        #expect(judged.output == "equal\n", "\(judged.errors)")
        _ = try server.finish()
    }
}

/// Certificates that nobody here trusts.
private enum LocalAuthorities {
    static func other(in directory: TemporaryDirectory) throws -> String {
        let file = "\(directory.path)/foreign.pem"
        let made = try Subprocess(
            "openssl",
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-keyout", "\(directory.path)/foreign.key", "-out", file, "-days", "30", "-subj",
                "/CN=foreign",
            ], in: directory
        ).wait(limit: 60)
        guard made.exitCode == 0 else { throw TestFailure(made.errors) }
        return file
    }
}
