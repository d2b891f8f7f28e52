import Glibc

extension ParsedArguments {
    /// Options whose file is written.
    private static let outputs = [
        "summary", "report", "metrics", "trace-frames", "control", "output", "removed",
        "then-prune", "journal", "deliveries",
    ]

    /// What is written must not be what is read, under whatever name, nor be written twice: the
    /// token list would be gone.
    func checkOutputs(of command: CommandDescription) throws(CommandFailure) {
        var read: [(name: String, path: String)] = []
        var written: [(name: String, path: String)] = []
        for option in command.options {
            let paths = strings(option.name).filter { option.isPath($0) }
            if Self.outputs.contains(option.name) {
                written += paths.map { (option.name, $0) }
            } else {
                read += paths.map { path in
                    let sign = option.value?.contains("=") == true ? path.firstIndex(of: "=") : nil
                    return (
                        option.name, sign.map { String(path[path.index(after: $0)...]) } ?? path
                    )
                }
            }
        }
        for (index, output) in written.enumerated() {
            if let input = read.first(where: { areSameFile($0.path, output.path) }) {
                throw .usage(
                    "--\(output.name) \(output.path) is the file that --\(input.name) reads: name "
                        + "another, it would be overwritten")
            }
            if let other = written[..<index].first(where: { earlier in
                areSameFile(earlier.path, output.path)
                    || earlier.path == output.path && status(output.path) == nil
            }) {
                throw .usage(
                    "--\(output.name) and --\(other.name) name the same file \(output.path): name two"
                )
            }
        }
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

/// Devices and pipes may be written and read as often as one likes.
private func areSameFile(_ first: String, _ second: String) -> Bool {
    guard let first = status(first), let second = status(second) else { return false }
    return first.st_mode & S_IFMT == S_IFREG && first.st_dev == second.st_dev
        && first.st_ino == second.st_ino
}
