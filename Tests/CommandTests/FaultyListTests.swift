import BroadsideTestSupport
import Foundation
import Testing

/// Lists of which nobody knows where their rows begin: quotes that are never closed, carriage returns
/// between line feeds. Every command that reads a list refuses them, in every form, with the same line.
@Suite(.timeLimit(.minutes(60)))
struct FaultyListTests {
    struct Case: Sendable, CustomTestStringConvertible {
        var name: String
        var list: String
        var line: Int
        var says: String

        var testDescription: String { "\(name), line \(line)" }
    }

    private static func row(_ number: Int, _ name: String = "Ann") -> String {
        "\(hexToken(number)),\(name)\n"
    }

    private static func rows(_ numbers: Range<Int>) -> String {
        numbers.map { row($0) }.joined()
    }

    static let cases: [Case] = [
        .init(
            name: "open.csv",
            list: "token,name\n\(rows(0..<7))\(row(7, "\"Ann"))\(rows(8..<40))", line: 9,
            says: "opens a quote that is probably not closed"),
        .init(
            name: "last.csv", list: "token,name\n\(rows(0..<7))\(row(7, "\"Ann"))", line: 9,
            says: "opens a quote that is never closed"),
        .init(
            name: "two.csv",
            list: "token,name\n\(rows(0..<5))\(row(5, "\"Bea"))\(rows(6..<20))\(row(20, "Cid\""))"
                + rows(21..<40), line: 7, says: "opens a quote that is probably not closed"),
        .init(
            name: "header.csv",
            list: "token,\"name\n\(rows(0..<3))\(hexToken(3)),\"\n\(rows(4..<9))", line: 1,
            says: "opens a quote that is probably not closed"),
        .init(
            name: "mixed.txt",
            list: (0..<13).map { hexToken($0) + ($0 == 4 ? "\r" : "\n") }.joined(), line: 5,
            says: "carriage return"),
        .init(
            name: "mixed.tsv",
            list: "token\tname\r\n"
                + (0..<9).map { hexToken($0) + ($0 == 4 ? "\t\"A\r" : "\tB\r\n") }.joined(),
            line: 6, says: "carriage return"),
        .init(
            name: "mixed.jsonl",
            list: (0..<9).map { "{\"token\":\"\(hexToken($0))\"}" + ($0 == 4 ? "\r" : "\n") }
                .joined(), line: 5, says: "carriage return"),
    ]

    /// A campaign that was sent once, for tests that only read its ledger, and a server that takes any row.
    private final class Fixture: Sendable {
        let campaign: Campaign
        nonisolated(unsafe) let server: RecordingServer

        private static let made = Result { try Fixture() }

        static func shared() throws -> Fixture { try made.get() }

        private init() throws {
            campaign = try Campaign(rows: 3)
            let first = try LocalAPNs()
            defer { withExtendedLifetime(first) {} }
            let sent = try campaign.send(to: first.endpoint)
            guard sent.exitCode == 0 else { throw TestFailure(sent.errors) }
            server = try RecordingServer().endingAtExit()
        }
    }

    /// All cases as plain files. Compressed files reach the same reader, so that one case of quotes and one of line ends
    /// suffice.
    private static let lists: [(Case, Packing)] =
        cases.map { ($0, .plain) }
        + [Packing.gzip, .zstd].flatMap { packing in
            cases.filter { ["open.csv", "mixed.txt"].contains($0.name) }.map { ($0, packing) }
        }

    @Test(arguments: lists)
    func `A list with a fault is refused by all commands with the same line`(
        entry: Case, packing: Packing
    ) throws {
        let fixture = try Fixture.shared()
        let (campaign, server) = (fixture.campaign, fixture.server)
        let directory = try TemporaryDirectory()
        let list = try packing.write(Array(entry.list.utf8), to: entry.name, in: directory)
        func send(_ more: [String]) -> [String] {
            campaign.arguments(
                to: server.endpoint,
                ["--ledger", "\(directory.path)/new", "--max-invalid", "100"] + more)
        }
        let tokens = ["--tokens", list]
        let calls: [[String]] = [
            ["tokens", "check"] + tokens,
            ["tokens", "check", "--json", "--duplicates", "--max-invalid", "100"] + tokens,
            ["tokens", "dedupe", "--output", "\(directory.path)/once"] + tokens,
            [
                "prune", "--ledger", campaign.ledger, "--output", "\(directory.path)/pruned",
                "--removed", "\(directory.path)/gone",
            ] + tokens,
            send(tokens), send(tokens + ["--dry-run"]), send(tokens + ["--preview", "1"]),
            send(tokens + ["--shard", "1/2"]), send(tokens + ["--shard", "2/2"]),
            send(tokens + ["--limit", "2"]), send(tokens + ["--duplicates", "skip"]),
            send(tokens + ["--canary", "2"]), send(["--suppress", list]),
            send(["--suppress", list, "--dry-run"]),
            // A column that the suppression list may have otherwise.
            send(["--suppress", list, "--token-column", "token", "--format", "lines"]),
        ]
        // Of a compressed list: a command of each kind.
        for call in packing == .plain ? calls : [calls[0], calls[2], calls[3], calls[4]] {
            let refused = try Broadside.run(call, in: directory, limit: 120)
            #expect(refused.exitCode == 2, "\(call) \(refused.errors)")
            // The list above has no column.
            if call.contains("--token-column") { continue }
            #expect(refused.errors.contains("line \(entry.line) "), "\(call) \(refused.errors)")
            #expect(refused.errors.contains(entry.says), "\(call) \(refused.errors)")
            #expect(refused.errors.split(separator: "\n").count == 1, "\(refused.errors)")
        }
        let left = try directory.names(in: directory.path)
        #expect(!left.contains { ["new", "once", "pruned", "gone"].contains($0) }, "\(left)")
        #expect(try server.answers().isEmpty)
    }

    @Test(arguments: cases)
    func `A list with a fault is refused on standard input too`(entry: Case) throws {
        let campaign = try Campaign(rows: 1)
        let ending = String(entry.name.split(separator: ".")[1])
        let format = ["--tokens", "-", "--format", ending == "txt" ? "lines" : ending]
        let input = try campaign.directory.write(entry.list, to: "in")
        for call in [
            ["tokens", "check"] + format,
            ["tokens", "dedupe", "--output", "\(campaign.directory.path)/once"] + format,
            campaign.arguments(to: "127.0.0.1:1", ["--dry-run"] + format),
            campaign.arguments(to: "127.0.0.1:1", format),
        ] {
            let refused = try Broadside.run(call, in: campaign.directory, input: input)
            #expect(refused.exitCode == 2, "\(call) \(refused.errors)")
            #expect(refused.errors.contains("line \(entry.line) "), "\(call) \(refused.errors)")
        }
        let left = try campaign.directory.names(in: campaign.directory.path)
        #expect(!left.contains("once") && !left.contains("ledger"), "\(left)")
    }

    /// Too far behind to be seen before anything is sent. `AdviceCauseTests` have a plain list with such a fault, and resume
    /// its run.
    @Test func `A fault behind 80,000 rows stops a run, and the rest remains`() throws {
        let campaign = try Campaign(rows: 0)
        let server = try LocalAPNs(["--seed", "5"])
        let count = 80_000
        let text =
            "token,name\n" + Self.rows(0..<count) + Self.row(count, "\"Bea")
            + Self.rows(count + 1..<count + 20)
        let list = try Packing.gzip.write(
            Array(text.utf8), to: "list.csv", in: campaign.directory)
        let line = count + 2
        let sent = try campaign.send(to: server.endpoint, ["--tokens", list])
        #expect(sent.exitCode == 4, "\(sent.errors)")
        #expect(sent.errors.contains("line \(line) opens a quote"), "\(sent.errors)")
        #expect(try campaign.ledger("verify").exitCode == 0)
        let settled = try campaign.export()
        #expect(!settled.isEmpty && settled.count <= count)
        #expect(settled.allSatisfy { $0.state == "accepted" && ($0.line ?? 0) < line })
        // What remains can't be listed further than the fault.
        let remaining = try campaign.ledger("export", ["--state", "remaining"])
        #expect(remaining.exitCode == 2, "\(remaining.errors)")
        #expect(remaining.errors.contains("line \(line) opens a quote"), "\(remaining.errors)")
        let again = try campaign.send(to: server.endpoint, ["--tokens", list, "--resume"])
        #expect([2, 4].contains(again.exitCode), "\(again.errors)")
        #expect(again.errors.contains("line \(line) opens a quote"), "\(again.errors)")
    }

    /// Old spreadsheets end lines so.
    @Test func `A list whose lines end with carriage returns is read, and copied unchanged`() throws
    {
        let campaign = try Campaign(
            rows: 20, payload: #"{"aps":{"alert":"Hi {{name}}"}}"#)
        let server = try LocalAPNs(["--unregistered", "0.4", "--seed", "3"])
        let directory = campaign.directory
        let rows = (0..<20).map {
            "\(campaign.tokens.token($0)),\($0 % 3 == 0 ? "\"A\nn\"" : "Bea")\r"
        }
        let copies = rows + rows[3...5]
        let text = "\u{feff}token,name\r" + copies.joined()
        let list = try directory.write(text, to: "list.csv")
        let sent = try campaign.send(
            to: server.endpoint, ["--tokens", list, "--duplicates", "skip"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let exported = try campaign.export()
        #expect(exported.count == 23)
        let gone = Set(exported.filter { $0.state == "rejected" }.map(\.token))
        #expect(!gone.isEmpty && gone.count < 20)
        // A line end inside quotes is one as well.
        #expect(exported.map(\.line).prefix(3) == [2, 4, 5])
        let pruned = try Broadside.run(
            [
                "prune", "--ledger", campaign.ledger, "--tokens", list, "--output",
                "\(directory.path)/pruned.csv", "--removed", "\(directory.path)/gone.csv",
            ], in: directory)
        #expect(pruned.exitCode == 0, "\(pruned.errors)")
        func isGone(_ row: String) -> Bool { gone.contains(String(row.prefix(64))) }
        let header = "\u{feff}token,name\r"
        func bytes(_ name: String) throws -> [UInt8] {
            Array(try Data(contentsOf: URL(filePath: "\(directory.path)/\(name)")))
        }
        func written(_ rows: [String]) -> [UInt8] { Array((header + rows.joined()).utf8) }
        #expect(try bytes("pruned.csv") == written(copies.filter { !isGone($0) }))
        #expect(try bytes("gone.csv") == written(copies.filter(isGone)))
        let once = try Broadside.run(
            ["tokens", "dedupe", "--tokens", list, "--output", "\(directory.path)/once.csv"],
            in: directory)
        #expect(once.exitCode == 0, "\(once.errors)")
        #expect(try bytes("once.csv") == written(rows))
    }

    @Test func `Rows with more fields than the header are invalid`() throws {
        let campaign = try Campaign(rows: 0, payload: #"{"aps":{"alert":"Hi {{name}}"}}"#)
        let server = try LocalAPNs()
        let text =
            "token,city,name\n"
            + (0..<6).map { "\(hexToken($0)),Paris\($0 == 2 ? ", France" : ""),Ann\n" }.joined()
        let list = try campaign.directory.write(text, to: "list.csv")
        let sent = try campaign.send(
            to: server.endpoint, ["--tokens", list, "--max-invalid", "50"])
        #expect(sent.exitCode == 0, "\(sent.errors)")
        let rows = try campaign.export()
        #expect(rows.filter { $0.state == "invalid" }.map(\.line) == [4])
        #expect(rows.first { $0.line == 4 }?.reason == "MalformedRow")
        #expect(try server.finish().count == 5)
        // Of an opt-out nobody would learn.
        let stops = try campaign.directory.write(text, to: "stops.csv")
        let other = try Campaign(rows: 3)
        let stopped = try other.send(to: server.endpoint, ["--suppress", stops])
        #expect(stopped.exitCode == 2 && stopped.errors.contains("line 4"), "\(stopped.errors)")
    }
}
