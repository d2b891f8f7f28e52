import BroadsideTestSupport
import Foundation
import Testing

/// What bash, zsh and fish themselves offer, with the completion that the command prints for them.
@Suite(.timeLimit(.minutes(60)))
struct CompletionTests {
    /// A line as it is typed, and what is offered for its last word.
    private typealias Call = (line: String, offered: [String])

    private let directory: TemporaryDirectory
    /// Where the shells run: it holds one file, `goal.json5`.
    private let folder: String

    init() throws {
        directory = try TemporaryDirectory()
        folder = directory.fresh("folder")
        try FileManager.default.createDirectory(
            atPath: folder, withIntermediateDirectories: true)
        try Data().write(to: URL(filePath: folder + "/goal.json5"))
    }

    private func run(_ arguments: [String]) throws -> String {
        let finished = try Broadside.run(arguments, in: directory, limit: 120)
        try #require(finished.exitCode == 0, "\(arguments): \(finished.errors)")
        return finished.output
    }

    /// Each option whose help names all its values: `--format lines|csv|tsv|jsonl`.
    private func choices() throws -> [Call] {
        var calls: [Call] = []
        for command in ["send", "tokens", "ledger", "simulate", "bench"] {
            for match in try run([command, "--help"])
                .matches(of: /(?m)^  --([a-z-]+) ([a-z0-9]+(?:\|[a-z0-9]+)+)\s/)
            {
                let values = match.2.split(separator: "|").map(String.init)
                calls.append(("\(command) --\(match.1) ", values))
            }
        }
        try #require(calls.count > 15)
        return calls
    }

    private func calls() throws -> [Call] {
        let scenarios = try run(["simulate", "--scenario", "list"]).split(separator: "\n")
            .compactMap { $0.split(separator: " ").first.map(String.init) }
        try #require(scenarios.count > 20)
        let refused = try Broadside.run(
            ["payload", "check", "--push-type", "x", "--payload", "x"], in: directory)
        let types = try #require(refused.errors.split(separator: "one of ").last)
            .split(separator: ", ").map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
        try #require(types.contains("liveactivity") && types.count > 9)
        let verbs = ["status", "rate", "pause", "resume", "stop"]
        return try choices() + [
            ("send --push-type ", types),
            ("payload check --push-type ", types),
            ("send --environment ", ["production", "development"]),
            ("simulate --scenario ", scenarios + ["list", "goal.json5"]),
            ("simulate --scenario=go", scenarios.filter { $0.hasPrefix("go") } + ["goal.json5"]),
            ("ledger export --state re", ["remaining", "rejected"]),
            ("ledger export --reason Unr", ["Unregistered", "UnrelatedKeyIdInToken"]),
            ("ledger export --reason Sup", ["Suppressed"]),
            ("prune --reasons Unreg", ["Unregistered"]),
            ("prune --reasons Sup", []),
            ("prune --reasons Unregistered,ExpiredT", ["ExpiredToken"]),
            ("prune --reasons=Unregistered,ExpiredT", ["ExpiredToken"]),
            ("ledger me", ["merge"]),
            ("ledger merge --output x g", ["goal.json5"]),
            ("send --tokens g", ["goal.json5"]),
            ("send --rate ", []),
            ("send --rate-p", ["--rate-per-connection"]),
            ("status g", ["goal.json5"]),
            ("status --h", ["--help"]),
            ("control g", ["goal.json5"]),
            ("control x ", verbs),
            ("control --ledger x p", ["pause"]),
            ("help --completion ", ["bash", "zsh", "fish"]),
            ("help --ma", ["--man", "--markdown"]),
        ]
    }

    /// Compares what a shell offered, a line for each call, with bars between words; a shell may
    /// repeat what stands in front of the word.
    private func compare(_ output: String, with calls: [Call], in shell: String) {
        let lines = output.split(separator: "\n", omittingEmptySubsequences: false)
        #expect(lines.count == calls.count + 1, "\(shell): \(output)")
        for (call, line) in zip(calls, lines) {
            let words = line.split(separator: "|").map { word in
                String(word.split { $0 == "=" || $0 == "," }.last ?? "")
            }
            #expect(Set(words) == Set(call.offered), "\(shell): broadside \(call.line)")
        }
    }

