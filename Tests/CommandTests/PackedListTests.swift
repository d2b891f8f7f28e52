import Foundation
import TestSupport
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

    @Test("A check says how the list is packed, and counts the same", arguments: Packing.allCases)
    func check(packing: Packing) throws {
        let file = try packing.write(csv(), to: "list.csv", in: directory)
        let found = try tokens(["check", "--tokens", file, "--duplicates"])
        #expect(found.exitCode == 0, "\(found.errors)")
        let form = packing == .plain ? "csv, token" : "csv in \(packing.rawValue), token"
        #expect(found.output.contains("format       \(form)"), "\(found.output)")
        #expect(found.output.contains("valid        3000\n"))
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

    @Test("Dedupe and prune take and write each packing", arguments: Packing.allCases)
    func rewrite(packing: Packing) throws {
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

    @Test("What is cut off or damaged is exit 5, and nothing is written")
    func broken() throws {
        let random = (0..<60_000).map { _ in
            Array("0123456789abcdef\n".utf8)[Int.random(in: 0...16)]
        }
        for packing in [Packing.gzip, .zstd] {
            let file = try packing.write(random, to: "list.txt", in: directory)
            var packed = Array(try Data(contentsOf: URL(filePath: file)))
            let cut = try directory.write(Array(packed.dropLast(7)), to: "cut\(packing.ending)")
            packed[packed.count / 2] ^= 0x10
            let damaged = try directory.write(packed, to: "damaged\(packing.ending)")
            let empty = try directory.write("", to: "empty\(packing.ending)")
            let text = try directory.write("aabb\n", to: "text\(packing.ending)")
            for (list, code, says) in [
                (cut, Int32(5), "is cut off"), (damaged, 5, "is damaged"), (empty, 5, "is cut off"),
                (text, 2, "is no \(packing.rawValue) file"),
            ] {
                let output = "\(directory.path)/out"
                for arguments in [
                    ["check", "--tokens", list], ["check", "--tokens", list, "--duplicates"],
                    ["dedupe", "--tokens", list, "--output", output],
                ] {
                    let finished = try tokens(arguments)
                    #expect(finished.exitCode == code && finished.output.isEmpty)
                    #expect(finished.errorLines.count == 1, "\(finished.errors)")
                    #expect(
                        finished.errors.contains(list) && finished.errors.contains(says),
                        "\(finished.errors)")
                    #expect(access(output, F_OK) != 0)
                }
            }
        }
    }
}
