import BroadsideTestSupport
import Foundation
import Testing

/// What becomes of rows as people write them.
@Suite(.timeLimit(.minutes(60)))
struct RowTests {
    /// A line, and the token that is sent for it; nil: malformed.
    static let lines: [(text: [UInt8], token: String?)] = [
        (Array("00112233445566778899aabbccddeeff".utf8), "00112233445566778899aabbccddeeff"),
        (Array("  \t<AABB ccdd 0011>  ".utf8), "aabbccdd0011"),
        (Array("not a token".utf8), nil),
        (Array("ABCDEF0123\r".utf8), "abcdef0123"),
        (Array("abc".utf8), nil),
        (Array("aé".utf8), nil),
        ([0xff, 0xfe, 0x61, 0x62], nil),
        ([0x61, 0x62, 0x00, 0x63, 0x64], nil),
        (Array(repeating: 0x61, count: 200), String(repeating: "a", count: 200)),
        (Array(repeating: 0x61, count: 202), nil),
        (Array(repeating: 0x61, count: 100_000), nil),
        (Array("<aabb".utf8), nil),
        (Array("0123 4567".utf8), nil),
        (Array("ff00\t".utf8), "ff00"),
        (Array("ff00ff00".utf8), "ff00ff00"),
    ]

    @Test func `Malformed rows are invalid with their lines, and the others are sent`() throws {
        // Blank lines are no rows but are counted as lines; the last line has no end.
        var list: [UInt8] = [0x0a]
        var places: [Int] = []
        var line = 2
        for (index, entry) in Self.lines.enumerated() {
            list += entry.text
            places.append(line)
            line += 1
            if index < Self.lines.count - 1 { list.append(0x0a) }
            if index % 3 == 0, index < Self.lines.count - 1 {
                list += Array(" \r\n\n".utf8)
                line += 2
            }
        }
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 0)
        let file = try campaign.directory.write(list, to: "mixed.txt")
        let sent = try campaign.send(
            to: server.endpoint,
            [
                "--tokens", file, "--connections", "1", "--summary", "-", "--max-invalid", "100",
            ])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let summary = try SendSummary(json: sent.output)
        let good = Self.lines.compactMap(\.token)
        #expect(summary.rows == Self.lines.count)
        #expect(summary.accepted == good.count)
        #expect(summary.invalid == Self.lines.count - good.count)
        #expect(summary.reasons == ["MalformedToken": summary.invalid])
        #expect(
            try server.answers().compactMap(\.path).sorted()
                == good.map { "/3/device/" + $0 }.sorted())

        let jsonLines = try campaign.ledger("export", ["--format", "jsonl"])
        let rows = try jsonLines.output.split(separator: "\n").map { text in
            try #require(
                try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        }
        #expect(rows.map { $0["line"] as? Int } == places)
        for (row, entry) in zip(rows, Self.lines) {
            #expect(row["state"] as? String == (entry.token == nil ? "invalid" : "accepted"))
            #expect(row["reason"] as? String == (entry.token == nil ? "MalformedToken" : nil))
            if let token = entry.token {
                // The list's own spelling is no matter of the export: it names the token.
                #expect((row["token"] as? String)?.lowercased().contains(token.prefix(4)) == true)
            }
        }
        #expect(try campaign.ledger("verify").exitCode == 0)
    }

    @Test func `--limit sends the first rows, and a resume with a higher one the next`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 50)
        for (limit, rows) in [("7", 7), ("7", 7), ("20", 20), ("100", 50)] {
            let sent = try campaign.send(
                to: server.endpoint, ["--limit", limit, "--resume-or-begin", "--summary", "-"])
            #expect(sent.exitCode == 0, "\(sent.errors)")
            let summary = try SendSummary(json: sent.output)
            #expect(summary.rows == rows && summary.accepted == rows && summary.remaining == 0)
            let tally = try server.tally(campaign.tokens)
            #expect(tally.counts == (0..<50).map { $0 < rows ? 1 : 0 })
            #expect(try campaign.ledger("verify").exitCode == 0)
        }
        #expect(try campaign.export().map(\.line) == (1...50).map { $0 })
    }

    @Test func `A run beyond an earlier --limit has no row count until the list's end`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 3000)
        #expect(try campaign.send(to: server.endpoint, ["--limit", "7"]).exitCode == 0)
        #expect(try campaign.statistics().rows == 7)
        let further = try Broadside.start(
            campaign.arguments(to: server.endpoint, ["--resume", "--rate", "50"]),
            in: campaign.directory)
        try further.wait { try campaign.statistics().accepted > 10 }
        further.send(signal: SIGKILL)
        _ = try further.wait(limit: 60)
        let left = try campaign.statistics()
        #expect(left.rows == nil && left.remaining == nil && left.accepted > 10)
    }

    @Test func `--to sends to one device`() throws {
        let server = try RecordingServer()
        let campaign = try Campaign(rows: 1)
        let sent = try Broadside.run(
            campaign.arguments(
                to: server.endpoint, ["--to", "<AABBCCDD eeff0011>", "--summary", "-"],
                without: ["tokens"]),
            in: campaign.directory)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try SendSummary(json: sent.output).accepted == 1)
        #expect(try server.answers().map(\.path) == ["/3/device/aabbccddeeff0011"])
        let found = try campaign.ledger("find", ["--token", "AABBCCDDEEFF0011"])
        #expect(found.output.hasPrefix("row 0 accepted"), "\(found.output)\(found.errors)")
    }

    @Test func `A dry run counts, connects nowhere and writes nothing`() throws {
        let server = try RecordingServer("plain", ["--answer", "silence"])
        let campaign = try Campaign(rows: 30)
        let list = try campaign.directory.write(
            campaign.tokens.list() + Array("bad\n".utf8), to: "list.txt")
        let kept = try campaign.directory.names(in: campaign.directory.path)
        let scratch = try TemporaryDirectory()
        let finished = try Broadside.run(
            campaign.arguments(
                to: server.endpoint, ["--tokens", list, "--dry-run"], without: ["ledger"]),
            in: scratch)
        #expect(finished.exitCode == 0)
        #expect(finished.errors.isEmpty)
        for words in ["rows         31", "to send      30", "invalid      1", "line 31"] {
            #expect(finished.output.contains(words), "\(finished.output)")
        }
        #expect(try campaign.directory.names(in: campaign.directory.path) == kept)
        #expect(try server.events().isEmpty)
        // Exactly the limit is legal.
        let files = try Files.shared()
        let large = try Broadside.run(
            campaign.arguments(
                to: server.endpoint, ["--payload", files.expand("@fits"), "--dry-run"]),
            in: scratch)
        #expect(large.exitCode == 0, "\(large.errors)")
    }
}
