import BroadsideTestSupport
import Foundation
import Testing

/// Packed lists, and standard input, for the commands that only look.
@Suite(.timeLimit(.minutes(60)))
struct PackedListTests {
    private let directory: TemporaryDirectory
    private let tokens = DeviceTokens(count: 3_000)

    init() throws { directory = try TemporaryDirectory() }

    private func csv() -> [UInt8] {
        Array(
            ("id,token\n" + (0..<3_000).map { "\($0),\(tokens.token($0 % 2_900))\n" }.joined())
                .utf8)
    }

    private func tokens(
        _ arguments: [String], input: String? = nil
    ) throws -> Finished {
        try Broadside.run(["tokens"] + arguments, in: directory, input: input, limit: 60)
    }

    @Test(arguments: Packing.allCases)
    func `tokens check of each compression names it and counts the same`(packing: Packing) throws {
        let file = try packing.write(csv(), to: "list.csv", in: directory)
        let found = try tokens(["check", "--tokens", file, "--duplicates"])
        #expect(found.exitCode == 0, "\(found.errors)")
        let form = packing == .plain ? "csv, token" : "csv in \(packing.rawValue), token"
        #expect(found.output.contains("format       \(form)"), "\(found.output)")
        #expect(found.output.contains("valid        3,000\n"))
        #expect(found.output.contains("duplicates   100\n  line 2902: first on line 2\n"))
        let json = try tokens(["check", "--tokens", file, "--json"]).output
        let packed = packing == .plain ? "null" : "\"\(packing.rawValue)\""
        #expect(json.contains("\"compression\":\(packed),\"bytes\":\(csv().count),"), "\(json)")
        // The name does not matter, nor where it comes from.
        let nameless = "\(directory.path)/list"
        try FileManager.default.copyItem(atPath: file, toPath: nameless)
        #expect(try tokens(["check", "--tokens", nameless, "--json"]).output.hasSuffix(tail(json)))
        let input = try tokens(["check", "--tokens", "-", "--json"], input: nameless)
        #expect(input.output.hasSuffix(tail(json)), "\(input.errors)")
    }

    private func tail(_ json: String) -> String {
        String(json[(json.range(of: ",\"format\"")?.lowerBound ?? json.startIndex)...])
    }

    @Test(arguments: Packing.allCases)
    func `dedupe and prune read and write each compression`(packing: Packing) throws {
        let text = csv()
        let file = try packing.write(text, to: "list.csv", in: directory)
        let lines = text.split(separator: 0x0a).prefix(2_901)
        let expected = Array(lines.joined(separator: [0x0a])) + [0x0a]
        for output in Packing.allCases {
            let path = "\(directory.path)/out\(output.ending)"
            let deduped = try tokens(["dedupe", "--tokens", file, "--output", path])
            #expect(deduped.exitCode == 0, "\(deduped.errors)")
            #expect(try Packing.unpack(path, in: directory) == expected)
        }
        let path = "\(directory.path)/out"
        let input = try tokens(["dedupe", "--tokens", "-", "--output", path], input: file)
        #expect(input.exitCode == 0, "\(input.errors)")
        #expect(try Packing.unpack(path, in: directory) == expected)
    }

    /// Every command that reads a list whole before it does anything with it, and what it would write.
    private func readers(of list: String) throws -> [[String]] {
        let good = try directory.write(tokens.token(0) + "\n", to: "good.txt")
        let payload = try directory.write(Campaign.payload, to: "payload.json")
        let authority = try TestAuthority.shared()
        let send = [
            "send", "--payload", payload, "--topic", Campaign.topic, "--endpoint", "127.0.0.1:1",
            "--ca-file", authority.caFile, "--auth-key", authority.authKey, "--key-id",
            Campaign.keyID, "--team-id", Campaign.teamID, "--progress", "none",
        ]
        let output = "\(directory.path)/out"
        return [
            ["tokens", "check", "--tokens", list],
            ["tokens", "check", "--tokens", list, "--duplicates"],
            ["tokens", "dedupe", "--tokens", list, "--output", output],
            ["prune", "--ledger", ledger, "--tokens", list, "--output", output],
            send + ["--dry-run", "--tokens", list],
            send + ["--dry-run", "--tokens", list, "--duplicates", "skip"],
            send + ["--ledger", output, "--tokens", list, "--duplicates", "skip"],
            send + ["--dry-run", "--tokens", good, "--suppress", list],
            send + ["--ledger", output, "--tokens", good, "--suppress", list],
        ]
    }

    private var ledger: String { "\(directory.path)/dead" }

    /// A ledger for `prune`, of a run that found nobody.
    private func makeLedger() throws {
        let campaign = try Campaign(rows: 1)
        let server = try RecordingServer()
        #expect(try campaign.send(to: server.endpoint).exitCode == 0)
        try FileManager.default.copyItem(atPath: campaign.ledger, toPath: ledger)
    }

