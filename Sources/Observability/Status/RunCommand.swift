import BroadsideSupport
internal import Glibc

/// Command line of a run, as it was typed. The ledger keeps it, so that advice can contain a
/// command line to paste. It has no secrets: most options name files with keys and passwords, not
/// their content, and an option whose value contains a secret, such as the password of a URL in
/// `--hook`, is left out.
public struct RunCommand: Codable, Hashable, Sendable {
    /// Program, as it was called.
    var program: String
    /// Name of the command and its options.
    private(set) var arguments: [String] = []
    /// Names of the options that are left out, because their values contain secrets.
    private(set) var withheld: [String] = []
    /// Working directory, to which relative paths refer.
    var directory: String

    /// Maximum length in bytes. A longer command line is not kept.
    static let byteLimit = 16_384

    /// Options of a run that affect its connections and that `doctor` also accepts.
    static let connectionOptions: Set<String> = [
        "campaign", "auth-key", "auth-key-command", "key-id", "team-id", "auth-token-file",
        "auth-token-command", "certificate", "private-key", "passphrase-file", "environment",
        "port", "endpoint", "ca-file", "proxy",
        "proxy-auth-file", "topic", "push-type", "content-length",
    ]
    /// Options of a run that decide how its list is read and that `tokens check` also accepts.
    static let listOptions: Set<String> = [
        "campaign", "tokens", "format", "token-column", "max-invalid",
    ]
    /// Those of these options that have no value.
    private static let flags: Set<String> = ["content-length"]

    /// Creates a command line without the options whose values contain secrets.
    init(program: String, arguments: [String], directory: String) {
        self.program = program
        self.directory = directory
        for word in arguments {
            guard SecretText.masked(word) != word else {
                self.arguments.append(word)
                continue
            }
            // `--hook=COMMAND` is one word, and `--hook COMMAND` is two.
            guard let name = Self.option(word) ?? self.arguments.popLast().flatMap(Self.option)
            else { continue }
            if !withheld.contains(name) { withheld.append(name) }
        }
        assert(
            self.arguments.allSatisfy { SecretText.masked($0) == $0 }, "a kept word has no secret")
    }

