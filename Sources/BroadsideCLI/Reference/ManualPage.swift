import BroadsideCampaigns

/// Output of `broadside help --man`: manual pages in man(7)'s macros, from the same tables as
/// `--help`.
enum ManualPage {
    /// Page broadside(1), with one line per command.
    static func overview() -> String {
        var page = header("broadside")
        page += ".SH NAME\nbroadside \\- campaigns of push notifications to millions of devices\n"
        page += ".SH SYNOPSIS\n\\fBbroadside\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
        page += """
            .SH DESCRIPTION
            Sends one campaign to millions of Apple devices in one run, records the outcome of every
            notification, and removes dead tokens from the list afterwards.
            .PP
            Options are written \\fB\\-\\-name\\fR \\fIvalue\\fR or \\fB\\-\\-name=\\fR\\fIvalue\\fR.
            Durations are written 500ms, 30s, 15m, 2h, 1d.
            .SH COMMANDS

            """
        for command in Program.commands {
            page += item("\\fBbroadside\\-\(escaped(command.name))\\fR(1)", command.summary)
        }
        page += ".SH \"EXIT STATUS\"\n"
        for (code, meaning) in Program.exitCodes.enumerated() { page += item("\(code)", meaning) }
        return page
    }

    /// Page broadside-COMMAND(1).
    static func page(of command: CommandDescription) -> String {
        let name = escaped(command.name)
        var page = header("broadside-\(command.name)")
        page += ".SH NAME\nbroadside\\-\(name) \\- \(escaped(command.summary))\n"
        page += ".SH SYNOPSIS\n\\fBbroadside \(name)\\fR \(escaped(command.usage))\n"
        let discussion = Discussion(of: command)
        page += ".SH DESCRIPTION\n" + discussion.parts.map(text).joined(separator: ".PP\n")
        page += ".SH OPTIONS\n"
        for section in command.sections {
            if section.title != "Options" { page += ".SS \"\(escaped(section.title))\"\n" }
            for option in section.options {
                page += item(
                    "\\fB\\-\\-\(escaped(option.name))\\fR"
                        + (option.placeholder.map { " \\fI\(escaped($0))\\fR" } ?? ""), option.help)
            }
        }
        page += ".SH EXAMPLES\n" + command.examples.map(text).joined(separator: ".PP\n")
        if !discussion.exitCodes.isEmpty {
            page += ".SH \"EXIT STATUS\"\n"
            for (code, meaning) in discussion.exitCodes { page += item(code, meaning) }
        }
        let others = Program.commands.map(\.name).filter { $0 != command.name }
        page += ".SH \"SEE ALSO\"\n\\fBbroadside\\fR(1)"
        for other in others { page += ",\n\\fBbroadside\\-\(escaped(other))\\fR(1)" }
        return page + "\n"
    }

    private static func header(_ name: String) -> String {
        // No date, so that the same source produces the same page.
        ".TH \"\(escaped(name.uppercased()))\" 1 \"\" \"broadside \(escaped(broadsideVersion))\""
            + " \"Broadside\"\n.nh\n.ad l\n"
    }

    /// Term with its meaning indented below.
    private static func item(_ word: String, _ text: String) -> String {
        ".TP\n\(word)\n\(escaped(text))\n"
    }

    private static func text(of part: Discussion.Part) -> String {
        switch part {
        case .paragraph(let paragraph): escaped(paragraph) + "\n"
        case .entries(let entries):
            entries.map { item("\\fB\(escaped($0.word))\\fR", $0.meaning) }.joined()
        }
    }

    /// Purpose of an example, with the call below it.
    private static func text(of example: CommandExample) -> String {
        "\(escaped(example.purpose)):\n.PP\n.RS 2\n.nf\n"
            + example.lines.map { escaped(String($0)) + "\n" }.joined() + ".fi\n.RE\n"
    }

    /// Escapes text so that troff prints it literally.
    private static func escaped(_ text: String) -> String {
        var result = ""
        for character in text {
            switch character {
            case "\\": result += "\\e"
            case "-": result += "\\-"
            case "'": result += "\\(aq"
            case "\"": result += "\\(dq"
            case "`": result += "\\(ga"
            case "^": result += "\\(ha"
            case "~": result += "\\(ti"
            default: result.append(character)
            }
        }
        return result.hasPrefix(".") ? "\\&" + result : result
    }
}
