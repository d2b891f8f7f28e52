extension ShellCompletion {
    // MARK: fish

    static func fishScript() -> String {
        var script = """
            # Completion of broadside for fish.
            function __broadside_command
                set -l words (commandline -opc)
                test (count $words) -gt 1; and test $words[2] = $argv[1]
            end
            function __broadside_no_word
                test (count (commandline -opc)) -eq $argv[1]
            end
            function __broadside_list
                # The text before the last comma, and after the = in --name=value.
                set -l before (commandline -ct | string replace -r '^--[^=]*=' '' \\
                    | string match -r '^.*,'; or echo)
                string join \\n -- $before$argv
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
                // `--ledger DIR` takes two words instead of the one word of a path.
                let option = "string match -q -- \"--*\" (commandline -opc)[3]"
                script += "\(start) -n '__broadside_no_word 4; and \(option)' -a '\(words)'\n"
            } else if takesPaths(command) {
                let behind = command.subcommands.isEmpty ? "" : " -n 'not __broadside_no_word 2'"
                script += "\(start)\(behind) -F\n"
            }
            for option in command.options {
                script += "\(start) -l \(option.name)"
                if option.kind != .flag {
                    switch Argument(option) {
                    case .choices(let choices):
                        script += " -x -a '\(choices.joined(separator: " "))'"
                    case .list(let choices):
                        script += " -x -a '(__broadside_list \(choices.joined(separator: " ")))'"
                    case .choicesOrFile(let choices):
                        script += " -r -F -a '\(choices.joined(separator: " "))'"
                    case .file: script += " -r -F"
                    case .free: script += " -x"
                    }
                }
                script += " -d \(fishQuoted(option.help))\n"
            }
            script += "\(start) -l help -d 'show all options'\n"
        }
        let help = "complete -c broadside -n '__broadside_command help'"
        script += "\(help) -a '\(names.joined(separator: " "))'\n"
        script += "\(help) -l man -d 'a manual page'\n"
        script += "\(help) -l markdown -d 'the reference'\n"
        script += "\(help) -l completion -x -a '\(shells)' -d 'completion for a shell'\n"
        return script
    }
}
