import BroadsideSupport
import BroadsideTLS

/// Runs commands that print a key or a provider token, and keeps their output secret.
enum SecretCommand {
    /// Time limit of a command, seconds.
    static let secondsLimit: UInt64 = 30
    /// Limit on the length of the error line that a message repeats, in characters.
    private static let excerptCountMax = 200

    /// Refuses a command that is empty or contains a secret.
    static func check(_ command: String, option: String) throws(BroadsideError) {
        guard command.unicodeScalars.contains(where: { $0.value > 0x20 }) else {
            throw .usage(
                option,
                "is empty: write --\(option) COMMAND (is a variable of the script unset?)")
        }
        guard !SecretText.isIn(command) else {
            throw .usage(
                option,
                "contains a key or a provider token (it is not shown here), and "
                    + "other users can read arguments: write a command that prints it")
        }
    }

    /// Whether the options name a command.
    static func isNamed(_ options: SendOptions) -> Bool {
        options.authKeyCommand != nil || options.authTokenCommand != nil
    }

    /// Runs the options' command once more and returns its output.
    ///
    /// - Parameters:
    ///   - options: Options with one command.
    ///   - shell: Runs the command.
    static func print(
        _ options: SendOptions, by shell: ShellCommand
    ) throws(BroadsideError) -> [UInt8] {
        if let command = options.authKeyCommand {
            return try run(
                command, option: "auth-key-command", limit: Credential.keyByteLimit, by: shell,
                heedsSignals: false)
        }
        guard let command = options.authTokenCommand else {
            preconditionFailure("the options name a command")
        }
        return try run(
            command, option: "auth-token-command", limit: ExternalProviderToken.byteLimit,
            by: shell, heedsSignals: false)
    }

    /// Runs a command and returns its output, which the caller must overwrite.
    ///
    /// - Parameters:
    ///   - command: Command line.
    ///   - option: Option that contains the command.
    ///   - limit: Limit on the output, bytes.
    ///   - shell: Runs the command.
    ///   - heedsSignals: Whether a pending stop signal ends the command. Set this only if no other
    ///     code takes signals while the command runs.
    static func run(
        _ command: String, option: String, limit: Int, by shell: ShellCommand = ShellCommand(),
        heedsSignals: Bool = true
    ) throws(BroadsideError) -> [UInt8] {
        try check(command, option: option)
        var end = shell.run(
            command, limits: .init(outputBytes: limit, nanoseconds: secondsLimit * second),
            heedsSignals: heedsSignals)
        defer { end.errors.cleanse() }
        let isBlank = end.output.allSatisfy { $0 <= 0x20 }
        if end.outcome == .exited(0), !isBlank {
            defer { end.output = [] }
            return end.output
        }
        let words = excerpt(of: end)
        end.output.cleanse()
        func failure(_ problem: String) -> BroadsideError { .usage(option, problem) }
        switch end.outcome {
        case .exited(0): throw failure("printed nothing\(words): run it in a shell to see why")
        case .exited(let code):
            throw failure(
                "failed with exit code \(code)\(words): run it in a shell, and fix what it reports")
        case .killed(let signal):
            throw failure("was ended by signal \(signal)\(words): run it in a shell to see why")
        case .notStarted(let number):
            throw failure(
                "can't be run: /bin/sh: \(describe(errno: number)): install a shell, or use a file")
        case .tookTooLong:
            throw failure(
                "took longer than \(secondsLimit) s and was ended\(words): use a "
                    + "command that is faster and asks for no input")
        case .printedTooMuch:
            throw failure(
                "printed more than \(grouped(UInt64(limit))) bytes: it must print the secret and nothing else"
            )
        case .cancelled:
            throw BroadsideError(
                "interrupted while --\(option) ran: run the same command again, with --resume if "
                    + "its ledger exists", exitCode: ExitCode.rowsRemain)
        }
    }

    /// Last line of a command's error output, in parentheses, without text that may be a secret;
    /// empty if there is none.
    static func excerpt(of end: ShellCommand.End) -> String {
        let text = SecretText.masked(String(decoding: end.errors, as: UTF8.self))
        guard let line = text.split(whereSeparator: \.isNewline).last(where: { !isBlank($0) })
        else { return "" }
        // The errors may repeat the output, for example with set -x.
        let printed = String(decoding: end.output, as: UTF8.self)
            .split(whereSeparator: \.isNewline).filter { $0.utf8.count >= 8 }
        guard !printed.contains(where: { String(line).contains(String($0)) }) else {
            return " (its last line contains the secret, so it is not shown)"
        }
        let words = line.split(separator: " ").map { isLikeSecret($0) ? "…" : String($0) }
        return " (\(words.joined(separator: " ").prefix(excerptCountMax)))"
    }

    private static func isBlank(_ line: Substring) -> Bool {
        line.unicodeScalars.allSatisfy { $0.value <= 0x20 }
    }

    /// Whether a word could be a line of a key or a part of a token: it is long, and has only
    /// digits of base64 or base64url. A word that begins with a slash could also be a path. Paths
    /// usually have a dot, a hyphen or an underscore, and no line of a key has one.
    ///
    /// Quotes, brackets and punctuation around the word are ignored, because programs often put
    /// them around the text that they refuse.
    static func isLikeSecret(_ word: Substring) -> Bool {
        let punctuation = "\"'`()[]{}<>,;:.!?".utf8
        var bytes = word.utf8
        while let byte = bytes.first, punctuation.contains(byte) { bytes.removeFirst() }
        while let byte = bytes.last, punctuation.contains(byte) { bytes.removeLast() }
        guard bytes.count >= 32 else { return false }
        if bytes.first == UInt8(ascii: "/"), bytes.contains(where: { "._-".utf8.contains($0) }) {
            return false
        }
        var kinds: Set<Int> = []
        for byte in bytes {
            switch byte {
            case 0x41...0x5a: kinds.insert(0)
            case 0x61...0x7a: kinds.insert(1)
            case 0x30...0x39: kinds.insert(2)
            case UInt8(ascii: "+"), UInt8(ascii: "/"), UInt8(ascii: "="), UInt8(ascii: "-"),
                UInt8(ascii: "_"), UInt8(ascii: "."):
                break
            default: return false
            }
        }
        return kinds.count == 3
    }
}
