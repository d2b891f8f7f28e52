import BroadsideTestSupport
import Foundation
import Testing

/// Mistakes that show only outside the command line: a list without tokens, a server that is none, a credential
/// of somebody else. Nothing is refused that may be meant, and every line names a fix.
@Suite(.timeLimit(.minutes(60)))
struct LikelyMistakeTests {
    struct Mistake: Sendable, CustomTestStringConvertible {
        var name: String
        var list: String?
        var more: [String] = []
        var without: Set<String> = []
        var code: Int32
        var says: [String]

        var testDescription: String { name }
    }

    private static let token = String(repeating: "0123456789abcdef", count: 4)

    static let mistakes: [Mistake] = [
        .init(
            name: "an empty list", list: "", code: 2, says: ["contains no rows", "no device gets"]),
        .init(
            name: "a header and no row", list: "token,name\n", more: ["--format", "csv"], code: 2,
            says: ["contains no rows"]),
        .init(
            name: "a text", list: "Dear diary\nIt rained\n", code: 2,
            says: ["all of its 2 rows", "line 1 is 'Dear diary'", "the right file"]),
        .init(
            name: "base64", list: "q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4k=\n", code: 2,
            says: ["device tokens in base64", "line 1", "hexadecimal"]),
        .init(
            name: "a JSON array", list: "[\"\(token)\"]\n", code: 2, says: ["JSON array", "jq -r"]),
        .init(
            name: "JSON Lines with another key", list: "{\"device\":\"\(token)\"}\n", code: 2,
            says: ["has no 'token'", "--token-column"]),
        // Forms that are fine must not be warned of.
        .init(
            name: "a byte-order mark and CRLF",
            list: "\u{feff}\(token)\r\n\(token.dropLast())0\r\n",
            code: 0, says: []),
        .init(
            name: "two byte-order marks", list: "\u{feff}\u{feff}token,a\u{a0}b\n\(token),x\n",
            more: ["--format", "csv"], code: 2,
            says: [
                "its columns are \\u{feff}token, a\\u{a0}b: remove the invisible characters from the "
                    + "name \\u{feff}token"
            ]),
        .init(
            name: "one good row of three", list: "x\ny\n\(token)\n", code: 2,
            says: ["2 (66.7%) of the 3 rows", "raise --max-invalid, which is 10"]),
        .init(
            name: "one good row of three that is wanted", list: "x\ny\n\(token)\n",
            more: ["--max-invalid", "70"], code: 0,
            says: ["2 of the 3 rows read are invalid", "2 MalformedToken (line 1 is 'x')"]),
        .init(
            name: "another's team", more: ["--team-id", "ABCDEFGHIJ"], code: 4,
            says: ["3 rows", "403 InvalidProviderToken", "--key-id and --team-id"]),
        .init(
            name: "another's topic", more: ["--topic", "com.example.wrong"], code: 4,
            says: ["400 TopicDisallowed", "--topic", "new ledger"]),
        .init(
            name: "another's authority", without: ["ca-file"], code: 1,
            says: ["not trusted here", "--ca-file"]),
        .init(
            name: "a port where nobody listens", more: ["--endpoint", "127.0.0.1:1"], code: 1,
            says: ["gave up on 127.0.0.1:1: Connection refused", "check --endpoint"]),
        .init(
            name: "no such host", more: ["--endpoint", "nowhere.invalid:443"], code: 1,
            says: ["cannot resolve nowhere.invalid", "check --endpoint"]),
    ]

