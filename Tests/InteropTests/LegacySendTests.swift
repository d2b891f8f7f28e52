import BroadsideTestSupport
import Foundation
import Testing

/// What a send over the binary protocol waits for, fills in and says of itself.
@Suite(.timeLimit(.minutes(60)))
struct LegacySendTests {
    private func text(_ hexadecimal: String) -> String {
        let digits = Array(hexadecimal)
        let bytes = stride(from: 0, to: digits.count, by: 2).map {
            UInt8(String(digits[$0...($0 + 1)]), radix: 16)!
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `Silence of the legacy gateway counts as acceptance after 5 s by default`() throws {
        let campaign = try Campaign(rows: 1)
        let gateway = try PythonGateway(campaign)
        let started = Date()
        let sent = try gateway.send(
            campaign, ["--progress", "auto", "--summary", "-"], timeout: nil)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(Date().timeIntervalSince(started) >= 5)
        #expect(sent.errors.contains("silence      a row counts as"))
        #expect(sent.errors.contains("accepted after 5.0 s without an error"), "\(sent.errors)")
        #expect(sent.errors.contains("accepted    1, by silence"))
        #expect(try SendSummary(json: sent.output).accepted == 1)
    }

    @Test
    func `An error packet after acceptance by silence is reported and changes nothing`() throws {
        let campaign = try Campaign(rows: 2)
        let gateway = try PythonGateway(
            campaign, ["--hold-errors"], bad: [(campaign.tokens.token(0), 8)])
        // 1 s of silence. The second row would follow a minute after the first, so the run hears the packet.
        let sending = try gateway.start(
            campaign, ["--rate", "0.016", "--connections", "1", "--log", "json"], timeout: "6s")
        try sending.wait { (try? campaign.statistics().accepted) ?? 0 == 1 }
        try gateway.goOn()
        try sending.wait {
            try String(contentsOfFile: sending.errorsPath, encoding: .utf8).contains("error-packet")
        }
        try campaign.hurry()
        let sent = try sending.wait()
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let told = sent.errorLines.filter { $0.contains("error-packet") }
        #expect(told.count == 1 && told[0].contains("too short"), "\(sent.errors)")
        #expect(sent.errors.contains("refused or discarded 1 row that is recorded as accepted"))
        #expect(try campaign.statistics().accepted == 2)
        #expect(try gateway.taken().map(\.token) == [campaign.tokens.token(1)])
    }

    /// In TLS 1.3, rows follow the certificate before the server's alert about it arrives.
    @Test func `A gateway that refuses the certificate leaves no row in doubt`() throws {
        let campaign = try Campaign(rows: 200)
        let gateway = try PythonGateway(
            campaign, ["--client-ca", try campaign.authority.otherCAFile])
        let sent = try gateway.send(campaign, ["--connections", "1", "--summary", "-"])
        #expect(sent.exitCode == 1, "\(sent.errors)")
        #expect(sent.errors.contains("does not accept the client certificate"), "\(sent.errors)")
        let counts = try SendSummary(json: sent.output)
        #expect(counts.unknown == 0 && counts.remaining == 200, "\(sent.output)")
        #expect(try gateway.taken().isEmpty)
    }

    @Test func `An error packet without identifier leaves the rows in flight in doubt`() throws {
        let campaign = try Campaign(rows: 3)
        let gateway = try PythonGateway(
            campaign, ["--forget-identifier"], bad: [(campaign.tokens.token(1), 255)])
        let sent = try gateway.send(campaign, ["--connections", "1", "--log", "json"])
        #expect(sent.exitCode == 6, "\(sent.errors)")
        #expect(sent.errorLines.contains { $0.contains("names no notification") })
        #expect(try campaign.statistics().unknown == 3)
    }

    @Test(arguments: [(1, 256), (2, 2048)])
    func `A templated payload is filled in for the legacy gateway, and a too large one is invalid`(
        command: Int, limit: Int
    ) throws {
        let payload = #"{"aps":{"alert":"Hi {{name|friend}}","badge":"{{badge:int}}"}}"#
        let constant = #"{"aps":{"alert":"Hi ","badge":7}}"#.utf8.count
        let names = [
            "Ann", #"Bo\"b"#, "", String(repeating: "x", count: limit - constant),
            String(repeating: "x", count: limit - constant + 1), "Zoë",
        ]
        let campaign = try Campaign(rows: names.count, payload: payload)
        let rows = names.enumerated().map { place, name in
            "\(campaign.tokens.token(place)),\"\(name.replacing("\"", with: "\"\""))\",7\n"
        }
        try campaign.directory.write(
            "token,name,badge\n" + rows.joined(), to: "list.csv")
        let gateway = try PythonGateway(campaign)
        let sent = try gateway.send(
            campaign,
            [
                "--tokens", campaign.directory.path + "/list.csv", "--binary-command", "\(command)",
                "--connections", "1", "--max-invalid", "20",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let taken = try gateway.taken()
        let expected = names.enumerated().compactMap { place, name -> String? in
            if place == 4 { return nil }
            let text =
                name.isEmpty
                ? "friend"
                : name.replacing("\\", with: "\\\\")
                    .replacing("\"", with: "\\\"")
            return campaign.tokens.token(place)
                + #"{"aps":{"alert":"Hi \#(text)","badge":7}}"#
        }
        #expect(taken.map { $0.token + text($0.payload) } == expected)
        let invalid = try campaign.export(["--state", "invalid"])
        #expect(invalid.map(\.reason) == ["PayloadTooLarge"])
        #expect(invalid.map(\.token) == [campaign.tokens.token(4)])
    }

    @Test func `--payload-by chooses payloads over the legacy gateway, on retries too`() throws {
        let campaign = try Campaign(rows: 300)
        let locales = ["de", "fr", "xx"]
        let rows = (0..<300).map { "\(campaign.tokens.token($0)),\(locales[$0 % 3]),\($0)\n" }
        try campaign.directory.write("token,locale,number\n" + rows.joined(), to: "list.csv")
        let folder = campaign.directory.path + "/payloads"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        for (name, word) in [("de", "Hallo"), ("fr", "Salut"), ("default", "Hello")] {
            try campaign.directory.write(
                #"{"aps":{"alert":"\#(word) {{number}}"}}"#, to: "payloads/\(name).json")
        }
        // What stands behind the bad one is discarded, and written anew from its pieces.
        let gateway = try PythonGateway(campaign, bad: [(campaign.tokens.token(40), 8)])
        let sent = try gateway.send(
            campaign,
            [
                "--tokens", campaign.directory.path + "/list.csv", "--payload-by",
                "locale=\(folder)", "--abort-after", "500",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let taken = try gateway.taken()
        #expect(taken.count == 299 && Set(taken.map(\.token)).count == 299)
        let words = ["Hallo", "Salut", "Hello"]
        for (place, token) in (0..<300).map({ ($0, campaign.tokens.token($0)) }) where place != 40 {
            let own = taken.first { $0.token == token }
            #expect(
                own.map { text($0.payload) }
                    == #"{"aps":{"alert":"\#(words[place % 3]) \#(place)"}}"#)
        }
    }

    @Test func `Summary, report and messages of a legacy run name the gateway`() throws {
        let campaign = try Campaign(rows: 200)
        let gateway = try PythonGateway(campaign, bad: [(campaign.tokens.token(9), 8)])
        let report = campaign.directory.path + "/report.html"
        let sent = try gateway.send(
            campaign,
            [
                "--progress", "json", "--summary", "-", "--report", report, "--abort-after", "300",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(sent.errors.contains("legacy gateway, command 2\ncredential   "))
        #expect(sent.errors.contains("\ntopic        "), "\(sent.errors)")
        #expect(sent.errors.contains(", by the certificate, priority 10\n"), "\(sent.errors)")
        #expect(!sent.errors.contains("push type") && !sent.errors.contains("streams each"))
        #expect(sent.errors.contains("waiting for possible refusals"), "\(sent.errors)")
        let summary = try #require(
            try JSONSerialization.jsonObject(with: Data(sent.output.utf8)) as? [String: Any])
        // 200 rows in at least 4 s of silence.
        let rate = try #require(summary["notifications_per_second"] as? Double)
        #expect(rate > 0 && rate <= 100)
        let limits = try #require(summary["limited_by"] as? [String: Double])
        #expect(limits["streams"] ?? 0 > 0 && limits["input"] ?? 1 < 0.5, "\(limits)")
        let page = try String(contentsOfFile: report, encoding: .utf8)
        #expect(page.contains("the gateway accepted 199 and rejected 1"))
        #expect(page.contains("broadside feedback <span class=\"o\">--endpoint"))
        #expect(!page.contains("push type") && !page.contains("streams per connection"))
        let stats = try campaign.ledger("stats")
        #expect(stats.output.contains("accepted    199, by silence"), "\(stats.output)")
    }

    @Test func `A campaign is resumed only over its own protocol`() throws {
        let campaign = try Campaign(rows: 3)
        let gateway = try PythonGateway(campaign)
        #expect(try gateway.send(campaign, ["--limit", "1"]).exitCode == 0)
        let other = try campaign.send(to: "localhost:1", ["--resume"])
        #expect(other.exitCode == 2)
        #expect(other.errors.contains("the protocol was binary, now it is http2"))
    }

    @Test(arguments: [
        ["--push-type", "voip"], ["--trace-frames", "/dev/null"], ["--hpack", "compact"],
        ["--topic", "com.example.stranger"],
    ])
    func `Options of HTTP/2 are refused with a legacy gateway`(more: [String]) throws {
        let campaign = try Campaign(rows: 1)
        let gateway = try PythonGateway(campaign)
        let sent = try gateway.send(campaign, more)
        #expect(sent.exitCode == 2 && sent.errorLines.count == 1, "\(sent.errors)")
        #expect(sent.errors.contains(more[0]), "\(sent.errors)")
    }

    @Test(arguments: [("24s", ["--give-up-after", "4s"], "6s"), ("6m", [], "62s")])
    func `A run that would give up before silence counts as acceptance is refused`(
        timeout: String, more: [String], least: String
    ) throws {
        let campaign = try Campaign(rows: 1)
        let gateway = try PythonGateway(campaign)
        let sent = try gateway.send(campaign, more, timeout: timeout)
        #expect(sent.exitCode == 2 && sent.errors.contains("--give-up-after \(least) or more"))
    }
}
