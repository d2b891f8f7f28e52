import BroadsideTestSupport
import Foundation
import Testing

/// One campaign of several lists: each is sent alone, and no two rows share an apns-id.
@Suite(.serialized, .timeLimit(.minutes(60)))
struct PartTests {
    private static let id = "0123456789ABCDEF"
    private static let sizes = [130, 70, 200]

    /// Three lists and the directory of their ledgers.
    private struct Lists {
        let campaign: Campaign
        let tokens: [DeviceTokens]
        let files: [String]

        init() throws {
            campaign = try Campaign(rows: 1)
            tokens = sizes.map { DeviceTokens(count: $0) }
            files = try tokens.enumerated().map { [campaign] part, tokens in
                try campaign.directory.write(tokens.list(), to: "list-\(part + 1).txt")
            }
        }

        func ledger(_ part: Int) -> String { "\(campaign.directory.path)/ledger-\(part)" }

        func options(_ part: Int, of count: Int = 3, tokens: String? = nil) -> [String] {
            [
                "--part", "\(part)/\(count)", "--campaign-id", id,
                "--tokens", tokens ?? files[part - 1],
                "--ledger", ledger(part),
            ]
        }

        func run(_ words: [String]) throws -> Finished {
            try Broadside.run(words, in: campaign.directory)
        }

        func rows(_ ledger: String, _ more: [String] = []) throws -> [ExportedRow] {
            let exported = try run(["ledger", "export", "--ledger", ledger] + more)
            guard exported.exitCode == 0 else { throw TestFailure(exported.errors) }
            return try ExportedRow.read(exported.output)
        }
    }

