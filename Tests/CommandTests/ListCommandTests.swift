import BroadsideTestSupport
import Foundation
import Testing

/// Every command that a message about a list prints is run by a shell, and makes what is right: the same
/// device tokens, and no others.
@Suite(.timeLimit(.minutes(60)))
struct ListCommandTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    /// What `tokens check` says of a file in the directory.
    private func check(
        _ name: String, _ more: [String] = [], input: String? = nil
    ) throws -> Finished {
        try Broadside.run(
            ["tokens", "check", "--tokens", name] + more, in: directory, input: input, limit: 120)
    }

    /// The command at the end of an error.
    private func command(_ refused: Finished) throws -> String {
        #expect(refused.exitCode == 2, "\(refused.errors)")
        #expect(refused.errorLines.count == 1, "\(refused.errors)")
        let parts = refused.errors.components(separatedBy: ", such as ")
        try #require(parts.count == 2, "\(refused.errors)")
        return String(parts[1].dropLast())
    }

    /// Runs a command in the directory, and returns the lines of the file that it made.
    private func made(by command: String) throws -> [String] {
        let done = try Subprocess.run(
            "/bin/sh", ["-c", "cd '\(directory.path)' && \(command)"], in: directory)
        #expect(done.exitCode == 0 && done.errors.isEmpty, "\(command): \(done.errors)")
        let name = try #require(command.components(separatedBy: " > ").last)
        let quoted = name.hasPrefix("'") ? name.dropFirst().dropLast()[...] : name[...]
        let file = directory.path + "/" + quoted.replacingOccurrences(of: "'\\''", with: "'")
        // To characters a carriage return and a line feed are one.
        let text = [UInt8](try Data(contentsOf: URL(filePath: file)))
        var lines = text.split(separator: 0x0a, omittingEmptySubsequences: false)
        if lines.last?.isEmpty ?? false { lines.removeLast() }
        return lines.map { String(decoding: $0, as: UTF8.self) }
    }

    /// The list, compressed if its name says so.
    private func write(_ list: ForeignList) throws -> String {
        guard list.name.hasSuffix(".gz") else {
            return try directory.write(list.bytes, to: list.name)
        }
        return try Packing.gzip.write(
            list.bytes, to: String(list.name.dropLast(3)), in: directory)
    }

    @Test(arguments: ForeignList.ofLines + ForeignList.ofFiles)
    func `The printed command for a foreign list makes the right one`(list: ForeignList) throws {
        let file = try write(list)
        let refused = try check(file)
        for words in list.says { #expect(refused.errors.contains(words), "\(refused.errors)") }
        for token in ForeignList.tokens {
            #expect(!refused.errors.contains(token.prefix(12)), "\(refused.errors)")
        }
        let command = try command(refused)
        func isRight(_ lines: [String]) -> Bool {
            lines.map { $0.lowercased() } == list.lines.map { $0.lowercased() }
        }
        #expect(isRight(try made(by: command)), "\(command)")
        let output = try #require(command.components(separatedBy: " > ").last)
        let result = try Subprocess.run(
            "/bin/sh",
            [
                "-c",
                "cd '\(directory.path)' && exec '\(try Broadside.path())' tokens check --max-invalid 100 "
                    + "\(list.more.joined(separator: " ")) --tokens \(output)",
            ], in: directory)
        #expect(result.exitCode == 0, "\(result.errors)")
        #expect(result.output.contains("valid        \(list.valid)\n"), "\(result.output)")
        // From standard input the rest of the pipe is the reader's.
        let piped = try self.command(check("-", input: file))
        #expect(piped.hasPrefix("... | "), "\(piped)")
        let whole = piped.replacing("... |", with: "cat '\(file.replacing("'", with: "'\\''"))' |")
        #expect(isRight(try made(by: whole)), "\(whole)")
    }

    @Test(arguments: ["[]", "()"])
    func `The printed command for a line of Python or SQL removes its brackets`(
        brackets: String
    ) throws {
        let tokens = (0..<5).map { DeviceTokens(count: 9).token($0) }
        let words = tokens.map { "'\($0)'" }.joined(separator: ", ")
        let line = "\(brackets.prefix(1))\(words)\(brackets.suffix(1))\n"
        let command = try command(check(try directory.write(line, to: "list.txt")))
        #expect(try made(by: command).filter { !$0.isEmpty } == tokens, "\(command)")
    }

    @Test(arguments: ["plain.tar", "old.tar", "list.tar.gz", "list.tar.zst", "list.zip"])
    func `An archive is named, and the command that is printed extracts its files`(
        name: String
    ) throws {
        try directory.write("token\n\(ForeignList.tokens[0])\n", to: "a.csv")
        try directory.write("token\n\(ForeignList.tokens[1])\n", to: "b.csv")
        let form = name == "old.tar" ? "--format=v7" : "--auto-compress"
        let pack =
            name.hasSuffix("zip")
            ? "zip -q list.zip a.csv b.csv" : "tar \(form) -cf \(name) a.csv b.csv"
        let packed = try Subprocess.run(
            "/bin/sh", ["-c", "cd '\(directory.path)' && \(pack)"], in: directory)
        try #require(packed.exitCode == 0, "\(packed.errors)")
        let file = "\(directory.path)/\(name)"
        let kind = name.hasSuffix("zip") ? "a zip archive" : "a tar archive"
        for more in [[], ["--format", "csv"]] {
            let refused = try check(file, more)
            #expect(refused.errors.contains(kind), "\(refused.errors)")
            let done = try Subprocess.run(
                "/bin/sh",
                [
                    "-c",
                    "cd '\(directory.path)' && rm -rf lists && \(try command(refused)) >/dev/null "
                        + "&& cat lists/a.csv lists/b.csv",
                ], in: directory)
            #expect(
                done.output
                    == "token\n\(ForeignList.tokens[0])\ntoken\n\(ForeignList.tokens[1])\n",
                "\(done.errors)")
        }
        guard !name.hasSuffix("zip") else { return }
        let piped = try command(check("-", input: file))
        let done = try Subprocess.run(
            "/bin/sh",
            [
                "-c",
                "cd '\(directory.path)' && rm -rf lists && "
                    + piped.replacing("...", with: "cat '\(file)'") + " && cat lists/a.csv",
            ], in: directory)
        #expect(done.output == "token\n\(ForeignList.tokens[0])\n", "\(piped): \(done.errors)")
    }

    @Test(arguments: [("xz", "xz"), ("bzip2", "bz2"), ("lz4", "lz4")])
    func `A file of another compression is named with its program`(
        program: String, ending: String
    ) throws {
        let list = try directory.write("token\n\(ForeignList.tokens[0])\n", to: "list.csv")
        let file = "\(list).\(ending)"
        let packed = try Subprocess.run(
            "/bin/sh", ["-c", "\(program) -c < '\(list)' > '\(file)'"], in: directory)
        try #require(packed.exitCode == 0, "\(packed.errors)")
        let command = try command(check(file))
        #expect(command.hasSuffix(" > list.fixed.csv"), "\(command)")
        #expect(try made(by: command) == ["token", ForeignList.tokens[0]])
    }

    @Test func `Rows of several tokens without a header are split into all of their tokens`() throws
    {
        let row = ForeignList.tokens.joined(separator: ",")
        let file = try directory.write("\(row)\n\(row)\n", to: "wide.csv")
        let command = try command(check(file))
        #expect(try made(by: command) == ForeignList.tokens + ForeignList.tokens)
        // More than a header may have on its first line, and one that does not end.
        let long = (0..<30_000).map { DeviceTokens(count: 9).token($0) }
        let endless = try directory.write(long.joined(separator: ","), to: "endless.csv")
        #expect(try made(by: try self.command(check(endless))) == long)
    }

    @Test func `Truncated tokens and other identifiers get no command`() throws {
        for (text, says) in [
            (
                "{length = 32, bytes = 0xc60f415d a240c4f4 ... 38fa5ad8 f8000000 }",
                "digits are lost"
            ),
            (String(repeating: "Zb3-", count: 12), "not of 32 bytes"),
            ("123E4567-E89B-12D3-A456-426614174000", "UUIDs"),
        ] {
            let file = try directory.write("\(text)\n\(text)\n", to: "list.txt")
            let refused = try check(file)
            #expect(refused.exitCode == 2 && refused.errors.contains(says), "\(refused.errors)")
            #expect(!refused.errors.contains("such as"), "\(refused.errors)")
        }
    }

    @Test func `A printed command never overwrites the list`()
        throws
    {
        let text = ForeignList.tokens.map { "0x\($0)\n" }.joined()
        for name in ["list.txt", "list.fixed.txt", ".hidden", "-x"] {
            let file = try directory.write(text, to: name)
            let command = try command(check(file))
            #expect(try made(by: command) == ForeignList.tokens, "\(command)")
            #expect(try String(contentsOfFile: file, encoding: .utf8) == text)
        }
        let odd = try directory.write(text, to: "a\nb.txt")
        #expect(try command(check(odd)).contains("< FILE > list.fixed.txt"))
    }
}
