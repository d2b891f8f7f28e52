import Broadside

/// What `broadside help --man` prints: manual pages in man(7)'s macros, out of the same tables as
/// `--help`.
enum ManualPage {
    /// broadside(1): every command in a line.
    static func overview() -> String {
        var page = header("broadside")
        page += ".SH NAME\nbroadside \\- campaigns of push notifications to millions of devices\n"
        page += ".SH SYNOPSIS\n\\fBbroadside\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
        page += """
            .SH DESCRIPTION
            Sends one campaign to millions of Apple devices in one run, knows afterwards what became
            of every single one, and cleans the token list with what it learned.
            .PP
            Options are written \\fB\\-\\-name\\fR \\fIvalue\\fR or \\fB\\-\\-name=\\fR\\fIvalue\\fR.
            Durations are written 500ms, 30s, 15m, 2h, 1d.
            .SH COMMANDS

            """
        for command in Program.commands {
            page += item("\\fBbroadside\\-\(escaped(command.name))\\fR(1)", command.summary)
        }
        page += ".SH \"EXIT STATUS\"\n"
        let codes = [
            "complete", "could not be done", "the request is wrong, nothing was sent",
            "rows are left over", "APNs refuses the campaign", "a file or disk error",
        ]
        for (code, meaning) in codes.enumerated() { page += item("\(code)", meaning) }
        return page
    }

    /// broadside-COMMAND(1).
    static func page(of command: CommandDescription) -> String {
        let name = escaped(command.name)
        var page = header("broadside-\(command.name)")
        page += ".SH NAME\nbroadside\\-\(name) \\- \(escaped(command.summary))\n"
        page += ".SH SYNOPSIS\n\\fBbroadside \(name)\\fR \(escaped(command.usage))\n"
        let (description, exitCodes) = paragraphs(of: command.discussion)
        page += ".SH DESCRIPTION\n" + description.joined(separator: ".PP\n")
        page += ".SH OPTIONS\n"
        for section in command.sections {
            if section.title != "Options" { page += ".SS \"\(escaped(section.title))\"\n" }
            for option in section.options {
                page += item(
                    "\\fB\\-\\-\(escaped(option.name))\\fR"
                        + (option.value.map { " \\fI\(escaped($0))\\fR" } ?? ""), option.help)
            }
        }
        if !exitCodes.isEmpty {
            page += ".SH \"EXIT STATUS\"\n"
            for code in exitCodes {
                let number = code.prefix { $0.isNumber }
                page += item("\(number)", String(code.dropFirst(number.count + 1)))
            }
        }
        let others = Program.commands.map(\.name).filter { $0 != command.name }
        page += ".SH \"SEE ALSO\"\n\\fBbroadside\\fR(1)"
        for other in others { page += ",\n\\fBbroadside\\-\(escaped(other))\\fR(1)" }
        return page + "\n"
    }

    private static func header(_ name: String) -> String {
        // No date: the same source makes the same page.
        ".TH \"\(escaped(name.uppercased()))\" 1 \"\" \"broadside \(escaped(broadsideVersion))\""
            + " \"Broadside\"\n.nh\n.ad l\n"
    }

    /// A word and what it means, indented below it.
    private static func item(_ word: String, _ text: String) -> String {
        ".TP\n\(word)\n\(escaped(text))\n"
    }

    /// The paragraphs of a discussion, and what each exit code means where it says so.
    private static func paragraphs(
        of discussion: String
    ) -> (paragraphs: [String], exitCodes: [String]) {
        let start = "Exit codes: "
        var paragraphs: [String] = []
        var exitCodes: [String] = []
        for lines in discussion.split(separator: "\n", omittingEmptySubsequences: false)
            .split(separator: "")
        {
            if lines.contains(where: isEntry) {
                paragraphs.append(entries(lines))
                continue
            }
            var text = lines.joined(separator: " ")
            if let place = range(of: start, in: text) {
                let codes = text[place.upperBound...].split(separator: ";")
                exitCodes = codes.map { code in
                    let trimmed = code.drop { $0 == " " }
                    return String(trimmed.hasSuffix(".") ? trimmed.dropLast() : trimmed)
                }
                text = String(text[..<place.lowerBound])
            }
            if !text.isEmpty { paragraphs.append(escaped(text) + "\n") }
        }
        return (paragraphs, exitCodes)
    }

    /// Whether a line explains a word: two blanks stand between them.
    private static func isEntry(_ line: Substring) -> Bool {
        !line.hasPrefix(" ") && range(of: "  ", in: String(line)) != nil
    }

    /// Lines of a word and its meaning; indented lines go on with the one above.
    private static func entries(_ lines: some Sequence<Substring>) -> String {
        var result = ""
        for line in lines {
            let text = String(line)
            if isEntry(line), let gap = range(of: "  ", in: text) {
                let meaning = text[gap.upperBound...].drop { $0 == " " }
                result += item(
                    "\\fB\(escaped(String(text[..<gap.lowerBound])))\\fR", String(meaning))
            } else {
                result += escaped(String(text.drop { $0 == " " })) + "\n"
            }
        }
        return result
    }

    private static func range(of part: String, in text: String) -> Range<String.Index>? {
        text.firstRange(of: part)
    }

    /// Text that troff prints as it stands, whatever it begins with.
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
