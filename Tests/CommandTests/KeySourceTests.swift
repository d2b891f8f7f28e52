import BroadsideTestSupport
import Foundation
import Testing

/// Signing keys from variables of the environment and from commands.
@Suite(.timeLimit(.minutes(60)))
struct KeySourceTests {
    private let campaign: Campaign
    private let key: String
    private static let ids = ["--key-id", Campaign.keyID, "--team-id", Campaign.teamID]

    init() throws {
        campaign = try Campaign(rows: 3)
        key = try String(contentsOfFile: campaign.authority.authKey, encoding: .utf8)
    }

    /// The provider token of a moment that all calls share.
    private func token(
        _ options: [String], environment: [String: String] = [:]
    ) throws -> Finished {
        try Broadside.run(
            ["doctor", "--print-token"] + options + Self.ids, in: campaign.directory, limit: 120,
            environment: FakeTime.inWindow(600).merging(environment) { $1 })
    }

    /// The key as shells, editors and stores of secrets leave it.
    private var forms: [(name: String, text: String)] {
        get throws {
            let lines = key.split(separator: "\n").map(String.init)
            let der = Data(base64Encoded: lines.dropFirst().dropLast().joined())
            let base64 = try #require(der).base64EncodedString()
            return [
                ("PEM", key), ("without the last line end", lines.joined(separator: "\n")),
                ("on one line", lines.joined(separator: "\\n")),
                ("on one line, escaped twice", lines.joined(separator: "\\\\n") + "\\\\n"),
                ("with blanks in place of line ends", lines.joined(separator: " ")),
                ("indented", lines.map { "    \($0)\n" }.joined()),
                ("CRLF", lines.map { "\($0)\r\n" }.joined()),
                ("in double quotes", "\"\(lines.joined(separator: "\\n"))\""),
                ("in single quotes", "'\(key)'"), ("between blanks", " \n\t\(key) \n"),
                ("base64 of PEM", Data(key.utf8).base64EncodedString()),
                (
                    "base64 of PEM in lines",
                    Data(key.utf8).base64EncodedString(options: .lineLength76Characters)
                ),
                ("base64 of DER", base64), ("base64 of DER in quotes", "\"\(base64)\"\n"),
            ]
        }
    }

    @Test
    func
        `A key in any form that people paste makes the same token from file, variable and command`()
        throws
    {
        let expected = try token(["--auth-key", campaign.authority.authKey])
        #expect(expected.exitCode == 0 && expected.output.hasPrefix("eyJ"), "\(expected.errors)")
        for (name, text) in try forms {
            let file = try campaign.directory.write(text, to: "form")
            #expect(chmod(file, 0o600) == 0)
            for found in try [
                token(["--auth-key", file]),
                token(["--auth-key", "env:APNS_KEY"], environment: ["APNS_KEY": text]),
                token(["--auth-key-command", "cat '\(file)'"]),
            ] {
                #expect(found.output == expected.output, "\(name): \(found.errors)")
                #expect(found.errors.isEmpty, "\(name): \(found.errors)")
            }
        }
        let lines = key.split(separator: "\n").dropFirst().dropLast().joined()
        let der = try #require(Data(base64Encoded: lines))
        let file = campaign.directory.path + "/key.der"
        try der.write(to: URL(filePath: file))
        #expect(chmod(file, 0o600) == 0)
        for options in [["--auth-key", file], ["--auth-key-command", "cat '\(file)'"]] {
            #expect(try token(options).output == expected.output, "DER: \(options[0])")
        }
    }