    /// The same list in the place of a file, and through standard input where a command takes that.
    private func expectRefused(_ list: String, _ says: String) throws {
        let output = "\(directory.path)/out"
        for arguments in try readers(of: list) {
            let file = try Broadside.run(arguments, in: directory, limit: 60)
            #expect(file.exitCode == 2, "\(arguments): \(file.errors)")
            #expect(file.errorLines.count == 1 && file.output.isEmpty, "\(file.errors)")
            #expect(file.errors.contains(list) && file.errors.contains(says), "\(file.errors)")
            #expect(access(output, F_OK) != 0, "\(arguments)")
            guard let place = arguments.firstIndex(of: "--tokens"), arguments[place + 1] == list
            else { continue }
            var piped = arguments
            piped[place + 1] = "-"
            let input = try Broadside.run(piped, in: directory, input: list, limit: 60)
            #expect(input.exitCode == 2, "\(piped): \(input.errors)")
            let name = "--tokens \(list)"
            #expect(
                input.errors == file.errors.replacing(name, with: "standard input"),
                "\(input.errors)")
            #expect(access(output, F_OK) != 0, "\(piped)")
        }
    }

    @Test
    func
        `A truncated or damaged compressed list is exit 2 for each command, and nothing is written`()
        throws
    {
        try makeLedger()
        let random = (0..<60_000).map { _ in
            Array("0123456789abcdef\n".utf8)[Int.random(in: 0...16)]
        }
        let rows = (0..<3_000).map { tokens.token($0) + "\n" }.joined()
        for packing in [Packing.gzip, .zstd] {
            // Far behind the rows that are looked at before a list is used.
            let file = try packing.write(
                Array(rows.utf8) + random, to: "list.txt", in: directory)
            var packed = Array(try Data(contentsOf: URL(filePath: file)))
            let cut = try directory.write(Array(packed.dropLast(7)), to: "cut\(packing.ending)")
            packed[packed.count * 2 / 3] ^= 0x10
            let damaged = try directory.write(packed, to: "damaged\(packing.ending)")
            let empty = try directory.write("", to: "empty\(packing.ending)")
            try expectRefused(cut, "is cut off")
            try expectRefused(damaged, "is damaged")
            // Nothing that comes through a pipe has no name that promises more.
            for (list, says) in [
                (empty, "is cut off"),
                (
                    try directory.write("aabb\n", to: "text\(packing.ending)"),
                    "is not a \(packing.rawValue) file"
                ),
            ] {
                let refused = try tokens(["check", "--tokens", list])
                #expect(refused.exitCode == 2 && refused.errors.contains(says), "\(refused.errors)")
            }
        }
        // A checksum that does not fit is found at the end alone.
        let file = try Packing.gzip.write(Array(rows.utf8), to: "sum", in: directory)
        var packed = Array(try Data(contentsOf: URL(filePath: file)))
        packed[packed.count - 8] ^= 1
        try expectRefused(try directory.write(packed, to: "sum.gz"), "is damaged")
    }

    @Test(arguments: ["none", "auto"])
    func `A list that is cut off later is refused, and the repaired list begins the campaign`(
        progress: String
    ) throws {
        let server = try LocalAPNs()
        let campaign = try Campaign(rows: 20_000)
        let whole = try Packing.gzip.write(campaign.tokens.list(), to: "whole", in: directory)
        let bytes = Array(try Data(contentsOf: URL(filePath: whole)))
        let list = try directory.write(Array(bytes.dropLast(99)), to: "list.gz")
        let more = ["--tokens", list, "--progress", progress]
        let refused = try campaign.send(to: server.endpoint, more)
        #expect(refused.exitCode == 2 && refused.errors.contains("is cut off"), "\(refused)")
        let left = try directory.names(in: campaign.directory.path)
        #expect(!left.contains { $0 == "ledger" || $0.hasPrefix(".broadside-") }, "\(left)")
        try directory.write(bytes, to: "list.gz")
        let sent = try campaign.send(to: server.endpoint, more)
        #expect(sent.exitCode == 0, "\(sent.errors)")
        #expect(try server.finish().count == 20_000)
    }

    @Test func `A list that is compressed twice is refused in one sentence`() throws {
        try makeLedger()
        let rows = (0..<300).map { tokens.token($0) + "\n" }.joined()
        for inner in [Packing.gzip, .zstd] {
            let once = try inner.write(Array(rows.utf8), to: "once.txt", in: directory)
            let bytes = Array(try Data(contentsOf: URL(filePath: once)))
            for outer in [Packing.gzip, .zstd] {
                let list = try outer.write(bytes, to: "twice.txt", in: directory)
                try expectRefused(
                    list, "is compressed twice (\(inner.rawValue) within \(outer.rawValue)): ")
            }
        }
    }
}