    @Test(arguments: mistakes)
    func `Each likely mistake of a request is refused with its fix`(mistake: Mistake) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 3)
        if let list = mistake.list { try campaign.directory.write(list, to: "tokens.txt") }
        let sent = try Broadside.run(
            campaign.arguments(to: server.endpoint, mistake.more, without: mistake.without),
            in: campaign.directory, limit: 120)
        #expect(sent.exitCode == mistake.code, "\(sent.errors)")
        let lines = sent.errors.split(separator: "\n").count
        #expect(lines == (mistake.says.isEmpty ? 0 : 1), "\(sent.errors)")
        for words in mistake.says { #expect(sent.errors.contains(words), "\(sent.errors)") }
    }

    @Test func `A run after its deadline sends nothing, and says how to send the rest`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 3)
        let deadline = ["--deadline", "1h"]
        let begun = try campaign.send(to: server.endpoint, deadline + ["--limit", "1"])
        #expect(begun.exitCode == 0, "\(begun.errors)")
        let late = try campaign.send(
            to: server.endpoint, deadline + ["--resume"], environment: FakeTime.fixed("+2h"))
        #expect(late.exitCode == 3, "\(late.errors)")
        #expect(late.errors.split(separator: "\n").count == 1, "\(late.errors)")
        for words in ["the deadline has passed", "--resume"] {
            #expect(late.errors.contains(words), "\(late.errors)")
        }
        #expect(try server.finish().count == 1)
    }

    @Test func `A server that speaks no TLS is reported as such`() throws {
        let campaign = try Campaign(rows: 3)
        let server = try Subprocess(
            "timeout",
            [
                "100", Tool.path(of: "python3"), "-u", "-c",
                """
                import http.server
                server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
                print(server.server_port)
                server.serve_forever()
                """,
            ], in: campaign.directory)
        defer { server.stop() }
        var port = ""
        try server.wait {
            port = try String(contentsOfFile: server.outputPath, encoding: .utf8)
            return port.hasSuffix("\n")
        }
        let sent = try campaign.send(to: "127.0.0.1:\(port.dropLast())")
        #expect(sent.exitCode == 1, "\(sent.errors)")
        #expect(sent.errors.contains("does not speak TLS") && sent.errors.contains("port"))
    }

    @Test func `No command writes over a campaign's list or ledger`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 3)
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        let list = try String(contentsOfFile: campaign.list, encoding: .utf8)
        let manifest = "\(campaign.ledger)/manifest.json"
        for path in [campaign.list, "\(campaign.directory.path)/./tokens.txt", manifest] {
            for command in [["ledger", "export"], ["report"]] {
                let refused = try Broadside.run(
                    command + ["--ledger", campaign.ledger, "--output", path],
                    in: campaign.directory)
                #expect(refused.exitCode == 2, "\(command)")
                #expect(refused.errors.contains("--output"), "\(refused.errors)")
                #expect(refused.errors.contains("choose another"), "\(refused.errors)")
            }
        }
        #expect(try String(contentsOfFile: campaign.list, encoding: .utf8) == list)
        #expect(try campaign.ledger("verify").exitCode == 0)

        let another = try campaign.directory.write("aabb\n", to: "other.txt")
        let wrong = try campaign.ledger("export", ["--tokens", another])
        #expect(wrong.exitCode == 2, "\(wrong.errors)")
        #expect(wrong.errors.contains("not the list that was sent"), "\(wrong.errors)")
        let states = try campaign.ledger("export", ["--state", "failed,unknown"])
        #expect(states.exitCode == 2 && states.errors.contains("--state once per state"))
        let state = try campaign.ledger("export", ["--state", "acepted"])
        #expect(state.exitCode == 2 && state.errors.contains("did you mean accepted?"))
    }

    @Test func `feedback refuses an existing ledger and does not suggest --resume`() throws {
        let directory = try TemporaryDirectory()
        let identity = try TestAuthority.shared().clientCertificate(in: directory)
        let refused = try Broadside.run(
            [
                "feedback", "--endpoint", "127.0.0.1:1", "--certificate", identity.certificate,
                "--private-key", identity.key, "--ledger",
                directory.path,
            ], in: directory)
        #expect(refused.exitCode == 2 && refused.errors.contains("name a new directory"))
        #expect(!refused.errors.contains("--resume"), "\(refused.errors)")
    }
}
