import BroadsideTestSupport
import Foundation
import Testing

/// A secret that is given where its file is meant is not printed, by no command and in no form.
@Suite(.timeLimit(.minutes(60)))
struct SecretValueTests {
    private static let options = [
        "auth-key", "auth-token-file", "certificate", "private-key", "passphrase-file",
        "proxy-auth-file",
    ]

    /// Secrets as a shell puts them there, and what of each must not be seen.
    private static func secrets(_ key: String) -> [(value: String, parts: [String])] {
        let body = key.split(separator: "\n").dropFirst().dropLast().map(String.init)
        let parts = body.map { String($0.prefix(16)) }
        let base64 = Data(key.utf8).base64EncodedString()
        let token = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJERUYxMjNHSElKIn0.c2lnbmF0dXJlLWlzLWhlcmU"
        return [
            (key, parts), (key.replacing("\n", with: "\\n"), parts),
            (key.replacing("\n", with: " "), parts), (body.joined(), parts),
            (base64, [String(base64.suffix(30))]), (token, ["ERUYxMjNHSElK", "c2lnbmF0dXJl"]),
            ("hunter2", ["hunter2"]), ("correct horse battery", ["correct", "horse", "battery"]),
            ("user:sesame", ["sesame"]),
        ]
    }

    private func expect(_ finished: Finished, without parts: [String], _ name: String) {
        #expect(finished.exitCode == 2, "\(name) \(finished.errors)")
        #expect(finished.errorLines.count == 1, "\(name) \(finished.errors)")
        for part in parts {
            #expect(
                !(finished.errors + finished.output).contains(part), "\(name) \(finished.errors)")
        }
    }

    @Test(arguments: options)
    func `A secret as a value on the command line is not printed`(option: String) throws {
        let campaign = try Campaign(rows: 3)
        let key = try String(contentsOfFile: campaign.authority.authKey, encoding: .utf8)
        let needs: [String: [String]] = [
            "private-key": ["--certificate", campaign.authority.authKey],
            "passphrase-file": ["--certificate", campaign.authority.authKey],
            "proxy-auth-file": ["--proxy", "http://127.0.0.1:1"],
        ]
        let isCredential = option != "proxy-auth-file"
        let without: Set<String> = isCredential ? ["auth-key", "key-id", "team-id"] : []
        for (value, parts) in Self.secrets(key) {
            let words = value.split { $0 == " " || $0 == "\n" }.map(String.init)
            let spellings = [
                ["--\(option)", value], ["--\(option)"] + words, ["--\(option)=\(value)"],
                ["--\(option)=\(words[0])"] + words.dropFirst(),
            ]
            // All options are parsed alike: one has all spellings. A value of one word has fewer.
            let given = Set(option == "auth-key" ? spellings : Array(spellings.prefix(2)))
            for given in given {
                var more = (needs[option] ?? []) + given + ["--dry-run"]
                if option == "auth-key" {
                    more += ["--key-id", Campaign.keyID, "--team-id", Campaign.teamID]
                }
                let sent = try Broadside.run(
                    campaign.arguments(to: "127.0.0.1:1", without: without) + more,
                    in: campaign.directory)
                expect(sent, without: parts, "\(option) \(value.prefix(12))")
                #expect(sent.errors.contains("--\(option)"), "\(sent.errors)")
            }
        }
    }

    @Test(arguments: options)
    func `A secret in a campaign file is not printed, by --print-campaign either`(option: String)
        throws
    {
        let campaign = try Campaign(rows: 3)
        let key = try String(contentsOfFile: campaign.authority.authKey, encoding: .utf8)
        for (value, parts) in Self.secrets(key).prefix(6) {
            var settings = [
                "tokens": campaign.list, "payload": campaign.payloadFile, "topic": Campaign.topic,
                "endpoint": "127.0.0.1:1", option: value,
            ]
            if option == "auth-key" {
                settings["key-id"] = Campaign.keyID
                settings["team-id"] = Campaign.teamID
            }
            let file = "\(campaign.directory.path)/campaign.json"
            try JSONEncoder().encode(settings).write(to: URL(filePath: file))
            for more in [["--dry-run"], ["--print-campaign"]] {
                let sent = try Broadside.run(
                    ["send", "--campaign", file] + more, in: campaign.directory)
                expect(sent, without: parts, "\(option) \(value.prefix(12))")
                #expect(sent.errors.contains("line 1, column "), "\(sent.errors)")
            }
        }
    }

    @Test func `Keys and device tokens in other places are printed shortened`() throws {
        let campaign = try Campaign(rows: 3)
        let key = try String(contentsOfFile: campaign.authority.authKey, encoding: .utf8)
        let body = key.split(separator: "\n").dropFirst().dropLast().map { String($0.prefix(16)) }
        let token = campaign.tokens.token(1)
        let end = String(token.suffix(20))
        for (arguments, parts) in [
            (["send", "--key-id", key], body), (["send", key], body), ([key], body),
            (["ledger", "stats", "--ledger", key], body), (["send", "--tokens", key], body),
            (["send", token], [end]), (["ledger", "find", token], [end]), ([token], [end]),
            (["ledger", token], [end]), (["send", "--\(token)"], [end]),
        ] {
            let finished = try Broadside.run(arguments, in: campaign.directory)
            expect(finished, without: parts, "\(arguments[0])")
        }
        let sent = try Broadside.run(
            campaign.arguments(
                to: "127.0.0.1:1", ["--to", token + "x", "--dry-run"], without: ["tokens"]),
            in: campaign.directory)
        expect(sent, without: [end], "--to")
    }
    @Test func `The password of a URL in an option is in no output, and printed commands work`()
        throws
    {
        let campaign = try Campaign(rows: 400)
        let server = try LocalAPNs()
        let folder = campaign.directory.path
        let url = "https://bot:sesame@127.0.0.1:1"
        let hook = "touch '\(folder)/'$BROADSIDE_EVENT; : \(url)/x"
        let sending = try Broadside.start(
            campaign.arguments(
                to: server.endpoint,
                [
                    "--hook", hook, "--name", "of \(url)", "--label", "from=\(url)",
                    "--rate", "1", "--log", "json", "--summary", "\(folder)/summary.json",
                    "--report", "\(folder)/report.html", "--metrics", "\(folder)/metrics.prom",
                ]), in: campaign.directory)
        try sending.wait { FileManager.default.fileExists(atPath: "\(folder)/started") }
        let control = try Broadside.run(
            ["control", "--ledger", campaign.ledger, "stop"], in: campaign.directory)
        #expect(control.exitCode == 0, "\(control.errors)")
        let sent = try sending.wait()
        #expect(sent.exitCode == 3, "\(sent.errors)")
        let status = try Broadside.run(
            ["status", campaign.ledger, "--json"], in: campaign.directory)
        let page = try Broadside.run(
            ["report", "--ledger", campaign.ledger], in: campaign.directory)
        for text in [sent.errors, sent.output, status.output, page.output] {
            #expect(!text.contains("sesame"), "\(text)")
        }
        #expect(status.output.contains("https://bot:…@127.0.0.1:1"), "\(status.output)")
        let files = try #require(FileManager.default.enumerator(atPath: folder))
        for case let file as String in files {
            let content = FileManager.default.contents(atPath: "\(folder)/\(file)") ?? Data()
            #expect(content.range(of: Data("sesame".utf8)) == nil, "\(file)")
        }
        let advice = try #require(sent.errorLines.last)
        #expect(advice.contains("(add --hook and --name and --label yourself: "), "\(advice)")
        let start = try #require(advice.range(of: "not shown): ")).upperBound
        let command = String(advice[start...]).replacing("--rate 1 ", with: "--rate 1000 ")
        let resumed = try Subprocess("/bin/sh", ["-c", command], in: campaign.directory).wait()
        #expect(resumed.exitCode == 0, "\(advice) \(resumed.errors)")
    }
}
