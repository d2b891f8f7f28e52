extension ShellCompletion {
    // MARK: bash

    static func bashScript() -> String {
        var script = """
            # Completion of broadside for bash.
            _broadside() {
                local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
                local command=${COMP_WORDS[1]-} words= kind=word before=
                COMPREPLY=()
                # bash treats the = in --name=value as a separate word.
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
                if [[ $kind == list && $current == *,* ]]; then
                    before=${current%,*}, current=${current##*,}
                fi
                if [[ -n $words ]]; then
                    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "$current")
                fi
                if [[ $kind == either || $kind == file && -z $words ]]; then
                    compopt -o filenames 2>/dev/null
                    mapfile -t -O ${#COMPREPLY[@]} COMPREPLY < <(compgen -f -- "$current")
                fi
            }
            complete -F _broadside broadside

            """
        return script
    }

    private static func bashCase(_ command: CommandDescription) -> String {
        var result = "        \(command.name))\n            case $previous in\n"
        var (files, free): ([String], [String]) = ([], [])
        for option in command.options where option.kind != .flag {
            switch Argument(option) {
            case .choices(let choices): result += bashWords(option, choices, kind: "word")
            case .list(let choices): result += bashWords(option, choices, kind: "list")
            case .choicesOrFile(let choices):
                result += bashWords(option, choices, kind: "either")
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
                // `--ledger DIR` takes two words instead of the one word of a path.
                result +=
                    "                        [[ $COMP_CWORD == 4 && ${COMP_WORDS[2]} == --* ]]"
                result += " && words=\"\(words)\"\n"
            }
            result += "                        [[ $current == -* ]] && words=\"\(options)\"\n"
        } else {
            result += "                        words=\"\(options)\"\n"
        }
        return result + "                    fi ;;\n            esac ;;\n"
    }

    private static func bashWords(
        _ option: OptionDescription, _ words: [String], kind: String
    ) -> String {
        let words = words.joined(separator: " ")
        return "                --\(option.name)) kind=\(kind) words=\"\(words)\" ;;\n"
    }
}
