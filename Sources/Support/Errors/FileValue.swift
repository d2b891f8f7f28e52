internal import Glibc

/// Detection of secrets given as an option's value in place of a file's name, such as a passphrase
/// or `--auth-key "$(cat key.p8)"`. Messages do not repeat such values.
package enum FileValue {
    /// The options whose files hold secrets, with a description of each file.
    private static let secrets: [(option: String, file: String)] = [
        ("auth-key", "the .p8 file"),
        ("auth-token-file", "a file that holds the provider token"),
        ("certificate", "the certificate's file"),
        ("private-key", "the key's file"),
        ("passphrase-file", "a file whose first line is the passphrase"),
        ("proxy-auth-file", "a file whose first line is user:password"),
    ]

    /// Maximum byte count of a file name (NAME_MAX); `pathCountMax` is that of a path (PATH_MAX).
    private static let nameCountMax = 255
    private static let pathCountMax = 4_095

    /// The usual name extensions of files with keys, tokens and passwords.
    private static let endings: Set<String> = [
        "p8", "p12", "pfx", "pem", "key", "cer", "crt", "cert", "der", "jwt", "token", "txt",
        "conf",
        "json", "pass", "passphrase", "password", "secret", "auth", "creds", "credentials", "b64",
        "fifo", "sock",
    ]

    /// Returns whether an option's file holds a secret.
    package static func isSecret(option: String) -> Bool {
        secrets.contains { $0.option == option }
    }

    /// Minimum number of hexadecimal digits of a device token that is given in place of a file.
    private static let tokenDigitsMin = 64

    /// Returns whether the value is a device token, and not the name of a file. The token may be in
    /// each form that lists may have, such as `<aabb ccdd>`, and in quotes. Several tokens count as
    /// one.
    package static func isToken(_ value: some StringProtocol) -> Bool {
        let marks: Set<Unicode.Scalar> = ["<", ">", " ", "\t", "\r", "\n", ",", "\"", "'"]
        let digits = value.unicodeScalars.filter { !marks.contains($0) }
        return digits.count >= tokenDigitsMin
            && digits.allSatisfy(\.properties.isASCIIHexDigit)
            && !isFile(String(value))
    }

    /// Returns a file's name for display: a device token is shortened, also if it is given in place
    /// of the first folder's name.
    static func shown(_ file: String) -> String {
        if isToken(file) { return tokenExcerpt(file.utf8) }
        guard let (folder, rest) = file.parts(atFirst: "/"), isToken(folder) else { return file }
        return "\(tokenExcerpt(folder.utf8))/\(rest)"
    }

    /// Returns whether the value is the content of a file instead of its name.
    package static func isContent(_ value: String, option: String) -> Bool {
        guard !isFile(value) else { return false }
        if SecretText.isIn(value) || value.starts(withBytes: "-----BEGIN") { return true }
        if value.utf8.count > pathCountMax { return true }
        guard isSecret(option: option) else { return false }
        return value.unicodeScalars.contains { $0 == "\n" || $0 == "\r" }
    }

    /// Returns the message about an option whose value is the content of a file. The message
    /// includes neither the option's name nor the value.
    package static func contentProblem(option: String) -> String {
        "is the content of a file, not its name (the content is not shown here): name "
            + file(of: option)
    }

    /// Returns whether a message may repeat the value. If the option's file holds a secret, the
    /// value must be, or appear to be, the name of a file.
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

    /// Returns the error for an unreadable file that an option names.
    ///
    /// - Parameter number: The value of `errno`.
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
                "is not the name of a file (the value is not shown here, because it may "
                    + "be the secret itself): name "
                    + file(of: option)
            } else {
                "can't be read: \(FileFailure.message(errno: number, ""))"
            }
        return BroadsideError(option: option, words, exitCode: failure.exitCode)
    }

    /// Returns whether a path exists.
    private static func isFile(_ path: String) -> Bool {
        // SAFETY: access(2) reads the path, which ends with a zero byte, during the call.
        unsafe access(path, F_OK) == 0
    }

    private static func file(of option: String) -> String {
        secrets.first { $0.option == option }?.file ?? "a file"
    }
}

/// Returns an unexpected command-line word, shortened or masked for display, because it may be part
/// of a secret or a device token.
package func wordExcerpt(_ word: String) -> String {
    let masked = SecretText.masked(word)
    return masked == word ? tokenExcerpt(word.utf8) : masked
}
