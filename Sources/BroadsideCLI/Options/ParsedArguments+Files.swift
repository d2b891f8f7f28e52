import APNs
import Broadside
import Glibc

extension ParsedArguments {
    /// Options whose file is written.
    private static let outputs = [
        "summary", "report", "metrics", "trace-frames", "control", "output", "removed",
        "then-prune", "journal", "deliveries",
    ]

    /// What is written must not be what is read, nor a ledger's, nor be written twice.
    func checkOutputs(of command: CommandDescription) throws(CommandFailure) {
        var read = passedOver.map { input($0.option, $0.value) }
        var ledgers = words.filter(isDirectory)
        var written: [(name: String, path: String)] = []
        for option in command.options {
            let paths = strings(option.name).filter { option.isPath($0) }
            if Self.outputs.contains(option.name) {
                written += paths.map { (option.name, $0) }
            } else if option.name == "ledger" {
                ledgers += paths
            } else {
                read += paths.map { input(option, $0) }
            }
        }
        let rule = OutputRule(inputs: read, ledgers: ledgers)
        for (index, output) in written.enumerated() {
            if let other = written[..<index].first(where: {
                !isDevice(output.path) && OutputRule.areSame($0.path, output.path)
            }) {
                throw .usage(
                    "--\(output.name) and --\(other.name) name the same file \(output.path): name two"
                )
            }
            // A socket takes nobody's place, and lies in the ledger by default.
            if output.name == "control" { continue }
            do throws(BroadsideError) {
                try rule.check(option: output.name, path: output.path)
            } catch {
                throw CommandFailure(message: error.message, exitCode: error.exitCode)
            }
        }
    }

    /// An option that names a file or a directory; `COLUMN=DIR` has it behind the sign.
    private func input(_ option: OptionDescription, _ value: String) -> OutputRule.Input {
        guard option.value?.contains("=") == true, let parts = value.parts(atFirst: "=") else {
            return OutputRule.Input(option: option.name, path: value)
        }
        return OutputRule.Input(
            option: option.name, path: String(parts.behind), holdsPayloads: true)
    }
}

/// What stands at a path, links followed; nil: nothing.
private func status(_ path: String) -> stat? {
    var information = stat()
    return unsafe stat(path, &information) == 0 ? information : nil
}

func isRegularFile(_ path: String) -> Bool {
    status(path).map { $0.st_mode & S_IFMT == S_IFREG } ?? false
}

func isDirectory(_ path: String) -> Bool {
    status(path).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
}

private func isDevice(_ path: String) -> Bool {
    status(path).map { ![S_IFREG, S_IFDIR].contains($0.st_mode & S_IFMT) } ?? false
}