    /// Version 1.0.0-beta.1 left out no option, so what it wrote may have secrets.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            program: try values.decode(String.self, forKey: .program),
            arguments: try values.decode([String].self, forKey: .arguments),
            directory: try values.decode(String.self, forKey: .directory))
        withheld += try values.decodeIfPresent([String].self, forKey: .withheld) ?? []
    }

    /// Name of the option in a word; nil if the word has none.
    private static func option(_ word: String) -> String? {
        let name = word.dropFirst(2).prefix { $0 != "=" }
        let isName = name.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == UInt8(ascii: "-") }
        return word.hasPrefix("--") && isName ? String(name) : nil
    }

    /// Command line of this process; nil if it is too long to be kept.
    public static var current: RunCommand? {
        let words = CommandLine.arguments
        guard let program = words.first,
            words.reduce(0, { $0 + $1.utf8.count }) <= byteLimit
        else { return nil }
        return RunCommand(
            program: program.contains("/") ? program : "broadside",
            arguments: Array(words.dropFirst()), directory: workingDirectory)
    }

    /// Working directory of this process; empty if the directory has no path.
    static var workingDirectory: String {
        SystemCall.workingDirectory ?? ""
    }

    // MARK: Another command line

    /// Value of an option; nil if the option is not given.
    func value(_ name: String) -> String? {
        for (index, word) in arguments.enumerated() {
            if word == "--\(name)" {
                return index + 1 < arguments.count ? arguments[index + 1] : nil
            }
            if word.hasPrefix("--\(name)=") { return String(word.dropFirst(name.count + 3)) }
        }
        return nil
    }

    /// Returns a copy without the option `name` and its value.
    func without(_ name: String) -> RunCommand {
        var copy = self
        if let index = arguments.firstIndex(of: "--\(name)") {
            copy.arguments.removeSubrange(index..<min(index + 2, arguments.count))
        }
        copy.arguments.removeAll { $0.hasPrefix("--\(name)=") }
        copy.withheld.removeAll { $0 == name }
        return copy
    }

    /// Returns a copy without the flag `name`.
    func withoutFlag(_ name: String) -> RunCommand {
        var copy = self
        copy.arguments.removeAll { $0 == "--\(name)" }
        return copy
    }

    /// Returns a copy in which the option `name` has `value`.
    func with(_ name: String, _ value: String) -> RunCommand {
        var copy = without(name)
        copy.arguments += ["--\(name)", value]
        return copy
    }

    /// Returns a copy with the flag `name`.
    func withFlag(_ name: String) -> RunCommand {
        guard !arguments.contains("--\(name)") else { return self }
        var copy = self
        copy.arguments.append("--\(name)")
        return copy
    }

    /// Command line that continues the run.
    var resuming: RunCommand {
        if isNight { return without("retry") }
        let same = without("retry").withoutFlag("resume-or-begin")
        // `--must-resume` is another name for `--resume`.
        return same.arguments.contains("--must-resume") ? same : same.withFlag("resume")
    }

    /// Command line without an effective deadline. A campaign file may set one, also if the option
    /// `--deadline` is given, so a hundred years override the file.
    var withoutDeadline: RunCommand {
        value("campaign") == nil ? without("deadline") : with("deadline", "36500d")
    }

    /// Returns the command line for the same campaign with a new ledger.
    func beginningAnew(ledger path: String) -> RunCommand {
        // A slash at the end is removed. With it, the new ledger's path would be inside the old
        // ledger.
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

    /// Options that only `night` accepts.
    package static let nightOptions = [
        "ledgers", "date", "date-file", "night-length", "keep",
    ]

    private var isNight: Bool { arguments.first == "night" }

    /// Date of a `night` command; nil for any other command.
    var nightDate: String? { isNight ? value("date") : nil }

    /// Returns the command line with another date if it is a `night` command; otherwise returns it
    /// unchanged.
    package func night(of date: String) -> RunCommand {
        isNight ? without("date-file").with("date", date) : self
    }

    /// `doctor` command with the same connection options.
    var doctor: RunCommand { calling(["doctor"], copying: Self.connectionOptions) }

    /// `tokens check` command that reads the list as the run does; nil if the list is not named.
    var tokensCheck: RunCommand? {
        guard value("tokens") != nil || value("campaign") != nil else { return nil }
        return calling(["tokens", "check"], copying: Self.listOptions)
    }

    /// Returns another command of the same program, with those of this run's options that it
    /// accepts.
    private func calling(_ words: [String], copying options: Set<String>) -> RunCommand {
        var copy = calling(words)
        copy.withheld = withheld.filter(options.contains)
        var index = 1
        while index < arguments.count {
            let word = arguments[index]
            let name = String(word.dropFirst(2).prefix { $0 != "=" })
            if word.hasPrefix("--"), options.contains(name) {
                copy.arguments.append(word)
                let isWhole = word.contains("=") || Self.flags.contains(name)
                if !isWhole, index + 1 < arguments.count {
                    copy.arguments.append(arguments[index + 1])
                    index += 1
                }
            }
            index += 1
        }
        return copy
    }

    /// Program as it is called from this process's working directory.
    var programHere: String {
        let isRelative = program.contains("/") && !program.hasPrefix("/")
        guard isRelative, !directory.isEmpty, directory != Self.workingDirectory else {
            return program
        }
        return "\(directory)/\(program)"
    }

    /// Returns another command of the same program.
    func calling(_ words: [String]) -> RunCommand {
        var copy = self
        copy.arguments = words
        copy.withheld = []
        return copy
    }

    /// Text about the options that are left out; nil if there are none.
    var withheldText: String? {
        guard !withheld.isEmpty else { return nil }
        let names = withheld.map { "--\($0)" }.joined(separator: " and ")
        return "add \(names) yourself: values with secrets are not shown"
    }

    /// Command line for a shell, on one line.
    ///
    /// - Parameter folder: Directory in which the line will be pasted. If the command has another
    ///   working directory, the line begins with `cd`.
    func text(at folder: String = workingDirectory) -> String {
        let words = ([program] + arguments).map(shellWord).joined(separator: " ")
        return directory.isEmpty || directory == folder
            ? words : "cd \(shellWord(directory)) && \(words)"
    }
}
