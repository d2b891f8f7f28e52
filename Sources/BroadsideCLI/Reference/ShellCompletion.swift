import APNs
import Broadside

/// What `broadside help --completion SHELL` prints: a shell's completion of commands, options,
/// choices and files, out of the same tables as `--help`.
enum ShellCompletion: String, CaseIterable {
    case bash, zsh, fish

    /// What is completed after an option, or as a word of a command.
    private enum Argument {
        case choices([String])
        case file
        /// A number, a name, an identifier: nobody can guess it.
        case free

        init(_ option: OptionDescription) {
            guard let value = option.value else {
                self = .free
                return
            }
            let parts = value.split(separator: "|").map(String.init)
            let isChoice = parts.count > 1 && parts.allSatisfy { $0 == $0.lowercased() }
            if !option.choices.isEmpty {
                self = .choices(option.choices)
            } else if isChoice {
                self = .choices(parts)
            } else if value == "TYPE" {
                self = .choices(PushType.allCases.map(\.rawValue))
            } else if option.name == "environment" {
                self = .choices(Endpoints.Environment.allCases.map(\.rawValue))
            } else {
                // An option of which a path is one form takes that one.
                self = option.isPath("/") ? .file : .free
            }
        }
    }

    private static let documents = ["--man", "--completion"]
    private static let shells = allCases.map(\.rawValue).joined(separator: " ")

    var script: String {
        switch self {
        case .bash: Self.bashScript()
        case .zsh: Self.zshScript()
        case .fish: Self.fishScript()
        }
    }

    private static var names: [String] { Program.commands.map(\.name) }

    // MARK: bash

    private static func bashScript() -> String {
        var script = """
            # Completion of broadside for bash.
            _broadside() {
                local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
                local command=${COMP_WORDS[1]-} words= kind=word
                COMPREPLY=()
                # bash makes a word of its own of the sign in --name=value.
                if [[ $current == = ]]; then
                    current=
                elif [[ $previous == = ]]; then
                    previous=${COMP_WORDS[COMP_CWORD - 2]} kind=file
                fi
                if ((COMP_CWORD == 1)); then
                    words="\(names.joined(separator: " ")) help --help --version"
                else
                    case $command in

            """
        for command in Program.commands { script += bashCase(command) }
        script += """
                    help)
                        case $previous in
                            --completion) words="\(shells)" ;;
                            *) words="\((names + documents).joined(separator: " "))" ;;
                        esac ;;
                    esac
                fi
                if [[ -n $words ]]; then
                    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
                elif [[ $kind == file ]]; then
                    compopt -o filenames 2>/dev/null
                    mapfile -t COMPREPLY < <(compgen -f -- "$current")
                fi
            }
            complete -F _broadside broadside

            """
        return script
    }

    private static func bashCase(_ command: CommandDescription) -> String {
        var result = "        \(command.name))\n            case $previous in\n"
        var (files, free): ([String], [String]) = ([], [])
        for option in command.options where option.value != nil {
            switch Argument(option) {
            case .choices(let choices):
                result += "                --\(option.name)) "
                result += "words=\"\(choices.joined(separator: " "))\" ;;\n"
            case .file: files.append("--" + option.name)
            case .free: free.append("--" + option.name)
            }
        }
        if !files.isEmpty {
            result += "                \(files.joined(separator: "|"))) kind=file ;;\n"
        }
        if !free.isEmpty {
            result += "                \(free.joined(separator: "|"))) kind=none ;;\n"
        }
        let options = (command.options.map { "--" + $0.name } + ["--help"])
            .joined(separator: " ")
        let words = command.subcommands.joined(separator: " ")
        result += "                *)\n"
        if !words.isEmpty {
            result += """
                                    if ((COMP_CWORD == 2)) && [[ $current != -* ]]; then
                                        words="\(words)"
                                    fi

                """
        }
        result += "                    if [[ -z $words && $kind != file ]]; then\n"
        if takesPaths(command) {
            result += "                        kind=file\n"
            if !command.wordsAfterPath.isEmpty {
                let words = command.wordsAfterPath.joined(separator: " ")
                result += "                        ((COMP_CWORD > 2)) && kind=none\n"
                result += "                        ((COMP_CWORD == 3)) && words=\"\(words)\"\n"
            }
            result += "                        [[ $current == -* ]] && words=\"\(options)\"\n"
        } else {
            result += "                        words=\"\(options)\"\n"
        }
        return result + "                    fi ;;\n            esac ;;\n"
    }

    /// Whether words of a command that are no options are paths.
    private static func takesPaths(_ command: CommandDescription) -> Bool {
        command.usage.hasPrefix("PATH") || command.usage.contains("DIR...")
    }

    // MARK: zsh

