import Broadside
import Support

/// A call that somebody may want, as a shell takes it.
struct CommandExample: Sendable {
    /// What it does; a colon follows.
    let purpose: String
    /// From `broadside` on; where it is too long for a line, the next begins with four blanks.
    let call: String

    init(_ purpose: String, _ call: String) {
        self.purpose = purpose
        self.call = call
    }

    var lines: [Substring] { call.split(separator: "\n") }
}

/// A command: what it is for, what it takes, and what it does.
struct CommandDescription: Sendable {
    let name: String
    /// One line for the list of commands.
    let summary: String
    /// What follows the name in the usage line.
    let usage: String
    /// Paragraphs below the usage line.
    let discussion: String
    let sections: [OptionSection]
    let examples: [CommandExample]
    /// Names of subcommands where the command has them.
    var subcommands: [String] = []
    /// Words that follow a path where the command takes one.
    var wordsAfterPath: [String] = []
    /// The options that `-h` shows, ten at most; empty: all there are, or the first ten.
    var essentials: [String] = []
    /// What the command reads of a campaign file; nil: all of it.
    var campaignKeys: Set<String>?
    /// Options of `send` that a campaign file may hold though the command has no use for them.
    var passedOverInCampaign: Set<String> = []
    let run: @Sendable (ParsedArguments) throws(BroadsideError) -> Int32

    var options: [OptionDescription] { sections.flatMap(\.options) }
}

extension CommandDescription {
    /// The most options that `-h` shows.
    static var essentialsLimit: Int { 10 }

    /// The screen that `-h` prints: usage, the options that matter, examples.
    var shortHelp: String {
        let shown =
            essentials.isEmpty
            ? Array(options.prefix(Self.essentialsLimit))
            : essentials.compactMap { options.named($0) }
        var page = "Usage: broadside \(name) \(usage)\n\n"
        page += shown.count < options.count ? "Options that matter:\n" : "Options:\n"
        for option in shown {
            page += Self.line(option.call, String(option.help.prefix { $0 != ";" }), width: 80)
        }
        page += "\nExamples:\n"
        for example in examples.prefix(3) {
            page += "  \(example.purpose):\n"
            for line in example.lines { page += "    \(line)\n" }
        }
        let more =
            shown.count < options.count ? "all \(options.count) options, in detail" : "details"
        return page + "\nbroadside \(name) --help: \(more)\n"
    }

    /// The page that `--help` prints.
    var helpPage: String {
        var page = "Usage: broadside \(name) \(usage)\n\n\(discussion)\n"
        for section in sections {
            page += "\n\(section.title):\n"
            for option in section.options {
                page += Self.line(option.call, option.help)
            }
        }
        page += "\nExamples:\n"
        for example in examples {
            page += "  \(example.purpose):\n"
            for line in example.lines { page += "    \(line)\n" }
        }
        return page
    }

    /// A name in the left column, its text wrapped in the right one.
    static func line(_ left: String, _ right: String, width: Int = 98) -> String {
        let column = 30
        var result = "  " + left
        var position = result.count
        if position >= column {
            result += "\n"
            position = 0
        }
        for word in right.split(separator: " ") {
            if position < column {
                result += String(repeating: " ", count: column - position)
                position = column
            } else if position + 1 + word.count > width {
                result += "\n" + String(repeating: " ", count: column)
                position = column
            } else {
                result += " "
                position += 1
            }
            result += word
            position += word.count
        }
        return result + "\n"
    }
}