    private func expectRefusal(
        _ options: [String], environment: [String: String] = [:], says: [String],
        without hidden: [String] = []
    ) throws {
        let refused = try Broadside.run(
            campaign.arguments(
                to: "127.0.0.1:1", options + ["--dry-run"], without: ["auth-key"]),
            in: campaign.directory, limit: 120, environment: environment)
        #expect(refused.exitCode == 2, "\(options) \(refused.errors)")
        #expect(refused.errorLines.count == 1, "\(options) \(refused.errors)")
        for text in says { #expect(refused.errors.contains(text), "\(text): \(refused.errors)") }
        for text in hidden {
            #expect(!(refused.errors + refused.output).contains(text), "\(options)")
        }
    }

    @Test
    func `A variable that is unset, empty or no key is refused by its name alone`() throws {
        try expectRefusal(
            ["--auth-key", "env:NOT_SET_HERE"], says: ["env:NOT_SET_HERE", "not set"])
        try expectRefusal(
            ["--auth-key", "env:K"], environment: ["K": ""], says: ["env:K", "is empty"])
        try expectRefusal(
            ["--auth-key", "env:K"], environment: ["K": "correct horse battery staple"],
            says: ["--auth-key env:K: no usable key", "put the text of the .p8 file there"],
            without: ["correct", "horse"])
        try expectRefusal(
            ["--auth-key", "env:K"], environment: ["K": String(key.dropLast(80))],
            says: ["--auth-key env:K"], without: hiddenParts)
        try expectRefusal(
            ["--auth-key=env:\(key)"], says: ["--auth-key env: must be followed"],
            without: hiddenParts)
        try expectRefusal(
            ["--auth-key=env:\(key.split(separator: "\n")[1])"],
            says: ["--auth-key env: must be followed"],
            without: hiddenParts)
    }

    @Test func `A key with a passphrase from a variable or a command is refused with the remedy`()
        throws
    {
        let file = "\(campaign.directory.path)/protected"
        try Subprocess.run(
            "openssl",
            [
                "pkcs8", "-topk8", "-in", campaign.authority.authKey, "-out", file, "-passout",
                "pass:word",
            ], in: campaign.directory)
        let remedy =
            "no usable key: the private key is protected by a passphrase: remove it with "
            + "'openssl pkey -in FILE -out NEWFILE', then "
        try expectRefusal(
            ["--auth-key", "env:K"],
            environment: ["K": try String(contentsOfFile: file, encoding: .utf8)],
            says: ["--auth-key env:K: \(remedy)put the text of NEWFILE there"])
        try expectRefusal(
            ["--auth-key-command", "cat '\(file)'"],
            says: ["printed \(remedy)have it print the text of NEWFILE"])
    }

    /// What of the key must not be seen.
    private var hiddenParts: [String] {
        key.split(separator: "\n").dropFirst().dropLast().map { String($0.prefix(16)) }
    }

    @Test
    func `A command that fails is refused before the run, with its last error and without secrets`()
        throws
    {
        func refusal(_ command: String, _ says: [String], without hidden: [String] = []) throws {
            try expectRefusal(
                ["--auth-key-command", command], says: ["--auth-key-command "] + says,
                without: hidden)
        }
        try refusal(
            "echo first >&2; echo 'vault: not logged in' >&2; exit 3",
            ["exit code 3 (vault: not logged in)", "fix what it reports"], without: ["first"])
        try refusal("nothing-that-exists-here", ["exit code 127", "not found"])
        try refusal("true", ["printed nothing"])
        try refusal("echo; echo '  '", ["printed nothing"])
        try refusal("kill -9 $$", ["signal 9"])
        try refusal("yes", ["more than 65,536 bytes"])
        try refusal(
            "echo correct horse", ["printed no usable key", "have it print"], without: ["horse"])
        let file = campaign.authority.authKey
        try refusal("cat '\(file)' >&2; exit 1", ["exit code 1"], without: hiddenParts)
        try refusal(
            "tail -n 2 '\(file)' | head -n 1 >&2; exit 1", ["exit code 1"], without: hiddenParts)
        try refusal(
            "base64 -w 0 '\(file)' >&2; exit 1", ["exit code 1"],
            without: [String(Data(key.utf8).base64EncodedString().suffix(20))])
        try refusal(
            "echo sesame-open; echo 'bad password: sesame-open' >&2; exit 1", ["exit code 1"],
            without: ["sesame"])
        try refusal(" ", ["is empty"])
        try expectRefusal(
            ["--auth-key-command=\(key)"], says: ["--auth-key-command contains a key"],
            without: hiddenParts)
        let token = try campaign.authority.providerToken(in: campaign.directory)
        try expectRefusal(
            ["--auth-token-command", token],
            says: ["--auth-token-command contains a key or a provider token"],
            without: [String(token.suffix(20))])
    }

    @Test
    func `Credentials that exclude each other are named, and so is what goes with another kind`()
        throws
    {
        try expectRefusal(
            ["--auth-key", "env:K", "--auth-key-command", "true"],
            says: ["--auth-key and --auth-key-command exclude each other"])
        try expectRefusal(
            ["--auth-token-file", "x", "--auth-token-command", "true"],
            says: ["--auth-token-file and --auth-token-command exclude each other"])
        try expectRefusal(
            ["--auth-token-command", "true"],
            says: ["--key-id belongs to --auth-key, not to --auth-token-command"])
        let refused = try Broadside.run(
            campaign.arguments(
                to: "127.0.0.1:1", ["--auth-key-command", "true", "--dry-run"],
                without: ["auth-key", "key-id", "team-id"]), in: campaign.directory)
        #expect(refused.exitCode == 2)
        #expect(refused.errors.contains("--key-id and --team-id are missing"), "\(refused.errors)")
    }

    @Test
    func `An option of a campaign file that names a key gives way to a command`() throws {
        let file = try campaign.directory.write(
            """
            {"auth-key": "env:NOT_SET_HERE", "key-id": "\(Campaign.keyID)", "team-id": "\(Campaign.teamID)"}
            """, to: "campaign.json5")
        let found = try Broadside.run(
            [
                "doctor", "--print-token", "--campaign", file, "--auth-key-command",
                "cat '\(campaign.authority.authKey)'",
            ], in: campaign.directory)
        #expect(found.exitCode == 0 && found.output.hasPrefix("eyJ"), "\(found.errors)")
        let named = try Broadside.run(
            ["doctor", "--print-token", "--campaign", file], in: campaign.directory)
        #expect(named.exitCode == 2)
        #expect(
            named.errors.contains("line 1, column") && named.errors.contains("env:NOT_SET_HERE"),
            "\(named.errors)")
    }

