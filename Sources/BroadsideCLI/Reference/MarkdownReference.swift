import BroadsideCampaigns

/// Output of `broadside help --markdown`: one page with all commands and options, from the same
/// tables as `--help`. `tools/reference` keeps it as docs/reference.md.
enum MarkdownReference {
    static func page() -> String {
        var page = """
            # Reference

            This page has every command and every option. `broadside help --markdown` prints it from the tables
            behind `--help`. After a change, `tools/reference` writes it again; a test compares it.

            Options take the form `--name value` or `--name=value`. Durations are `500ms`, `30s`, `15m`, `2h`,
            `1d`. Errors are one line on stderr: the problem and the fix.


            """
        page += table(
            ["Command", "What it does"],
            Program.commands.map { command in
                let anchor = "broadside-\(command.name)"
                return ["[`broadside \(command.name)`](#\(anchor))", text(command.summary)]
            })
        page += "\n## Exit codes\n\n"
        page += table(
            ["Code", "Meaning"],
            Program.exitCodes.enumerated().map { ["\($0.offset)", text($0.element)] })
        for command in Program.commands { page += section(of: command) }
        return page
    }

    private static func section(of command: CommandDescription) -> String {
        var result = "\n## broadside \(command.name)\n\n\(text(sentence(command.summary)))\n\n"
        result += "```text\nbroadside \(command.name) \(command.usage)\n```\n"
        let discussion = Discussion(of: command)
        for part in discussion.parts {
            switch part {
            case .paragraph(let paragraph): result += "\n\(text(paragraph))\n"
            case .entries(let entries):
                result += "\n" + table(["Word", "Meaning"], entries.map(row))
            }
        }
        for section in command.sections {
            if command.sections.count > 1 { result += "\n**\(text(section.title))**\n" }
            result +=
                "\n"
                + table(
                    ["Option", "Meaning"],
                    section.options.map { option in
                        let value = option.placeholder.map { " " + $0 } ?? ""
                        let repeats =
                            option.isRepeatable && !option.help.contains("may be repeated")
                        return [
                            code("--\(option.name)\(value)"),
                            text(option.help) + (repeats ? "; may be repeated" : ""),
                        ]
                    })
        }
        for example in command.examples {
            result += "\n\(text(example.purpose)):\n\n```sh\n\(example.call)\n```\n"
        }
        if !discussion.exitCodes.isEmpty {
            result += "\n" + table(["Exit code", "Meaning"], discussion.exitCodes.map(row))
        }
        return result
    }

    private static func row(_ entry: Discussion.Entry) -> [String] {
        [code(entry.word), text(entry.meaning)]
    }

    private static func table(_ header: [String], _ rows: [[String]]) -> String {
        ([header, header.map { _ in "---" }] + rows)
            .map { "| \($0.joined(separator: " | ")) |\n" }.joined()
    }

    private static func sentence(_ text: String) -> String {
        text.prefix(1).uppercased() + text.dropFirst() + "."
    }

    private static func code(_ text: String) -> String {
        "`\(text.replacing("|", with: "\\|"))`"
    }

    /// Escapes text so that Markdown displays it literally, also in a table.
    private static func text(_ text: String) -> String {
        var result = ""
        for character in text {
            if "\\|<*`[]".contains(character) { result += "\\" }
            result.append(character)
        }
        return result
    }
}
