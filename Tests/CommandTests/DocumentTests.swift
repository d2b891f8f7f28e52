import BroadsideTestSupport
import Foundation
import Testing

/// Manual pages and completions: they know what `--help` knows.
@Suite(.timeLimit(.minutes(60)))
struct DocumentTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func run(_ arguments: [String]) throws -> String {
        let finished = try Broadside.run(arguments, in: directory, limit: 120)
        try #require(finished.exitCode == 0 && finished.errors.isEmpty, "\(arguments)")
        return finished.output
    }

    /// The words of the left column of a help page that match.
    private func leftColumn(of page: String, _ pattern: Regex<(Substring, Substring)>) -> [String] {
        page.split(separator: "\n").compactMap { $0.prefixMatch(of: pattern).map { String($0.1) } }
    }

    /// Each command's options, by the help.
    private func commands() throws -> [(name: String, options: [String])] {
        let names = leftColumn(of: try run(["help"]), #/  ([a-z]+)(?: |$)/#)
        try #require(names.contains("send") && names.contains("simulate") && names.count > 9)
        return try names.map { name in
            let options = leftColumn(of: try run([name, "--help"]), #/  --([a-z-]+)/#)
            try #require(!options.isEmpty)
            return (name, options)
        }
    }

    @Test func `The manual pages name every command and every option`() throws {
        let overview = try run(["help", "--man"])
        #expect(overview.hasPrefix(".TH \"BROADSIDE\" 1 "))
        for (name, options) in try commands() {
            #expect(overview.contains("\\fBbroadside\\-\(name)\\fR(1)"))
            let page = try run(["help", "--man", name])
            #expect(page.hasPrefix(".TH \"BROADSIDE\\-\(name.uppercased())\" 1 "))
            let named = page.split(separator: "\n").compactMap { line in
                line.prefixMatch(of: /\\fB\\-\\-([a-z\\-]+)\\fR/).map {
                    String($0.1).replacing("\\-", with: "-")
                }
            }
            #expect(named == options)
            // A line that begins with a stop is a request to troff: only those that are meant.
            for line in page.split(separator: "\n") where line.first == "." || line.first == "'" {
                let known = /\.(?:(?:TH|SH|SS) ".*|SH [A-Z]+|TP|PP|nh|ad l|RS 2|RE|nf|fi)/
                #expect(line.wholeMatch(of: known) != nil, "\(line)")
            }
        }
    }

    @Test func `The reference is what the command prints now`() throws {
        let committed = try String(
            contentsOfFile: Tool.packageRoot + "/docs/reference.md", encoding: .utf8)
        let printed = try run(["help", "--markdown"])
        #expect(committed == printed, "docs/reference.md is stale: run tools/reference")
        // Of its own that it has all: options of every command below that command's heading.
        let sections = printed.components(separatedBy: "\n## broadside ").dropFirst()
        for (section, command) in zip(sections, try commands()) {
            #expect(section.hasPrefix(command.name + "\n"))
            let named = section.matches(of: /(?m)^\| `--([a-z-]+)/).map { String($0.1) }
            #expect(named == command.options, "\(command.name)")
        }
        #expect(sections.count == (try commands()).count)
    }

    @Test func `bash completes every command, every option, choices and files`() throws {
        let script = directory.fresh("completion.bash")
        try run(["help", "--completion", "bash"]).write(
            toFile: script, atomically: true, encoding: .utf8)
        let folder = directory.fresh("folder")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        try Data().write(to: URL(filePath: folder + "/tokens one.txt"))
        var calls: [(words: [String], expected: [String])] = [
            (["send", "--format", ""], ["lines", "csv", "tsv", "jsonl"]),
            (["send", "--format", "=", "c"], ["csv"]),
            (["send", "--environment", "d"], ["development"]),
            (["send", "--push-type", "mdm"], ["mdm"]),
            (["send", "--tokens", folder + "/t"], [folder + "/tokens one.txt"]),
            (["send", "--tokens", "=", folder + "/t"], [folder + "/tokens one.txt"]),
            (["send", "--rate", ""], []),
            (["ledger", "me"], ["merge"]),
            (["ledger", "merge", folder + "/t"], [folder + "/tokens one.txt"]),
            (["ledger", "export", "--state", "re"], ["remaining", "rejected"]),
            (["send", "--retry", "f"], ["failed", "failed,unknown"]),
            (["send", "--hpack", ""], ["strict", "compact", "current"]),
            (["control", folder + "/t"], [folder + "/tokens one.txt"]),
            (["control", "x", ""], ["status", "rate", "pause", "resume", "stop"]),
            (["control", "--ledger", "x", ""], ["status", "rate", "pause", "resume", "stop"]),
            (["control", "--ledger", "x", "rate", ""], []),
            (["control", "x", "--j"], ["--json"]),
            (["control", "x", "rate", ""], []),
            (["help", "--completion", ""], ["bash", "zsh", "fish"]),
        ]
        let commands = try commands()
        calls.append(([""], commands.map(\.name) + ["help", "--help", "--version"]))
        for (name, options) in commands {
            calls.append(([name, "-"], options.map { "--" + $0 } + ["--help"]))
        }
        var driver = "source '\(script)'\n"
        for call in calls {
            let words = (["broadside"] + call.words).map { "'\($0)'" }.joined(separator: " ")
            driver += "COMP_WORDS=(\(words)) COMP_CWORD=\(call.words.count)\n_broadside\n"
            driver += "(IFS='|'; echo \"${COMPREPLY[*]}\")\n"
        }
        let finished = try Subprocess.run("bash", ["-uc", driver], in: directory)
        #expect(finished.exitCode == 0 && finished.errors.isEmpty, "\(finished.errors)")
        let answers = finished.output.split(separator: "\n", omittingEmptySubsequences: false)
        for (call, answer) in zip(calls, answers) {
            #expect(answer == call.expected.joined(separator: "|"), "\(call.words)")
        }
        #expect(answers.count == calls.count + 1)
    }

    @Test func `zsh and fish know every option of every command`() throws {
        let zsh = try run(["help", "--completion", "zsh"])
        let fish = try run(["help", "--completion", "fish"])
        for (name, options) in try commands() {
            let start = try #require(zsh.range(of: "\n    \(name))\n"))
            let end = try #require(zsh.range(of: " ;;\n", range: start.upperBound..<zsh.endIndex))
            let part = zsh[start.upperBound..<end.lowerBound]
            for option in options {
                #expect(part.contains(try Regex("'\\*?--\(option)=?\\[")), "\(name) \(option)")
                let line = "complete -c broadside -n '__broadside_command \(name)' -l \(option) -"
                #expect(fish.contains(line), "\(name) \(option)")
            }
        }
    }

    @Test func `help about help is the overview`() throws {
        let overview = try run(["help"])
        for word in ["--help", "-h", "help"] {
            #expect(try run(["help", word]) == overview, "\(word)")
        }
    }

    @Test func `help refuses an unknown shell or command with a suggestion`() throws {
        let shell = try Broadside.run(
            ["help", "--completion", "csh"], in: directory, limit: 120)
        #expect(shell.exitCode == 2 && shell.output.isEmpty)
        #expect(
            shell.errorLines
                == ["broadside: --completion 'csh' is not a known shell: use bash, zsh or fish"])
        let command = try Broadside.run(["help", "--man", "sned"], in: directory, limit: 120)
        #expect(command.exitCode == 2 && command.output.isEmpty)
        #expect(command.errorLines == ["broadside: unknown command 'sned': did you mean send?"])
    }
}
