extension ShellCompletion {
    // MARK: zsh

    static func zshScript() -> String {
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
            specifications.append("'--help[show all options]'")
            if !command.subcommands.isEmpty {
                specifications.append("'1:word:(\(command.subcommands.joined(separator: " ")))'")
            }
            if !command.wordsAfterPath.isEmpty {
                let words = command.wordsAfterPath.joined(separator: " ")
                // `--ledger DIR` replaces the path.
                let isGiven = "((${words[(I)--ledger*]}))"
                specifications += [
                    "'1:path:{\(isGiven) && compadd - \(words) || _files}'",
                    "'2:word:{\(isGiven) || compadd - \(words)}'",
                ]
            } else if takesPaths(command) {
                specifications.append("'*:path:_files'")
            }
            script += "    \(command.name))\n        _arguments \\\n            "
            script += specifications.joined(separator: " \\\n            ") + " ;;\n"
        }
        script += """
                help)
                    _arguments '--man[a manual page]' \\
                        '--markdown[the reference]' \\
                        '--completion=[completion for a shell]:shell:(\(shells))' \\
                        '*:command:(\(names.joined(separator: " ")))' ;;
                esac
            }
            # From fpath, this file is the function's body. If sourced, it registers the function.
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
        guard let value = option.placeholder else {
            return quoted("\(repeats)--\(option.name)[\(help)]")
        }
        let action =
            switch Argument(option) {
            case .choices(let choices): "(\(choices.joined(separator: " ")))"
            case .list(let choices): "_sequence compadd - \(choices.joined(separator: " "))"
            case .choicesOrFile(let choices):
                "{compadd - \(choices.joined(separator: " ")); _files}"
            case .file: "_files"
            case .free: " "
            }
        return quoted(
            "\(repeats)--\(option.name)=[\(help)]:\(escaping(":\\", in: value)):\(action)")
    }
}
