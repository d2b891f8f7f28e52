import BroadsideAPNs
import BroadsideCampaigns
import BroadsideSupport

extension ParsedArguments {
    /// Returns the subcommand, and refuses further words.
    ///
    /// - Parameter takesMore: Subcommands that accept further words, and check them themselves.
    @discardableResult
    func expectSubcommand(
        of command: CommandDescription, takesMore: Set<String> = []
    ) throws(BroadsideError) -> String {
        let names = command.subcommands.joined(separator: ", ")
        guard let word = words.first else {
            throw .request(
                "\(command.name) needs one of \(names): see broadside \(command.name) --help")
        }
        guard command.subcommands.contains(word) else {
            let nearest = nearestName(to: word, among: command.subcommands)
            throw .request(
                "unknown word '\(wordExcerpt(word))': "
                    + (nearest.map { "did you mean \($0)?" }
                        ?? "\(command.name) needs one of \(names) here"))
        }
        if words.count > 1, !takesMore.contains(word) {
            throw .request(strange(words[1], after: "\(command.name) \(word)", in: command))
        }
        return word
    }

    /// Refuses options of other subcommands, because ignoring them would go unnoticed.
    func rejectOtherOptions(
        than subcommand: String, of command: CommandDescription
    ) throws(BroadsideError) {
        let own = command.options(after: [subcommand])
        for option in command.options
        where has(option.name) && own.named(option.name) == nil {
            throw .usage(
                option.name, "is not an option of \(command.name) \(subcommand): remove it")
        }
    }

    /// Refuses words for a command that takes only options.
    func rejectWords(of command: CommandDescription) throws(BroadsideError) {
        guard let word = words.first else { return }
        throw .request(strange(word, after: command.name, in: command))
    }

    /// Message about an unexpected word, which is most likely the value of a missing option.
    private func strange(
        _ word: String, after path: String, in command: CommandDescription
    ) -> String {
        let isFile = (try? fileExists(word)) ?? false
        // The word may belong to an unquoted secret that contains blanks.
        if !isFile,
            let secret = command.options.map(\.name).first(where: { name in
                string(name).map { !FileValue.isShown($0, option: name) } ?? false
            })
        {
            return "\(path) takes no further arguments, and the value of --\(secret) is not the "
                + "name of a file: name a file, in quotes if its name contains spaces"
        }
        func has(_ name: String) -> Bool { command.options.contains { $0.name == name } }
        let advice: String
        if has(word) {
            advice = "did you mean --\(word)?"
        } else if isDirectory(word), has("ledger") {
            advice = "did you mean --ledger \(shellWord(word))?"
        } else if isRegularFile(word), let name = ["tokens", "payload"].first(where: has) {
            advice = "did you mean --\(name) \(shellWord(word))?"
        } else if word.utf8.count >= 32, TokenText.isToken(word.utf8), has("token") {
            advice = "did you mean --token TOKEN?"
        } else if NotificationID(parsing: Array(word.utf8).rawSpan) != nil, has("apns-id") {
            advice = "did you mean --apns-id \(word)?"
        } else {
            advice = "options begin with --"
        }
        let shown = isFile ? word : wordExcerpt(word)
        return "\(path) takes no word '\(shown)': \(advice)"
    }
}
