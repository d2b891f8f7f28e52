import BroadsideTestSupport
import Foundation

/// Looks at calls that can't be run: `--help` behind them makes the command read its options alone.
struct OptionCheck {
    let directory: TemporaryDirectory

    /// What is wrong with the calls of a block: those of `broadside`, and the names of our tools.
    func findings(inBlock text: String) throws -> [String] {
        var result: [String] = []
        for line in Self.lines(of: text) {
            for call in line.matches(of: #/(?:^|[ (;])(broadside .*)/#) {
                let end = call.1.firstMatch(of: #/ [|>&#]/#)?.range.lowerBound ?? call.1.endIndex
                result += try findings(inWords: call.1[..<end])
            }
            result += findings(inTool: line)
        }
        return result
    }

    /// The lines of a block, without what is continued, their indentation and their comments.
    private static func lines(of text: String) -> [Substring] {
        text.replacing("\\\n", with: " ").split(separator: "\n").compactMap { line in
            let call = line.prefix(upTo: line.firstRange(of: " #")?.lowerBound ?? line.endIndex)
                .drop { $0 == " " }
            return call.isEmpty || call.hasPrefix("#") ? nil : call
        }
    }

    /// What is wrong with one call, as the command itself says it.
    func findings(inWords call: Substring) throws -> [String] {
        let words = call.split(separator: " ").dropFirst().map { word in
            String(word.filter { $0 != "'" && $0 != "\"" })
        }
        if words.first == "help" || words.first?.hasPrefix("--") == true { return [] }
        let finished = try Broadside.run(words + ["--help"], in: directory, limit: 120)
        return finished.exitCode == 0
            ? [] : finished.errorLines.map { "\(call): \($0)" }
    }

    /// What is wrong with a piece of code in the midst of a text: a call, options alone, a tool.
    func findings(inSpan span: Substring, options: Set<Substring>) throws -> [String] {
        if span.hasPrefix("broadside ") { return try findings(inWords: span) }
        guard span.hasPrefix("--") else { return findings(inTool: span) }
        return span.matches(of: /--([a-z][a-z-]*)/).filter { !options.contains($0.1) }
            .map { "no command has --\($0.1)" }
    }

    /// Every option of every command, as the reference tells them.
    func options() throws -> Set<Substring> { try Self.allOptions.get() }

    private static let allOptions = Result {
        let reference = try Broadside.run(
            ["help", "--markdown"], in: TemporaryDirectory(), limit: 120
        ).output
        return Set(reference.matches(of: /(?m)^\| `--([a-z-]+)/).map(\.1))
            .union(["help", "version"])
    }

    /// What is wrong where a tool of this repository is called: its name, or an option that stands
    /// nowhere in it.
    private func findings(inTool call: Substring) -> [String] {
        guard let tool = call.prefixMatch(of: /(?:tools|Benchmarks)\/[a-z-]+/)?.output else {
            return []
        }
        guard isProgram(tool), let text = try? Self.script(tool) else {
            return ["there is no \(tool)"]
        }
        return call.matches(of: /--[a-z][a-z-]*/).filter { !text.contains($0.0) }
            .map { "\(tool) has no \($0.0)" }
    }

    /// The lines of a block that none of these scripts runs: a script may add words of its own.
    func findings(inBlock text: String, runBy scripts: [String]) throws -> [String] {
        let run = try scripts.flatMap { try Self.lines(of: Self.script($0)) }.map(Self.words)
        return Self.lines(of: text).map(Self.words).filter { words in
            !run.contains { Self.words(words, occurIn: $0) }
        }.map { words in
            "not run by \(scripts.joined(separator: ", ")): \(words.joined(separator: " "))"
        }
    }

    private static func words(of line: Substring) -> [Substring] { line.split(separator: " ") }

    /// Whether words stand in others, in their order.
    private static func words(_ words: [Substring], occurIn others: [Substring]) -> Bool {
        var rest = others[...]
        for word in words {
            guard let place = rest.firstIndex(of: word) else { return false }
            rest = rest[(place + 1)...]
        }
        return true
    }

    private static func script(_ path: some StringProtocol) throws -> String {
        try String(contentsOfFile: "\(Tool.packageRoot)/\(path)", encoding: .utf8)
    }

    private func isProgram(_ path: Substring) -> Bool {
        (try? Tool.path(of: "\(Tool.packageRoot)/\(path)")).map { access($0, 1) == 0 } ?? false
    }
}