    private func script(for shell: String) throws -> String {
        let path = directory.fresh("completion." + shell)
        try run(["help", "--completion", shell]).write(
            toFile: path, atomically: true, encoding: .utf8)
        return path
    }

    @Test func `The help of send and probe names each push type that completion offers`() throws {
        let calls = try calls().filter { $0.line.hasSuffix("--push-type ") }
        #expect(calls.count == 2)
        for call in calls {
            let command = String(call.line.prefix { $0 != " " })
            let page = try run([command, "--help"]).split { $0.isWhitespace }.joined(separator: " ")
            #expect(page.contains(call.offered.joined(separator: ", ")), "\(command)")
        }
    }

    @Test func `bash completes the values that an option knows`() throws {
        let calls = try calls()
        var driver = "cd '\(folder)'\nsource '\(try script(for: "bash"))'\n"
        for call in calls {
            // As readline divides a line.
            let words = "broadside \(call.line)".replacing("=", with: " = ")
                .split(separator: " ", omittingEmptySubsequences: false)
            driver += "COMP_WORDS=(\(words.map { "'\($0)'" }.joined(separator: " ")))\n"
            driver += "COMP_CWORD=\(words.count - 1)\n_broadside\n"
            driver += "(IFS='|'; echo \"${COMPREPLY[*]}\")\n"
        }
        let finished = try Subprocess.run("bash", ["-uc", driver], in: directory)
        #expect(finished.exitCode == 0 && finished.errors.isEmpty, "\(finished.errors)")
        compare(finished.output, with: calls, in: "bash")
    }

    @Test(.needs(.zsh))
    func `zsh completes the values that an option knows`() throws {
        let calls = try calls()
        // The line editor completes each line; what is added to its matches is noted. With -O, -A
        // or -D the completion system only asks which words would match.
        let configuration = """
            autoload -Uz compinit && compinit -u -D
            source '\(try script(for: "zsh"))'
            zstyle ':completion:*' completer _complete
            compadd() {
                if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)* ]]; then
                    builtin compadd "$@"
                    return
                fi
                local -a hits
                builtin compadd -A hits "$@"
                found+=("${hits[@]}")
                builtin compadd "$@"
            }
            zle-line-init() {
                local line
                for line in "${(@f)$(<$ZDOTDIR/calls)}"; do
                    local -aU found=()
                    BUFFER="broadside ${line%.}" CURSOR=${#BUFFER}
                    zle complete-word
                    print -r -- "${(j:|:)found}" >> $ZDOTDIR/answers
                done
                exit
            }
            zle -N zle-line-init
            """
        try configuration.write(
            toFile: directory.path + "/.zshrc", atomically: true, encoding: .utf8)
        // A stop behind each line keeps the blank at its end.
        try calls.map { $0.line + "." }.joined(separator: "\n").write(
            toFile: directory.path + "/calls", atomically: true, encoding: .utf8)
        let terminal = "TERM=xterm ZDOTDIR='\(directory.path)' script -qec 'zsh -i' /dev/null"
        let finished = try Subprocess.run(
            "bash", ["-c", "cd '\(folder)' && \(terminal)"], in: directory)
        #expect(finished.exitCode == 0, "\(finished.output)")
        let answers = try String(contentsOfFile: directory.path + "/answers", encoding: .utf8)
        compare(answers, with: calls, in: "zsh")
    }

    @Test(.needs(.fish))
    func `fish completes the values that an option knows`() throws {
        let calls = try calls()
        var driver = "cd '\(folder)'\nsource '\(try script(for: "fish"))'\n"
        for call in calls {
            driver += "set words (complete -C 'broadside \(call.line)' | string split -f 1 \\t)\n"
            driver += "echo (string join -- '|' '' $words)\n"
        }
        let finished = try Subprocess.run(
            "env", ["HOME=\(directory.path)", "fish", "--no-config", "-c", driver], in: directory)
        #expect(finished.exitCode == 0 && finished.errors.isEmpty, "\(finished.errors)")
        compare(finished.output, with: calls, in: "fish")
    }
}