    @Test func `apns-ids are unique over all parts and lead back to part and row`() throws {
        let server = try LocalAPNs(["--unregistered", "0.1"])
        let lists = try Lists()
        var sent: [String: (part: Int, row: ExportedRow)] = [:]
        for part in 1...3 {
            // One of them in two runs.
            if part == 2 {
                let more = lists.options(part) + ["--limit", "30"]
                #expect(try lists.campaign.send(to: server.endpoint, more).exitCode == 0)
            }
            let more = lists.options(part) + (part == 2 ? ["--resume"] : [])
            let finished = try lists.campaign.send(to: server.endpoint, more)
            #expect(finished.exitCode == 0, "\(finished.errors)")
            for row in try lists.rows(lists.ledger(part)) { sent[row.identifier] = (part, row) }
        }
        let total = Self.sizes.reduce(0, +)
        #expect(sent.count == total)

        // An attempt that knows nothing of the first one.
        let elsewhere = "\(lists.campaign.directory.path)/elsewhere"
        try FileManager.default.createDirectory(
            atPath: elsewhere, withIntermediateDirectories: false)
        let lost = "\(elsewhere)/lost"
        let again = try lists.campaign.send(
            to: server.endpoint,
            [
                "--part", "3/3", "--campaign-id", Self.id.lowercased(), "--tokens",
                lists.files[2], "--ledger", lost,
            ])
        #expect(again.exitCode == 0, "\(again.errors)")
        for row in try lists.rows(lost) {
            #expect(sent[row.identifier].map { $0.part == 3 && $0.row.token == row.token } == true)
        }

        let merged = "\(lists.campaign.directory.path)/merged"
        let ledgers = [3, 1, 2].map(lists.ledger)
        let result = try lists.run(["ledger", "merge", "--output", merged] + ledgers)
        #expect(result.exitCode == 0, "\(result.errors)")
        try expectWhole(merged, lists, sent)

        let journal = try server.finish()
        #expect(Set(journal.map { $0[3] }) == Set(sent.keys) && journal.count == total + 200)
        for line in journal { #expect(sent[line[3]]?.row.token == line[4]) }
    }

    @Test(arguments: [["Evening", "Evening"], ["Evening", "Morning"]])
    func `A merged ledger has the name of its parts only if all parts have it`(names: [String])
        throws
    {
        let server = try LocalAPNs()
        let lists = try Lists()
        for part in 1...2 {
            let more = lists.options(part, of: 2) + ["--name", names[part - 1]]
            #expect(try lists.campaign.send(to: server.endpoint, more).exitCode == 0)
        }
        let merged = "\(lists.campaign.directory.path)/merged"
        let result = try lists.run(
            ["ledger", "merge", "--output", merged, lists.ledger(1), lists.ledger(2)])
        #expect(result.exitCode == 0, "\(result.errors)")
        let name = names[0] == names[1] ? names[0] : nil
        let stats = try lists.run(["ledger", "stats", "--json", "--ledger", merged])
        #expect(stats.output.contains(name.map { "\"name\" : \"\($0)\"" } ?? "\"name\" : null"))
        let page = try lists.run(["report", "--ledger", merged])
        let title = name ?? "Campaign \(Self.id.lowercased())"
        #expect(page.output.contains("<title>\(title): "), "\(page.output.prefix(300))")
        let nights = try lists.run(["report", "--all", merged, "--json"])
        #expect(nights.output.contains("\"\(name ?? Self.id.lowercased())\""), "\(nights.output)")
    }

    /// The merged ledger says what the parts say, one after the other.
    private func expectWhole(
        _ merged: String, _ lists: Lists, _ sent: [String: (part: Int, row: ExportedRow)]
    ) throws {
        let verified = try lists.run(["ledger", "verify", "--ledger", merged])
        #expect(verified.output.contains("finished, 3 parts"), "\(verified.errors)")
        let stats = try lists.run(["ledger", "stats", "--json", "--ledger", merged])
        let summary = try SendSummary(json: stats.output)
        #expect(summary.campaign == Self.id.lowercased() && summary.rows == sent.count)
        #expect(summary.accepted + summary.rejected == sent.count && summary.rejected > 0)

        let rows = try lists.rows(merged)
        let tokens = lists.tokens.flatMap { tokens in (0..<tokens.count).map { tokens.token($0) } }
        #expect(rows.map(\.token) == tokens)
        for row in rows { #expect(sent[row.identifier]?.row.line == row.line) }
        for place in [0, 129, 130, 199, 200, 399] {
            let row = rows[place]
            let (part, line) = (sent[row.identifier]?.part ?? 0, row.line ?? 0)
            let find = ["ledger", "find", "--apns-id", row.identifier, "--ledger"]
            let found = try lists.run(find + [merged])
            #expect(found.exitCode == 0, "\(found.errors)")
            #expect(found.output.contains("part \(part)/3, line \(line),"), "\(found.output)")
            let json = try lists.run(find + [lists.ledger(part), "--json"])
            #expect(json.output.contains("\"part\":\(part),\"line\":\(line),"), "\(json.output)")
            let missed = try lists.run(find + [lists.ledger(part % 3 + 1)])
            #expect(missed.exitCode == 1)
            #expect(missed.errors.contains("in part \(part) of campaign"), "\(missed.errors)")
        }

        // One list says nothing of the others; each part is a ledger of its own.
        let list = ["--tokens", lists.files[1]]
        for words in [["export"], ["find", "--token", rows[0].token]] {
            let refused = try lists.run(["ledger"] + words + ["--ledger", merged] + list)
            #expect(refused.exitCode == 2 && refused.errors.contains("part-0001"))
        }
        #expect(try lists.rows(merged + "/part-0002", list).count == Self.sizes[1])
    }

    @Test func `A part from standard input keeps its own list`() throws {
        let server = try LocalAPNs()
        let lists = try Lists()
        for part in 1...2 {
            let more = lists.options(part, of: 2, tokens: "-")
            let finished = try Broadside.run(
                lists.campaign.arguments(to: server.endpoint, more),
                in: lists.campaign.directory, input: lists.files[part - 1])
            #expect(finished.exitCode == 0, "\(finished.errors)")
        }
        let merged = "\(lists.campaign.directory.path)/merged"
        let ledgers = [1, 2].map(lists.ledger)
        let result = try lists.run(["ledger", "merge", "--output", merged] + ledgers)
        #expect(result.exitCode == 0, "\(result.errors)")
        let status = try lists.run(["status", "--json", merged]).output
        #expect(
            status.contains(#""rows":200,"rows_estimated":false,"settled":200,"#), "\(status)")
        for ledger in ledgers { try FileManager.default.removeItem(atPath: ledger) }
        #expect(try lists.rows(merged).map(\.line) == Array(1...130) + Array(1...70))
    }

    @Test func `A resume as another part, another campaign or none is refused`() throws {
        let server = try LocalAPNs()
        let lists = try Lists()
        let begun = try lists.campaign.send(
            to: server.endpoint, lists.options(1) + ["--limit", "5"])
        #expect(begun.exitCode == 0, "\(begun.errors)")
        let own = ["--tokens", lists.files[0], "--ledger", lists.ledger(1), "--resume"]
        for (more, words) in [
            (["--part", "2/3", "--campaign-id", Self.id], "the part was 1/3, now it is 2/3"),
            (["--part", "1/4", "--campaign-id", Self.id], "the part was 1/3, now it is 1/4"),
            (
                ["--part", "1/3", "--campaign-id", "f" + Self.id.dropFirst()],
                "the campaign id was 0123456789abcdef, now it is f123456789abcdef"
            ),
            ([], "the campaign id was 0123456789abcdef, now it is not set"),
            // Swapped with another part: that says more than that the list is longer.
            (
                ["--part", "3/3", "--campaign-id", Self.id, "--tokens", lists.files[2]],
                "the part was 1/3, now it is 3/3"
            ),
        ] {
            let base = more.contains("--tokens") ? Array(own.dropFirst(2)) : own
            let refused = try lists.campaign.send(to: server.endpoint, base + more)
            #expect(refused.exitCode == 2 && refused.errors.contains(words), "\(refused.errors)")
        }
        #expect(try server.finish().count == 5)
    }
}
