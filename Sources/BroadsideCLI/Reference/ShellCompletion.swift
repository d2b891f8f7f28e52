import Broadside
import BroadsideSupport

/// What `broadside help --completion SHELL` prints: a shell's completion of commands, options,
/// choices and files, out of the same tables as `--help`.
enum ShellCompletion: String, CaseIterable {
    case bash, zsh, fish

    /// What is completed after an option, or as a word of a command.
    enum Argument {
        case choices([String])
        /// Some of these, with commas between them.
        case list([String])
        case choicesOrFile([String])
        case file
        /// A number, a name, an identifier: nobody can guess it.
        case free

        init(_ option: OptionDescription) {
            switch option.kind {
            case .choice(let choices), .known(let choices): self = .choices(choices)
            case .list(let choices): self = .list(choices)
            case .choiceOrFile(let choices): self = .choicesOrFile(choices)
            case .file, .columnDirectory, .fileOrEndpoint, .fileUnless: self = .file
            case .flag, .text, .number: self = .free
            }
        }
    }

    static let documents = ["--man", "--completion"]
    static let shells = allCases.map(\.rawValue).joined(separator: " ")

    var script: String {
        switch self {
        case .bash: Self.bashScript()
        case .zsh: Self.zshScript()
        case .fish: Self.fishScript()
        }
    }

    static var names: [String] { Program.commands.map(\.name) }

    /// Whether words of a command that are not options are paths.
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

    /// A word for bash and zsh, whatever it holds.
    static func quoted(_ text: String) -> String {
        "'" + text.pieces(at: "'").joined(separator: "'\\''") + "'"
    }

    static func fishQuoted(_ text: String) -> String {
        "'" + escaping("\\'", in: text) + "'"
    }
}

extension Program {
    /// The page that `help --man [COMMAND]`, `help --markdown` or `help --completion SHELL` asks for;
    /// nil for others.
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
