import BroadsideTestSupport
import Foundation
import Testing

/// `--preview N`: requests as they would be sent, and nothing sent.
@Suite(.timeLimit(.minutes(60)))
struct PreviewTests {
    /// The blocks of a preview: for each request its header fields and its payload.
    private struct Request {
        var heading: String
        var fields: [String: String] = [:]
        var payload = ""
    }

    private func requests(_ output: String) -> [Request] {
        var requests: [Request] = []
        for line in output.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("line ") { requests.append(Request(heading: String(line))) }
            guard line.hasPrefix("  "), !requests.isEmpty else { continue }
            let text = line.dropFirst(2)
            if text.hasPrefix("{") {
                requests[requests.count - 1].payload = String(text)
            } else if let end = text.range(of: ": ") {
                requests[requests.count - 1].fields[String(text[..<end.lowerBound])] =
                    String(text[end.upperBound...])
            }
        }
        return requests
    }

    @Test
    func `A preview shows the fields that a server then gets and opens no connection`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 3)
        let more = [
            "--priority", "5", "--collapse-id", "match-7", "--expiration", "1893456000",
            "--content-length", "--connections", "1",
        ]
        let before = try campaign.send(to: server.endpoint, more + ["--preview", "2"])
        #expect(before.exitCode == 0, "\(before.errors)")
        #expect(try server.events().isEmpty, "nothing connects")
        #expect(!FileManager.default.fileExists(atPath: campaign.ledger))
        let shown = requests(before.output)
        #expect(shown.count == 2, "\(before.output)")
        #expect(before.output.hasSuffix("preview: nothing was sent, nothing was written\n"))
        #expect(
            !before.output.contains(String(campaign.tokens.token(0).prefix(16))),
            "tokens are shortened")

        let sent = try campaign.send(to: server.endpoint, more)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let first = try #require(server.events().first { $0.fields != nil }?.fields)
        let fields = try #require(shown.first?.fields)
        #expect(Set(first.map(\.name)) == Set(fields.keys))
        for field in first where ![":path", "authorization", "apns-id"].contains(field.name) {
            #expect(fields[field.name] == field.value, "\(field.name)")
        }
        #expect(fields[":path"] == "/3/device/\(campaign.tokens.token(0).prefix(8))… (64 digits)")
        #expect(shown.first?.payload == Campaign.payload)
        #expect(before.output.contains("(\(Campaign.payload.utf8.count) bytes)"))
    }

    @Test
    func `A preview shows the first rows of each language and why others cannot be sent`() throws {
        let campaign = try Campaign(rows: 1)
        let folder = "\(campaign.directory.path)/texts"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        for (name, word) in [("de", "Hallo"), ("pt", "Olá"), ("fr", "Salut")] {
            try Data(#"{"aps":{"alert":"\#(word) {{name}}","badge":"{{n:int}}"}}"#.utf8)
                .write(to: URL(filePath: "\(folder)/\(name).json"))
        }
        let list = try campaign.directory.write(
            """
            token,lang,name,n
            aa01,de,Jo,1
            no token,pt,X,1
            aa02,de,Al,2
            aa03,de,Eva,3
            aa04,pt-BR,A\u{9b}2J\u{202e}b,4
            aa05,pt-BR,Z,x
            """, to: "list.csv")
        let finished = try campaign.send(
            to: "localhost:1",
            [
                "--tokens", list, "--payload-by", "lang=\(folder)", "--collapse-id", "m-{{name}}",
                "--max-invalid", "100", "--preview", "2",
            ])
        #expect(finished.exitCode == 0, "\(finished.errors)")
        let shown = requests(finished.output)
        #expect(shown.map { $0.heading.split(separator: " ")[1] } == ["2", "4", "6"])
        #expect(
            shown.map(\.payload).prefix(2) == [
                #"{"aps":{"alert":"Hallo Jo","badge":1}}"#,
                #"{"aps":{"alert":"Hallo Al","badge":2}}"#,
            ])
        #expect(shown[1].fields["apns-collapse-id"] == "m-Al")
        #expect(shown[2].payload.contains(#"Olá A\u{9b}2J\u{202e}b"#), "\(shown[2].payload)")
        #expect(finished.output.contains("no row of the list gets"), "\(finished.output)")
        #expect(finished.output.contains("fr.json"))
    }

    @Test
    func `A preview that shows fewer requests than asked for says which rows it left out and why`()
        throws
    {
        let campaign = try Campaign(
            rows: 1, payload: #"{"aps":{"alert":"Hi","badge":"{{n:int}}"}}"#)
        let tokens = (0..<4).map { campaign.tokens.token($0) }
        let list = try campaign.directory.write(
            """
            token,lang,n
            \(tokens[0]),de,1
            \(tokens[1]),fr,1
            \(tokens[2]),de,x
            \(tokens[3]),de,2
            \(tokens[3]),de,3
            no token,de,1
            """, to: "list.csv")
        let opted = try campaign.directory.write(tokens[0] + "\n", to: "opted-out.txt")
        let options = [
            "--tokens", list, "--suppress", opted, "--duplicates", "skip", "--max-invalid", "100",
        ]
        func lines(_ more: [String]) throws -> [String] {
            let shown = try campaign.send(to: "localhost:1", options + more)
            #expect(shown.exitCode == 0, "\(shown.errors)")
            let all = shown.output.split(separator: "\n").map(String.init)
            return Array(all.drop { !$0.hasPrefix("read ") })
        }
        #expect(
            try lines(["--where", "lang=de", "--preview", "2"]) == [
                "read         all 6 rows: 1 shown", "not shown    1 Suppressed (--suppress)",
                "             1 Duplicate (--duplicates skip)", "             1 Filtered (--where)",
                "             1 BadValue (invalid, --payload)",
                "             1 MalformedToken (invalid)",
                "preview: nothing was sent, nothing was written",
            ])
        #expect(
            try lines(["--where", "lang=de", "--preview", "1"]).isEmpty, "as many as asked for")
        let none = try lines(["--where", "lang=fr", "--where", "n=2", "--preview", "3"])
        #expect(none.first == "read         all 6 rows: none is shown", "\(none)")
        #expect(none.contains("             5 Filtered (--where)"), "\(none)")
        let few = try lines(["--limit", "2", "--preview", "3"])
        #expect(
            few.prefix(2) == [
                "read         all 2 rows (--limit): 1 shown",
                "not shown    1 Suppressed (--suppress)",
            ])
    }

    @Test func `A token is shortened wherever a payload or a header holds it`() throws {
        let payload = #"{"aps":{"alert":"Hello {{token}}"},"id":"{{token}}","n":"{{n}}"}"#
        let campaign = try Campaign(rows: 2, payload: payload)
        let digits = campaign.tokens.token(0)
        let spaced =
            "<"
            + stride(from: 0, to: 64, by: 8).map {
                String(campaign.tokens.token(1).dropFirst($0).prefix(8))
            }.joined(separator: " ") + ">"
        let list = try campaign.directory.write(
            "token,n\n\(digits.uppercased()),1\n\(spaced),2\n", to: "list.csv")
        let options = ["--tokens", list, "--collapse-id", "{{token}}", "--max-invalid", "100"]
        let shown = try campaign.send(to: "localhost:1", options + ["--preview", "2"])
        #expect(shown.exitCode == 0, "\(shown.errors)")
        let first = try #require(requests(shown.output).first)
        #expect(
            first.payload
                == #"{"aps":{"alert":"Hello \#(digits.prefix(8))…"},"id":"\#(digits.prefix(8))…","n":"1"}"#
        )
        #expect(first.fields["apns-collapse-id"] == "\(digits.prefix(8))…")
        let plan = try campaign.send(
            to: "localhost:1", options.dropLast(4) + ["--progress", "auto", "--dry-run"])
        #expect(plan.exitCode == 0, "\(plan.errors)")
        for text in [shown.output, shown.errors, plan.output, plan.errors] {
            for row in 0..<2 {
                let bare = text.lowercased().filter { $0 != " " }
                #expect(!bare.contains(campaign.tokens.token(row).dropFirst(8).prefix(16)))
            }
        }
        #expect((plan.output + plan.errors).contains("Hello \(digits.prefix(8))…"))
    }

    @Test func `A preview of a probe needs no ledger and writes no pruned list`() throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        let output = "\(campaign.directory.path)/clean.txt"
        for more in [[], ["--ledger", campaign.ledger]] {
            var arguments = campaign.arguments(
                to: "localhost:1", ["--preview", "1", "--then-prune", output] + more,
                without: ["payload", "ledger"])
            arguments[0] = "probe"
            let shown = try Broadside.run(arguments, in: campaign.directory)
            #expect(shown.exitCode == 0 && shown.errors.isEmpty, "\(shown.errors)")
            #expect(!FileManager.default.fileExists(atPath: output))
        }
    }

    @Test(arguments: [
        ("com.example.app.push-type.widgets", 2, "push type widgets, whose tokens can't be probed"),
        ("com.example.app.voip", 0, "push type voip, whose tokens can't be probed"),
        ("com.apple.mgmt.External.x", 2, "device management, whose tokens can't be probed"),
    ])
    func `A probe with a topic of another push type says that its tokens can't be probed`(
        topic: String, code: Int32, says: String
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 1)
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        var arguments = campaign.arguments(
            to: "localhost:1", ["--dry-run", "--topic", topic],
            without: ["payload", "ledger", "topic"])
        arguments[0] = "probe"
        let shown = try Broadside.run(arguments, in: campaign.directory)
        #expect(shown.exitCode == code && shown.errors.contains(says), "\(shown.errors)")
        #expect(!shown.errors.contains("--push-type"))
    }

    @Test
    func `A preview refuses an invalid list and skips suppressed rows and other shards`() throws {
        let campaign = try Campaign(rows: 4)
        let bad = try campaign.directory.write("x\ny\n", to: "bad.txt")
        let refused = try campaign.send(to: "localhost:1", ["--tokens", bad, "--preview", "1"])
        #expect(refused.exitCode == 2 && refused.errors.contains("all of its 2 rows are invalid"))
        let opted = try campaign.directory.write(
            campaign.tokens.token(0) + "\n", to: "opted-out.txt")
        let rest = try campaign.send(
            to: "localhost:1", ["--suppress", opted, "--preview", "9", "--shard", "1/2"])
        #expect(rest.exitCode == 0, "\(rest.errors)")
        #expect(requests(rest.output).map(\.heading).map { $0.prefix(6) } == ["line 2"])
        let resumed = try campaign.send(to: "localhost:1", ["--preview", "1", "--resume"])
        #expect(resumed.exitCode == 2 && resumed.errors.contains("remove --resume"))
        for count in ["0", "-1", "1001", "x"] {
            let odd = try campaign.send(to: "localhost:1", ["--preview=\(count)"])
            #expect(odd.exitCode == 2 && odd.errors.contains("--preview"), "\(count)")
        }
    }
}
