internal import Glibc

/// The value of an option that names a file, and may be what the file should hold instead:
/// `--auth-key "$(cat key.p8)"`, or a passphrase itself. No message repeats that.
package enum FileValue {
    /// Options whose files hold secrets, and what each of them names.
    private static let secrets: [(option: String, file: String)] = [
        ("auth-key", "the .p8 file"),
        ("auth-token-file", "a file that holds the provider token"),
        ("certificate", "the certificate's file"),
        ("private-key", "the key's file"),
        ("passphrase-file", "a file whose first line is the passphrase"),
        ("proxy-auth-file", "a file whose first line is user:password"),
    ]

    /// The longest name of a file (NAME_MAX), and the longest path (PATH_MAX).
    private static let nameCountMax = 255
    private static let pathCountMax = 4_095

    /// How files that hold keys, tokens and passwords are usually called.
    private static let endings: Set<String> = [
        "p8", "p12", "pfx", "pem", "key", "cer", "crt", "cert", "der", "jwt", "token", "txt",
        "conf",
        "json", "pass", "passphrase", "password", "secret", "auth", "creds", "credentials", "b64",
        "fifo", "sock",
    ]

    /// Whether an option's file holds a secret.
    package static func isSecret(option: String) -> Bool {
        secrets.contains { $0.option == option }
    }

    /// Whether the value is what a file should hold, and not a file's name.
    package static func isContent(_ value: String, option: String) -> Bool {
        guard !isFile(value) else { return false }
        if SecretText.isIn(value) || value.starts(withBytes: "-----BEGIN") { return true }
        if value.utf8.count > pathCountMax { return true }
        guard isSecret(option: option) else { return false }
        return value.unicodeScalars.contains { $0 == "\n" || $0 == "\r" }
    }

    /// What is wrong then, to be put behind the option's name; nothing of the value.
    package static func contentProblem(option: String) -> String {
        "was given the content of a file, not its name (it is not shown here): name "
            + file(of: option)
    }

    /// Whether a message may repeat the value: of an option whose file holds a secret, only what is the
    /// name of a file, or looks like one.
    package static func isShown(_ value: String, option: String) -> Bool {
        guard isSecret(option: option) else { return !isContent(value, option: option) }
        if isFile(value) { return true }
        guard !isContent(value, option: option) else { return false }
        let name = value.parts(atLast: "/").map { String($0.behind) } ?? value
        guard name.utf8.count <= nameCountMax else { return false }
        if let folder = value.parts(atLast: "/")?.before,
            isFile("\(folder)/.")
        {
            return true
        }
        guard let ending = name.parts(atLast: ".")?.behind else { return false }
        return endings.contains(ending.lowercased())
    }

    /// Why a file of an option can't be read, to be put behind the option's name.
    ///
    /// - Parameter number: What `errno` was.
    package static func unreadable(
        _ value: String, option: String, errno number: Int32
    ) -> BroadsideError {
        guard !isShown(value, option: option) else {
            return .file(option: option, value, errno: number, "name a readable file")
        }
        let failure = FileFailure(errno: number)
        let words =
            if isContent(value, option: option) {
                contentProblem(option: option)
            } else if failure == .unusable {
                "names no file (what was given is not shown, it may be the secret itself): name "
                    + file(of: option)
            } else {
                "can't be read: \(FileFailure.words(errno: number, ""))"
            }
        return BroadsideError(option: option, words, exitCode: failure.exitCode)
    }

    /// Whether a path leads to something.
    private static func isFile(_ path: String) -> Bool {
        // SAFETY: access(2) reads the path, which ends with a zero, during the call.
        unsafe access(path, F_OK) == 0
    }

    private static func file(of option: String) -> String {
        secrets.first { $0.option == option }?.file ?? "a file"
    }
}

/// A word of the command line that nothing expected, fit to be shown: it may be a part of a secret, or a
/// device token.
package func wordExcerpt(_ word: String) -> String {
    let masked = SecretText.masked(word)
    return masked == word ? tokenExcerpt(word.utf8) : masked
}
