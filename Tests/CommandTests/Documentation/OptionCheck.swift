import Foundation
import TestSupport

/// Looks at calls that can't be run: `--help` behind them makes the command read its options alone.
struct OptionCheck {
    let directory: TemporaryDirectory

    /// What is wrong with the calls of a block: those of `broadside`, and the names of our tools.
    func findings(inBlock text: String) throws -> [String] {
        var result: [String] = []
        for line in text.replacing("\\\n", with: " ").split(separator: "\n") {
            let call = line.drop { $0 == " " }
            if call.hasPrefix("broadside ") {
                let end = call.firstMatch(of: #/ [|>&#]/#)?.range.lowerBound ?? call.endIndex
                result += try findings(inWords: call[..<end])
            } else if let tool = call.prefixMatch(of: /(?:tools|Benchmarks)\/[a-z-]+/)?.output,
                !isProgram(tool)
            {
                result.append("there is no \(tool)")
            }
        }
        return result
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

    private func isProgram(_ path: Substring) -> Bool {
        (try? Tool.path(of: "\(Tool.packageRoot)/\(path)")).map { access($0, 1) == 0 } ?? false
    }
}
