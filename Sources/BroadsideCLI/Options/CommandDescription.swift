import Broadside
import BroadsideSupport

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
    /// The options that `-h` shows, ten at most; empty in a command that has no more than ten.
    var essentials: [String] = []
    /// What the command reads of a campaign file; nil: all of it.
    var campaignKeys: Set<String>?
    /// Options of `send` that a campaign file may hold though the command has no use for them.
    var passedOverInCampaign: Set<String> = []
    let run: @Sendable (ParsedArguments) throws(BroadsideError) -> Int32

    var options: [OptionDescription] { sections.flatMap(\.options) }
}
