import BroadsideCampaigns
import BroadsideSupport

/// Output of `broadside help --completion SHELL`: completion of commands, options, choices and
/// files, from the same tables as `--help`.
enum ShellCompletion: String, CaseIterable {
    case bash, zsh, fish

    /// Possible completions after an option, or for a word of a command.
    enum Argument {
        case choices([String])
        /// Comma-separated list of these choices.
        case list([String])
        case choicesOrFile([String])
        case file
        /// Number, name or identifier, which can't be completed.
        case free

        init(_ option: OptionDescription) {
            switch option.kind {
            case .choice(let choices), .known(let choices): self = .choices(choices)
            case .list(let choices): self = .list(choices)
            case .choiceOrFile(let choices): self = .choicesOrFile(choices)
            case .file, .columnDirectory, .namedFile, .fileOrEndpoint, .fileUnless: self = .file
            case .flag, .text, .number: self = .free
            }
        }
    }

    static let documents = ["--man", "--markdown", "--completion"]
    static let shells = allCases.map(\.rawValue).joined(separator: " ")

    var script: String {
        switch self {
        case .bash: Self.bashScript()
        case .zsh: Self.zshScript()
        case .fish: Self.fishScript()
        }
    }

    static var names: [String] { Program.commands.map(\.name) }

    /// Whether a command's positional words are paths.
    static func takesPaths(_ command: CommandDescription) -> Bool {
        !command.wordsAfterPath.isEmpty || command.usage.contains("DIR...")
    }

    static func escaping(_ characters: String, in text: String) -> String {
        var result = ""
        for character in text {
            if characters.contains(character) { result += "\\" }
            result.append(character)
        }
        return result
    }

    /// Quotes any text as one word for bash and zsh.
    static func quoted(_ text: String) -> String {
        "'" + text.pieces(at: "'").joined(separator: "'\\''") + "'"
    }

    static func fishQuoted(_ text: String) -> String {
        "'" + escaping("\\'", in: text) + "'"
    }
}

extension Program {
    /// Page for `help --man [COMMAND]`, `help --markdown` or `help --completion SHELL`; nil for
    /// other arguments.
    static func document(_ words: ArraySlice<String>) throws(BroadsideError) -> String? {
        switch words.first {
        case "--man":
            guard let name = words.dropFirst().first else { return ManualPage.overview() }
            return ManualPage.page(of: try command(named: name))
        case "--markdown": return MarkdownReference.page()
        case "--completion":
            let name = words.dropFirst().first ?? ""
            guard let shell = ShellCompletion(rawValue: name) else {
                throw .usage("completion", "'\(name)' is not a known shell: use bash, zsh or fish")
            }
            return shell.script
        default:
            return nil
        }
    }
}