    private static func zshScript() -> String {
        var script = "#compdef broadside\n# Completion of broadside for zsh.\n_broadside() {\n"
        script += "    if ((CURRENT == 2)); then\n        local -a commands=(\n"
        for command in Program.commands {
            script += "            \(quoted(command.name + ":" + command.summary))\n"
        }
        script += """
                        'help:pages about commands'
                        '--version:the version'
                    )
                    _describe -t commands command commands
                    return
                fi
                local name=$words[2]
                shift words
                ((CURRENT--))
                case $name in

            """
        for command in Program.commands {
            var specifications = command.options.map(zshOption)
            specifications.append("'--help[say more]'")
            if !command.subcommands.isEmpty {
                specifications.append("'1:word:(\(command.subcommands.joined(separator: " ")))'")
            }
            if !command.wordsAfterPath.isEmpty {
                let words = command.wordsAfterPath.joined(separator: " ")
                specifications += ["'1:path:_files'", "'2:word:(\(words))'"]
            } else if takesPaths(command) {
                specifications.append("'*:path:_files'")
            }
            script += "    \(command.name))\n        _arguments \\\n            "
            script += specifications.joined(separator: " \\\n            ") + " ;;\n"
        }
        script += """
                help)
                    _arguments '--man[a manual page]' \\
                        '--completion=[completion for a shell]:shell:(\(shells))' \\
                        '*:command:(\(names.joined(separator: " ")))' ;;
                esac
            }
            # Loaded from fpath it is the function's body; sourced it registers itself.
            if [[ $funcstack[1] == _broadside ]]; then
                _broadside "$@"
            else
                compdef _broadside broadside
            fi

            """
        return script
    }

    private static func zshOption(_ option: OptionDescription) -> String {
        let help = escaping("[]\\", in: option.help)
        let repeats = option.isRepeatable ? "*" : ""
        guard let value = option.value else {
            return quoted("\(repeats)--\(option.name)[\(help)]")
        }
        let action =
            switch Argument(option) {
            case .choices(let choices): "(\(choices.joined(separator: " ")))"
            case .file: "_files"
            case .free: " "
            }
        return quoted(
            "\(repeats)--\(option.name)=[\(help)]:\(escaping(":\\", in: value)):\(action)")
    }

    // MARK: fish

    private static func fishScript() -> String {
        var script = """
            # Completion of broadside for fish.
            function __broadside_command
                set -l words (commandline -opc)
                test (count $words) -gt 1; and test $words[2] = $argv[1]
            end
            function __broadside_no_word
                test (count (commandline -opc)) -eq $argv[1]
            end
            complete -c broadside -f
            complete -c broadside -n '__broadside_no_word 1' -l version -d 'the version'
            complete -c broadside -n '__broadside_no_word 1' -a help -d 'pages about commands'

            """
        for command in Program.commands {
            script += "complete -c broadside -n '__broadside_no_word 1' -a \(command.name)"
            script += " -d \(fishQuoted(command.summary))\n"
        }
        for command in Program.commands {
            let start = "complete -c broadside -n '__broadside_command \(command.name)'"
            if !command.subcommands.isEmpty {
                let words = command.subcommands.joined(separator: " ")
                script += "\(start) -n '__broadside_no_word 2' -a '\(words)'\n"
            }
            if !command.wordsAfterPath.isEmpty {
                let words = command.wordsAfterPath.joined(separator: " ")
                script += "\(start) -n '__broadside_no_word 2' -F\n"
                script += "\(start) -n '__broadside_no_word 3' -a '\(words)'\n"
            } else if takesPaths(command) {
                let behind = command.subcommands.isEmpty ? "" : " -n 'not __broadside_no_word 2'"
                script += "\(start)\(behind) -F\n"
            }
            for option in command.options {
                script += "\(start) -l \(option.name)"
                if option.value != nil {
                    switch Argument(option) {
                    case .choices(let choices):
                        script += " -x -a '\(choices.joined(separator: " "))'"
                    case .file: script += " -r -F"
                    case .free: script += " -x"
                    }
                }
                script += " -d \(fishQuoted(option.help))\n"
            }
            script += "\(start) -l help -d 'say more'\n"
        }
        let help = "complete -c broadside -n '__broadside_command help'"
        script += "\(help) -a '\(names.joined(separator: " "))'\n"
        script += "\(help) -l man -d 'a manual page'\n"
        script += "\(help) -l completion -x -a '\(shells)' -d 'completion for a shell'\n"
        return script
    }

    // MARK: quotes

    private static func escaping(_ characters: String, in text: String) -> String {
        var result = ""
        for character in text {
            if characters.contains(character) { result += "\\" }
            result.append(character)
        }
        return result
    }

    /// A word for bash and zsh, whatever it holds.
    private static func quoted(_ text: String) -> String {
        "'"
            + text.split(separator: "'", omittingEmptySubsequences: false).joined(
                separator: "'\\''")
            + "'"
    }

    private static func fishQuoted(_ text: String) -> String {
        "'" + escaping("\\'", in: text) + "'"
    }
}

extension Program {
    /// The page that `help --man [COMMAND]`, `help --markdown` or `help --completion SHELL` asks for;
    /// nil for others.
    static func document(_ words: ArraySlice<String>) throws(CommandFailure) -> String? {
        switch words.first {
        case "--man":
            guard let name = words.dropFirst().first else { return ManualPage.overview() }
            return ManualPage.page(of: try command(named: name))
        case "--markdown": return MarkdownReference.page()
        case "--completion":
            let name = words.dropFirst().first ?? ""
            guard let shell = ShellCompletion(rawValue: name) else {
                throw .usage("--completion '\(name)' is no known shell: use bash, zsh or fish")
            }
            return shell.script
        default:
            return nil
        }
    }
}
