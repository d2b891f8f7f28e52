import BroadsideTestSupport
import Foundation
import Testing

/// `{{column:fit}}` in all that reads a payload: a value is shortened so that its payload fits.
@Suite(.timeLimit(.minutes(60)))
struct ShortenedValueTests {
    private static let payload =
        #"{"aps":{"alert":{"title":"{{title}}","body":"{{body:fit}}"}},"n":"{{n:int}}"}"#

    /// Makes a list whose bodies are near the limit, of characters of one scalar and of many, and tells what
    /// each row's payload is by Python's `json`: the whole body, or as many of its characters as fit with an
    /// ellipsis behind them.
    private static let judge = #"""
        import json, random, sys
        limit, seed = int(sys.argv[2]), int(sys.argv[3])
        choose = random.Random(seed)
        characters = ["a", "b", " ", "\"", "\\", "\x01", "\n", "\r\n", "é", "e\u0301", "字",
            "\U0001f44d\U0001f3fd", "\U0001f468\u200d\U0001f469\u200d\U0001f467", "\U0001f1e9\U0001f1ea", "\u2764\ufe0f"]
        def payload(title, body, n):
            value = {"aps": {"alert": {"title": title, "body": body}}, "n": n}
            return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        def cost(text): return len(json.dumps(text, ensure_ascii=False).encode()) - 2
        costs = {character: cost(character) for character in characters}
        with open(sys.argv[1], "w") as rows, open(sys.argv[1] + ".expected", "w") as expected:
            for n in range(200):
                body = []
                size = choose.randrange(limit - 400, limit + 400)
                length = len(payload("", "", n))
                while length < size:
                    body.append(choose.choice(characters))
                    length += costs[body[-1]]
                title = choose.choice(["", "Titel", "\"ü\"" * 20])
                length += cost(title)
                kept = len(body)
                if length > limit:
                    length += cost("…")
                    while length > limit:
                        kept -= 1
                        length -= costs[body[kept]]
                made = payload(title, "".join(body[:kept]) + ("…" if kept < len(body) else ""), n)
                assert len(made) == length
                expected.write(made.decode() + "\n")
                row = {"token": "%064x" % (n + 1), "title": title, "body": "".join(body), "n": n}
                rows.write(json.dumps(row, ensure_ascii=choose.random() < 0.5) + "\n")
        """#

    @Test(arguments: [("alert", 4096), ("voip", 5120)])
    func `Payloads on the wire are those that Python makes of the same rows`(
        type: String, limit: Int
    ) throws {
        let server = try RecordingServer("plain", ["--bodies"])
        let campaign = try Campaign(rows: 1, payload: Self.payload)
        let list = "\(campaign.directory.path)/rows.jsonl"
        try Subprocess.run(
            "python3", ["-B", "-c", Self.judge, list, "\(limit)", "\(limit)"],
            in: campaign.directory)
        let topic = type == "voip" ? "\(Campaign.topic).voip" : Campaign.topic
        let sent = try campaign.send(
            to: server.endpoint,
            ["--tokens", list, "--push-type", type, "--topic", topic, "--connections", "1"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        // Strings would be equal where their bytes are not.
        let bodies = try server.answers().compactMap(\.body).map { Array($0.utf8) }
        let expected = try String(contentsOfFile: list + ".expected", encoding: .utf8)
            .utf8.split(separator: UInt8(ascii: "\n")).map { Array($0) }
        #expect(expected.count == 200 && Set(bodies) == Set(expected))
        #expect(bodies.allSatisfy { $0.count <= limit })
        #expect(bodies.count { $0.count > limit - 30 } > 60, "many are as long as may be")
    }

    @Test func `Preview, dry run and payload check know which value is shortened`() throws {
        let campaign = try Campaign(rows: 1, payload: Self.payload)
        let token = campaign.tokens.token(0)
        let long = String(repeating: "é", count: 3000)
        let list = try campaign.directory.write(
            "token,title,body,n\n\(token),T,\(long),1\n\(token),T,short,2\n\(token),\(long),x,3\n",
            to: "rows.csv")
        let more = ["--tokens", list, "--max-invalid", "100"]
        let shown = try campaign.send(to: "localhost:1", more + ["--preview", "1"])
        #expect(shown.exitCode == 0, "\(shown.errors)")
        #expect(shown.output.contains("é…\"}},\"n\":1}\n  (4,096 bytes; body is shortened)"))
        let dry = try campaign.send(to: "localhost:1", more + ["--dry-run"])
        #expect(dry.exitCode == 0, "\(dry.errors)")
        let words = dry.output.split(whereSeparator: \.isWhitespace).joined(separator: " ")
        #expect(words.contains("each row's title, body, n; body is shortened so that it fits"))
        #expect(words.contains("shortened 1 row's body"), "\(dry.output)")
        #expect(words.contains("1 PayloadTooLarge"), "\(dry.output)")
        let checked = try Broadside.run(
            ["payload", "check", "--payload", campaign.payloadFile], in: campaign.directory)
        #expect(checked.exitCode == 0, "\(checked.errors)")
        #expect(checked.output.contains("shortened body, so that each payload fits\n"))
        let json = try Broadside.run(
            ["payload", "check", "--payload", campaign.payloadFile, "--json"],
            in: campaign.directory)
        #expect(json.output.contains("\"fit\":\"body\""))
    }

    @Test
    func `Shortened rows are counted in summary, ledger, metrics and report, if there may be any`()
        throws
    {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 4, payload: Self.payload)
        let folder = campaign.directory.path
        let long = String(repeating: "é", count: 3000)
        let rows = [long, "short", long, "x"].enumerated().map { index, body in
            "\(campaign.tokens.token(index)),T,\(body),1\n"
        }
        let list = try campaign.directory.write(
            "token,title,body,n\n" + rows.joined(), to: "rows.csv")
        let outputs = [
            "--summary", "\(folder)/summary", "--metrics", "\(folder)/metrics", "--report",
            "\(folder)/page.html",
        ]
        func text(_ name: String) throws -> String {
            try String(contentsOfFile: "\(folder)/\(name)", encoding: .utf8)
        }
        let short = try campaign.directory.write(
            "token,title,body,n\n\(rows[1])", to: "short.csv")
        let dry = try campaign.send(to: "localhost:1", ["--tokens", short, "--dry-run"])
        #expect(dry.output.contains("shortened    no row's body\n"), "\(dry.output)")
        let sent = try campaign.send(to: server.endpoint, ["--tokens", list] + outputs)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try text("summary").contains("\"shortened\" : 2,"))
        #expect(try text("metrics").contains("\nbroadside_shortened_rows_total 2\n"))
        #expect(try text("page.html").contains("<dt>Shortened</dt><dd>2 rows"))
        #expect(try campaign.ledger("stats", ["--json"]).output.contains("\"shortened\" : 2,"))
        #expect(try campaign.ledger("stats").output.contains("shortened   2 rows' values"))
        // A finished campaign is told as before.
        let again = try campaign.send(
            to: server.endpoint, ["--tokens", list, "--resume"] + outputs)
        #expect(again.exitCode == 0, "\(again.errors)")
        #expect(try text("summary").contains("\"shortened\" : 2,"))
        let other = try Campaign(rows: 2)
        let plain = try other.send(
            to: server.endpoint,
            ["--summary", "\(folder)/summary", "--metrics", "\(folder)/metrics"])
        #expect(plain.exitCode == 0, "\(plain.errors)")
        #expect(try !text("summary").contains("shortened"))
        #expect(try !text("metrics").contains("shortened"))
        #expect(try !other.ledger("stats", ["--json"]).output.contains("shortened"))
    }

    @Test
    func
        `Two values to be shortened in a payload, and one in a header, are refused at their places`()
        throws
    {
        let campaign = try Campaign(
            rows: 1, payload: "{\"aps\":{\"alert\":\"{{a:fit}}\"},\n\"b\":\"{{b:fit}}\"}")
        let list = try campaign.directory.write("token,a,b\naa,x,y\n", to: "rows.csv")
        let two = try campaign.send(to: "localhost:1", ["--tokens", list, "--dry-run"])
        #expect(two.exitCode == 2)
        #expect(
            two.errors.contains(
                "payload.json, line 2, column 6: {{a:fit}} is already in this payload"))
        let header = try campaign.send(
            to: "localhost:1", ["--tokens", list, "--collapse-id", "{{a:fit}}", "--dry-run"])
        #expect(header.exitCode == 2 && header.errors.contains("--collapse-id"), "\(header.errors)")
    }
}
