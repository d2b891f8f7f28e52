import BroadsideSupport
import Glibc

/// Output of `-h` and `--help`, wrapped to the terminal's width.
struct HelpPage {
    /// Width of a line, in columns.
    let width: Int
    private(set) var text = ""

    init(width: Int = HelpPage.outputWidth) {
        self.width = min(max(width, Self.widths.lowerBound), Self.widths.upperBound)
    }

    /// Range of line widths. In narrower lines, names and meanings do not fit; wider lines are hard
    /// to read.
    private static let widths = 40...120
    /// Width for output to a pipe or a file.
    private static let defaultWidth = 80

    /// Value of `COLUMNS`, if the shell exports it, otherwise the width of the terminal on stdout.
    static var outputWidth: Int {
        SystemCall.environment("COLUMNS").flatMap { Int($0) }.flatMap { $0 > 0 ? $0 : nil }
            ?? terminalSize(STDOUT_FILENO)?.columns ?? defaultWidth
    }

    /// Adds a line without wrapping.
    mutating func addLine(_ line: String = "") { text += line + "\n" }

    /// Adds a text that is wrapped between words.
    mutating func addParagraph(_ paragraph: String, indent: Int = 0) {
        text += Self.folded(paragraph, first: 0, rest: indent, width: width)
    }

    /// Adds a name in the left column and its meaning in the right one.
    ///
    /// - Parameter column: Column of the meanings, if the terminal is wide enough.
    mutating func addEntry(_ name: String, _ meaning: String, column: Int = 30) {
        let column = column * 2 + 10 > width ? 6 : column
        assert(column < width, "a meaning has room beside its name")
        let left = "  " + name
        text += left
        if left.count >= column { text += "\n" }
        let blanks = left.count >= column ? column : column - left.count
        text += String(repeating: " ", count: blanks)
        text += Self.folded(meaning, first: column, rest: column, width: width)
    }

    /// Adds terms and meanings, with a column width that fits the terms.
    mutating func addEntries(_ entries: [Discussion.Entry]) {
        let longest = entries.map(\.word.count).max() ?? 0
        for entry in entries { addEntry(entry.word, entry.meaning, column: longest + 4) }
    }

    mutating func addExamples(_ examples: some Sequence<CommandExample>) {
        for example in examples {
            addLine("  \(example.purpose):")
            for line in example.lines { addLine("    \(line)") }
        }
    }

    /// Adds examples under a heading. A subcommand may have none.
    mutating func addExampleSection(_ examples: some Collection<CommandExample>) {
        guard !examples.isEmpty else { return }
        addLine("\nExamples:")
        addExamples(examples)
    }

    /// - Parameters:
    ///   - first: Start column of the first line.
    ///   - rest: Start column of the other lines.
    private static func folded(_ text: String, first: Int, rest: Int, width: Int) -> String {
        var (result, position, start) = ("", first, first)
        for word in text.split(whereSeparator: { $0 == " " || $0 == "\n" }) {
            if position > start {
                if position + 1 + word.count > width {
                    result += "\n" + String(repeating: " ", count: rest)
                    (position, start) = (rest, rest)
                } else {
                    result += " "
                    position += 1
                }
            }
            result += word
            position += word.count
        }
        return result + "\n"
    }
}

extension CommandDescription {
    /// Maximum number of options that `-h` shows.
    static var essentialsLimit: Int { 10 }

    /// Output of `-h`: usage, common options, examples.
    ///
    /// - Parameter subcommand: The subcommand that the page is about; nil for the whole command.
    func shortHelp(of subcommand: String? = nil) -> String {
        let options = sections(of: subcommand).flatMap(\.options)
        let shown =
            essentials.isEmpty
            ? Array(options.prefix(Self.essentialsLimit))
            : essentials.compactMap { options.named($0) }
        var page = HelpPage()
        page.addParagraph("Usage: broadside \(name) \(usage(of: subcommand))", indent: 4)
        page.addLine()
        page.addLine(shown.count < options.count ? "Common options:" : "Options:")
        for option in shown {
            page.addEntry(option.call, String(option.help.prefix { $0 != ";" }))
        }
        page.addExampleSection(examples(of: subcommand).prefix(3))
        let more =
            shown.count < options.count ? "all \(options.count) options, in detail" : "details"
        let path = subcommand.map { "\(name) \($0)" } ?? name
        page.addLine("\nbroadside \(path) --help: \(more)")
        return page.text
    }

    /// Output of `--help`.
    ///
    /// - Parameter subcommand: The subcommand that the page is about; nil for the whole command.
    func helpPage(of subcommand: String? = nil) -> String {
        var page = HelpPage()
        page.addParagraph("Usage: broadside \(name) \(usage(of: subcommand))", indent: 4)
        let discussion = discussion(of: subcommand)
        for part in discussion.parts {
            page.addLine()
            switch part {
            case .paragraph(let text): page.addParagraph(text)
            case .entries(let entries): page.addEntries(entries)
            }
        }
        if !discussion.exitCodes.isEmpty {
            page.addLine("\nExit codes:")
            page.addEntries(discussion.exitCodes)
        }
        for section in sections(of: subcommand) {
            page.addLine("\n\(section.title):")
            for option in section.options { page.addEntry(option.call, option.help) }
        }
        page.addExampleSection(examples(of: subcommand))
        return page.text
    }
}
