import BroadsideSupport
internal import Glibc

/// The command line of a run, as it was typed. Kept with the ledger, so that advice is a command line
/// that can be pasted. It holds no secret: options name files of keys and passwords, never what is in
/// them (`--proxy` with a user is refused).
public struct RunCommand: Codable, Hashable, Sendable {
    /// The program, as it was called.
    var program: String
    /// The command's name, and its options.
    var arguments: [String]
    /// Where it was called: paths count from here.
    var directory: String

    /// Command lines beyond this are not kept.
    static let byteLimit = 16_384

    /// Options by which a connection is made: those that `doctor` has too.
    static let connectionOptions: Set<String> = [
        "campaign", "auth-key", "auth-key-command", "key-id", "team-id", "auth-token-file",
        "auth-token-command", "certificate", "private-key", "passphrase-file", "environment",
        "port", "endpoint", "ca-file", "proxy",
        "proxy-auth-file", "topic", "push-type",
    ]

    init(program: String, arguments: [String], directory: String) {
        self.program = program
        self.arguments = arguments
        self.directory = directory
    }

    /// The command line of this process; nil where it is too long to be kept.
    public static var current: RunCommand? {
        let words = CommandLine.arguments
        guard let program = words.first,
            words.reduce(0, { $0 + $1.utf8.count }) <= byteLimit
        else { return nil }
        return RunCommand(
            program: program.contains("/") ? program : "broadside",
            arguments: Array(words.dropFirst()), directory: workingDirectory)
    }

    /// Where this process is; empty where that has no name.
    static var workingDirectory: String {
        SystemCall.workingDirectory ?? ""
    }

    // MARK: Another command line

    /// The value of an option, where the command line has it.
    func value(_ name: String) -> String? {
        for (index, word) in arguments.enumerated() {
            if word == "--\(name)" {
                return index + 1 < arguments.count ? arguments[index + 1] : nil
            }
            if word.hasPrefix("--\(name)=") { return String(word.dropFirst(name.count + 3)) }
        }
        return nil
    }

    /// Without an option that takes a value.
    func without(_ name: String) -> RunCommand {
        var copy = self
        if let index = arguments.firstIndex(of: "--\(name)") {
            copy.arguments.removeSubrange(index..<min(index + 2, arguments.count))
        }
        copy.arguments.removeAll { $0.hasPrefix("--\(name)=") }
        return copy
    }

    /// Without an option that takes none.
    func withoutFlag(_ name: String) -> RunCommand {
        var copy = self
        copy.arguments.removeAll { $0 == "--\(name)" }
        return copy
    }

    /// With an option's value, in place of the one that it has.
    func with(_ name: String, _ value: String) -> RunCommand {
        var copy = without(name)
        copy.arguments += ["--\(name)", value]
        return copy
    }

    /// With an option that takes no value.
    func withFlag(_ name: String) -> RunCommand {
        guard !arguments.contains("--\(name)") else { return self }
        var copy = self
        copy.arguments.append("--\(name)")
        return copy
    }

    /// The same run again, where it ended.
    var resuming: RunCommand {
        if isNight { return without("retry") }
        let same = without("retry").withoutFlag("resume-or-begin")
        // Its other name.
        return same.arguments.contains("--must-resume") ? same : same.withFlag("resume")
    }

    /// The same without `--deadline`, which a campaign file may have as well.
    var withoutDeadline: RunCommand {
        value("deadline") == nil ? with("deadline", "36500d") : without("deadline")
    }

    /// The same campaign, with a ledger of its own.
    func beginningAnew(ledger path: String) -> RunCommand {
        // A slash at its end would put the new one into the old one.
        var ledger = path[...]
        while ledger.utf8.count > 1, ledger.utf8.last == UInt8(ascii: "/") { ledger.removeLast() }
        var number = 2
        while (try? fileExists("\(ledger)-\(number)")) == true, number < 1000 { number += 1 }
        var copy = without("retry").withoutFlag("resume").withoutFlag("must-resume")
            .withoutFlag("resume-or-begin")
        if isNight {
            copy.arguments[0] = "send"
            for option in Self.nightOptions { copy = copy.without(option) }
        }
        return copy.with("ledger", "\(ledger)-\(number)")
    }

    /// Options that only `night` has.
    package static let nightOptions = ["ledgers", "date", "night-length", "keep"]

    private var isNight: Bool { arguments.first == "night" }

    /// The date that a command of `night` is about; nil: it is another command.
    var nightDate: String? { isNight ? value("date") : nil }

    /// The command of `night`, with the date that it is about.
    package func night(of date: String) -> RunCommand { isNight ? with("date", date) : self }

    /// `doctor`, with what connections are made from.
    var doctor: RunCommand {
        var copy = self
        copy.arguments = ["doctor"]
        var index = 1
        while index < arguments.count {
            let word = arguments[index]
            let name = word.dropFirst(2).prefix { $0 != "=" }
            if word.hasPrefix("--"), Self.connectionOptions.contains(String(name)) {
                copy.arguments.append(word)
                if !word.contains("="), index + 1 < arguments.count {
                    copy.arguments.append(arguments[index + 1])
                    index += 1
                }
            }
            index += 1
        }
        return copy
    }

    /// Another command of the same program.
    func calling(_ words: [String]) -> RunCommand {
        var copy = self
        copy.arguments = words
        return copy
    }

    /// As a shell takes it, on one line.
    ///
    /// - Parameter folder: Where it will be pasted: from elsewhere it goes to its directory first.
    func text(at folder: String = workingDirectory) -> String {
        let words = ([program] + arguments).map(shellWord).joined(separator: " ")
        return directory.isEmpty || directory == folder
            ? words : "cd \(shellWord(directory)) && \(words)"
    }
}