    @Test
    func `A command that takes longer than its limit is ended with what it started`() throws {
        let mark = "\(campaign.directory.path)/alive"
        let refused = try Broadside.run(
            campaign.arguments(
                to: "127.0.0.1:1",
                [
                    "--auth-key-command",
                    "(while sleep 1; do date +%s > '\(mark)'; done) & wait", "--dry-run",
                ], without: ["auth-key"]), in: campaign.directory, limit: 120)
        #expect(refused.exitCode == 2)
        #expect(refused.errors.contains("took longer than 30 s"), "\(refused.errors)")
        let last = try String(contentsOfFile: mark, encoding: .utf8)
        Thread.sleep(forTimeInterval: 3)
        #expect(try String(contentsOfFile: mark, encoding: .utf8) == last)
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `A stop signal while a command runs ends both with exit 3, and SIGHUP ends neither`(
        signal: Int32
    ) throws {
        let mark = "\(campaign.directory.path)/alive"
        let sending = try Broadside.start(
            campaign.arguments(
                to: "127.0.0.1:1",
                ["--auth-key-command", "while sleep 0.2; do date +%s%N > '\(mark)'; done"],
                without: ["auth-key"]), in: campaign.directory)
        try sending.wait { FileManager.default.fileExists(atPath: mark) }
        sending.send(signal: SIGHUP)
        try FileManager.default.removeItem(atPath: mark)
        try sending.wait { FileManager.default.fileExists(atPath: mark) }
        sending.send(signal: signal)
        let ended = try sending.wait()
        #expect(ended.exitCode == 3 && ended.errorLines.count == 1, "\(ended.errors)")
        let says = "interrupted while --auth-key-command ran: run the same command again"
        #expect(ended.errors.contains(says), "\(ended.errors)")
        let last = try String(contentsOfFile: mark, encoding: .utf8)
        Thread.sleep(forTimeInterval: 2)
        #expect(try String(contentsOfFile: mark, encoding: .utf8) == last)
    }
}
