import BroadsideCampaigns
import BroadsideSupport
import Glibc

extension ParsedArguments {
    /// Checks that no output file is an input, part of a ledger, or the target of two options.
    func checkOutputs(of command: CommandDescription) throws(BroadsideError) {
        var read = passedOver.map { input($0.option, $0.value) }
        // Only ledgers are protected. A directory of ledgers may contain output, such as the page
        // about these ledgers.
        var ledgers: [String] = []
        for word in words where try OutputRule.isLedger(word) { ledgers.append(word) }
        var (written, sockets): ([(name: String, path: String)], [(name: String, path: String)]) =
            ([], [])
        for option in command.options {
            for value in strings(option.name) {
                switch option.kind.fileUse(of: value) {
                case .written: written.append((option.name, value))
                // A socket replaces no file, and is inside the ledger by default.
                case .socket: sockets.append((option.name, value))
                case .ledger: ledgers.append(value)
                case .ledgers: if try OutputRule.isLedger(value) { ledgers.append(value) }
                case .read: read.append(input(option, value))
                case .folder, nil: break
                }
            }
        }
        for socket in sockets {
            guard let ledger = string("ledger"), OutputRule.areSame(ledger, socket.path) else {
                continue
            }
            throw .usage(
                socket.name,
                "and --ledger name the same place \(socket.path): remove "
                    + "--\(socket.name) (the ledger has a socket of its own), or "
                    + "choose another place")
        }
        let rule = OutputRule(inputs: read, ledgers: ledgers)
        for (index, output) in (written + sockets).enumerated() {
            if let other = written.prefix(index).first(where: {
                !isDevice(output.path) && OutputRule.areSame($0.path, output.path)
            }) {
                throw .usage(
                    output.name,
                    "and --\(other.name) name the same file \(output.path): use "
                        + "different files"
                )
            }
            if index < written.count {
                try rule.check(option: output.name, path: output.path)
            }
        }
    }

    /// Path of an option's input; `COLUMN=DIR` and `ARM=FILE` contain it after the equals
    /// sign.
    private func input(_ option: OptionDescription, _ value: String) -> OutputRule.Input {
        OutputRule.Input(
            option: option.name, path: option.path(in: value),
            holdsPayloads: option.kind == .columnDirectory)
    }
}

func isRegularFile(_ path: String) -> Bool {
    SystemCall.status(path).map { $0.st_mode & S_IFMT == S_IFREG } ?? false
}

func isDirectory(_ path: String) -> Bool {
    SystemCall.status(path).map { $0.st_mode & S_IFMT == S_IFDIR } ?? false
}

private func isDevice(_ path: String) -> Bool {
    SystemCall.status(path).map { ![S_IFREG, S_IFDIR].contains($0.st_mode & S_IFMT) } ?? false
}
