import BroadsideTestSupport
import Foundation

/// A document's commands, run in order by one shell in an empty directory, as its reader would.
///
/// Ports that documents name are replaced by free ones, so that two stories may run at once.
struct DocumentedStory {
    private static let documentedPorts = [2195, 2196, 2197, 2198, 3128, 8443, 9464]

    let name: String
    let pieces: [DocumentedPiece]
    private let directory: TemporaryDirectory
    /// Where a piece's output goes: a file named after its line.
    private let outputs: String

    /// - Parameter isWhole: Whether it has the pieces that need a rare program.
    init(name: String, text: String, isWhole: Bool = true) throws {
        self.name = name
        pieces = try DocumentedPiece.all(in: text, name: name).filter { isWhole || !$0.isRare }
        directory = try TemporaryDirectory()
        outputs = directory.fresh("outputs")
    }

    /// Runs it.
    ///
    /// - Returns: What did not go as the document says, each with its line; empty: all did.
    func run() throws -> [String] {
        let files = FileManager.default
        let (work, programs) = (directory.fresh("work"), directory.fresh("programs"))
        for path in [work, programs, outputs] {
            try files.createDirectory(atPath: path, withIntermediateDirectories: true)
        }
        // A simulator ends by itself, even where this test is killed.
        let command = """
            #!/bin/sh
            case $1 in
                simulate) exec timeout 1800 '\(try Broadside.path())' "$@" ;;
                *) exec '\(try Broadside.path())' "$@" ;;
            esac

            """
        try command.write(toFile: "\(programs)/broadside", atomically: true, encoding: .utf8)
        try files.setAttributes(
            [.posixPermissions: 0o755], ofItemAtPath: "\(programs)/broadside")
        let script = try directory.write(try shellScript(work, programs), to: "story.bash")
        let finished = try Subprocess("bash", [script], in: directory).wait(limit: 1500)
        guard finished.exitCode == 0 else {
            return [finished.errors.isEmpty ? lastLine(finished.exitCode) : finished.errors]
        }
        return try differences()
    }

    // MARK: the shell's part

    private func shellScript(_ work: String, _ programs: String) throws -> String {
        var script = Self.prelude(name: name, outputs: outputs)
        script += "export PATH='\(programs)':$PATH\nexport repository='\(Tool.packageRoot)'\n"
        script += "cd '\(work)'\n"
        for piece in pieces {
            guard let body = Self.body(of: piece) else { continue }
            script += "printed=$outputs/$here\nhere=\(piece.line)\n"
            script += "exec >\"$outputs/$here\" 2>&1\n\(body)"
        }
        // The search for a text is much faster than that for a pattern.
        for port in Self.documentedPorts where script.contains("\(port)") {
            script.replace(
                try Regex("\\b\(port)\\b").wordBoundaryKind(.simple),
                with: "\(try Ports.free())")
        }
        return script
    }

    /// What is the same for all: who counts exit codes, waits, and tidies up.
    private static func prelude(name: String, outputs: String) -> String {
        """
        # A terminal's background jobs can be interrupted, and so can a script's with -m.
        set -mE -o pipefail
        exec 3>&2
        outputs='\(outputs)' here= background=() said=() statuses=()
        trap 'statuses+=($?)' ERR
        trap 'trap - ERR; kill $(jobs -p) 2>/dev/null; wait' EXIT
        fail() {
            { echo "\(name):$here: $1"; tail -n 20 "$outputs/$here"; } >&3
            exit 1
        }
        # judge CODES: the exit codes that were not 0.
        judge() {
            [[ "${statuses[*]}" == "$1" ]] || fail "exit code ${statuses[*]:-0}, not ${1:-0}"
            statuses=()
        }
        # await COMMAND...: until it succeeds, at most some minutes.
        await() {
            local turn
            for turn in {1..900}; do
                if "$@" >/dev/null 2>&1; then return 0; fi
                sleep 0.2
            done
            fail "this does not happen: $*"
        }
        # interrupt N: Ctrl-C for the Nth of what runs in the background, from 0, and what it said.
        interrupt() {
            # The first program of a pipe, behind `timeout`, which would interrupt the others, too.
            local leader children
            read -r _ _ _ _ leader _ <"/proc/${background[$1]}/stat"
            children=$(cat "/proc/$leader/task/$leader/children")
            kill -INT ${children:-$leader}
            wait "${background[$1]}"
            cat "${said[$1]}"
        }

        """
    }

    private static func body(of piece: DocumentedPiece) -> String? {
        func judge(_ code: Int) -> String { "\njudge '\(code == 0 ? "" : "\(code)")'\n" }
        switch piece.kind {
        case .output, .notRun, .runElsewhere: return nil
        case .hidden: return piece.text + judge(0)
        case .commands(let code): return piece.text + judge(code)
        case .file(let reader):
            return "cat >shown.json5 <<'END OF FILE'\n\(piece.text)\nEND OF FILE\n\(reader)"
                + judge(0)
        case .background(let ready):
            return piece.text + " &\nbackground+=($!) said+=(\"$outputs/$here\")\n"
                + "await grep -qF -- '\(ready)' \"$outputs/$here\"\n" + judge(0)
        case .interrupted(let condition, let code):
            return piece.text + " &\nbackground+=($!) said+=(\"$outputs/$here\")\n"
                + "await eval '\(condition)'\nkill -INT $!\nwait $!" + judge(code)
        }
    }

    /// Of a story that ended in the midst, by a mistake in its shell: where, and what was said there.
    private func lastLine(_ exitCode: Int32) -> String {
        let lines = (try? FileManager.default.contentsOfDirectory(atPath: outputs)) ?? []
        let line = lines.compactMap { Int($0) }.max() ?? 0
        let said = try? String(contentsOfFile: "\(outputs)/\(line)", encoding: .utf8)
        return "\(name):\(line): the shell ended with \(exitCode)\n\((said ?? "").suffix(2000))"
    }

    // MARK: what it printed

    /// The documented lines that the commands before them did not print.
    private func differences() throws -> [String] {
        var result: [String] = []
        var printed: [Substring] = []
        for piece in pieces {
            switch piece.kind {
            case .notRun, .runElsewhere: printed = []
            case .output:
                guard !printed.isEmpty else { continue }
                var rest = printed[...]
                for line in piece.text.split(separator: "\n") {
                    let words = Self.words(of: String(line))
                    if words.isEmpty { continue }
                    guard let place = rest.firstRange(of: words) else {
                        result.append(
                            "\(name):\(piece.line): not printed: \(line)\n  but: "
                                + printed.suffix(120).joined(separator: " "))
                        break
                    }
                    rest = rest[place.upperBound...]
                }
            default:
                let file = "\(outputs)/\(piece.line)"
                printed = Self.words(of: try String(contentsOfFile: file, encoding: .utf8))
            }
        }
        return result
    }

    /// The words of a text; one with a digit (a count, a time, an identifier) is as good as another.
    private static func words(of text: String) -> [Substring] {
        text.split { $0 == " " || $0 == "\n" }.filter { $0 != "..." }
            .map { $0.contains(where: \.isNumber) ? "#" : $0 }
    }
}
